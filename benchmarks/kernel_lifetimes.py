"""Memory and files of a process that makes one kernel after another and drops them.

    python benchmarks/kernel_lifetimes.py [--kernels 10000] [--cache-bytes 16777216]

Every kernel has another constant, as in a program that closes over a new parameter in each step. It prints the resident
memory in addition to that of the first kernels, the number of loaded kernels, and the bytes on disk. The exit code is 1
if memory grew by more than 200 MB or the folder is larger than its limit.
"""

import argparse
import gc
import os
import sys
import tempfile
import time
from pathlib import Path

MOST_MEGABYTES = 200


def resident_megabytes() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def folder_bytes(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kernels", type=int, default=10_000)
    parser.add_argument("--cache-bytes", type=int, default=16 << 20)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        os.environ["GRAPHAX_CACHE"], os.environ["GRAPHAX_CACHE_BYTES"] = folder, str(arguments.cache_bytes)
        return _measured(arguments.kernels, Path(folder), arguments.cache_bytes)


def _measured(kernels: int, folder: Path, limit: int) -> int:
    # Import graphax after setting the environment variables that it reads.
    import jax
    import jax.numpy as jnp
    import numpy as np

    import graphax as gx
    from graphax.native import loaded

    points = jnp.linspace(0.1, 1.0, 64)

    def run(constant: float) -> None:
        def function(x):
            return jnp.sin(constant * x) * jnp.exp(x) / (constant + x * x)

        got = jax.jit(jax.vmap(gx.jacve(function, backend="native")))(points)
        if constant % 100 == 0:
            np.testing.assert_allclose(got, jax.vmap(jax.jacfwd(function))(points), rtol=1e-3)

    start, most, largest = time.perf_counter(), 0.0, 0
    for number in range(1, 101):
        run(-float(number))
    before = resident_megabytes()
    print("kernels  memory [MB]  loaded  files [MB]  seconds")
    for number in range(1, kernels + 1):
        run(float(number))
        if number % max(1, kernels // 20) == 0:
            gc.collect()
            most, largest = max(most, resident_megabytes() - before), max(largest, folder_bytes(folder))
            print(
                f"{number:7,}  {resident_megabytes() - before:11.1f}  {loaded.on_cpu.count():6}  "
                f"{folder_bytes(folder) / 1e6:10.1f}  {time.perf_counter() - start:7.0f}",
                flush=True,
            )
    print(f"memory grew by {most:.1f} MB at most; files {largest / 1e6:.1f} of {limit / 1e6:.1f} MB")
    return int(most > MOST_MEGABYTES or largest > limit)


if __name__ == "__main__":
    sys.exit(main())
