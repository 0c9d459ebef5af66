import importlib
import io
import sys
from dataclasses import replace

import pytest

from alphagrad import SearchError, plot, search, tasks
from alphagrad.errors import AlphagradError
from graphax import Order

ROE = tasks.get("RoeFlux_1d").graph()
ROBOT = tasks.get("RobotArm_6DOF").graph()


@pytest.fixture(scope="module")
def results():
    return [
        search(ROE, method=method, counting="raw", budget=budget, record=False)
        for method, budget in (("presets", "certified"), ("anneal", 0.2))
    ]


def drawn(axes):
    """The points of all named lines, by the name up to the comma."""
    named = {line.get_label().partition(",")[0]: line for line in axes.lines if not line.get_label().startswith("_")}
    return {name: (list(line.get_xdata()), list(line.get_ydata())) for name, line in named.items()}


def as_png(figure):
    image = io.BytesIO()
    figure.savefig(image, format="png")
    return image.getvalue()


def test_matplotlib_is_asked_for(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    monkeypatch.delitem(sys.modules, "alphagrad.plot")
    with pytest.raises(ImportError, match=r"pip install 'graphax-alphagrad\[plot\]'"):
        importlib.import_module("alphagrad.plot")


def test_search_history(results):
    figure, axes = plot.search_history(*results)
    lines = drawn(axes)
    for result in results:
        seconds, values = lines[result.order.finder]
        assert values == [*(value for _, _, value in result.history), result.value]
        assert seconds[-1] == pytest.approx(result.seconds)
        assert seconds == sorted(seconds)
        assert all(after > 0 for after in seconds)
    (bound,) = (height for name, (_, height) in lines.items() if name.startswith("lower bound"))
    assert set(bound) == {max(result.bound for result in results)}
    assert (axes.get_xscale(), axes.get_ylabel()) == ("log", "multiplications (raw)")
    assert as_png(figure).startswith(b"\x89PNG")


def test_searches_of_several_functions(results):
    arm = search(ROBOT, budget="certified", minimize="operations", method="presets", record=False)
    arm = replace(arm, bound=arm.value)
    _, axes = plot.search_history(results[0], arm, labels=("flux", "arm"))
    assert [text.get_text() for text in axes.get_legend().get_texts()] == [
        f"flux, {results[0].value}",
        f"arm, {arm.value}, optimal",
        f"lower bound {results[0].bound:g}",
        f"lower bound {arm.value}",
    ]
    assert axes.get_ylabel() == "cost"


def test_finders_are_run(results):
    figure, axes = plot.cost_over_time(
        ROE, finders=("presets", "greedy"), budget=0.2, counting="raw", minimize="multiplications", record=False
    )
    lines = drawn(axes)
    assert lines["presets"][1][-1] == results[0].value
    assert {name: set(lines[name][1]) for name in ("forward", "reverse", "markowitz")} == {
        "forward": {620}, "reverse": {364}, "markowitz": {407},
    }  # fmt: skip
    assert [text.get_text().partition(",")[0] for text in figure.legends[0].get_texts()] == list(lines)
    assert as_png(figure).startswith(b"\x89PNG")


def test_finders_that_have_run(results):
    _, axes = plot.cost_over_time({"one": results[0], "two": results[1]})
    lines = drawn(axes)
    assert lines["one"][1][-1] == results[0].value
    assert lines["two"][1][-1] == results[1].value
    assert set(lines["forward"][1]) == {620}


def test_order_comparison():
    own = Order(tuple(ROE.intermediates), finder="mine")
    _, axes = plot.order_comparison(tasks.get("RoeFlux_1d"), orders=("rev", "best", own), counting="raw", budget=0.2)
    lines = drawn(axes)
    size = len(ROE.intermediates)
    assert list(lines["reverse"][0]) == list(range(size + 1))
    assert {name: heights[-1] for name, (_, heights) in lines.items()} == {
        "reverse": 364, "best known": 295, "mine": 620, "lower bound 295": 295,
    }  # fmt: skip
    for _, heights in lines.values():
        assert heights == sorted(heights)
    first = ROE.plan("rev").by_vertex()
    costs = [sum(step.multiplications("raw") for step in steps) for _, steps in first]
    assert lines["reverse"][1][:3] == [0, costs[0], costs[0] + costs[1]]
    assert axes.get_ylabel() == "multiplications (raw)"


def test_orders_of_functions():
    _, axes = plot.order_comparison(lambda x, y: (x * y) ** 2, 1.0, 2.0, argnums=(0, 1), orders="fwd")
    assert drawn(axes)["forward"][1][-1] == 2


def test_times_over_sizes():
    rows = [
        {
            "task": "MLP",
            "batch": 8 * n,
            "scale": n,
            "contender": name,
            "seconds": {"median": n, "low": n, "high": 2 * n},
        }
        for n in (1, 2)
        for name in ("jacrev", "auto/auto")
    ]
    figure, axes = plot.batch_scaling({"measurements": rows})
    assert axes.get_xlabel() == "size, as multiple"
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["jacrev", "auto/auto"]
    assert figure.axes == [axes]
    assert list(axes.lines[0].get_ydata()) == [1000, 2000]


BAD = {
    "no search": (lambda r: plot.search_history(), "there is no search to draw"),
    "not a result": (lambda r: plot.search_history(r[0].order), "'Order' is Order; give what alphagrad.search"),
    "labels": (lambda r: plot.search_history(r[0], labels=("a", "b")), "a name for each of the 1 results"),
    "a label": (lambda r: plot.search_history(*r, labels="ab"), "but is 'ab'"),
    "finder": (lambda r: plot.cost_over_time(ROE, finders=("magic",)), "unknown finder 'magic'; choose one of: auto"),
    "no finder": (lambda r: plot.cost_over_time(ROE, finders=()), "there is no finder to draw; choose among: auto"),
    "method": (lambda r: plot.cost_over_time(ROE, method="auto"), "with finders="),
    "results and more": (lambda r: plot.cost_over_time({"a": r[0]}, finders=("auto",)), "drawn as they are"),
    "no results": (lambda r: plot.cost_over_time({}), "there is no finder to draw"),
    "no order": (lambda r: plot.order_comparison(ROE, orders=()), "there is no order to draw"),
    "order": (lambda r: plot.order_comparison(ROE, orders=("odd",)), "unknown order 'odd'; choose one of: best"),
    "counting": (lambda r: plot.order_comparison(ROE, orders="rev", counting="odd"), "one of: folded, raw"),
    "benchmark": (lambda r: plot.batch_scaling("absent.json"), "absent.json cannot be read"),
    "no times": (lambda r: plot.batch_scaling({"measurements": []}), "no times to draw"),
}


@pytest.mark.parametrize("case", BAD)
def test_what_cannot_be_drawn(case, results):
    call, message = BAD[case]
    with pytest.raises(AlphagradError, match=message):
        call(results)


def test_searches_by_the_clock_have_no_history(results):
    with pytest.raises(SearchError, match="no history to draw: minimize='runtime'"):
        plot.search_history(replace(results[0], history=()))
