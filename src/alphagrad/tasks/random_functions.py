"""Seeded random functions: every statement is one vertex, none is dead, all values and derivatives are finite."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import isfinite, prod
from typing import Any, TypeVar

import numpy as np

from ..errors import AlphagradError
from .random_operations import (
    BINARY,
    ELEMENTWISE,
    SHAPED,
    UNARY,
    Bounds,
    factorisations,
    matmul_bounds,
    reduced,
    sum_bounds,
)

Item = TypeVar("Item")
Shape = tuple[int, ...]

DEFAULT: Mapping[str, float] = {
    "unary": 0.35,
    "binary": 0.3,
    "product": 0.1,
    "reduction": 0.05,
    "reshape": 0.05,
    "transpose": 0.05,
    "slice": 0.05,
    "broadcast": 0.05,
}
ON_SCALARS = ("unary", "binary")
DOMAIN = Bounds(0.5, 1.5)
MOST_ELEMENTS = 64
ATTEMPTS = 30
PREFERENCE_FOR_UNUSED = 0.6


@dataclass(frozen=True)
class Statement:
    """One operation on values given by number: the inputs first, then the statements before this one."""

    operation: str
    operands: tuple[int, ...]
    parameter: Any = None

    def __call__(self, values: Sequence[Any]) -> Any:
        operands = [values[n] for n in self.operands]
        if self.operation in SHAPED:
            return SHAPED[self.operation](self.parameter, *operands)
        return ELEMENTWISE[self.operation].evaluate(*operands)


@dataclass(frozen=True)
class RandomFunction:
    """A random function of arrays. Statement n is vertex n of its computational graph.

    Attributes:
        seed: where it came from.
        shapes: the shapes of the inputs.
        statements: the intermediates and the outputs, in order.
        results: the numbers of the values that it returns; no statement uses them.
    """

    seed: int
    shapes: tuple[Shape, ...]
    statements: tuple[Statement, ...]
    results: tuple[int, ...]

    def __call__(self, *args: Any) -> tuple[Any, ...]:
        values = list(args)
        for statement in self.statements:
            values.append(statement(values))
        return tuple(values[n] for n in self.results)

    def arguments(self, seed: int = 0) -> tuple[np.ndarray, ...]:
        """A point of the domain, on all of which the function and its derivatives are finite."""
        rng = np.random.Generator(np.random.PCG64(seed))
        width = DOMAIN.high - DOMAIN.low
        return tuple(np.asarray(DOMAIN.low + width * rng.random(shape)) for shape in self.shapes)

    @cached_property
    def args(self) -> tuple[np.ndarray, ...]:
        """The example point of the function's own seed."""
        return self.arguments(self.seed)

    def __str__(self):
        lines = [f"x{n}: {shape}" for n, shape in enumerate(self.shapes)]
        for number, statement in enumerate(self.statements, start=1):
            inside = ", ".join(self._name(n) for n in statement.operands)
            parameter = "" if statement.parameter is None else f"; {statement.parameter}"
            lines.append(f"v{number} = {statement.operation}({inside}{parameter})")
        return "\n".join([*lines, f"return {', '.join(self._name(n) for n in self.results)}"])

    def _name(self, value: int) -> str:
        return f"x{value}" if value < len(self.shapes) else f"v{value - len(self.shapes) + 1}"


