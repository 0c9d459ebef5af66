"""Graphs of tasks on disk equal traced ones, are read without JAX, and are traced again if a file is damaged."""

import pickle
import subprocess
import sys
from dataclasses import replace

import pytest

from alphagrad.cli import remembered
from alphagrad.cli.remembered import graph_of_task
from alphagrad.cli.target import find
from alphagrad.tasks import get
from alphagrad.tasks.task import Task
from graphax.files import cache_folder


def refused(*_args, **_options):
    raise AssertionError("the graph was traced again")


@pytest.mark.parametrize("simplify", [False, True])
@pytest.mark.parametrize("name", ["EnzymeReaction", "MLP"])
def test_graphs_are_those_that_were_traced(name, simplify, monkeypatch):
    task = get(name)
    graph_of_task(task, simplify)
    traced = task.graph(simplify)
    monkeypatch.setattr(Task, "graph", refused)
    found = graph_of_task(task, simplify)
    assert (found, found.digest, found.form) == (traced, traced.digest, traced.form)
    assert found.cost("auto") == traced.cost("auto")


@pytest.mark.parametrize("content", [b"", b"not a graph", pickle.dumps(1)])
def test_damaged_files_are_written_anew(content):
    task = get("EnzymeReaction")
    graph_of_task(task, False)
    (path,) = (cache_folder("alphagrad") / "graphs").iterdir()
    whole = path.read_bytes()
    path.write_bytes(content)
    assert graph_of_task(task, False) == task.graph()
    assert path.read_bytes() == whole


def test_other_code_has_other_graphs(monkeypatch):
    task, stamps = get("EnzymeReaction"), iter("abc")
    monkeypatch.setattr(remembered, "_stamp", lambda: next(stamps))
    for stamp in "abc":
        graph_of_task(task, False)
        assert [path.suffix for path in (cache_folder("alphagrad") / "graphs").iterdir()] == [f".{stamp}"]


@pytest.mark.skipif(sys.platform == "win32", reason="folders have no owners there")
def test_files_that_others_could_write_are_not_read(monkeypatch):
    task = get("EnzymeReaction")
    graph_of_task(task, False)
    (cache_folder("alphagrad") / "graphs").chmod(0o777)
    monkeypatch.setattr(Task, "graph", refused)
    with pytest.raises(AssertionError, match="traced again"):
        graph_of_task(task, False)


def test_a_task_by_other_arguments_is_traced():
    own, other = find("EnzymeReaction"), find("EnzymeReaction", argnums="0,2")
    assert len(own.graph_to_search(False).inputs) == 4
    assert len(other.graph_to_search(False).inputs) == 2
    assert replace(own, task=None).graph_to_search(False) == own.graph_to_search(False)


@pytest.mark.slow
def test_a_second_search_needs_no_jax():
    search = "sys.argv = ['alphagrad', 'search', 'EnzymeReaction', '--evaluations', '50']"
    code = f"import sys; {search}\nfrom alphagrad.__main__ import main\ntry: main()\nexcept SystemExit: pass\n"
    for script in (code, f"{code}assert 'jax' not in sys.modules, 'jax is loaded'"):
        subprocess.run([sys.executable, "-c", script], check=True, timeout=600, stdout=subprocess.DEVNULL)
