import sys
from types import SimpleNamespace

import pytest

from alphagrad.agents import tracking
from alphagrad.agents.tracking import tracked
from alphagrad.agents.training import TrainingProgress
from alphagrad.errors import SearchError


class Writer:
    """A stand-in for the writer of tensorboardX."""

    def __init__(self, folder):
        self.folder, self.scalars, self.open = folder, [], True
        Writer.last = self

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.open = False

    def add_text(self, name, text):
        self.text = (name, text)

    def add_scalar(self, name, value, iteration):
        self.scalars.append((name, value, iteration))


class Run:
    """A stand-in for a run of wandb."""

    def __init__(self, **options):
        self.options, self.logged, self.open = options, [], True
        Run.last = self

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.open = False

    def log(self, values, step):
        self.logged.append((values, step))


def progress():
    metrics = {"best_cost": [5.0, 7.0], "policy_loss": 0.5}
    return TrainingProgress("ppo", 3, {"a": 5.0, "b": 7.0}, {"a": 4.0, "b": 7.0}, 24, 1.0, 8.0, metrics)


EXPECTED = {"games": 24.0, "games_per_second": 8.0, "best_cost/a": 5.0, "best_cost/b": 7.0, "policy_loss": 0.5}


def test_tensorboard_gets_every_number(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "tensorboardX", SimpleNamespace(SummaryWriter=Writer))
    with tracked("tensorboard", tmp_path / "run", {"epochs": 4}) as track:
        track(progress())
    assert Writer.last.scalars == [(name, value, 3) for name, value in EXPECTED.items()]
    assert Writer.last.folder == str(tmp_path / "run" / "tensorboard")
    assert "epochs" in Writer.last.text[1]
    assert not Writer.last.open


def test_wandb_continues_the_run_of_a_folder(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "wandb", SimpleNamespace(init=Run))
    with tracked("wandb", tmp_path / "run", {"epochs": 4}) as track:
        track(progress())
    assert Run.last.logged == [(EXPECTED, 3)]
    assert Run.last.options["id"] == "run"
    assert Run.last.options["resume"] == "allow"
    assert Run.last.options["config"] == {"epochs": 4}
    assert not Run.last.open


def test_without_a_tracker_nothing_happens(tmp_path):
    with tracked(None, tmp_path / "run", {}) as track:
        track(progress())
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("name", tracking.TRACKERS)
def test_a_missing_package_is_named(name, monkeypatch, tmp_path):
    package = {"tensorboard": "tensorboardX", "wandb": "wandb"}[name]
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(SearchError, match=f"pip install {package}"), tracked(name, tmp_path, {}):
        pass


def test_an_unknown_tracker(tmp_path):
    with pytest.raises(SearchError, match="one of: tensorboard, wandb"), tracked("paper", tmp_path, {}):
        pass
