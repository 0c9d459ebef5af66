"""Train an agent on one task and write down what it found, with the configuration and the curve.

    python benchmarks/train_agents.py alphazero RoeFlux_1d --seconds 500 --seed 42 --results results

Writes ``results/alphazero/RoeFlux_1d.json`` with task, order, multiplications, counting, seed, config, seconds and the
best and mean count after each iteration.
"""

import argparse
import json
import tempfile
import time
from dataclasses import asdict
from pathlib import Path

import alphagrad
from alphagrad import AlphaZeroConfig, PPOConfig
from alphagrad.networks import NetworkConfig
from alphagrad.tasks import get

# Smaller than the paper's, in half precision: more games in ten minutes on one device.
SMALL = NetworkConfig(layers=3, channels=2, dtype="bfloat16")
CONFIGS = {
    "alphazero": AlphaZeroConfig(
        environments=256, simulations=32, considered_actions=8, c_scale=0.1, epochs=2, schedule=200, network=SMALL
    ),
    "ppo": PPOConfig(environments=256, entropy_weight=0.003, policy_network=SMALL, value_network=SMALL),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("agent", choices=CONFIGS)
    parser.add_argument("task")
    parser.add_argument("--seconds", type=float, default=500.0)
    parser.add_argument("--iterations", type=int)
    parser.add_argument("--seed", type=int, default=42)
    parser.add_argument("--results", type=Path, default=Path("results"))
    options = parser.parse_args()
    config, task = CONFIGS[options.agent], get(options.task)
    last = time.monotonic()

    def show(progress: alphagrad.TrainingProgress) -> None:
        nonlocal last
        if time.monotonic() - last > 20:
            last = time.monotonic()
            print(progress, flush=True)

    with tempfile.TemporaryDirectory() as folder:
        result = alphagrad.train(
            task, config, seconds=options.seconds, iterations=options.iterations, seed=options.seed, folder=folder,
            progress=show, checkpoint_every=10_000,
        )  # fmt: skip
        curve = [json.loads(line) for line in (Path(folder) / "metrics.jsonl").read_text().splitlines()]
    order = result.orders[task.name]
    target = options.results / options.agent / f"{task.name}.json"
    target.parent.mkdir(parents=True, exist_ok=True)
    found = {
        "task": task.name,
        "order": list(order.vertices),
        "multiplications": order.cost,
        "counting": "raw",
        "seed": options.seed,
        "config": asdict(config),
        "seconds": options.seconds,
        "command": f"python benchmarks/train_agents.py {options.agent} {task.name} --seconds {options.seconds:g} "
        f"--seed {options.seed}",
        "curve": curve,
    }
    target.write_text(json.dumps(found) + "\n")
    print(f"{options.agent} {task.name}: {order.cost:g}", flush=True)


if __name__ == "__main__":
    main()
