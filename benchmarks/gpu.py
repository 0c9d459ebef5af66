"""How close kernels and JAX get to the time that a GPU needs to move the operands and the Jacobian once.

    python benchmarks/gpu.py [--only "HLLC" ...] [--batch 8388608] [--output FILE]

The bandwidth is that of a copy of 1 GiB, measured in the same run. Calls are queued, so that times are those of the
device, without the time to start work on it. Contenders take turns, and times are medians, in float32. Scalar tasks use
the best orders on record, and functions of arrays the default order. `load` is the time from statements to a kernel
that can be launched, and `compiled` the time that `jax.jacfwd` takes to compile once it is traced. Errors are those of
`jacve` and `jax.jacrev` against float64.
"""

import argparse
import json
import platform
import time
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from gpu_cases import CASES

import graphax as gx
from alphagrad.bench.orders import best_order
from alphagrad.tasks import TASKS
from graphax.accuracy import relative_error
from graphax.backend import kernel_of
from graphax.native import cuda, ptx, threads

SCALAR = ("RoeFlux_1d", "RobotArm_6DOF", "HumanHeartDipole", "PropaneCombustion", "BlackScholes", "RoeFlux_3d")
ROUNDS = 5
SECONDS_A_TURN = 0.01
SPREAD = 0.02
POINTS_COMPARED = 4096


@dataclass(frozen=True)
class Work:
    """A function, the arguments to differentiate with respect to, an order, and points."""

    name: str
    function: object
    argnums: object
    order: object
    points: list


@dataclass(frozen=True)
class Row:
    """The milliseconds of one function, and what follows from them."""

    name: str
    points: int
    statements: int
    registers: int
    spilled: int
    megabytes: float
    once: float
    jacfwd: float
    jacrev: float
    xla: float
    auto: float
    load: float
    compiled: float
    error: float
    error_of_jacrev: float

    @property
    def limit(self):
        return self.auto / self.once

    @property
    def faster(self):
        return min(self.jacfwd, self.jacrev) / self.auto

    def __str__(self):
        return (
            f"{self.name:26} {self.statements:6,} {self.registers:4} {self.spilled:5,} {self.megabytes:6,.0f} "
            f"{self.once:7.3f} {self.jacfwd:8.3f} {self.jacrev:8.3f} {self.xla:8.3f} {self.auto:8.3f} "
            f"{self.limit:6.2f} {self.faster:7.1f} {self.xla / self.auto:6.1f} {self.load:6.2f} {self.compiled:6.2f} "
            f"{self.error:8.1e} {self.error_of_jacrev:8.1e}"
        )


HEAD = (
    f"{'':26}  stmts  reg spill    MiB    once   jacfwd   jacrev      xla     auto / once  faster / plan   load  "
    f"compd   error   jacrev"
)


def medians(calls):
    """The median milliseconds of each (function, arguments)."""
    seconds = {name: [] for name in calls}
    queued = {}
    for turn in range(ROUNDS + 1):
        for name, (function, args) in calls.items():
            jax.block_until_ready(function(*args))
            start = time.perf_counter()
            for _ in range(queued.get(name, 1)):
                results = function(*args)
            jax.block_until_ready(results)
            took = (time.perf_counter() - start) / queued.get(name, 1)
            if turn:
                seconds[name].append(took)
            else:
                queued[name] = int(np.clip(SECONDS_A_TURN / took, 3, 100))
    return {name: 1e3 * float(np.median(times)) for name, times in seconds.items()}


def size(arrays):
    return sum(x.nbytes for x in jax.tree.leaves(arrays))


def spread(point, batch, seed):
    noise = jax.random.normal(jax.random.key(seed), (batch, *np.shape(point)), np.float32)
    return np.float32(point) * (1 + SPREAD * noise)


