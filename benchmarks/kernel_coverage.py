"""Which functions of JAX a kernel can contain, and whether their derivatives are right.

    python benchmarks/kernel_coverage.py [--only PART] [--write]

Runs every public function of `jax.numpy`, `jax.numpy.linalg`, `jax.numpy.fft`, `jax.nn` and `jax.scipy.special`,
updates of arrays by `.at`, and control flow of `jax.lax`. Each runs on small examples under `jax.vmap`, in float64, and
its value and Jacobian are compared with `jax.jacfwd`. `--only` runs the functions whose names contain PART, and
`--write` writes the tables of docs/coverage.md. Exits with 1 if a result is wrong.
"""

import argparse
import inspect
import re
import sys
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import jax
import jax.numpy as jnp
import jax.scipy.special
import kernel_examples as examples
import numpy as np

import graphax as gx

PAGE = Path(__file__).resolve().parents[1] / "docs" / "coverage.md"
BEGIN, END = "<!-- begin of the tables -->", "<!-- end of the tables -->"
POINTS = 11  # does not fill a vector
MODULES: tuple[tuple[ModuleType, examples.Examples], ...] = (
    (jnp, examples.NUMPY),
    (jnp.linalg, examples.LINALG),
    (jnp.fft, {}),
    (jax.nn, examples.NN),
    (jax.scipy.special, examples.SPECIAL),
)
# The shapes of arguments by the names of parameters. Integers are not differentiated.
KINDS: dict[str, tuple[int, ...]] = {
    "x": (4,), "y": (4,), "z": (4,), "p": (4,), "v": (3,), "m": (3, 3), "w": (3, 4), "s": (), "t": (),
    "n": (), "i": (2,), "k": (4,), "j": (4,),
}  # fmt: skip
WHOLE, POSITIVE = frozenset("nikj"), frozenset("p")
# A function without an example is tried with these arguments.
TRIED = ("x", "m", "xy", "mv", "xyz", "s")
TOLERANCE = 1e-9
# JAX computes parts of these in single precision. Errors are about 1e-6 of the largest entry, or 1e-3 of small entries.
ROUGH = {"jax.nn.dot_product_attention": 1e-3}
# A line of the examples, or the one that calls a function without an example.
OWN_LINE = re.compile(r"kernel_(examples|coverage)\.py:\d+")
KERNEL, ELSEWHERE, NO_DERIVATIVE, NO_EXAMPLE = "kernel", "XLA", "JAX has no derivative", "no example"


@dataclass(frozen=True)
class Case:
    """A function, and the kinds of its arguments."""

    name: str
    function: Callable
    kinds: str

    @property
    def argnums(self) -> tuple[int, ...]:
        return tuple(n for n, kind in enumerate(self.kinds) if kind not in WHOLE)

    def points(self) -> list[np.ndarray]:
        """Arguments for several points: small positive numbers at half of them, numbers of both signs at the others."""
        rng = np.random.default_rng(0)
        return [_points(rng, kind) for kind in self.kinds]

    def __call__(self, *args: Any) -> list[Any]:
        """The results as real arrays."""
        return [_real(leaf) for leaf in jax.tree.leaves(self.function(*args))]


@dataclass(frozen=True)
class Outcome:
    """Whether a kernel ran a function, the reason if not, and what is wrong with the result."""

    name: str
    kind: str
    reason: str = ""
    problem: str = ""


def _points(rng: np.random.Generator, kind: str) -> np.ndarray:
    shape = (POINTS, *KINDS[kind])
    if kind in WHOLE:
        return rng.integers(0, 4, shape)
    small, large = rng.uniform(0.1, 0.9, shape), rng.uniform(-2.5, 2.5, shape)
    if kind in POSITIVE:
        return small
    half = np.arange(POINTS).reshape(-1, *[1] * len(KINDS[kind])) < POINTS // 2
    # Matrices that are far from singular, and have distinct eigenvalues.
    extra = np.diag([4.0, 6.0, 9.0]) if kind == "m" else 0.0
    return np.where(half, small, large) + extra


def _real(leaf: Any) -> Any:
    array = jnp.asarray(leaf)
    if jnp.iscomplexobj(array):
        array = jnp.stack([array.real, array.imag])
    return array.astype(float)


def cases() -> Iterator[Case | Outcome]:
    """Every function with an example, and an outcome for every function without one."""
    for module, known in MODULES:
        for name in sorted(n for n in dir(module) if is_function(module, n)):
            yield case_of(f"{module.__name__}.{name}", getattr(module, name), known.get(name))
    for title, more in (("", examples.UPDATES), ("jax.lax.", examples.LAX)):
        for name, function in more.items():
            yield case_of(title + name, function, function)


def is_function(module: ModuleType, name: str) -> bool:
    """Whether a public name is a function of numbers."""
    value = getattr(module, name)
    listed = any(name in names for names in examples.NOT_FUNCTIONS.values())
    return not (name.startswith("_") or listed or not callable(value) or isinstance(value, type))


def case_of(name: str, function: Callable, example: Callable | None) -> Case | Outcome:
    """The example of a function; without one, the first of a few lists of arguments that it accepts."""
    if example is not None:
        parameters = inspect.signature(example).parameters.values()
        return Case(name, example, "".join(p.name for p in parameters if p.default is p.empty))
    for kinds in TRIED:
        case = Case(name, lambda *args: function(*args), kinds)
        try:
            if jax.eval_shape(case, *(jax.ShapeDtypeStruct(KINDS[kind], float) for kind in kinds)):
                return case
        except Exception:  # noqa: BLE001  functions say in many ways that they want other arguments
            continue
    return Outcome(name, NO_EXAMPLE)


