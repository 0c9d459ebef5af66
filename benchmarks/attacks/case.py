"""Attempts that consist of the source text of a function, its arguments, and a way to differentiate it."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import graphax as gx

from .attempt import CRASHED, REFUSED, RIGHT, WRONG, Attempt, Outcome
from .law import References, Tolerance, Verdict, judge

IMPORTS = (
    "import functools",
    "import jax",
    "import jax.numpy as jnp",
    "import numpy as np",
    "from jax import export, lax",
    "from jax.sharding import Mesh, PartitionSpec as P",
    "from jax.scipy import special",
    "import graphax as gx",
)
MODES = ("forward", "reverse")
_REMEMBERED = 8


@dataclass(frozen=True)
class Case:
    """A function ``f``, its arguments ``args``, and an expression of both that contains derivatives.

    Attributes:
        lines: the body of ``f``, one statement each.
        args: arrays, which become JAX arrays, or the source text of anything else.
        way: the expression. In it ``jac``, ``value_and_jac`` and ``hess`` stand for jacve, value_and_jacve and hessve,
            or for JAX's functions that they are compared with.
        options: keyword arguments for jacve only, as source text.
        theirs: the expression for JAX, if it differs.
        before: lines before ``f``.
        batched: whether the first axis of all arguments is an axis of points, which can be left out one by one.
        modes: the modes of JAX that serve as references.
        judged: the function that compares the results; `law.judge` unless an area has its own law.
    """

    params: tuple[str, ...]
    lines: tuple[str, ...]
    result: str
    args: tuple[Any, ...]
    way: str = "jac(f)(*args)"
    options: str = ""
    theirs: str | None = None
    before: tuple[str, ...] = ()
    batched: bool = False
    x64: bool = True
    modes: tuple[str, ...] = MODES
    tolerance: Tolerance = field(default_factory=Tolerance)
    judged: Callable[[Any, References, Tolerance], Verdict] = judge

    def check(self) -> Outcome:
        jax.config.update("jax_enable_x64", self.x64)
        try:
            got = self._evaluated(ours(self.options), self.way)
        except Exception as error:  # noqa: BLE001  every exception is an outcome
            return self._raised(error)
        try:
            verdict = self.judged(got, self._references(), self._tolerance())
        except Exception as error:  # noqa: BLE001  JAX has no such derivative: nothing to compare with
            return Outcome(REFUSED, what=f"JAX: {type(error).__name__}: {error}"[:300])
        if verdict.problem is None:
            return Outcome(RIGHT, verdict.numbers)
        return Outcome(WRONG, verdict.numbers, verdict.problem, self._kind(verdict.problem), verdict.where)

    def simpler(self, outcome: Outcome) -> Iterator[Attempt]:
        if self.batched and outcome.where is not None:
            yield from self._fewer_points(outcome.where[1])
        for n in reversed(range(len(self.lines))):
            yield replace(self, lines=self.lines[:n] + self.lines[n + 1 :])
        for name in re.findall(r"\b[a-z]\w*\b", " ".join(self.lines)) if len(self.result) > 3 else ():
            if name in self._names:
                yield replace(self, result=name)
        for n, line in enumerate(self.lines):
            name, _, expression = line.partition(" = ")
            for inner in _inner(expression):
                yield replace(self, lines=(*self.lines[:n], f"{name} = {inner}", *self.lines[n + 1 :]))
        for inner in _inner(self.result):
            yield replace(self, result=inner)
        if not self.batched:
            yield from self._plainer_arguments()

    def source(self) -> str:
        modes = {"jac": ("gx.jacve", "jax.jacfwd"), "value_and_jac": ("gx.value_and_jacve", "value_and_jacfwd")}
        modes["hess"] = ("gx.hessve", "jax.hessian")
        theirs = self.way if self.theirs is None else self.theirs
        used = [name for name in modes if re.search(rf"\b{name}\(", self.way + theirs)]
        ours = [f"functools.partial({modes[n][0]}, {self.options})" if self.options else modes[n][0] for n in used]
        text = self.way + theirs + self._definition
        imports = [line for line in IMPORTS[:-1] if any(re.search(rf"\b{n}\b", text) for n in _imported(line))]
        same = theirs == self.way
        lines = [
            *dict.fromkeys(
                [
                    *(IMPORTS[:1] if self.options else ()),
                    "import jax",
                    "import jax.numpy as jnp",
                    "import numpy as np",
                    *imports,
                ]
            ),
            "import graphax as gx",
            f'\njax.config.update("jax_enable_x64", {self.x64})',
            self._definition,
            f"args = {self._written}\n",
            f"def run({', '.join(used)}):\n    return {self.way}\n",
            *(() if same else (f"def expected({', '.join(used)}):\n    return {theirs}\n",)),
            f'print("jacve ", run({", ".join(ours)}))',
            f'print("jacfwd", {"run" if same else "expected"}({", ".join(modes[n][1] for n in used)}))',
        ]
        if "value_and_jac" in used:
            lines.insert(-2, "def value_and_jacfwd(f, **options):")
            lines.insert(-2, "    return lambda *args: (f(*args), jax.jacfwd(f, **options)(*args))\n")
        return "\n".join(lines) + "\n"

    @cached_property
    def _definition(self) -> str:
        body = "\n".join(f"    {line}" for line in (*self.lines, f"return {self.result}"))
        return "\n".join([*self.before, f"def f({', '.join(self.params)}):", body, ""])

    @cached_property
    def _written(self) -> str:
        texts = [arg if isinstance(arg, str) else written(arg) for arg in self.args]
        return f"({', '.join(texts)},)"

    @property
    def _names(self) -> set[str]:
        return {line.partition(" = ")[0] for line in self.lines} | set(self.params)

    def _evaluated(self, modes: Mapping[str, Callable], expression: str, wide: bool = False) -> Any:
        space = namespace()
        exec(compile(self._definition, "<attack>", "exec"), space)
        args = [eval(arg, space) if isinstance(arg, str) else jnp.asarray(arg) for arg in self.args]
        if wide:
            args = [a.astype(float) if getattr(a, "dtype", None) == np.float32 else a for a in args]
        space.update(modes, args=tuple(args))
        # Wait for results here, so that errors at run time count for this attempt.
        return jax.block_until_ready(eval(expression, space))

    def _references(self) -> References:
        expression = self.way if self.theirs is None else self.theirs
        # Compiling the whole program takes a fraction of the time of running its operations one by one.
        jitted = f"jax.jit(lambda args: {expression})(args)"

        def thunk(mode: str, text: str, wide: bool = False) -> Callable[[], Any]:
            key = (mode, text, self._definition, wide, self.x64, *map(_key, self.args))
            return lambda: _remember(key, lambda: self._evaluated(theirs(mode), text, wide))

        nudged = replace(self, args=tuple(map(_nudged, self.args))) if self.tolerance.slack else None
        flushed = [replace(self, args=tuple(map(_flushed, self.args)))] if any(map(_is_denormal, self.args)) else []
        single = any(getattr(arg, "dtype", None) == np.float32 for arg in self.args) and self.x64
        forward, reverse = (
            [thunk(mode, jitted), thunk(mode, expression)] if mode in self.modes else [] for mode in MODES
        )
        return References(
            [*forward, *(lambda case=case: case._evaluated(theirs("forward"), jitted) for case in flushed)],
            reverse,
            wide=thunk("forward", jitted, True) if single else None,
            nudged=None if nudged is None else lambda: nudged._evaluated(theirs("forward"), jitted),
            wide_reverse=thunk("reverse", jitted, True) if single and reverse else None,
        )

    def _tolerance(self) -> Tolerance:
        pointwise = self.batched and self.tolerance.pointwise
        return (
            replace(self.tolerance, sizes=term_sizes(self.args, not self.tolerance.slack))
            if pointwise
            else self.tolerance
        )

    def _raised(self, error: Exception) -> Outcome:
        text = f"{type(error).__name__}: {error}".strip()
        # If a kernel is accepted, it must also compile.
        refused = isinstance(error, gx.GraphaxError) and "cannot be compiled or loaded" not in text
        if refused and not isinstance(error, gx.JacobianMismatch):
            return Outcome(REFUSED, what=text[:300])
        failures = []
        for thunk in (*self._references().forward, *self._references().reverse):
            try:
                thunk()
            except Exception as own:  # noqa: BLE001  what JAX raises is what jacve may raise
                failures.append(type(own))
        if failures and (isinstance(error, tuple(failures)) or len(failures) == 2 * len(self.modes)):
            return Outcome(REFUSED, what=text[:300])
        return Outcome(CRASHED, what=text[:2000], kind=self._kind(text))

    def _kind(self, text: str) -> str:
        """The kind of a finding: its message without numbers, and the operations involved."""
        message = re.sub(r"(?<![a-z])[-\d.+]+(e[-+]\d+)?", "#", text.splitlines()[0] if text else "")[:70]
        if not message.startswith("#"):
            return message
        value = "nan" if ": nan" in text else "a number"
        body = " ".join((*self.lines, self.result))
        operations = sorted(set(re.findall(r"(?:jnp|lax|jax|special)[.][a-z_.]+|//|/|%|astype", body)))
        return " ".join([f"{value} is wrong:", *operations[:5]])

    def _fewer_points(self, where: int) -> Iterator["Case"]:
        """The case with only the point of the wrong entry, or with simpler points near it."""
        count = len(self.args[0])
        if count <= 1:
            for n, arg in enumerate(self.args):
                for simple in (1.0, 2.0, 0.0, -1.0, 3.0):
                    if arg.size == 1 and arg.ravel()[0] != simple:
                        changed = np.full_like(arg, simple)
                        yield replace(self, args=(*self.args[:n], changed, *self.args[n + 1 :]))
            return
        place = where % count
        for keep in ([place], range(place // 16 * 16, min(count, place // 16 * 16 + 16)), range(0, count, 2)):
            yield replace(self, args=tuple(arg[np.array(keep)] for arg in self.args))
        for half in (slice(None, count // 2), slice(count // 2, None)):
            yield replace(self, args=tuple(arg[half] for arg in self.args))

    def _plainer_arguments(self) -> Iterator["Case"]:
        for n, arg in enumerate(self.args):
            if isinstance(arg, np.ndarray) and arg.dtype.kind == "f":
                for axis in range(arg.ndim):
                    if arg.shape[axis] > 1:
                        yield self._with_argument(n, np.take(arg, range(1), axis))
                rounded = np.round(arg, 1)
                if not np.array_equal(rounded, arg, equal_nan=True):
                    yield self._with_argument(n, rounded)

    def _with_argument(self, n: int, value: np.ndarray) -> "Case":
        return replace(self, args=(*self.args[:n], value, *self.args[n + 1 :]))


def ours(options: str) -> dict[str, Callable]:
    """The functions of graphax, with the options of a case."""
    given = eval(f"dict({options})", namespace())
    simple = {name: value for name, value in given.items() if name != "sparse"}

    def with_options(function: Callable, chosen: Mapping[str, Any]) -> Callable:
        return lambda f, *args, **kwargs: function(f, *args, **{**chosen, **kwargs})

    return {
        "jac": with_options(gx.jacve, given),
        "value_and_jac": with_options(gx.value_and_jacve, given),
        "hess": with_options(gx.hessve, simple),
    }


def theirs(mode: str) -> dict[str, Callable]:
    """The corresponding functions of JAX."""
    jac = jax.jacfwd if mode == "forward" else jax.jacrev

    def value_and_jac(f: Callable, has_aux: bool = False, **options: Any) -> Callable:
        def both(*args: Any) -> Any:
            result = jac(f, has_aux=has_aux, **options)(*args)
            return f(*args), result[0] if has_aux else result

        return both

    def hess(f: Callable, **options: Any) -> Callable:
        # Dtypes are those of the first mode that works, and hessve promises those of jax.hessian.
        inner = jax.jacrev if mode == "forward" else jax.jacfwd
        return jax.jacfwd(inner(f, **options), **options)

    return {"jac": jac, "value_and_jac": value_and_jac, "hess": hess}


def written(array: Any) -> str:
    """Source text of an array."""
    array = np.asarray(array)
    values = re.sub(r"\b(nan|inf)\b", r"np.\1", repr(array.tolist()))
    dtype = "bool" if array.dtype == bool else f"np.{array.dtype.name}"
    return f"jnp.array({values}, {dtype})" if array.size else f"jnp.zeros({array.shape}, {dtype})"


def _inner(expression: str) -> list[str]:
    """Parts of an expression that may replace it: the arguments of its outermost call, or both sides."""
    depth, parts, start = 0, [], None
    for n, letter in enumerate(expression):
        if letter in "([{":
            depth += 1
            start = n + 1 if depth == 1 else start
        elif depth == 1 and letter in ",)]}" and start is not None:
            parts.append(expression[start:n].strip())
            start = n + 1
        depth -= letter in ")]}"
    sides = re.split(r" [-+*/%]+ ", expression) if "(" not in expression else []
    return [part for part in (*parts, *sides) if part and part != expression and re.match(r"^[a-z(]", part)]


def namespace() -> dict[str, Any]:
    """The names that the source text of attempts may use."""
    space: dict[str, Any] = {}
    exec("\n".join(IMPORTS), space)
    return space


def _imported(line: str) -> list[str]:
    return [part.split(" as ")[-1].strip() for part in line.partition("import ")[2].split(",")]


def term_sizes(args: Sequence[np.ndarray], powers: bool) -> np.ndarray:
    """For each point, the possible size of the terms of a short rational function, which may cancel."""
    with np.errstate(all="ignore"):
        x, y = (np.abs(np.asarray(arg, float)) for arg in (args[0], args[-1]))
        few = [x, y, 1 / x, 1 / y, x / y, x / y**2, x * x / y**3, np.ones_like(x)]
        # Jumps show at points of ordinary size. Elsewhere, and in double precision, more may cancel.
        many = [*few, x * x, x * y, x * x / y, x * x / y**2, x**3 / y, 1 / x**2, 1 / y**2, x**2 / y**3, x**3]
        far = np.max([(v > 5000) | (v < 1e-3) for v in (x, y)], axis=0) | (args[0].dtype == np.float64)
        far &= powers
        sizes = np.where(far, np.max(many, axis=0), np.max(few, axis=0))
    return np.nan_to_num(sizes, nan=0.0, posinf=np.finfo(float).max / 1e6)


def _nudged(arg: Any) -> Any:
    """The same arguments, a few roundings away."""
    if isinstance(arg, str) or arg.dtype.kind != "f":
        return arg
    with np.errstate(all="ignore"):
        return (arg * (1 + 4 * np.finfo(arg.dtype).eps)).astype(arg.dtype)


def _is_denormal(arg: Any) -> bool:
    return not isinstance(arg, str) and arg.dtype.kind == "f" and bool((_flushed(arg) != arg).any())


def _flushed(arg: Any) -> Any:
    """The same with denormal numbers replaced by zero, as kernels and mostly XLA's threads do."""
    if isinstance(arg, str) or arg.dtype.kind != "f":
        return arg
    return np.where(np.abs(arg) < np.finfo(arg.dtype).tiny, np.copysign(0, arg), arg).astype(arg.dtype)


def _key(arg: Any) -> Any:
    return arg if isinstance(arg, str) else (arg.dtype.str, arg.shape, arg.tobytes())


_results: dict[Any, Any] = {}


def _remember(key: Any, make: Callable[[], Any]) -> Any:
    """JAX's result of a function, cached because it is the same for every way to run ours."""
    if key not in _results:
        if len(_results) >= _REMEMBERED:
            _results.pop(next(iter(_results)))
        _results[key] = make()
    return _results[key]
