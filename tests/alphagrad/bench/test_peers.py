import sys

import pytest

from alphagrad.bench import casadi_peer
from alphagrad.bench.case import Case
from alphagrad.bench.measure import Benchmark, Effort
from alphagrad.bench.peers import peer
from alphagrad.errors import AlphagradError
from alphagrad.tasks import TASKS, UNSEEN

EVERY = TASKS | UNSEEN


def measured(name, *cases):
    return Benchmark(Effort(1, 1.0), lambda text: None).run(cases, [peer(name)])


@pytest.mark.parametrize("name", ["casadi", "asdex"])
def test_missing_ones_say_how_to_get_them(name, monkeypatch):
    monkeypatch.setitem(sys.modules, name, None)
    (row,) = measured(name, Case(TASKS["RoeFlux_1d"], 2))
    assert name in row.reason
    assert "pip install 'graphax-alphagrad[peers]'" in row.reason


def test_unknown_ones():
    with pytest.raises(AlphagradError, match="unknown peer 'tapenade'; choose one of: casadi, asdex"):
        peer("tapenade")


@pytest.mark.parametrize("task", ["EnzymeReaction", "BlackScholes", "RobotArm_6DOF", "MLP", "RoeFlux_3d", "OrbitJ2"])
@pytest.mark.parametrize("batch", [1, 3])
def test_casadi_computes_the_same(task, batch):
    pytest.importorskip("casadi")
    (row,) = measured("casadi", Case(EVERY[task], batch, 1, "float64"))
    assert row.reason is None
    assert row.error < 1e-12


@pytest.mark.parametrize("task", ["EnzymeReaction", "RoeFlux_3d", "MLP"])
def test_asdex_computes_the_same(task):
    pytest.importorskip("asdex")
    (row,) = measured("asdex", Case(EVERY[task], 3, 1, "float64"))
    assert row.reason is None
    assert row.error < 1e-12


def test_asdex_is_not_asked_for_what_does_not_fit_the_memory():
    pytest.importorskip("asdex")
    (row,) = measured("asdex", Case(TASKS["TransformerEncoder"], 1, 8))
    assert "would run out of memory" in row.reason


def test_casadi_says_what_it_cannot_do(monkeypatch):
    pytest.importorskip("casadi")
    (row,) = measured("casadi", Case(TASKS["MLP"], 2, 16))
    assert "more than 4,000 statements" in row.reason
    monkeypatch.setattr(casadi_peer, "FLAGS", ("--no-such-option",))
    (row,) = measured("casadi", Case(UNSEEN["EnzymeReaction"], 2))
    assert "fails" in row.reason
    monkeypatch.setattr(casadi_peer.shutil, "which", lambda name: None)
    monkeypatch.delenv("CC", raising=False)
    (row,) = measured("casadi", Case(UNSEEN["EnzymeReaction"], 2))
    assert row.reason == "it needs a C compiler, and none was found"