def outcome_of(case: Case) -> Outcome:
    """Run an example as a kernel, or else by XLA, and compare it with JAX."""
    args = [jnp.asarray(arg) for arg in case.points()]
    try:
        want = _run(_with_jacobian(case, jax.jacfwd), args)
    except Exception as error:  # noqa: BLE001  functions that JAX cannot differentiate are not cases
        return Outcome(case.name, NO_DERIVATIVE, type(error).__name__)
    kind, reason, problem = KERNEL, "", ""
    try:
        got = _run(_by_graphax(case, "native"), args)
    except gx.NativeError as error:
        kind, reason = ELSEWHERE, short(error)
        problem = "" if OWN_LINE.search(str(error)) else f"the error names no line of the example: {error}"
        got = _run(_by_graphax(case, "auto"), args)
    problems = _problems(case, got, want)
    # Reverse mode of JAX has NaN at some points where forward mode has none, and graphax may choose either.
    if problems and case.argnums:
        problems = _problems(case, got, _run(_with_jacobian(case, jax.jacrev), args))
    return Outcome(case.name, kind, reason, next(iter(problems), problem))


def _with_jacobian(case: Case, mode: Callable) -> Callable:
    """The value of an example and its Jacobian by a mode of JAX, if it has numbers to differentiate by."""
    return (lambda *args: (case(*args), mode(case, case.argnums)(*args))) if case.argnums else lambda *a: (case(*a),)


def _by_graphax(case: Case, backend: Any) -> Callable:
    if case.argnums:
        return gx.value_and_jacve(case, case.argnums, backend=backend)
    return gx.kernel(lambda *args: (case(*args),), backend=backend)


def _run(function: Callable, args: list[Any]) -> Any:
    return jax.tree.map(np.asarray, jax.jit(jax.vmap(function))(*args))


def _problems(case: Case, got: Any, want: Any) -> list[str]:
    leaves = zip(jax.tree.leaves(got), jax.tree.leaves(want), strict=True)
    tolerance = ROUGH.get(case.name, TOLERANCE)
    return [problem for pair in leaves if (problem := difference(*pair, tolerance))]


def short(error: gx.NativeError) -> str:
    """The reason in an error, without the equation and its line."""
    return re.sub(r"^the native backend does not support .*?(?:\)|\]): ", "", str(error)).partition(", only float32")[0]


def difference(got: np.ndarray, want: np.ndarray, tolerance: float = TOLERANCE) -> str:
    """What is wrong with a result. Where JAX has NaN, any number is right, because the derivative may be finite."""
    if got.shape != want.shape:
        return f"its shape is {got.shape} instead of {want.shape}"
    scale = np.max(np.abs(want), initial=1.0, where=np.isfinite(want))
    with np.errstate(invalid="ignore"):
        near = np.abs(got - want) <= tolerance * np.maximum(np.abs(want), 1e-3 * scale)
        close = (got == want) | (near & np.isfinite(want))
    wrong = ~(close | np.isnan(want))
    return f"{got[wrong][0]} instead of {want[wrong][0]}, and {wrong.sum()} in all" if wrong.any() else ""


def tables(outcomes: Sequence[Outcome]) -> str:
    """The tables of the page: kernels by module, and other functions by reason."""
    kernels = [outcome for outcome in outcomes if outcome.kind == KERNEL]
    others: dict[str, list[Outcome]] = defaultdict(list)
    for outcome in outcomes:
        if outcome.kind != KERNEL:
            others[outcome.reason if outcome.kind == ELSEWHERE else outcome.kind].append(outcome)
    by_size = sorted(others.items(), key=lambda group: (-len(group[1]), group[0]))
    lines = [
        f"With JAX {jax.__version__}, {len(kernels)} of {len(outcomes)} examples are kernels:", "",
        "| module | kernels | functions |", "|---|---|---|",
        *(f"| {module} | {len(names)} | {', '.join(names)} |" for module, names in _by_module(kernels).items()), "",
        "The other examples are not, for these reasons:", "", "| why there is no kernel | functions |", "|---|---|",
        *(f"| {reason} | {_listed(group)} |" for reason, group in by_size),
    ]  # fmt: skip
    return "\n".join(lines)


def _by_module(outcomes: Iterable[Outcome]) -> dict[str, list[str]]:
    """The names of functions as code, by the module that has them."""
    found: dict[str, list[str]] = defaultdict(list)
    for outcome in outcomes:
        module, _, name = outcome.name.rpartition(".") if outcome.name.startswith("jax.") else ("", "", outcome.name)
        found[f"`{module}`" if module else "updates"].append(f"`{name}`")
    return found


def _listed(outcomes: Iterable[Outcome]) -> str:
    return "; ".join(f"{module}: {', '.join(names)}" for module, names in _by_module(outcomes).items())


def write(outcomes: Sequence[Outcome]) -> None:
    """Replace the tables of the page."""
    text = PAGE.read_text(encoding="utf-8")
    before, rest = text.split(BEGIN)
    PAGE.write_text(f"{before}{BEGIN}\n\n{tables(outcomes)}\n\n{END}{rest.partition(END)[2]}", encoding="utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", metavar="PART")
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    jax.config.update("jax_enable_x64", True)
    warnings.simplefilter("ignore")
    outcomes = []
    for case in cases():
        if options.only in case.name:
            outcome = outcome_of(case) if isinstance(case, Case) else case
            outcomes.append(outcome)
            print("  ".join(filter(None, (case.name, outcome.kind, outcome.reason, outcome.problem))), flush=True)
    if options.write:
        write(outcomes)
    return int(any(outcome.problem for outcome in outcomes))


if __name__ == "__main__":
    sys.exit(main())