def random_function(
    seed: int,
    inputs: int = 4,
    outputs: int = 5,
    intermediates: int = 75,
    *,
    ranks: Sequence[int] = (0, 1, 2),
    sizes: Sequence[int] = (2, 3, 4),
    probabilities: Mapping[str, float] = DEFAULT,
) -> RandomFunction:
    """The random function of a seed, the same on every platform.

    Args:
        seed: any number that is not negative.
        inputs: how many arrays it takes.
        outputs: how many arrays it returns. Each is a statement of its own that no other uses.
        intermediates: how many other statements there are, which is exactly how many vertices there are to eliminate.
        ranks: of the inputs, drawn evenly; no value has a higher one than the highest, at most 2. ``(0,)`` gives
            functions of scalars.
        sizes: of the axes of the inputs, drawn evenly; at least 2 each.
        probabilities: the weight of each kind of operation (see `DEFAULT`). Statements that are needed so that
            nothing stays unused are added whatever the weights are.

    Raises:
        AlphagradError: if there is no such function.
    """
    _check_counts(inputs, outputs, intermediates)
    _check_shapes(ranks, sizes)
    weights = _checked_weights(probabilities, scalar=max(ranks) == 0)
    if seed < 0:
        raise AlphagradError(f"a seed is not negative, but got {seed}")
    rng = np.random.Generator(np.random.PCG64(seed))
    shapes = [tuple(_pick(rng, sizes) for _ in range(_pick(rng, ranks))) for _ in range(inputs)]
    builder = _Builder(rng, weights, max(ranks), tuple(sizes), outputs, intermediates + outputs, shapes)
    builder.check_feasible()
    while builder.remaining:
        builder.add_statement()
    return RandomFunction(seed, tuple(shapes[:inputs]), tuple(builder.statements), tuple(builder.unused))


@dataclass(frozen=True)
class _Candidate:
    statement: Statement
    shape: Shape
    bounds: Bounds


