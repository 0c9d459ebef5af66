import json

import pytest

from graphax import Order

from .commands import alphagrad, answered

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
    assert target["bound"] == 295


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


def test_graphs_that_are_too_large_are_refused(monkeypatch):
    monkeypatch.setattr("alphagrad.page.view.MOST_VERTICES", 50)
    result = alphagrad("show", "RoeFlux_1d", *FAST)
    assert result.exit_code == 2
    assert "the graph has 107 vertices; up to 50 can be shown" in result.stderr
