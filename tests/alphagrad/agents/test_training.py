import json
import os
import random
import signal
import socket
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import jax
import numpy as np
import pytest

from alphagrad.agents.checkpoints import CheckpointWarning
from alphagrad.agents.run_folder import RunError
from alphagrad.agents.training import train
from alphagrad.errors import AlphagradError, SearchError
from alphagrad.game import Sizes
from alphagrad.tasks import TASKS
from graphax import Order

from .tiny import ALPHAZERO, GRAPH, NETWORK, PPO, tiny_graph

ROOT = Path(__file__).parents[3]
# A small agent, because these tests only check whether runs are the same.
AGENT = replace(PPO, environments=8, epochs=1, value_network=replace(NETWORK, layers=0))
SCRIPT = """
import sys
import tests.conftest
from alphagrad.agents.training import train
from tests.alphagrad.agents.test_training import AGENT, targets
train(targets(), AGENT, iterations=60, folder=sys.argv[1], checkpoint_every=2, until_optimal=False)
"""

DISTRIBUTED = """
import sys
import tests.conftest
import jax
jax.distributed.initialize(sys.argv[2], num_processes=2, process_id=int(sys.argv[3]))
from tests.alphagrad.agents.test_training import run
assert len(jax.devices()) == 2
run(sys.argv[1], 3)
run(sys.argv[1], 5)
"""


def start(script, *arguments):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "src")])}
    return subprocess.Popen([sys.executable, "-c", script, *map(str, arguments)], cwd=ROOT, env=environment)


def targets():
    return {"one": tiny_graph(), "other": tiny_graph(seed=0, intermediates=9)}


def run(folder, iterations, **options):
    options = {"checkpoint_every": 2, "until_optimal": False, **options}
    return train(targets(), options.pop("agent", AGENT), iterations=iterations, folder=folder, **options)


def metrics(folder):
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    return [{k: v for k, v in line.items() if k not in ("seconds", "games_per_second")} for line in lines]


def assert_same(result, folder, expected, expected_folder):
    assert metrics(folder) == metrics(expected_folder)
    assert result.orders == expected.orders
    for one, other in zip(jax.tree.leaves(result.learner), jax.tree.leaves(expected.learner), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory):
    folder = tmp_path_factory.mktemp("unbroken")
    reports = []
    return run(folder, 60, progress=reports.append), folder, reports


@pytest.mark.slow
def test_orders_are_saved_and_counted(unbroken):
    result, folder, reports = unbroken
    for name, graph in targets().items():
        order = Order.load(folder / "orders" / f"{name}.json")
        assert order == result.orders[name]
        assert order.cost == graph.cost(order, "raw").multiplications
        assert order.bound <= order.cost
        assert order.finder == "ppo"
    assert reports[-1].best == {name: order.cost for name, order in result.orders.items()}
    assert reports[-1].games == 60 * 8
    assert "one" in str(reports[-1])
    assert result.stopped == "iterations"


@pytest.mark.slow
def test_metrics_have_a_line_for_each_iteration(unbroken):
    lines = metrics(unbroken[1])
    assert [line["iteration"] for line in lines] == list(range(1, 61))
    best = np.array([line["best_cost"] for line in lines])
    assert np.all(np.diff(best, axis=0) <= 0)
    assert best[-1].tolist() == [order.cost for order in unbroken[0].orders.values()]


@pytest.mark.slow
def test_a_killed_run_ends_like_an_unbroken_one(unbroken, tmp_path):
    folder = tmp_path / "killed"
    process = start(SCRIPT, folder)
    lines = random.randrange(2, 40)
    while not (folder / "metrics.jsonl").exists() or len((folder / "metrics.jsonl").read_bytes().splitlines()) < lines:
        assert process.poll() is None
        time.sleep(0.005)
    time.sleep(random.random() * 0.1)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert_same(run(folder, 60), folder, *unbroken[:2])


@pytest.mark.slow
def test_two_processes_train_as_one(unbroken, tmp_path):
    with socket.socket() as free:
        free.bind(("localhost", 0))
        address = f"localhost:{free.getsockname()[1]}"
    processes = [start(DISTRIBUTED, tmp_path / "two", address, rank) for rank in range(2)]
    assert [process.wait(timeout=300) for process in processes] == [0, 0]
    for one, other in zip(metrics(tmp_path / "two"), metrics(unbroken[1])[:5], strict=True):
        assert one.keys() == other.keys()
        for name, value in one.items():
            np.testing.assert_allclose(value, other[name], rtol=1e-3, atol=1e-4, err_msg=name)


