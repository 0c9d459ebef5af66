"""The page in a real browser: it shows the numbers of the plans, and works with the mouse and the keyboard."""

import os
import random
from pathlib import Path

import pytest

import graphax
from alphagrad.page.data import page_data
from alphagrad.page.html import as_html
from alphagrad.page.symbols import symbol_of

from .conftest import WINDOW
from .views import LOOPS, ORDERS, view_of

NAMES = ["five", "EnzymeReaction", "RoeFlux_1d", "MLP", "random 500"]
SCREENSHOTS = "ALPHAGRAD_SCREENSHOTS"
pytestmark = pytest.mark.slow


class Browser:
    """An open page, from the point of view of its user."""

    def __init__(self, driver, path):
        self.driver = driver
        driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
        driver.get(path.as_uri())
        driver.execute_script("localStorage.clear(); delete document.documentElement.dataset.theme")

    def one(self, selector):
        return self.driver.find_element("css selector", selector)

    def texts(self, selector):
        return [each.text for each in self.driver.find_elements("css selector", selector)]

    def click(self, selector):
        self.one(selector).click()

    def press(self, *keys):
        from selenium.webdriver import ActionChains

        ActionChains(self.driver).send_keys(*keys).perform()

    def number(self, selector="#counter-value"):
        return int(self.one(selector).text.replace(",", ""))

    def slide(self, step):
        self.driver.execute_script(
            "const s = document.getElementById('slider'); s.value = arguments[0]; s.dispatchEvent(new Event('input'));",
            step,
        )

    def edges(self):
        """Target and source of every edge that is drawn."""
        script = "return [...document.querySelectorAll('path.edge')].map(e => [+e.dataset.target, +e.dataset.source])"
        return {tuple(edge) for edge in self.driver.execute_script(script)}

    def gone(self):
        script = "return [...document.querySelectorAll('.vertex.gone')].map(e => +e.dataset.vertex)"
        return set(self.driver.execute_script(script))

    def play(self, vertices):
        script = """
          for (const number of arguments[0])
            document.querySelector(`[data-vertex="${number}"]`).dispatchEvent(new MouseEvent("click", {bubbles: true}));
        """
        self.driver.execute_script(script, list(vertices))

    def background(self):
        return self.driver.execute_script("return getComputedStyle(document.body).backgroundColor")


@pytest.fixture
def opened(driver, pages):
    def open_page(name, *args, **options):
        view, path = pages(name, *args, **options)
        return view, Browser(driver, path)

    yield open_page
    assert [entry for entry in driver.get_log("browser") if entry["level"] in ("SEVERE", "WARNING")] == []


