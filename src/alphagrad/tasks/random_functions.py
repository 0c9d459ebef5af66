"""Seeded random functions: every statement is one vertex, none is dead, and all values and derivatives are finite."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import isfinite, prod
from typing import Any, TypeVar

import numpy as np

from ..errors import AlphagradError
from .random_operations import BINARY, ELEMENTWISE, SHAPED, UNARY, Bounds, factorisations, without_axes

Item = TypeVar("Item")
Shape = tuple[int, ...]

DEFAULT: Mapping[str, float] = {
    "unary": 0.35, "binary": 0.3, "product": 0.1, "reduction": 0.05, "reshape": 0.05, "transpose": 0.05, "slice": 0.05,
    "broadcast": 0.05,
}  # fmt: skip
ON_SCALARS = ("unary", "binary")
DOMAIN = Bounds(0.5, 1.5)
MOST_ELEMENTS = 64
ATTEMPTS = 30
PREFERENCE_FOR_UNUSED = 0.6


@dataclass(frozen=True)
class Application:
    """One operation on values given by number: the inputs first, then the statements before this one."""

    operation: str
    operands: tuple[int, ...]
    shape: Shape
    bounds: Bounds
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
        seed: the seed that it was generated from.
        shapes: the shapes of the inputs.
        statements: the intermediates and the outputs, in order.
        results: the numbers of the returned values, which no statement uses.
    """

    seed: int
    shapes: tuple[Shape, ...]
    statements: tuple[Application, ...]
    results: tuple[int, ...]

    def __call__(self, *args: Any) -> tuple[Any, ...]:
        values = list(args)
        for statement in self.statements:
            values.append(statement(values))
        return tuple(values[n] for n in self.results)

    def arguments(self, seed: int = 0) -> tuple[np.ndarray, ...]:
        """A point of the domain. The function and its derivatives are finite everywhere in the domain."""
        rng = np.random.Generator(np.random.PCG64(seed))
        width = DOMAIN.high - DOMAIN.low
        return tuple(np.asarray(DOMAIN.low + width * rng.random(shape)) for shape in self.shapes)

    @cached_property
    def args(self) -> tuple[np.ndarray, ...]:
        """The point that belongs to the seed of the function."""
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
        seed: a whole number that is not negative.
        inputs: the number of input arrays.
        outputs: the number of output arrays. Each is the result of a statement, and no other statement uses it.
        intermediates: the number of all other statements, which is the number of vertices to eliminate.
        ranks: the ranks of the inputs, drawn uniformly. No value has a higher rank than the highest of these, which is
            at most 2. ``(0,)`` gives functions of scalars.
        sizes: the sizes of the axes of the inputs, drawn uniformly; at least 2 each.
        probabilities: the weight of each kind of operation (see `DEFAULT`). Statements that are needed to use every
            value are added regardless of the weights.

    Raises:
        AlphagradError: if there is no such function.
    """
    _check(seed, {"inputs": inputs, "outputs": outputs, "intermediates": intermediates}, ranks, sizes)
    weights = _checked_weights(probabilities, scalar=max(ranks) == 0)
    rng = np.random.Generator(np.random.PCG64(seed))
    shapes = [tuple(_pick(rng, sizes) for _ in range(_pick(rng, ranks))) for _ in range(inputs)]
    builder = _FunctionBuilder(rng, weights, max(ranks), tuple(sizes), outputs, intermediates + outputs, shapes)
    builder.check_feasible()
    while builder.remaining:
        builder.add_statement()
    return RandomFunction(seed, tuple(shapes[:inputs]), tuple(builder.statements), tuple(builder.unused))


class _NoCandidateError(Exception):
    """No value has a shape that the operation needs, or the operation would leave its operand unchanged."""


@dataclass
class _FunctionBuilder:
    """The statements so far, and what is known about the values: shapes, bounds and whether they are used."""

    rng: np.random.Generator
    weights: dict[str, float]
    max_rank: int
    sizes: tuple[int, ...]
    outputs: int
    remaining: int
    input_shapes: list[Shape]
    statements: list[Application] = field(default_factory=list)

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
        """Add a random statement, such that the remaining statements suffice to use all values."""
        candidate = next(filter(None, (self.acceptable_candidate() for _ in range(ATTEMPTS))), None)
        candidate = candidate or self.finishing_candidate()
        self.statements.append(candidate)
        self.unused = self.unused_after(candidate)
        self.shapes.append(candidate.shape)
        self.bounds.append(candidate.bounds)
        self.remaining -= 1

    def acceptable_candidate(self) -> Application | None:
        try:
            candidate = getattr(self, _weighted(self.rng, self.weights))()
        except _NoCandidateError:
            return None
        if not candidate.bounds.acceptable or prod(candidate.shape) > MOST_ELEMENTS:
            return None
        if len(candidate.shape) > self.max_rank or candidate in self.statements:
            return None
        after = self.statements_to_finish(self.unused_after(candidate), candidate.shape)
        return candidate if after < self.remaining else None

    def unused_after(self, candidate: Application) -> list[int]:
        return [n for n in self.unused if n not in candidate.operands] + [len(self.shapes)]

    def victims(self, unused: list[int], new: Shape | None = None) -> list[int]:
        """The cheapest values to merge into one, so that as many values as outputs remain."""
        surplus = len(unused) - self.outputs
        cheapest = sorted(unused, key=lambda n: bool(self.shape(n, new)) - self.is_input(n))
        return cheapest[: surplus + 1] if surplus > 0 else []

    def statements_to_finish(self, unused: list[int], new: Shape | None = None) -> int:
        """A number of statements that always suffices to use every value except the outputs."""
        victims = self.victims(unused, new)
        reductions = sum(bool(self.shape(n, new)) for n in victims)
        idle_inputs = sum(self.is_input(n) for n in unused) - sum(self.is_input(n) for n in victims)
        return abs(len(unused) - self.outputs) + reductions + idle_inputs

    def finishing_candidate(self) -> Application:
        """A statement toward the end: reduce or merge surplus values, use an unused one, or grow."""
        victims = self.victims(self.unused)
        arrays = [n for n in victims if self.shapes[n]]
        if arrays:
            axes = tuple(range(len(self.shapes[arrays[0]])))
            total = self.summed(arrays[0], axes)
            return total if total.bounds.acceptable else self.largest(arrays[0], axes)
        if victims:
            merged = self.elementwise(_pick(self.rng, tuple(BINARY)), *victims[:2])
            return merged if merged.bounds.acceptable else self.elementwise("max", *victims[:2])
        idle = [n for n in self.unused if self.is_input(n)]
        growing = len(self.unused) < self.outputs
        used = [n for n in range(len(self.shapes)) if n not in self.unused]
        value = _pick(self.rng, idle or (used if growing else self.unused))
        return self.elementwise(_pick(self.rng, ("sin", "cos", "tanh")), value)

    def shape(self, value: int, new: Shape | None) -> Shape:
        return self.shapes[value] if value < len(self.shapes) else new or ()

    def is_input(self, value: int) -> bool:
        return value < len(self.input_shapes)

    def operand(self, suits: Callable[[int, Shape], Any] = lambda value, shape: True) -> int:
        """A random suitable value, preferably an unused one."""
        values = [n for n, shape in enumerate(self.shapes) if suits(n, shape)]
        if not values:
            raise _NoCandidateError
        fresh = [n for n in self.unused if n in values]
        return _pick(self.rng, fresh if fresh and self.rng.random() < PREFERENCE_FOR_UNUSED else values)

    def array(self) -> int:
        return self.operand(lambda value, shape: shape)

    def elementwise(self, name: str, *operands: int) -> Application:
        bounds = ELEMENTWISE[name].bounds(*(self.bounds[n] for n in operands))
        return Application(name, operands, self.shapes[operands[0]], bounds)

    def summed(self, value: int, axes: tuple[int, ...]) -> Application:
        shape, terms = without_axes(self.shapes[value], axes)
        return Application("reduce_sum", (value,), shape, self.bounds[value].summed(terms), axes)

    def largest(self, value: int, axes: tuple[int, ...]) -> Application:
        return Application("reduce_max", (value,), without_axes(self.shapes[value], axes)[0], self.bounds[value], axes)

    def moved(self, value: int, operation: str, parameter: Any, shape: Shape) -> Application:
        """Elements at other places. A move that changes nothing gives no equation, so it is not a candidate."""
        if shape == self.shapes[value] and operation != "transpose":
            raise _NoCandidateError
        return Application(operation, (value,), shape, self.bounds[value], parameter)

    # One method for each kind of operation, by its name in `DEFAULT`.

    def unary(self) -> Application:
        value = self.operand()
        return self.elementwise(_pick(self.rng, tuple(UNARY)), value)

    def binary(self) -> Application:
        first = self.operand()
        second = self.operand(lambda value, shape: value != first and shape == self.shapes[first])
        return self.elementwise(_pick(self.rng, tuple(BINARY)), first, second)

    def product(self) -> Application:
        first = self.array()
        left = self.shapes[first]
        second = self.operand(lambda value, shape: value != first and shape and shape[0] == left[-1])
        bounds = BINARY["mul"].bounds(self.bounds[first], self.bounds[second]).summed(left[-1])
        contracted = (len(left) - 1,), (0,)
        return Application("matmul", (first, second), left[:-1] + self.shapes[second][1:], bounds, contracted)

    def reduction(self) -> Application:
        value = self.array()
        axes = (_pick(self.rng, range(len(self.shapes[value]))),)
        return self.summed(value, axes) if self.rng.random() < 0.7 else self.largest(value, axes)

    def reshape(self) -> Application:
        value = self.array()
        target = _pick(self.rng, factorisations(prod(self.shapes[value])))
        return self.moved(value, "reshape", target, target)

    def transpose(self) -> Application:
        value = self.operand(lambda value, shape: len(shape) == 2)
        return self.moved(value, "transpose", (1, 0), self.shapes[value][::-1])

    def slice(self) -> Application:
        value = self.array()
        shape = self.shapes[value]
        axis = _pick(self.rng, range(len(shape)))
        length = _pick(self.rng, range(1, shape[axis])) if shape[axis] > 2 else 1
        start = _pick(self.rng, range(shape[axis] - length + 1))
        sliced = (*shape[:axis], length, *shape[axis + 1 :])
        return self.moved(value, "slice", (axis, start, start + length), sliced)

    def broadcast(self) -> Application:
        value = self.operand()
        size = _pick(self.rng, self.sizes)
        return self.moved(value, "broadcast", size, (size, *self.shapes[value]))


def _pick(rng: np.random.Generator, items: Sequence[Item]) -> Item:
    return items[int(rng.random() * len(items))]


def _weighted(rng: np.random.Generator, weights: dict[str, float]) -> str:
    threshold = rng.random() * sum(weights.values())
    for kind, weight in weights.items():
        threshold -= weight
        if threshold < 0:
            return kind
    return next(reversed(weights))


def _check(seed: int, counts: dict[str, int], ranks: Sequence[int], sizes: Sequence[int]) -> None:
    if seed < 0:
        raise AlphagradError(f"the seed must not be negative, but is {seed}")
    for name, count in counts.items():
        least = 0 if name == "intermediates" else 1
        if count < least:
            raise AlphagradError(f"a random function needs at least {least} {name}, but got {count}")
    if not ranks or not set(ranks) <= {0, 1, 2}:
        raise AlphagradError(f"ranks must be 0, 1 or 2, and at least one is needed, but got {tuple(ranks)}")
    if not sizes or min(sizes) < 2 or max(sizes) ** max(ranks) > MOST_ELEMENTS:
        raise AlphagradError(
            f"sizes must be at least 2 and give arrays of at most {MOST_ELEMENTS} elements, but got {tuple(sizes)}"
        )


def _checked_weights(probabilities: Mapping[str, float], scalar: bool) -> dict[str, float]:
    unknown = sorted(set(probabilities) - set(DEFAULT))
    if unknown:
        raise AlphagradError(f"unknown kinds of operations {unknown}; choose among: {', '.join(DEFAULT)}")
    if not all(isfinite(weight) and weight >= 0 for weight in probabilities.values()):
        raise AlphagradError(f"weights must be finite and not negative, but got {dict(probabilities)}")
    kinds = [kind for kind in DEFAULT if kind in ON_SCALARS or not scalar]
    weights = {kind: probabilities[kind] for kind in kinds if probabilities.get(kind, 0) > 0}
    if not weights:
        raise AlphagradError(f"at least one of these kinds needs a weight above 0: {', '.join(kinds)}")
    return weights
