"""Records only improve, are safe for many processes, and never hold a wrong order."""

import json
import multiprocessing
import os
import stat
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace

import pytest

import alphagrad
from alphagrad import Budget, Objective, RecordWarning
from alphagrad.elimination.objective import OBJECTIVES
from alphagrad.finders import records
from alphagrad.tasks import TASKS

FEW = Budget(evaluations=10)


def found(order, task="RobotArm_6DOF", **options):
    return alphagrad.search(TASKS[task], method="presets", start=order, budget=FEW, record=False, **options)


def made_by(order, task="RobotArm_6DOF"):
    """A result that has exactly this order."""
    graph = TASKS[task].graph()
    result = found("rev", task)
    cost = graph.cost(order)
    vertices = graph.plan(order).order
    value = cost.multiplications
    return replace(result, order=replace(result.order, vertices=vertices, cost=value), cost=cost, value=value)


def test_what_is_found_is_known_later():
    graph = TASKS["RobotArm_6DOF"].graph()
    result = alphagrad.search(graph, minimize="operations", budget=Budget(evaluations=5000))
    known = alphagrad.best_known(graph, Objective.of("operations"))
    assert known is not None
    assert known.cost <= result.value
    again = alphagrad.search(graph, minimize="operations", budget=FEW, method="windows", resume=True)
    assert again.value <= result.value


def test_a_shelf_only_gets_better(tmp_path):
    graph = TASKS["RobotArm_6DOF"].graph()
    costs = []
    for order in ("fwd", "markowitz", "rev", "preelim_rev", "fwd"):
        records.write(tmp_path, made_by(order))
        costs.append(records.read(tmp_path, graph, Objective()).cost)
    assert costs == sorted(costs, reverse=True)
    assert len(list(tmp_path.rglob("*.json"))) == 2  # the best, and the worse one that came last and is not read


def test_records_are_kept_apart_by_objective_and_graph(tmp_path):
    records.write(tmp_path, made_by("rev"))
    graph = TASKS["RobotArm_6DOF"].graph()
    assert records.read(tmp_path, graph, Objective()) is not None
    assert records.read(tmp_path, graph, Objective.of("operations")) is None
    assert records.read(tmp_path, graph, Objective.of("multiplications", "raw")) is None
    assert records.read(tmp_path, TASKS["RobotArm_6DOF"].graph(simplify=True), Objective()) is None
    assert records.read(tmp_path, graph, Objective.of((1.0, 0.5))) is None


def damaged_content(kind, path):
    content = json.loads(path.read_text())
    if kind == "truncated":
        return path.read_text()[:40]
    if kind == "empty":
        return ""
    if kind == "another thing":
        return "[1, 2]"
    if kind == "wrong cost":
        return json.dumps(content | {"cost": 1})
    if kind == "wrong order":
        return json.dumps(content | {"vertices": content["vertices"][::-1]})
    if kind == "missing vertex":
        return json.dumps(content | {"vertices": content["vertices"][1:]})
    return json.dumps(content | {"fingerprint": "0" * 16, "form": "0" * 16})


@pytest.mark.parametrize(
    "kind", ["truncated", "empty", "another thing", "wrong cost", "wrong order", "missing vertex", "another graph"]
)
def test_a_damaged_record_is_set_aside(kind, tmp_path):
    graph = TASKS["RobotArm_6DOF"].graph()
    worse = records.write(tmp_path, made_by("rev"))
    kept = worse.read_text()
    path = records.write(tmp_path, made_by("preelim_rev"))
    worse.write_text(kept)
    path.write_text(damaged_content(kind, path))
    with pytest.warns(RecordWarning, match="damaged"):
        order = records.read(tmp_path, graph, Objective())
    assert order.cost == graph.cost("rev").multiplications
    assert path.with_suffix(".damaged").exists()
    assert records.read(tmp_path, graph, Objective()) == order


def test_a_stranger_among_the_records_is_set_aside(tmp_path):
    path = records.write(tmp_path, made_by("rev"))
    path.with_name("notes.json").write_text("{}")
    assert records.read(tmp_path, TASKS["RobotArm_6DOF"].graph(), Objective()) is not None


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser can write everywhere")
def test_a_folder_that_cannot_be_written_to_is_no_failure(tmp_path, monkeypatch):
    monkeypatch.setenv("ALPHAGRAD_CACHE", str(tmp_path / "locked"))
    (tmp_path / "locked").mkdir(mode=stat.S_IREAD | stat.S_IEXEC)
    with pytest.warns(RecordWarning, match="could not be kept"):
        alphagrad.search(TASKS["BlackScholes"], budget=FEW)


def test_a_cache_that_is_a_file_is_no_failure(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("ALPHAGRAD_CACHE", str(tmp_path / "file"))
    with pytest.warns(RecordWarning, match="could not be kept"):
        alphagrad.search(TASKS["BlackScholes"], minimize=(1.0, 0.123), budget=FEW)


def _write_many(folder, orders):
    from pathlib import Path

    shelf = Path(folder)
    graph = TASKS["RobotArm_6DOF"].graph()
    seen = []
    for order in orders * 5:
        records.write(shelf, made_by(order))
        seen.append(records.read(shelf, graph, Objective()).cost)
    return seen


@pytest.mark.slow
def test_many_processes_may_write_at_once(tmp_path):
    graph = TASKS["RobotArm_6DOF"].graph()
    orders = [["fwd", "rev"], ["rev", "markowitz"], ["markowitz", "preelim_rev", "fwd"]]
    with ProcessPoolExecutor(3, mp_context=multiprocessing.get_context("spawn")) as pool:
        seen = list(pool.map(_write_many, [str(tmp_path)] * 3, orders))
    best = min(graph.cost(order).multiplications for order in ("fwd", "rev", "markowitz", "preelim_rev"))
    assert records.read(tmp_path, graph, Objective()).cost == best
    for costs in seen:
        assert costs == sorted(costs, reverse=True)
    assert not list(tmp_path.rglob("*.damaged"))
    assert not list(tmp_path.rglob("*.part"))


@pytest.mark.parametrize("name", TASKS)
@pytest.mark.parametrize("simplify", [False, True])
@pytest.mark.parametrize("counting", ["raw", "folded"])
def test_the_best_known_orders_ship(name, counting, simplify):
    """They are consistent, because reading a record counts its order again."""
    graph = TASKS[name].graph(simplify=simplify)
    order = records.read(records.shipped_shelf(), graph, Objective.of("multiplications", counting))
    assert order is not None
    assert order.bound <= order.cost == graph.cost(order, counting).multiplications
    assert order.cost <= graph.cost("auto", counting).multiplications


def test_what_ships_is_never_moved(tmp_path, monkeypatch):
    """Once, a wrongly constructed objective made the package move shipped records."""
    monkeypatch.setattr(records, "shipped_shelf", lambda: tmp_path)
    result = found("rev", "PropaneCombustion")
    path = records.write(tmp_path, result)
    path.write_text("{}")
    with pytest.warns(RecordWarning, match="it is ignored"):
        assert records.best_known(result.graph, result.objective) is None
    assert path.exists()


@pytest.mark.parametrize("name", OBJECTIVES)
def test_an_objective_by_name_is_the_same_however_it_is_made(name):
    assert Objective(name) == Objective.of(name)