@pytest.mark.parametrize("name", [*NAMES, *LOOPS])
def test_the_slider_ends_in_the_jacobian_and_the_counter_at_the_cost(name, opened):
    view, page = opened(name)
    steps = len(view.graph.intermediates)
    for number, replay in enumerate(view.replays, start=1):
        page.press(str(number))
        page.slide(0)
        assert page.edges() == view.graph.edges.keys()
        assert page.number() == 0
        page.slide(steps // 2)
        assert page.edges() == replay.edges_after(steps // 2).keys()
        assert page.number() == sum(move.multiplications for move in replay.moves[: steps // 2])
        page.slide(steps)
        assert page.edges() == replay.plan.results.keys()
        assert page.number() == replay.cost.multiplications
        assert page.gone() == set(view.graph.intermediates)
        assert page.one("#counter-total").text == f"of {replay.cost.multiplications:,}"
        assert "bipartite" in page.one("#step").text


@pytest.mark.parametrize("counting", ["raw", "folded"])
def test_tables_have_costs_and_bounds(counting, opened):
    view, page = opened("RoeFlux_1d", counting)
    rows = [row.split() for row in page.texts("#tables tbody tr")]
    for row, replay in zip(rows, view.replays, strict=True):
        assert row[:4] == [
            replay.name,
            *map(str, (replay.cost.multiplications, replay.cost.additions, replay.cost.peak)),
        ]
    for place in ("#tables", ".bound"):
        assert f"every order takes at least {view.bound} multiplications" in page.one(place).text


def test_the_keyboard_steps_and_chooses(opened):
    from selenium.webdriver import Keys

    view, page = opened("RoeFlux_1d")
    page.press("2", Keys.ARROW_RIGHT, Keys.ARROW_RIGHT, Keys.ARROW_RIGHT)
    assert page.gone() == set(view.graph.plan("rev").order[:3])
    page.press(Keys.ARROW_LEFT)
    assert page.gone() == set(view.graph.plan("rev").order[:2])
    page.press("1")
    assert page.gone() == set(view.graph.plan("fwd").order[:2])
    page.press(Keys.END)
    assert page.number() == view.graph.cost("fwd").multiplications
    page.press(Keys.HOME)
    assert page.number() == 0
    page.one("#slider").send_keys(Keys.ARROW_RIGHT)
    assert len(page.gone()) == 1
    page.press("9")
    assert page.one("#orders [aria-pressed=true] .label-text").text == "forward"


def test_it_plays_and_pauses(opened, driver):
    from selenium.webdriver.support.wait import WebDriverWait

    _, page = opened("five")
    page.driver.execute_script("document.activeElement.blur()")
    page.press(" ")
    assert page.one("#run").get_attribute("aria-label") == "Pause"
    WebDriverWait(driver, 5).until(lambda _: page.gone())
    page.press(" ")
    assert page.one("#run").get_attribute("aria-label") == "Play"
    page.click("#last")
    page.click("#run")
    assert len(page.gone()) < 5


def test_pointing_shows_vertices_and_edges(opened):
    from selenium.webdriver import ActionChains

    view, page = opened("MLP")
    vertex = next(v for v in view.graph.vertices.values() if v.name == "dot_general")
    ActionChains(page.driver).move_to_element(page.one(f'[data-vertex="{vertex.number}"] circle')).perform()
    text = page.one("#detail").text
    assert "dot_general" in text
    assert "deep_learning.py:" in text
    assert "multiplication" in text
    assert str(next(s for edge, s in view.graph.edges.items() if vertex.number in edge)) in text
    target, source = next(edge for edge in view.graph.edges if edge[1] == vertex.number)
    show = "document.querySelectorAll('.hit')[[...document.querySelectorAll('path.edge')].findIndex(e => " \
        f"e.dataset.source === '{source}' && e.dataset.target === '{target}')]" \
        ".dispatchEvent(new PointerEvent('pointerenter'))"  # fmt: skip
    page.driver.execute_script(show)
    assert f"{source} → {target}" in page.one("#detail h3").text
    assert str(view.graph.edges[target, source]) in page.one("#detail").text


def test_orders_stand_side_by_side(opened):
    view, page = opened("RoeFlux_1d")
    page.click("[data-mode=compare]")
    page.slide(60)
    assert page.texts(".panel b") == [replay.name for replay in view.replays]
    costs = [sum(move.multiplications for move in replay.moves[:60]) for replay in view.replays]
    assert [int(text) for text in page.texts(".panel .cost")] == costs
    assert len(page.driver.find_elements("css selector", "#chart circle")) == len(view.replays)
    page.click("[data-mode=replay]")
    assert len(page.driver.find_elements("css selector", ".panel")) == 1


@pytest.mark.parametrize("counting", ["folded", "raw"])
@pytest.mark.parametrize("name", [*NAMES, "TransformerEncoder", "OrbitJ2"])
def test_games_cost_what_plans_do(name, counting, opened):
    view, page = opened(name, counting)
    page.click("[data-mode=play]")
    random_order = list(view.graph.intermediates)
    random.Random(0).shuffle(random_order)
    orders = (
        [view.graph.plan("rev").order] if name == "random 500" else [random_order, *(r.order for r in view.replays)]
    )
    for order in orders:
        page.click("#restart")
        page.play(order)
        cost = view.graph.cost(list(order), counting)
        assert page.number() == cost.multiplications
        assert f"and {cost.additions:,} addition" in page.one("#counter-unit").text
        assert page.edges() == view.graph.plan(list(order)).results.keys()
        assert page.one("#game-says").text.startswith(f"Done, with {cost.multiplications:,}.")


def test_moves_can_be_undone_and_hints_asked_for(opened):
    view, page = opened("RoeFlux_1d")
    page.click("[data-mode=play]")
    best = min(view.replays, key=lambda replay: replay.cost.multiplications)
    first, second, *_ = best.order
    page.click("#hint")
    assert f"The order “{best.name}” continues with {first}." in page.one("#game-says").text
    assert "Cheapest now:" in page.one("#game-says").text
    assert "hinted" in page.one(f'[data-vertex="{first}"]').get_attribute("class")
    page.click(f'[data-vertex="{first}"] circle')
    assert page.gone() == {first}
    page.press("h")
    assert f"continues with {second}." in page.one("#game-says").text
    other = next(v for v in view.graph.intermediates if v not in best.order.vertices[:5])
    page.play([other])
    page.press("h")
    assert "You have left the order" in page.one("#game-says").text
    page.click("#undo")
    assert page.gone() == {first}
    assert page.one("#game-says").text == f"{other} is back."
    page.press("u", "u")
    assert page.one("#game-says").text == "There is nothing to undo."
    page.play([first, second])
    page.press("r")
    assert page.gone() == set()
    assert page.number() == 0


def test_games_are_played_by_keyboard_alone(opened):
    from selenium.webdriver import Keys

    view, page = opened("five")
    page.click("[data-mode=play]")
    page.driver.execute_script("document.querySelector('.vertex[tabindex=\"0\"]').focus()")
    focused = "return +document.activeElement.dataset.vertex"
    start = page.driver.execute_script(focused)
    page.press(Keys.ARROW_RIGHT)
    moved = page.driver.execute_script(focused)
    assert moved != start
    page.press(Keys.ENTER)
    assert page.gone() == {moved}
    for _ in range(4):
        page.press(Keys.ENTER)
    assert page.gone() == set(view.graph.intermediates)
    assert page.one("#game-says").text.startswith("Done")


def test_graphs_that_cannot_be_played_are_replayed(driver, tmp_path, monkeypatch):
    monkeypatch.setattr("alphagrad.page.algebra.MOST_ENTRIES", 50)
    view = view_of("MLP")
    (tmp_path / "page.html").write_text(as_html([page_data(view)], "MLP"), encoding="utf-8")
    page = Browser(driver, tmp_path / "page.html")
    page.slide(30)
    assert page.number() == view.replays[-1].cost.multiplications
    page.click("[data-mode=play]")
    assert "Free play is not available for this graph: the structures" in page.one("#game-says").text
    page.play([1])
    assert page.gone() == set()
    assert not page.one("#hint").is_enabled()


@pytest.mark.parametrize("name", LOOPS)
def test_bodies_of_loops_are_opened_and_left(name, opened):
    view, page = opened(name)
    for number, replay in enumerate(view.replays, start=1):
        page.press(str(number))
        page.slide(1)
        ((vertex, passing),) = replay.plan.passings
        assert page.texts("#loops button") == [
            f"Open the loop at {vertex}: {'forward' if passing.forward else 'backward'}, {passing.length} steps"
        ]
        page.click("#loops button")
        body = view.bodies[passing.how.graph]
        assert page.one("#title").text == body.title
        assert page.one("#counter-name").text == replay.name
        assert page.edges() == body.graph.edges.keys()
        page.slide(len(body.graph.intermediates))
        assert page.number() * passing.length == passing.multiplications
        assert page.edges() == passing.how.plan.results.keys()
        page.click("#loops button")
        assert page.one("#title").text == name
        assert page.one("#counter-name").text == replay.name
        assert page.gone() == {replay.plan.order[0]}


def test_a_vertex_opens_its_loop_and_the_order_has_the_bodies(opened):
    view, page = opened("nested")
    plan = view.replays[-1].plan
    ((vertex, passing),) = plan.passings
    script = "return document.getElementById('order-text').textContent"
    text = page.driver.execute_script(script)
    order = eval(text.removeprefix("graphax.jacve(f, order=").removesuffix(")"), {"graphax": graphax})
    assert [step.operation for step in view.graph.plan(order).instructions if step.together]
    assert view.graph.cost(order) == plan.cost()
    ((inner, _),) = passing.how.plan.passings
    assert [[n for n, _ in body.bodies] for _, body in order.bodies] == [[inner]]
    page.play([vertex])
    assert page.one("#title").text == view.bodies[passing.how.graph].title
    assert page.driver.execute_script(script).startswith("graphax.Order([")


def test_reports_have_several_functions_and_timings(driver, tmp_path):
    timing = {"task": "five", "batch": 512, "contender": "jacrev", "median": 2e-3, "low": 1e-3, "high": 3e-3}
    views = [view_of("five"), view_of("EnzymeReaction")]
    data = [page_data(view, [timing] if view.title == "five" else []) for view in views]
    (tmp_path / "report.html").write_text(as_html(data, "report"), encoding="utf-8")
    page = Browser(driver, tmp_path / "report.html")
    assert "Time for a batch of 512" in page.one("#tables").text
    assert "jacrev 2.00" in page.one("#tables").text
    for view in views:
        assert f"{view.title} {len(view.graph.intermediates)} " in page.one("#tables").text
    page.one("#targets").send_keys("EnzymeReaction")
    assert page.one("#title").text == "EnzymeReaction"
    assert "jacrev" not in page.one("#tables").text
    assert page.edges() == views[1].graph.edges.keys()
    assert [entry for entry in driver.get_log("browser") if entry["level"] == "SEVERE"] == []


def test_light_and_dark(opened):
    _, page = opened("five")
    colours = {}
    for scheme in ("light", "dark"):
        feature = {"name": "prefers-color-scheme", "value": scheme}
        page.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})
        colours[scheme] = page.background()
    assert colours["light"] != colours["dark"]
    page.click("#theme")
    assert page.background() == colours["light"]
    page.driver.refresh()
    assert page.background() == colours["light"]
    page.click("#theme")
    assert page.background() == colours["dark"]


def test_zoom_shows_and_hides_names(opened):
    _, page = opened("random 500")
    assert "farther" in page.one(".panel svg").get_attribute("class")
    box = page.one(".panel svg").get_attribute("viewBox")
    for _ in range(6):
        page.click("#zoom-in")
    assert "far" not in page.one(".panel svg").get_attribute("class").split()
    page.click("#zoom-fit")
    assert page.one(".panel svg").get_attribute("viewBox") == box


def test_everything_has_a_name(opened):
    _, page = opened("five")
    unnamed = """
      return [...document.querySelectorAll("button, input, select, [role=button], [role=img]")]
        .filter((e) => !(e.getAttribute("aria-label") || e.textContent.trim() || e.closest("label")))
        .map((e) => e.outerHTML)
    """
    assert page.driver.execute_script(unnamed) == []
    reduced = {"name": "prefers-reduced-motion", "value": "reduce"}
    page.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [reduced]})
    page.slide(2)
    moving = "return document.getAnimations().length"
    assert page.driver.execute_script(moving) == 0


