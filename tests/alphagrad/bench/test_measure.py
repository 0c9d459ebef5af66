import json
from dataclasses import replace

import numpy as np
import pytest

from alphagrad.bench import contender, measure
from alphagrad.bench.case import Case
from alphagrad.bench.contender import FLOOR, Contender, Ready, elimination, floor, jax_mode
from alphagrad.bench.machine import Machine
from alphagrad.bench.measure import Benchmark, Effort
from alphagrad.bench.orders import Unavailable
from alphagrad.bench.report import BenchmarkReport, best_of_jax, read
from alphagrad.errors import AlphagradError
from alphagrad.tasks import TASKS, UNSEEN

CASE = Case(UNSEEN["EnzymeReaction"], 4)


def nothing(*_):
    pass


def quick(repeat=2):
    return Benchmark(Effort(repeat, 1.0), nothing)


@pytest.mark.parametrize("batch", [1, 4])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_measurements(batch, dtype):
    contenders = [
        floor(),
        jax_mode("jacfwd"),
        jax_mode("jacrev"),
        elimination("auto", "xla"),
        elimination("rev", "native"),
    ]
    case = replace(CASE, batch=batch, dtype=dtype)
    rows = {row.contender: row for row in quick().run([case], contenders)}
    assert list(rows) == [FLOOR, "jacfwd", "jacrev", "auto/xla", "rev/native"]
    for name, row in rows.items():
        assert row.timing.runs == 2
        assert row.timing.low <= row.timing.median <= row.timing.high
        assert row.compile_seconds > 0
        assert row.memory >= batch * 4
        assert row.reason is None
        assert row.error is None if name == FLOOR else row.error < (1e-5 if dtype == "float32" else 1e-12)


def test_networks_have_a_floor():
    case = Case(TASKS["MLP"], 2)
    (row,) = quick().run([case], [floor()])
    assert row.timing is not None


def test_what_is_impossible_has_a_reason():
    def prepare(case):
        raise Unavailable("not today")

    rows = quick().run([CASE], [Contender("lazy", prepare), elimination("best", "auto"), jax_mode("jacrev")])
    assert rows[0].reason == "not today"
    assert "alphagrad search EnzymeReaction finds one" in rows[1].reason
    assert rows[2].timing is not None
    text = str(BenchmarkReport(Machine.here(), "alphagrad bench", tuple(rows)))
    assert "lazy: not today" in text


def test_what_does_not_fit_the_memory_is_left_out(monkeypatch):
    monkeypatch.setattr(contender, "_memory", lambda program: 1 << 60)
    (row,) = quick().run([CASE], [jax_mode("jacrev")])
    assert row.reason.startswith("it needs 1073741824.0 GiB")


def fake(name, seconds, entries=None):
    return Contender(name, lambda case: Ready(seconds, entries, 0.5, None))


def interrupted():
    raise KeyboardInterrupt


def test_an_interruption_gives_the_results_so_far():
    calls = []

    def second_time():
        calls.append(None)
        if len(calls) == 2:
            raise KeyboardInterrupt

    benchmark = quick(5)
    rows = benchmark.run([CASE, replace(CASE, batch=8)], [fake("a", second_time)])
    assert benchmark.interrupted
    assert [row.timing.runs for row in rows] == [1]
    assert "Interrupted" in str(BenchmarkReport(Machine.here(), "", tuple(rows), benchmark.interrupted))


def test_an_interruption_while_preparing():
    def prepare(case):
        raise KeyboardInterrupt

    benchmark = quick()
    assert benchmark.run([CASE], [Contender("a", prepare)]) == []
    assert benchmark.interrupted


def test_wrong_results_are_reported(monkeypatch):
    monkeypatch.setattr(measure, "exact_entries", lambda case: [np.ones(4)])
    rows = quick().run([CASE], [fake("nan", nothing, lambda count: [np.full(4, np.nan)])])
    report = BenchmarkReport(Machine.here(1), "alphagrad bench", tuple(rows))
    assert "inf" in str(report)
    assert report.as_dict()["measurements"][0]["relative_error"] is None


def test_reports(tmp_path):
    cases = [CASE, replace(CASE, batch=2)]
    rows = quick().run(cases, [jax_mode("jacfwd"), jax_mode("jacrev")])
    assert best_of_jax(rows[:2]).contender in ("jacfwd", "jacrev")
    report = BenchmarkReport(Machine.here(), "alphagrad bench", tuple(rows))
    assert "Medians in milliseconds" in str(report)
    path = tmp_path / "b.json"
    path.write_text(json.dumps(report.as_dict()))
    found = read(path)
    assert [row["batch"] for row in found["measurements"]] == [4, 4, 2, 2]
    assert {"python", "jax", "jaxlib", "numpy", "llvmlite"} <= set(found["machine"]["versions"])
    assert found["machine"]["cores"] >= 1
    path.write_text("{}")
    with pytest.raises(AlphagradError, match="give a file that alphagrad bench --save wrote"):
        read(path)
    with pytest.raises(AlphagradError, match="cannot be read"):
        read(tmp_path / "no.json")
