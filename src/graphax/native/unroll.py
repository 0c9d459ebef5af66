"""Unrolls a jaxpr of small arrays to statements on single numbers.

An array is a NumPy array of statement numbers, so operations that only move elements are indexing.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from math import prod
from typing import Any

import numpy as np

from .. import _jax
from .._jax import Literal, Program
from ..errors import LongCodeError, NativeError
from ..indexing import OUTSIDE, places_of_gather, places_of_scatter, places_of_slice
from ..sizes import elements_computed
from .emit import kind_of
from .factors import Factors
from .known import Known
from .needed import needed
from .repeats import MOST_IN_MEMORY, NONE, Step, repeated
from .signs import depends_on_signs
from .statements import STORED, StatementBuilder, Statements

# With more statements than this, compiling takes a quarter of a minute, and arrays are better left to XLA.
LIMIT = 64_000
# This many times the limit may be written on the way, because some statements turn out not to be needed.
_WRITTEN = 2
# The estimate may exceed the limit by this factor: equal statements become one, and absent entries none.
_ESTIMATED = 6

# Unsigned numbers are stored as the bits of signed ones; these operations are supported for them.
UNSIGNED = frozenset({"u32", "u64"})
_OF_BITS = frozenset({
    "and", "or", "xor", "not", "add", "sub", "mul", "div", "rem", "eq", "ne", "lt", "le", "gt", "ge", "max", "min",
    "select", "shift_left", "shift_right_logical", "shift_right_arithmetic",
})  # fmt: skip
# True is greater than False, though not as a signed number of one bit. In matrix products, True and True is True.
_OF_TRUTH_VALUES = {"max": "or", "min": "and", "add": "or", "mul": "and"}

Numbers = np.ndarray
UnrollRule = Callable[..., Any]
RULES: dict[str, UnrollRule] = {}


class Unrolling:
    """Statements under construction."""

    margin = _WRITTEN

    def __init__(self, limit: int, required: bool = False):
        self.builder = StatementBuilder()
        self.limit, self.required = limit, required
        self.factors = Factors()
        # The innermost loop, and the number of steps of each.
        self.scope = 0
        self.lengths: list[int | None] = [1]
        # The number of statements of loops that had to be written again.
        self.given_up = 0
        # Per number that belongs to an eigenvector, all numbers of that eigenvector; none if it belongs to several.
        self.vectors: dict[int, tuple[int, ...]] = {}

    @property
    def count(self) -> int:
        return self.builder.count - self.given_up

    def check_count(self) -> None:
        if self.count > self.margin * self.limit:
            raise _too_many(self.limit)

    def run(self, program: Program, operands: Sequence[Numbers]) -> list[Numbers]:
        values: dict[Any, Numbers] = dict(zip(program.inputs, operands, strict=True))
        for var, constant in program.constants.items():
            values[var] = self.constants(constant)
        for eqn in _jax.needed(program.equations, program.outputs):
            results = self._equation(eqn, [self._read(values, atom) for atom in eqn.invars])
            values.update(zip(eqn.outvars, results, strict=True))
        return [self._read(values, atom) for atom in program.outputs]

    def _read(self, values: dict[Any, Numbers], atom: Any) -> Numbers:
        return self.constants(atom.val, _jax.dtype(atom)) if isinstance(atom, Literal) else values[atom]

    def _equation(self, eqn: Any, operands: list[Numbers]) -> list[Numbers]:
        name = eqn.primitive.name
        try:
            for atom in (*eqn.invars, *eqn.outvars):
                _check_dtype(_jax.dtype(atom))
            inner = _jax.called(eqn)
            if inner is not None:
                return self.run(inner, operands)
            rule = RULES.get(name)
            if rule is None:
                return self._implemented(eqn, operands)
            results = rule(self, eqn, *operands)
            self.check_count()
        except NativeError as error:
            raise error.within(f"{name} {_shapes(eqn)}", _jax.source_line(eqn.source_info)) from None
        except (ArithmeticError, LookupError, TypeError, ValueError) as error:
            # A rule failed unexpectedly; `auto` leaves the function to XLA all the same.
            unforeseen = NativeError(f"{type(error).__name__}: {error}")
            raise unforeseen.within(f"{name} {_shapes(eqn)}", _jax.source_line(eqn.source_info)) from error
        return results if eqn.primitive.multiple_results else [results]

    def _implemented(self, eqn: Any, operands: list[Numbers]) -> list[Numbers]:
        """Run a primitive of another library by its own implementation for one point."""
        program = _jax.implemented(eqn)
        if program is None:
            raise NativeError(f"there is no rule for {eqn.primitive.name}")
        return self.run(program, operands)

    def constants(self, value: Any, dtype: Any = None) -> Numbers:
        _check_dtype(getattr(value, "dtype", np.dtype(float)))
        array = np.asarray(value, dtype)
        _check_dtype(array.dtype)
        return self.elements(lambda v: self.builder.constant(v, array.dtype), array)

    def loaded(self, position: int, var: Any) -> Numbers:
        """The elements of an operand of the program."""
        shape, dtype = _jax.shape(var), _jax.dtype(var)
        _check_dtype(dtype)
        places = np.arange(prod(shape)).reshape(shape)
        return self.elements(lambda n: self.builder.input(position, int(n), dtype), places)

    def of_numbers(self, eqn: Any, count: int, results: Callable[[], Any]) -> Any:
        """The results of an equation that is written number by number, in about ``count`` statements."""
        return results()

    def open_scope(self, length: int | None) -> int:
        self.lengths.append(length)
        return len(self.lengths) - 1

    @contextmanager
    def inside(self, scope: int) -> Iterator[None]:
        outside, self.scope = self.scope, scope
        try:
            yield
        finally:
            self.scope = outside

    def repeat(
        self,
        start: list[Numbers],
        length: int | None,
        backward: bool,
        step: Step,
        counts: Mapping[int, int] = NONE,
        inside: bool = False,
    ) -> tuple[list[Numbers], list[Numbers]]:
        """The last carries of a loop, and everything that it writes. ``counts`` maps some carries to their increments.

        With ``inside``, nothing that depends on carries is computed before the loop, even if they stay the same.
        """
        return repeated(self, start, length, backward, step, counts, inside)

    def add_vector(self, numbers: Numbers) -> None:
        """Note that numbers belong to an eigenvector, whose sign is free."""
        vector = tuple(int(number) for number in numbers)
        for number in vector:
            self.vectors[number] = vector if self.vectors.get(number, vector) == vector else ()

    def is_known(self, numbers: Numbers) -> bool:
        """True if all elements of an array are constants."""
        return all(self.builder.value(int(n)) is not None for n in numbers.ravel())

    def present(self, numbers: Numbers) -> np.ndarray:
        """1 for elements that are entries of a block, and 0 for absent ones."""
        return np.array([not self.builder.is_nothing(int(n)) for n in numbers.ravel()], float).reshape(numbers.shape)

    def is_stored(self, numbers: Numbers) -> bool:
        """True if all elements of an array are in memory."""
        return all(self.builder.statements[int(n)].operation in STORED for n in numbers.ravel())

    def at_step(self, rows: Numbers, step: int) -> Numbers:
        """A different row in every step of a loop."""
        columns = rows.reshape(len(rows), -1).T
        found = [self.builder.at_step([int(n) for n in column], step) for column in columns]
        return np.array(found, np.int64).reshape(rows.shape[1:])

    def indexed(self, eqn: Any, operands: Sequence[Numbers]) -> Numbers | None:
        """The result of an equation that moves elements by known indices; None if the indices are not known."""
        moved = {"gather": 1, "dynamic_slice": 1, "dynamic_update_slice": 2, "scatter": 1}[eqn.primitive.name]
        known = Known(self.builder, self.lengths)
        # The updates of a scatter come after its indices.
        last = 2 if eqn.primitive.name == "scatter" else None
        indices: list[np.ndarray] = []
        for operand in operands[moved:last]:
            found = known.values(operand)
            if found is None:
                return None
            indices.append(found)
        steps = max(map(len, indices), default=1)
        # Indices that are the same in all steps have one row.
        rows = [self._moved(eqn, operands, [index[n % len(index)] for index in indices]) for n in range(steps)]
        return rows[0] if known.step is None else self.at_step(np.stack(rows), known.step)

    def _moved(self, eqn: Any, operands: Sequence[Numbers], indices: Sequence[np.ndarray]) -> Numbers:
        """The numbers that an equation moves, in one step of a loop."""
        source, shape = operands[0].ravel(), operands[0].shape
        match eqn.primitive.name:
            case "gather":
                filler = eqn.params.get("fill_value")
                places = places_of_gather(eqn, shape, indices[0])
                nothing = np.zeros((), np.int64)
                if (places == OUTSIDE).any():
                    nothing = self.constants(np.nan if filler is None else filler, _jax.dtype(eqn.outvars[0]))
                return np.where(places == OUTSIDE, nothing, source[places] if source.size else nothing)
            case "dynamic_slice":
                return source[places_of_slice(shape, indices, eqn.params["slice_sizes"])]
            case "dynamic_update_slice":
                places, updates = places_of_slice(shape, indices, operands[1].shape), operands[1]
            case _:
                places, updates = places_of_scatter(eqn, shape, indices[0], operands[2].shape), operands[2]
        result = source.copy()
        result[places[places != OUTSIDE]] = updates[places != OUTSIDE]
        return result.reshape(shape)

    def apply(self, operation: str, *operands: Numbers) -> Numbers:
        """Apply an operation element by element."""
        kinds = {self.builder.statements[number].kind for number in operands[0].ravel()[:1]}
        if not kinds.isdisjoint(UNSIGNED) and operation not in _OF_BITS:
            raise NativeError(f"{operation} of unsigned numbers is not supported")
        if kinds == {"i1"}:
            operation = _OF_TRUTH_VALUES.get(operation, operation)
        return self.elements(lambda *numbers: self.builder.apply(operation, *numbers), *operands)

    def elements(self, function: Callable[..., int], *operands: np.ndarray) -> Numbers:
        shape = np.broadcast_shapes(*(operand.shape for operand in operands))
        flat = [np.broadcast_to(operand, shape).ravel() for operand in operands]
        return np.array([function(*numbers) for numbers in zip(*flat, strict=True)], np.int64).reshape(shape)

    def reduce(self, operation: str, numbers: Numbers, axes: Sequence[int], start: Any, dtype: Any) -> Numbers:
        """Combine elements along axes, first to last."""
        kept = [n for n in range(numbers.ndim) if n not in axes]
        shape = [numbers.shape[n] for n in kept]
        terms = numbers.transpose(*axes, *kept).reshape(prod(numbers.shape[n] for n in axes), *shape)
        if len(terms) == 0:
            return np.broadcast_to(self.constants(_within(start, dtype), dtype), shape)
        total = terms[0]
        for term in terms[1:]:
            total = self.apply(operation, total, term)
        return total


class Estimate(Unrolling):
    """Applies the same rules to shapes only, to count statements. Repeated entries count once."""

    margin = _ESTIMATED

    def __init__(self, limit: int):
        super().__init__(limit)
        self._count = 0

    def repeat(
        self,
        start: list[Numbers],
        length: int | None,
        backward: bool,
        step: Step,
        counts: Mapping[int, int] = NONE,
        inside: bool = False,
    ) -> tuple[list[Numbers], list[Numbers]]:
        carries, rows, _ = step(start, 0)
        return carries, [np.broadcast_to(row, (length or 0, *row.shape)) for row in rows]

    def is_known(self, numbers: Numbers) -> bool:
        return False

    def is_stored(self, numbers: Numbers) -> bool:
        return False

    def present(self, numbers: Numbers) -> np.ndarray:
        return np.ones(numbers.shape)

    def at_step(self, rows: Numbers, step: int) -> Numbers:
        return rows[0]

    def loaded(self, position: int, var: Any) -> Numbers:
        return np.zeros(_jax.shape(var), np.int8)

    @property
    def count(self) -> int:
        return self._count

    def elements(self, function: Callable[..., int], *operands: np.ndarray) -> Numbers:
        shape = np.broadcast_shapes(*(operand.shape for operand in operands))
        repeated = [np.broadcast_to(operand, shape).strides for operand in operands]
        sizes = [size if any(strides) else 1 for size, *strides in zip(shape, *repeated, strict=True)]
        self._count += prod(sizes)
        self.check_count()
        return np.broadcast_to(np.zeros(sizes, np.int8), shape)

    def apply(self, operation: str, *operands: Numbers) -> Numbers:
        return self.elements(self.builder.apply, *operands)

    def of_numbers(self, eqn: Any, count: int, results: Callable[[], Any]) -> Any:
        # Moving elements takes no statements.
        self._count += 0 if eqn.primitive.name in ("gather", "dynamic_slice") else count
        self.check_count()
        found = [np.zeros(_jax.shape(var), np.int8) for var in eqn.outvars]
        return found if eqn.primitive.multiple_results else found[0]


def unroll(program: Program, limit: int = LIMIT, required: bool = False) -> Statements:
    """Unroll a program; raises `NativeError` if part of it is not supported or it needs too many statements."""
    given = sum(prod(_jax.shape(var)) for var in program.inputs)
    if given > MOST_IN_MEMORY:
        raise NativeError(f"its operands have {given:,} elements, which is more than {MOST_IN_MEMORY:,}")
    if elements_computed(program) > limit:
        estimate = Estimate(limit)
        estimate.run(program, [estimate.loaded(position, var) for position, var in enumerate(program.inputs)])
    unrolling = Unrolling(limit, required)
    operands = [unrolling.loaded(position, var) for position, var in enumerate(program.inputs)]
    results = [[int(number) for number in result.ravel()] for result in unrolling.run(program, operands)]
    inputs, outputs = (
        tuple((_jax.shape(atom), np.dtype(_jax.dtype(atom))) for atom in atoms)
        for atoms in (program.inputs, program.outputs)
    )
    kept, places = needed(unrolling.builder.statements, results)
    count = sum(statement.operation not in STORED for statement in kept)
    if count > limit:
        raise _too_many(limit)
    results = [[places[n] for n in result] for result in results]
    vectors = {places[number]: vector for number, vector in unrolling.vectors.items() if number in places}
    signs = depends_on_signs(kept, results, vectors)
    return Statements(kept, inputs, outputs, tuple(map(tuple, results)), signs)


def _too_many(limit: int) -> LongCodeError:
    return LongCodeError(f"more than {limit:,} statements are needed once arrays are unrolled")


def _within(number: float, dtype: Any) -> Any:
    """The closest number of a dtype, because integers have no infinities."""
    if np.dtype(dtype).kind not in "iu":
        return number
    limits = np.iinfo(dtype)
    return int(min(max(number, limits.min), limits.max))


def _check_dtype(dtype: Any) -> None:
    if kind_of(dtype) is None:
        raise NativeError(
            f"numbers of type {dtype} are not supported, only float32, float64, int32, int64, their bits, and bool"
        )


def _shapes(eqn: Any) -> str:
    return " ".join(_short(atom) for atom in eqn.invars) + " → " + " ".join(_short(atom) for atom in eqn.outvars)


def _short(atom: Any) -> str:
    return f"{_jax.dtype(atom)}[{','.join(map(str, _jax.shape(atom)))}]"