@dataclass
class _Builder:
    """The statements so far, and what is known about the values: shapes, bounds and whether they are used."""

    rng: np.random.Generator
    weights: dict[str, float]
    max_rank: int
    sizes: tuple[int, ...]
    outputs: int
    remaining: int
    input_shapes: list[Shape]
    statements: list[Statement] = field(default_factory=list)

    def __post_init__(self):
        self.shapes = list(self.input_shapes)
        self.bounds = [DOMAIN] * len(self.shapes)
        self.unused = list(range(len(self.shapes)))

    def check_feasible(self) -> None:
        needed = self.statements_to_finish(self.unused)
        if needed > self.remaining:
            raise AlphagradError(
                f"using {len(self.shapes)} inputs of shapes {self.input_shapes} in {self.outputs} outputs takes up to "
                f"{needed - self.outputs} intermediates; {self.remaining - self.outputs} are too few"
            )

    def add_statement(self) -> None:
        """Add a random statement that leaves enough of them to use up all values."""
        candidate = next(filter(None, (self.acceptable_candidate() for _ in range(ATTEMPTS))), None)
        candidate = candidate or self.finishing_candidate()
        self.statements.append(candidate.statement)
        self.unused = self.unused_after(candidate)
        self.shapes.append(candidate.shape)
        self.bounds.append(candidate.bounds)
        self.remaining -= 1

    def acceptable_candidate(self) -> _Candidate | None:
        candidate = getattr(self, _weighted(self.rng, self.weights))()
        if candidate is None or not candidate.bounds.acceptable or prod(candidate.shape) > MOST_ELEMENTS:
            return None
        if len(candidate.shape) > self.max_rank or candidate.statement in self.statements:
            return None
        after = self.statements_to_finish(self.unused_after(candidate), candidate.shape)
        return candidate if after < self.remaining else None

    def unused_after(self, candidate: _Candidate) -> list[int]:
        return [n for n in self.unused if n not in candidate.statement.operands] + [len(self.shapes)]

    def victims(self, unused: list[int], new: Shape | None = None) -> list[int]:
        """The values to merge into one so that as many are left as there are outputs; the cheapest ones."""
        surplus = len(unused) - self.outputs
        cheapest = sorted(unused, key=lambda n: bool(self.shape(n, new)) - self.is_input(n))
        return cheapest[: surplus + 1] if surplus > 0 else []

    def statements_to_finish(self, unused: list[int], new: Shape | None = None) -> int:
        """How many statements always suffice to use every value and be left with the outputs."""
        victims = self.victims(unused, new)
        reductions = sum(bool(self.shape(n, new)) for n in victims)
        idle_inputs = sum(self.is_input(n) for n in unused) - sum(self.is_input(n) for n in victims)
        return abs(len(unused) - self.outputs) + reductions + idle_inputs

    def finishing_candidate(self) -> _Candidate:
        """A statement that gets nearer to the end: reduce or merge what is too much, use what is idle, or grow."""
        victims = self.victims(self.unused)
        arrays = [n for n in victims if self.shapes[n]]
        if arrays:
            return self.reduced_to_scalar(arrays[0])
        if victims:
            return self.merged(victims[0], victims[1])
        idle = [n for n in self.unused if self.is_input(n)]
        growing = len(self.unused) < self.outputs
        used = [n for n in range(len(self.shapes)) if n not in self.unused]
        return self.bounded_unary(_pick(self.rng, idle or (used if growing else self.unused)))

    def shape(self, value: int, new: Shape | None) -> Shape:
        return self.shapes[value] if value < len(self.shapes) else new or ()

    def is_input(self, value: int) -> bool:
        return value < len(self.input_shapes)

    def operand(self, among: Sequence[int] | None = None) -> int | None:
        """A random value, rather an unused one."""
        values = range(len(self.shapes)) if among is None else among
        fresh = [n for n in self.unused if n in values]
        preferred = fresh if fresh and self.rng.random() < PREFERENCE_FOR_UNUSED else values
        return _pick(self.rng, preferred) if preferred else None

    def array(self) -> int | None:
        return self.operand([n for n, shape in enumerate(self.shapes) if shape])

    def elementwise(self, name: str, *operands: int) -> _Candidate | None:
        bounds = ELEMENTWISE[name].bounds(*(self.bounds[n] for n in operands))
        return bounds and _Candidate(Statement(name, operands), self.shapes[operands[0]], bounds)

    def bounded_unary(self, value: int) -> _Candidate:
        name = _pick(self.rng, ("sin", "cos", "tanh"))
        return _Candidate(Statement(name, (value,)), self.shapes[value], Bounds(-1.0, 1.0))

    def merged(self, first: int, second: int) -> _Candidate:
        candidate = self.elementwise(_pick(self.rng, tuple(BINARY)), first, second)
        if candidate is None or not candidate.bounds.acceptable:
            candidate = self.elementwise("max", first, second)
        assert candidate is not None
        return candidate

    def reduced_to_scalar(self, value: int) -> _Candidate:
        axes = tuple(range(len(self.shapes[value])))
        total = self.summed(value, axes)
        return total if total.bounds.acceptable else self.largest(value, axes)

    def summed(self, value: int, axes: tuple[int, ...]) -> _Candidate:
        shape, terms = reduced(self.shapes[value], axes)
        return _Candidate(Statement("reduce_sum", (value,), axes), shape, sum_bounds(self.bounds[value], terms))

    def largest(self, value: int, axes: tuple[int, ...]) -> _Candidate:
        return _Candidate(
            Statement("reduce_max", (value,), axes), reduced(self.shapes[value], axes)[0], self.bounds[value]
        )

    def unary(self) -> _Candidate | None:
        value = self.operand()
        return None if value is None else self.elementwise(_pick(self.rng, tuple(UNARY)), value)

    def binary(self) -> _Candidate | None:
        first = self.operand()
        others = [n for n, shape in enumerate(self.shapes) if n != first and shape == self.shapes[first or 0]]
        second = self.operand(others)
        if first is None or second is None:
            return None
        return self.elementwise(_pick(self.rng, tuple(BINARY)), first, second)

    def product(self) -> _Candidate | None:
        first = self.array()
        if first is None:
            return None
        left = self.shapes[first]
        second = self.operand([n for n, s in enumerate(self.shapes) if n != first and s and s[0] == left[-1]])
        if second is None:
            return None
        statement = Statement("matmul", (first, second), ((len(left) - 1,), (0,)))
        bounds = matmul_bounds(self.bounds[first], self.bounds[second], left[-1])
        return _Candidate(statement, left[:-1] + self.shapes[second][1:], bounds)

    def reduction(self) -> _Candidate | None:
        value = self.array()
        if value is None:
            return None
        axes = (_pick(self.rng, range(len(self.shapes[value]))),)
        return self.summed(value, axes) if self.rng.random() < 0.7 else self.largest(value, axes)

    def reshape(self) -> _Candidate | None:
        value = self.array()
        if value is None:
            return None
        target = _pick(self.rng, factorisations(prod(self.shapes[value])))
        return self.moved(value, "reshape", target, target)

    def transpose(self) -> _Candidate | None:
        value = self.operand([n for n, shape in enumerate(self.shapes) if len(shape) == 2])
        return None if value is None else self.moved(value, "transpose", (1, 0), self.shapes[value][::-1])

    def slice(self) -> _Candidate | None:
        value = self.array()
        if value is None:
            return None
        shape = self.shapes[value]
        axis = _pick(self.rng, range(len(shape)))
        length = _pick(self.rng, range(1, shape[axis])) if shape[axis] > 2 else 1
        start = _pick(self.rng, range(shape[axis] - length + 1))
        sliced = (*shape[:axis], length, *shape[axis + 1 :])
        return self.moved(value, "slice", (axis, start, start + length), sliced)

    def broadcast(self) -> _Candidate | None:
        value = self.operand()
        size = _pick(self.rng, self.sizes)
        return None if value is None else self.moved(value, "broadcast", size, (size, *self.shapes[value]))

    def moved(self, value: int, operation: str, parameter: Any, shape: Shape) -> _Candidate | None:
        """Elements at other places. What would leave all as it is gives no equation, so it is no candidate."""
        if shape == self.shapes[value] and operation != "transpose":
            return None
        return _Candidate(Statement(operation, (value,), parameter), shape, self.bounds[value])