@pytest.mark.slow
# After one array could not be read, asyncio reports that it no longer waits for the others.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_damaged_checkpoint_falls_back_to_the_one_before(unbroken, tmp_path):
    run(tmp_path, 5)
    # The last two iterations that have a checkpoint are 4 and, because the run ended, 5.
    # Orbax never reads some files of metadata, which may be larger than those of arrays.
    largest = max((tmp_path / "checkpoints" / "5" / "state").rglob("d/*"), key=lambda path: path.stat().st_size)
    content = bytearray(largest.read_bytes())
    content[len(content) // 2] ^= 0xFF
    largest.write_bytes(content)
    with pytest.warns(CheckpointWarning, match=r"iteration 5 is damaged \(.*\); it was moved to .*5-0"):
        result = run(tmp_path, 60)
    assert_same(result, tmp_path, *unbroken[:2])


@pytest.mark.slow
def test_a_finished_run_is_not_repeated(tmp_path):
    first = run(tmp_path, 2)
    again = run(tmp_path, 2)
    assert again.iterations == 2
    assert again.seconds >= first.seconds
    assert again.orders == first.orders


@pytest.mark.slow
def test_another_configuration_is_refused(tmp_path):
    run(tmp_path, 1)
    other = replace(AGENT, clip=0.3, value_network=replace(NETWORK, layers=1))
    with pytest.raises(RunError) as caught:
        run(tmp_path, 2, agent=other, seed=7)
    assert "clip is 0.2 there and 0.3 here" in str(caught.value)
    assert "value_network.layers is 0 there and 1 here" in str(caught.value)
    assert "seed is 0 there and 7 here" in str(caught.value)


@pytest.mark.slow
@pytest.mark.usefixtures("interruptible")
def test_an_interrupted_run_continues(unbroken, tmp_path):
    """Ctrl-C ends a run with a checkpoint in any iteration."""
    expected, expected_folder, _ = unbroken

    def interrupt(now):
        if now.iteration == 31:
            signal.raise_signal(signal.SIGINT)

    stopped = run(tmp_path, 60, progress=interrupt, checkpoint_every=1000)
    assert (stopped.stopped, stopped.iterations) == ("interrupted", 31)
    assert len(metrics(tmp_path)) == 31
    result = run(tmp_path, 60)
    assert_same(result, tmp_path, expected, expected_folder)


@pytest.mark.slow
def test_a_run_continues_from_the_network_of_another(tmp_path):
    """The games of the second run are larger. Without learning, its network stays the pretrained one."""
    agent = replace(ALPHAZERO, environments=4, simulations=2, epochs=1, network=GRAPH)
    earlier = train(tiny_graph(), agent, iterations=2, folder=tmp_path / "earlier", until_optimal=False)
    still = replace(agent, learning_rate=1e-30)
    begun = run(tmp_path / "new", 1, agent=still, pretrained=tmp_path / "earlier")
    pairs = zip(*(jax.tree.leaves(result.learner.network) for result in (earlier, begun)), strict=True)
    assert all(np.array_equal(one, other) for one, other in pairs)
    with pytest.raises(RunError, match="pretrained"):
        run(tmp_path / "new", 2, agent=still)
    with pytest.raises(SearchError, match="pretrained network has another shape"):
        run(tmp_path / "other", 1, pretrained=tmp_path / "earlier")


@pytest.mark.slow
def test_time_is_a_limit():
    result = train(tiny_graph(), AGENT, seconds=1e-3, until_optimal=False)
    assert (result.stopped, result.iterations) == ("seconds", 1)


def test_invalid_targets():
    with pytest.raises(SearchError, match="needs a limit"):
        train(tiny_graph(), AGENT)
    with pytest.raises(SearchError, match="nothing to train on"):
        train([], AGENT, iterations=1)
    with pytest.raises(SearchError, match="given twice"):
        train([TASKS["MLP"], TASKS["MLP"]], AGENT, iterations=1)
    with pytest.raises(SearchError, match="cannot train on 5"):
        train([5], AGENT, iterations=1)
    with pytest.raises(AlphagradError, match=r"intermediates=7.*intermediates=5"):
        train(tiny_graph(), AGENT, iterations=1, sizes=Sizes(3, 5, 2, 1))
