import subprocess
import sys

import jax
import jax.numpy as jnp
import pytest

from alphagrad.agents.memory import available, available_here, needed

FILES = {
    "proc/meminfo": "MemTotal: 9000 kB\nMemFree: 10 kB\nMemAvailable:    4000 kB\n",
    "proc/self/cgroup": "4:memory:/jobs/mine\n3:cpuset:/\n0::/user/mine\n",
}
SECOND = {
    "sys/fs/cgroup/user/mine/memory.max": "max\n",
    "sys/fs/cgroup/user/mine/memory.current": "5\n",
    "sys/fs/cgroup/user/memory.max": "1000000\n",
    "sys/fs/cgroup/user/memory.current": "600000\n",
    "sys/fs/cgroup/user/memory.stat": "anon 1\ninactive_file 500000\n",
}
FIRST = {
    "sys/fs/cgroup/memory/jobs/mine/memory.limit_in_bytes": "300000\n",
    "sys/fs/cgroup/memory/jobs/mine/memory.usage_in_bytes": "100000\n",
}
MEASURED = """
import sys, resource
import alphagrad
from alphagrad import tasks
from alphagrad.agents.fitting import Fitting
from alphagrad.agents.games import Games
from alphagrad.agents.groups import together
import jax
small = alphagrad.NetworkConfig(layers=2, channels=2)
ppo = alphagrad.PPOConfig(environments=128, epochs=1, minibatches=2, states_at_once=2000, policy_network=small,
                          value_network=small)
alphazero = alphagrad.AlphaZeroConfig(environments=64, simulations=4, states_at_once=2000, network=small)
games = Games.of([tasks.get("PropaneCombustion").graph()])
fitting = Fitting({"ppo": ppo, "alphazero": alphazero}[sys.argv[1]], together(games), tuple(jax.devices()), print)
state, needed = fitting.iteration.first_state(42), fitting.memory
before = 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
jax.block_until_ready(fitting.compiled(state, 42))
print(needed, 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


def written(root, files):
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({}, None),
        (FILES, 4_096_000),
        (FILES | SECOND, 900_000),
        (FILES | SECOND | FIRST, 200_000),
        (FILES | {"proc/meminfo": ""}, None),
    ],
)
def test_memory_of_machines_and_groups(files, expected, tmp_path):
    assert available_here(written(tmp_path, files)) == expected


class Device:
    platform, process_index = "gpu", 0

    def __init__(self, stats):
        self._stats = stats

    def memory_stats(self):
        return self._stats


def test_memory_of_accelerators():
    assert available([Device({"bytes_limit": 7}), Device({"bytes_limit": 5}), Device(None)]) == 5
    assert available([Device(None)]) is None


def test_programs_take_arguments_results_and_what_is_in_between():
    def program(x):
        y = jnp.sort(x)  # not fused with the next operation
        return jnp.sort(y * y)[: len(x) // 2]

    compiled = jax.jit(program).lower(jax.ShapeDtypeStruct((1_000_000,), jnp.float32)).compile()
    assert 6e6 <= needed(compiled, jax.devices()) <= 6e6 + 3 * 4e6


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="measured in kilobytes there")
@pytest.mark.parametrize("agent", ["ppo", "alphazero"])
def test_the_compiler_knows_what_training_takes(agent):
    answer = subprocess.run([sys.executable, "-c", MEASURED, agent], capture_output=True, text=True, check=True)
    expected, measured = map(int, answer.stdout.split("\n")[-2].split())
    assert expected > 3e8
    assert expected / 1.5 < measured < 1.5 * expected
