"""All commands report the same best cost and the same lower bound for a task."""

import pytest

import graphax as gx
from alphagrad import Budget, Objective, best_known, search, tasks
from alphagrad.cli.comparison import VARIANTS, compare
from alphagrad.page.view import make_view

# A graph for which bounds by ranks take seconds. Pages show them too.
LARGE = {"random_f", "random_g", "TransformerEncoder", "BatchedTransformer"}
ONE = Budget(evaluations=1)


def every_task():
    return [pytest.param(name, marks=pytest.mark.slow if name in LARGE else ()) for name in tasks.TASKS]


@pytest.mark.parametrize("name", every_task())
def test_commands_agree(name):
    task = tasks.TASKS[name]
    rows = {row["counting"]: row for row in compare([task], "both", ONE, lambda title: None, lambda now: None)}
    for variant, (counting, simplify) in VARIANTS.items():
        graph, objective = task.graph(simplify=simplify), Objective.of("multiplications", counting)
        known = best_known(graph, objective)
        told = {
            "best_known": (known.cost, known.bound),
            "table": (rows[variant]["best"], rows[variant]["bound"]),
        }
        found = search(task, simplify=simplify, counting=counting, budget=ONE, resume=True)
        told["search"] = found.value, found.bound
        for orders in (("best",), ("rev",)):
            view = make_view(name, graph, counting, orders, ONE)
            cost = view.replays[0].cost.multiplications if orders == ("best",) else known.cost
            told[f"show {orders[0]}"] = cost, view.bound
        explained = gx.explain(task.function, *task.arguments(), argnums=task.argnums, order=known)
        folded, raw = explained.costs["this order"]
        told["explain"] = objective.value(raw if counting == "raw" else folded), explained.order.bound
        assert set(told.values()) == {(known.cost, known.bound)}, (variant, told)
        assert ("(optimal)" in str(explained)) == found.optimal == (rows[variant]["gap"] == 0)


def test_a_proof_on_record_ends_a_search():
    """Proving RoeFlux_1d in the paper's counting takes twenty seconds, but the proof is on record."""
    found = search(tasks.get("RoeFlux_1d"), counting="raw", budget=5, resume=True)
    assert (found.value, found.certificate, found.stopped) == (295, "optimal", "optimal")
    assert found.seconds < 1


def test_weak_bounds_are_called_weak():
    found = search(tasks.get("random_g"), counting="raw", budget=ONE, resume=True)
    assert found.certificate == "the lower bound, 306, is weak: an order that is 25.7% cheaper is not ruled out"
    assert str(found).splitlines()[-2].split()[0] == "found"