@pytest.mark.skipif(SCREENSHOTS not in os.environ, reason=f"${SCREENSHOTS} names no folder to write screenshots to")
def test_screenshots(opened):
    """Take the pictures of the paper's flux solver for the documents."""
    import time
    from io import BytesIO

    from PIL import Image

    folder = Path(os.environ[SCREENSHOTS])
    view, page = opened("RoeFlux_1d", orders=(*ORDERS[:3], "best"))
    page.driver.set_window_size(1440, 1290)

    def taken(name):
        # Changes fade in.
        time.sleep(0.7)
        picture = Image.open(BytesIO(page.driver.get_screenshot_as_png())).convert("RGB")
        picture.quantize(256, kmeans=3, dither=Image.Dither.NONE).save(folder / f"{name}.png", optimize=True)
        assert (folder / f"{name}.png").stat().st_size < 300_000

    taken("page-graph")
    page.slide(44)
    taken("page-slider")
    page.click("[data-mode=compare]")
    taken("page-compare")
    page.click("[data-mode=play]")
    page.click("#theme")
    page.play(view.replays[-1].order.vertices[:50])
    page.click("#hint")
    taken("page-game")
    page.driver.set_window_size(*WINDOW)


def test_the_page_explains_itself(opened):
    """Symbols are inside vertices, numbers are below, and the legend has a sentence for each mark."""
    view, page = opened("RoeFlux_1d")
    assert "the lines from inputs to outputs are the Jacobian" in " ".join(page.one("#about").text.split())
    inside = page.driver.execute_script(
        "return Object.fromEntries([...document.querySelectorAll('.vertex.intermediate')].map("
        "node => [node.dataset.vertex, node.querySelector('text').textContent]))"
    )
    assert inside == {str(n): symbol_of(view.graph.vertices[n].name) for n in view.graph.intermediates}
    page.one("#explained summary").click()
    explained = ", ".join(page.texts("#explained dt"))
    for mark in page.texts(".legend li"):
        assert mark in explained


@pytest.mark.parametrize("width", [360, 768])
def test_nothing_is_wider_than_a_phone(width, opened):
    _, page = opened("RoeFlux_1d")
    size = page.driver.get_window_size()
    page.driver.set_window_size(width, 900)
    try:
        wide, window = page.driver.execute_script("return [document.documentElement.scrollWidth, innerWidth]")
        assert wide <= window
    finally:
        page.driver.set_window_size(size["width"], size["height"])