def works(only, batch):
    """Yield the functions to measure."""
    for name in (*SCALAR, *CASES):
        if only and not any(part in name for part in only):
            continue
        if name in TASKS:
            task = TASKS[name]
            points = [spread(x, batch, seed) for seed, x in enumerate(task.arguments())]
            yield Work(name, task.function, task.argnums, best_order(task), points)
        else:
            case = CASES[name]
            yield Work(name, case.function, 0, "auto", [spread(case.point, case.batch, 0)])


def loading(work):
    """The statements of a kernel, the driver's report about it, and the seconds to load it."""
    jacobian = gx.jacve(work.function, order=work.order, argnums=work.argnums)
    single = [jnp.zeros(x.shape[1:], x.dtype) for x in work.points]
    statements = kernel_of(lambda *x: jax.tree.leaves(jacobian(*x)), single).statements
    marks = (False,) * (len(statements.inputs) - len(single)) + (True,) * len(single)
    start = time.perf_counter()
    code = threads.thread_code(statements, marks)
    # The driver caches compiled code by its text.
    text = code.text + f"; {time.time_ns()}\n"
    module = cuda.load(ptx.ptx(text, cuda.GPU.target))
    return statements.operations, module, time.perf_counter() - start


def errors(mapped, points):
    """The errors of `jacve` and of JAX against float64."""
    some = [x[:POINTS_COMPARED] for x in points]
    with jax.enable_x64(True):
        exact = jax.tree.leaves(mapped["jacrev"](*[np.float64(x) for x in some]))
        return [
            relative_error([np.asarray(x) for x in jax.tree.leaves(mapped[key](*some))], exact)
            for key in ("auto", "jacrev")
        ]


def measure(work):
    f, of = work.function, work.argnums
    jacobians = {
        "jacfwd": jax.jacfwd(f, of),
        "jacrev": jax.jacrev(f, of),
        "xla": gx.jacve(f, order=work.order, argnums=of, backend="xla"),
        "auto": gx.jacve(f, order=work.order, argnums=of),
    }
    mapped = {key: jax.jit(jax.vmap(jacobian)) for key, jacobian in jacobians.items()}
    start = time.perf_counter()
    mapped["jacfwd"].lower(*work.points).compile()
    compiled = time.perf_counter() - start
    statements, module, load = loading(work)
    source = jnp.ones(1 << 28, np.float32)
    calls = {key: (function, work.points) for key, function in mapped.items()}
    times = medians(calls | {"copy": (jax.jit(lambda x: x + 1), [source])})
    moved = size(work.points) + size(mapped["auto"](*work.points))
    once = times.pop("copy") * moved / (2 * source.nbytes)
    error, reference = errors(mapped, work.points)
    return Row(
        work.name, len(work.points[0]), statements, module.registers, module.spilled, moved / 2**20, once,
        **times, load=load, compiled=compiled, error=error, error_of_jacrev=reference,
    )  # fmt: skip


def mean(values):
    return float(np.exp(np.mean(np.log(values))))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--batch", type=int, default=8_388_608)
    parser.add_argument("--only", nargs="*")
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    device = jax.devices()[0].device_kind
    print(f"{device}, JAX {jax.__version__}; milliseconds, seconds for loading and compiling")
    print(HEAD)
    rows = []
    for work in works(options.only, options.batch):
        rows.append(measure(work))
        print(rows[-1], flush=True)
        if options.output:
            write(options.output, device, rows)
    print(
        f"geometric means: {mean([row.faster for row in rows]):.1f} times as fast as JAX (least "
        f"{min(row.faster for row in rows):.1f}), {mean([row.limit for row in rows]):.2f} times moving the data once, "
        f"{mean([row.load / row.compiled for row in rows]):.2f} of compiling jacfwd to load"
    )


def write(path, device, rows):
    versions = {"jax": jax.__version__, "python": platform.python_version(), "device": device}
    content = {"date": f"{datetime.now(UTC):%Y-%m-%d}", **versions, "rows": [asdict(row) for row in rows]}
    path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
