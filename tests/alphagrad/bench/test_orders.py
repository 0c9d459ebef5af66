import pytest

from alphagrad.bench.orders import Unavailable, check_order, order_of
from alphagrad.tasks import TASKS, UNSEEN
from graphax import GraphaxError, Order, jacve


def test_orders_by_name(tmp_path):
    task = TASKS["RoeFlux_1d"]
    assert order_of("rev", task) == "rev"
    assert task.graph().cost(order_of("paper", task), "raw").multiplications == 320
    assert order_of("best", task).cost < 184
    Order((1,)).save(tmp_path / "o.json")
    for name in ("best", "paper", "preelim_rev", str(tmp_path / "o.json")):
        check_order(name)


@pytest.mark.parametrize("name", ["RobotArm_6DOF", "HumanHeartDipole", "PropaneCombustion"])
def test_the_paper_has_orders_for_graphs_that_are_ours(name):
    assert order_of("paper", TASKS[name])


@pytest.mark.parametrize(
    ("order", "name", "reason"),
    [
        ("paper", "random_g", "the paper's graph differs from ours"),
        ("paper", "BatchedTransformer", "the paper has no order"),
        ("best", "EnzymeReaction", "alphagrad search EnzymeReaction finds one"),
    ],
)
def test_missing_orders(order, name, reason):
    with pytest.raises(Unavailable, match=reason):
        order_of(order, (TASKS | UNSEEN)[name])


def test_the_best_order_serves_other_sizes():
    task = TASKS["MLP"]
    jacve(task.function, order=order_of("best", task), argnums=task.argnums)(*task.arguments(scale=2))


@pytest.mark.parametrize(
    ("name", "message"),
    [("quickest", "unknown order 'quickest'; choose one of: .*paper, best"), ("no.json", "there is no order file")],
)
def test_names_that_are_no_order(name, message):
    with pytest.raises(GraphaxError, match=message):
        check_order(name)