def _pick(rng: np.random.Generator, items: Sequence[Item]) -> Item:
    return items[int(rng.random() * len(items))]


def _weighted(rng: np.random.Generator, weights: dict[str, float]) -> str:
    threshold = rng.random() * sum(weights.values())
    for kind, weight in weights.items():
        threshold -= weight
        if threshold < 0:
            return kind
    return next(reversed(weights))


def _check_counts(inputs: int, outputs: int, intermediates: int) -> None:
    for name, count, least in (("inputs", inputs, 1), ("outputs", outputs, 1), ("intermediates", intermediates, 0)):
        if count < least:
            raise AlphagradError(f"a random function has at least {least} {name}, not {count}")


def _check_shapes(ranks: Sequence[int], sizes: Sequence[int]) -> None:
    if not ranks or not set(ranks) <= {0, 1, 2}:
        raise AlphagradError(f"ranks are 0, 1 or 2 and there is at least one, but got {tuple(ranks)}")
    if not sizes or min(sizes) < 2 or max(sizes) ** max(ranks) > MOST_ELEMENTS:
        raise AlphagradError(
            f"sizes are at least 2 and give arrays of at most {MOST_ELEMENTS} elements, but got {tuple(sizes)}"
        )


def _checked_weights(probabilities: Mapping[str, float], scalar: bool) -> dict[str, float]:
    unknown = sorted(set(probabilities) - set(DEFAULT))
    if unknown:
        raise AlphagradError(f"unknown kinds of operations {unknown}; there are: {', '.join(DEFAULT)}")
    if not all(isfinite(weight) and weight >= 0 for weight in probabilities.values()):
        raise AlphagradError(f"weights are finite and not negative, but got {dict(probabilities)}")
    kinds = [kind for kind in DEFAULT if kind in ON_SCALARS or not scalar]
    weights = {kind: probabilities[kind] for kind in kinds if probabilities.get(kind, 0) > 0}
    if not weights:
        raise AlphagradError(f"at least one of these kinds needs a weight above 0: {', '.join(kinds)}")
    return weights
