import numpy as np
import pytest

from alphagrad.policy.network import initial
from alphagrad.policy.training.lessons import LARGEST, MOVES, lesson, played_moves, surveyed, training_problem

NETWORK = initial(0, hidden=8)


def smallest_problem(counting):
    """The problem of the smallest of some training functions."""
    return min((training_problem(seed) for seed in range(counting == "folded", 12, 2)), key=lambda p: p.size)


@pytest.mark.parametrize("counting", ["raw", "folded"])
def test_losses_are_differences_of_costs(counting):
    problem = smallest_problem(counting)
    order = np.random.default_rng(0).permutation(problem.size).astype(np.int32)
    cost = problem.charged(order)
    for cursor in (0, problem.size // 2, problem.size - 2):
        game, losses = surveyed(problem, NETWORK, order, cursor)
        assert sorted(np.flatnonzero(~game.done)) == sorted(order[cursor:])
        for vertex in order[cursor:]:
            rest = order[cursor:]
            first = np.concatenate([order[:cursor], [vertex], rest[rest != vertex]]).astype(np.int32)
            assert losses[vertex] == pytest.approx(problem.charged(first) - cost, abs=1e-3)


def test_lessons_are_padded_states():
    problem = smallest_problem("raw")
    teacher = np.arange(problem.size, dtype=np.int32)[::-1].copy()
    taught = lesson(problem, teacher, NETWORK, states=4, seed=[1, 2])
    assert taught.features.shape[:2] == taught.losses.shape == taught.legal.shape == (4, LARGEST)
    assert not taught.legal[:, problem.size :].any()
    # Along the teacher's order, its next move loses nothing.
    for losses, legal in zip(taught.losses[::2], taught.legal[::2], strict=True):
        cursor = problem.size - legal.sum()
        assert losses[teacher[cursor]] == pytest.approx(0, abs=1e-3)


def test_games_to_learn_from():
    problem = smallest_problem("folded")
    moves = played_moves(problem, NETWORK, games=3, seed=[4])
    assert len(moves.chosen) == len(moves.advantages) == 3 * MOVES
    assert moves.legal[np.arange(len(moves.chosen)), moves.chosen].all()
    assert moves.advantages.sum() == pytest.approx(0, abs=1e-3)


def test_functions_to_learn_from_are_of_all_kinds():
    problems = [training_problem(seed) for seed in range(12)]
    assert {problem.scalar for problem in problems} == {True, False}
    assert {problem.objective.counting for problem in problems} == {"raw", "folded"}
    assert max(problem.size for problem in problems) <= LARGEST
