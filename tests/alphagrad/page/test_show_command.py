import json
import os

import pytest
from typer.testing import CliRunner

from alphagrad.cli import app
from graphax import Order

MODULE = """
import jax.numpy as jnp

def f(x, y):
    return jnp.sin(x * y) + x

args = (1.0, 2.0)
"""
FAST = ("--order", "rev", "--order", "fwd")


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "shown.py").write_text(MODULE)
    (tmp_path / "junk.json").write_text("{}")
    (tmp_path / "folder.html").mkdir()
    Order((1, 2), fingerprint="another").save("other.json")


def alphagrad(*arguments):
    return CliRunner().invoke(app, list(arguments), prog_name="alphagrad")


def answered(*arguments):
    result = alphagrad(*arguments)
    assert result.exit_code == 0, (result.stdout, result.stderr, result.exception)
    return result.stdout


def targets_of(path):
    return json.loads(path.read_text().split('id="data">')[1].split("</script>")[0])["targets"]


def test_show_writes_a_page(tmp_path):
    text = answered("show", "EnzymeReaction", "--budget", "0.2")
    assert "written: EnzymeReaction.html" in text
    (target,) = targets_of(tmp_path / "EnzymeReaction.html")
    assert [order["name"] for order in target["orders"]] == ["forward", "reverse", "Markowitz", "best known"]
    assert target["bound"] <= target["orders"][-1]["multiplications"]


def test_show_a_function_of_ones_own(tmp_path):
    Order((1, 2), finder="mine").save("mine.json")
    answered("show", "shown:f", "--args", "shown:args", "--order", "mine.json", "--order", "fwd", "--out", "f.html")
    (target,) = targets_of(tmp_path / "f.html")
    assert [order["name"] for order in target["orders"]] == ["mine", "forward"]
    assert target["title"] == "shown:f"
    assert target["vertices"][-1]["where"] == "shown.py:5 in f"
    answered("show", "shown:f", "--args", "shown:args", *FAST)
    assert (tmp_path / "shown-f.html").exists()


def test_answers_as_data():
    document = json.loads(answered("show", "RoeFlux_1d", *FAST, "--counting", "raw", "--json"))
    assert document["out"] == "RoeFlux_1d.html"
    (target,) = document["targets"]
    assert [order["multiplications"] for order in target["orders"]] == [364, 620]
    assert target["bound"] == 223


@pytest.mark.parametrize("suffix", ["svg", "dot"])
def test_drawings(suffix, tmp_path):
    answered("show", "RoeFlux_1d", "--out", f"graph.{suffix}")
    first = (tmp_path / f"graph.{suffix}").read_text()
    answered("show", "RoeFlux_1d", "--order", "rev", "--step", "40", "--out", f"graph.{suffix}")
    assert (tmp_path / f"graph.{suffix}").read_text() != first


def timings():
    seconds = {"median": 2e-3, "low": 1e-3, "high": 3e-3, "runs": 20}
    rows = [
        {"task": "RoeFlux_1d", "batch": 512, "contender": "jacrev", "seconds": seconds},
        {"task": "RoeFlux_1d", "batch": 512, "contender": "absent", "seconds": None},
    ]
    return {"format": "alphagrad bench 1", "measurements": rows}


def test_report(tmp_path, monkeypatch):
    (tmp_path / "bench.json").write_text(json.dumps(timings()))
    opened = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    answered("report", "RoeFlux_1d", "EnzymeReaction", *FAST, "--timings", "bench.json", "--open")
    roe, enzyme = targets_of(tmp_path / "report.html")
    assert [(row["contender"], row["median"]) for row in roe["timings"]] == [("jacrev", 2e-3)]
    assert enzyme["timings"] == []
    assert opened == [(tmp_path / "report.html").as_uri()]


BAD = {
    "show RoeFlux1d": "did you mean RoeFlux_1d",
    "show": "Missing argument",
    "show RoeFlux_1d --order odd": "unknown order 'odd'; it is one of: best, auto, fwd",
    "show RoeFlux_1d --order absent.json": "no order file 'absent.json'",
    "show RoeFlux_1d --order junk.json": "'junk.json' is not a saved order",
    "show RoeFlux_1d --order other.json": "made for the graph another",
    "show RoeFlux_1d --out page.pdf": "ends in .html or .svg or .dot",
    "show RoeFlux_1d --out page": "ends in .html",
    "show RoeFlux_1d --out absent/page.html": "there is no folder absent",
    "show RoeFlux_1d --out folder.html": "cannot be written",
    "show RoeFlux_1d --out graph.svg --step 99": "there are 98 vertices to eliminate",
    "show RoeFlux_1d --step -1": "there are 98 vertices to eliminate",
    "show RoeFlux_1d --out graph.svg --order rev --order fwd": "give one --order",
    "show RoeFlux_1d --out graph.dot --open": "without --open",
    "show RoeFlux_1d --counting odd": "one of: folded, raw",
    "show RoeFlux_1d --budget 0": "more than zero",
    "report": "Missing argument",
    "report RoeFlux_1d Odd": "no task is called 'Odd'",
    "report RoeFlux_1d --out report.svg": "ends in .html",
    "report RoeFlux_1d --timings absent.json": "cannot be read",
    "report RoeFlux_1d --timings junk.json": "alphagrad bench --save",
}


@pytest.mark.parametrize("command", BAD)
def test_bad_input_is_answered_in_one_line(command):
    result = alphagrad(*command.split())
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr.startswith("alphagrad: ")
    assert result.stderr.count("\n") == 1
    assert BAD[command] in result.stderr


def test_graphs_that_are_too_large_are_refused(monkeypatch):
    monkeypatch.setattr("alphagrad.page.view.MOST_VERTICES", 50)
    result = alphagrad("show", "RoeFlux_1d", *FAST)
    assert result.exit_code == 2
    assert "the graph has 107 vertices; up to 50 can be shown" in result.stderr


def test_a_file_that_cannot_be_written_is_refused_first(monkeypatch):
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    result = alphagrad("show", "RoeFlux_1d", "--budget", "100")
    assert result.exit_code == 2
    assert "--out RoeFlux_1d.html: it cannot be written" in result.stderr
