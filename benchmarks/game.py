"""How many moves of VertexGame a device makes per second.

    python benchmarks/game.py [TASK ...] [--batch 1 64 1024] [--counting raw] [--repeat 3]

It plays random orders from beginning to end, all games of a batch at once, in one compiled scan.
"""

import argparse
import time

import jax
import numpy as np

from alphagrad.game import GameTables, make_tables, play
from alphagrad.tasks import get

play_batch = jax.jit(jax.vmap(play, (None, 0)))


def steps_per_second(tables: GameTables, batch: int, repeat: int) -> float:
    """The best of several runs, after a run that compiles."""
    rng = np.random.default_rng(0)
    size = tables.sizes.intermediates
    orders = jax.device_put(np.stack([rng.permutation(size) for _ in range(batch)]).astype(np.int32))
    jax.block_until_ready(play_batch(tables, orders))
    seconds = []
    for _ in range(repeat):
        start = time.perf_counter()
        jax.block_until_ready(play_batch(tables, orders))
        seconds.append(time.perf_counter() - start)
    return batch * size / min(seconds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tasks", nargs="*", default=["RoeFlux_1d", "TransformerEncoder"])
    parser.add_argument("--batch", type=int, nargs="+", default=[1, 64, 1024])
    parser.add_argument("--counting", default="raw")
    parser.add_argument("--repeat", type=int, default=3)
    options = parser.parse_args()
    print(f"steps per second on {jax.devices()[0].device_kind}, {options.counting} multiplications")
    for name in options.tasks:
        start = time.perf_counter()
        tables = make_tables(get(name).graph(), options.counting)
        print(f"{name}: {tables.sizes}, tables made in {time.perf_counter() - start:.2f} s")
        for batch in options.batch:
            print(f"  batch {batch:5}: {steps_per_second(tables, batch, options.repeat):12,.0f}", flush=True)


if __name__ == "__main__":
    main()
