"""The code in the documents runs and prints what they show, links are valid, and the API reference is up to date."""

import api_reference
import charts
import matplotlib
import notebook
import pages
import pytest

# Pages that train agents, or run long searches.
SLOW = {"docs/training.md", "docs/finders.md"}


def parameters():
    return [pytest.param(page, marks=pytest.mark.slow if page in SLOW else ()) for page in pages.PAGES]


@pytest.mark.parametrize("page", parameters())
def test_code_prints_what_is_shown(page):
    with pages.workshop():
        for block, printed in pages.run(page):
            # Commands also print times, so pages only show their output if it is the same each time.
            if block.language == "python" or block.output:
                assert printed == block.output, f"{page}:{block.line}; `make pages` writes down what is printed now"


@pytest.mark.parametrize("page", pages.PAGES)
def test_links_exist(page):
    assert pages.broken_links(page) == []


@pytest.mark.parametrize("path", notebook.NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks_print_what_they_show(path):
    with pages.workshop():
        for cell, printed in notebook.run(path):
            assert printed == notebook.shown(cell), "`make pages` writes down what is printed now"


def test_charts_can_be_drawn_again(tmp_path):
    matplotlib.use("Agg")
    drawn = charts.draw(tmp_path)
    assert all((charts.IMAGES / path.name).is_file() for path in drawn)
    assert sum(charts.elimination_costs([2, 3, 4, 1, 5])) == 13


@pytest.mark.parametrize("page", pages.PAGES)
def test_figures_are_small(page):
    figures = [path for path in pages.links(page) if path.suffix in (".png", ".svg")]
    assert all(path.stat().st_size < 200_000 for path in figures)


def test_the_index_has_every_page():
    linked = {path.name for path in pages.links("docs/README.md")}
    assert {page.removeprefix("docs/") for page in pages.PAGES if page.startswith("docs/")} <= linked | {"README.md"}


def test_the_api_reference_is_up_to_date():
    assert api_reference.PATH.read_text(encoding="utf-8") == api_reference.reference(), "`make pages` writes it again"


@pytest.mark.parametrize(
    "command",
    [
        "alphagrad solve RoeFlux_1d",
        "alphagrad search RoeFlux_1d --speed 3",
        "alphagrad train alphazero RoeFlux_1d --seconds soon",
        "make progress",
        "pip install 'graphax-alphagrad[gold]'",
        "python examples/absent.py",
        "python examples/newton.py --depth 3",
        "rm notes.txt",
    ],
)
def test_a_command_that_does_not_exist_is_noticed(command):
    (words,) = pages.commands(command)
    with pytest.raises(pages.PageError):
        pages.perform(words, long=True)


def test_a_command_that_fails_is_noticed():
    with pages.workshop(), pytest.raises(pages.PageError, match="NoSuchTask"):
        pages.perform(["alphagrad", "search", "NoSuchTask"])


def test_output_is_inserted(tmp_path, monkeypatch):
    (tmp_path / "docs" / pages.IMAGES).mkdir(parents=True)
    monkeypatch.setattr(pages, "ROOT", tmp_path)
    page = tmp_path / "docs/page.md"
    page.write_text("```python\nx = 2\nprint(x)\n```\nThen\n\n```python\nprint(x + 1)\n```\n\n```text\n5\n```\nDone.\n")
    pages.write_down("docs/page.md")
    written = page.read_text()
    assert written.count("```text\n2\n```\nThen") == written.count("```text\n3\n```\nDone.") == 1
    with pages.workshop():
        assert all(printed == block.output for block, printed in pages.run("docs/page.md"))
