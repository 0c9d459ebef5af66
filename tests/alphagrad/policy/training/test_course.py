import json

import numpy as np
import pytest

from alphagrad.policy.features import FEATURES
from alphagrad.policy.network import initial, load
from alphagrad.policy.training import learn
from alphagrad.policy.training.course import main
from alphagrad.policy.training.lessons import Lesson, Moves

COUNTS = {
    "workers": 1, "teachers": 11, "teacher-seconds": 0.02, "rounds": 1, "epochs": 2, "graphs": 2, "games": 2,
    "repertoire": 2, "measure-every": 1, "held-out": 2, "iterations": 3,
}  # fmt: skip
ARGUMENTS = [word for name, value in COUNTS.items() for word in (f"--{name}", str(value))]


def states(count=64, vertices=6):
    rng = np.random.default_rng(0)
    return rng.normal(size=(count, vertices, len(FEATURES))).astype(np.float32), rng.random((count, vertices)) < 0.8


def test_lessons_teach_what_loses_least():
    features, legal = states()
    legal[:, 0] = True
    losses = np.abs(features[..., 3])
    rule = learn.optimizer(1e-2, 200)
    learner, lesson = learn.begin(initial(0, hidden=16), rule), Lesson(features, losses, legal)
    first = learn.imitation_loss(learner.network, lesson)
    for _ in range(200):
        learner, loss = learn.learn_from_lesson(learner, lesson, rule)
    assert loss < 0.7 * first
    best = np.argmin(np.where(legal, losses, np.inf), 1)
    chosen = np.argmax(np.where(legal, learn.scores(learner.network, features), -np.inf), 1)
    assert np.mean(best == chosen) > 0.8


def test_moves_of_better_games_become_likelier():
    features, legal = states()
    legal[:, :2] = True
    chosen = np.zeros(len(legal), int)
    advantages = np.where(features[:, 0, 1] > 0, 1.0, -1.0).astype(np.float32)
    rule = learn.optimizer(1e-2, 50)
    learner, moves = learn.begin(initial(0, hidden=16), rule), Moves(features, legal, chosen, advantages)
    before = learn.log_policy(learner.network, features, legal)[:, 0]
    for _ in range(50):
        learner, _ = learn.learn_from_games(learner, moves, rule)
    change = learn.log_policy(learner.network, features, legal)[:, 0] - before
    assert np.mean(change[advantages > 0]) > 0 > np.mean(change[advantages < 0])


@pytest.mark.slow
def test_a_stopped_run_continues(tmp_path, monkeypatch, capsys):
    """It ends with the same result as a run that was not stopped."""
    parts, whole = tmp_path / "parts", tmp_path / "whole"
    main([*ARGUMENTS, "--folder", str(whole)])
    parts.mkdir()
    (parts / "teachers.jsonl").write_text((whole / "teachers.jsonl").read_text())
    with monkeypatch.context() as patch:
        patch.setattr(learn, "learn_from_games", interrupted_at(2))
        with pytest.raises(KeyboardInterrupt):
            main([*ARGUMENTS, "--folder", str(parts)])
    main([*ARGUMENTS, "--folder", str(parts)])
    ratios = [
        [json.loads(line)["ratio"] for line in (folder / "metrics.jsonl").read_text().splitlines()]
        for folder in (whole, parts)
    ]
    assert ratios[0] == ratios[1]
    assert len(ratios[0]) == 4
    for one, other in zip(*(load(folder / "policy.safetensors") for folder in (parts, whole)), strict=True):
        np.testing.assert_array_equal(one, other)
    assert capsys.readouterr().out.startswith("stage lessons step 1 ratio ")


def interrupted_at(number):
    calls = iter(range(1, number + 1))
    original = learn.learn_from_games

    def learn_or_stop(*args):
        if next(calls) == number:
            raise KeyboardInterrupt
        return original(*args)

    return learn_or_stop
