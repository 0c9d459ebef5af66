"""Random programs over scalars, vectors, matrices and arrays of rank 3, as hypothesis strategies."""

from collections.abc import Callable
from dataclasses import dataclass
from math import prod

import jax
import jax.numpy as jnp
import numpy as np
from hypothesis import strategies as st

MAX_ELEMENTS = 48
SIZES = (1, 2, 3, 4, 6)

ELEMENTWISE: dict[str, Callable] = {
    "sin": jnp.sin,
    "tanh": jnp.tanh,
    "square": lambda x: x**2,
    "root": lambda x: jnp.sqrt(1.0 + x * x),
    "negative": lambda x: -x,
    "doubled": lambda x: 2.0 * x,
    "shifted": lambda x: x + 0.5,
    "halved": lambda x: x / 2,
    "positive part": lambda x: jnp.where(x > 0, x, 0.1 * x),
    "stopped": lambda x: x * jax.lax.stop_gradient(jnp.cos(x)),
}
BINARY: dict[str, Callable] = {
    "add": lambda x, y: x + y,
    "sub": lambda x, y: x - y,
    "mul": lambda x, y: x * y,
    "div": lambda x, y: x / (2.0 + jnp.sin(y)),
    "max": jnp.maximum,
    "atan2": lambda x, y: jnp.arctan2(x, 3.0 + y * y),
}


@dataclass(frozen=True)
class Step:
    """One operation: a readable name, the values it reads, and the function."""

    name: str
    operands: tuple[int, ...]
    function: Callable


@dataclass(frozen=True)
class RandomProgram:
    shapes: tuple[tuple[int, ...], ...]
    steps: tuple[Step, ...]
    results: tuple[int, ...]

    def __call__(self, *args):
        values = list(args)
        for step in self.steps:
            values.append(step.function(*(values[n] for n in step.operands)))
        return [values[n] for n in self.results]

    def arguments(self, seed: int = 0):
        rng = np.random.default_rng(seed)
        return [jnp.asarray(rng.uniform(-1.0, 1.0, shape)) for shape in self.shapes]

    def __repr__(self):
        lines = [f"inputs {list(self.shapes)}"]
        lines += [f"v{n} = {s.name} {s.operands}" for n, s in enumerate(self.steps, start=len(self.shapes))]
        return "\n".join([*lines, f"return {self.results}"])


@st.composite
def programs(draw, steps: int = 10, inputs: int = 3) -> RandomProgram:
    shape = st.lists(st.sampled_from(SIZES), max_size=3).map(tuple).filter(lambda s: prod(s) <= 24)
    shapes = draw(st.lists(shape, min_size=1, max_size=inputs))
    known = list(shapes)
    chosen = []
    for _ in range(draw(st.integers(1, steps))):
        step = draw(_steps(known))
        result = jax.eval_shape(step.function, *(jax.ShapeDtypeStruct(known[n], float) for n in step.operands))
        if prod(result.shape) <= MAX_ELEMENTS and len(result.shape) <= 4:
            chosen.append(step)
            known.append(result.shape)
    results = draw(st.lists(st.integers(0, len(known) - 1), min_size=1, max_size=3))
    return RandomProgram(tuple(shapes), tuple(chosen), (*results, len(known) - 1))


@st.composite
def _steps(draw, known: list[tuple[int, ...]]) -> Step:
    operand = draw(st.integers(0, len(known) - 1))
    kind = draw(st.sampled_from(["elementwise", "binary", "move", "product"]))
    if kind == "elementwise":
        name = draw(st.sampled_from(sorted(ELEMENTWISE)))
        return Step(name, (operand,), ELEMENTWISE[name])
    if kind == "binary":
        other = draw(st.integers(0, len(known) - 1))
        name = draw(st.sampled_from(sorted(BINARY)))
        if not _broadcastable(known[operand], known[other]):
            return Step(f"{name} with sum", (operand, other), lambda x, y, f=BINARY[name]: f(x, jnp.sum(y)))
        return Step(name, (operand, other), BINARY[name])
    name, function = draw(_moves(known[operand]) if kind == "move" else _products(known[operand]))
    return Step(name, (operand,), function)


def _broadcastable(a: tuple[int, ...], b: tuple[int, ...]) -> bool:
    return all(x == y or 1 in (x, y) for x, y in zip(reversed(a), reversed(b), strict=False))


@st.composite
def _moves(draw, shape: tuple[int, ...]) -> tuple[str, Callable]:
    """Operations that move, cut, repeat or join entries."""
    if not shape:
        n = draw(st.sampled_from((1, 2, 3)))
        return f"repeat {n}", lambda x: jnp.broadcast_to(x, (n,))
    axis = draw(st.integers(0, len(shape) - 1))
    size = shape[axis]
    choice = draw(
        st.sampled_from(
            [
                "reshape",
                "transpose",
                "slice",
                "reverse",
                "pad",
                "concatenate",
                "broadcast",
                "squeeze",
                "stack",
                "pick",
                "update",
                "gather",
                "dynamic",
            ]
        )
    )
    if choice == "reshape":
        target = draw(st.sampled_from(_factorisations(prod(shape))))
        return f"reshape {target}", lambda x: x.reshape(target)
    if choice == "transpose":
        order = draw(st.permutations(range(len(shape))))
        return f"transpose {order}", lambda x: x.transpose(order)
    if choice == "slice":
        start = draw(st.integers(0, size - 1))
        stop = draw(st.integers(start + 1, size))
        step = draw(st.sampled_from((1, 1, 2)))
        return f"slice {axis} {start}:{stop}:{step}", lambda x: jax.lax.slice_in_dim(x, start, stop, step, axis)
    if choice == "reverse":
        return f"reverse {axis}", lambda x: jnp.flip(x, axis)
    if choice == "pad":
        low, high, interior = draw(st.tuples(st.integers(-1, 2), st.integers(-1, 2), st.sampled_from((0, 0, 1))))
        if size + low + high + (size - 1) * interior < 1:
            low = high = 0
        config = [(low, high, interior) if n == axis else (0, 0, 0) for n in range(len(shape))]
        return f"pad {config}", lambda x: jax.lax.pad(x, jnp.zeros((), x.dtype), config)
    if choice == "concatenate":
        return f"concatenate {axis}", lambda x: jnp.concatenate(
            [jnp.sin(x), x, 3.0 * x[:1]] if axis == 0 else [x, -x], axis
        )
    if choice == "broadcast":
        return "broadcast 2", lambda x: jnp.broadcast_to(x, (2, *x.shape))
    if choice == "squeeze":
        return "squeeze", jnp.squeeze
    if choice == "stack":
        return f"stack {axis}", lambda x: jnp.stack([x, x * x], axis)
    if choice == "pick":
        number = draw(st.integers(0, size - 1))
        return f"pick {axis} {number}", lambda x: jnp.take(x, number, axis)
    if choice == "update":
        number = draw(st.integers(0, size - 1))
        return f"update {number} {axis}", lambda x: jnp.moveaxis(
            jnp.moveaxis(x, axis, 0).at[number].multiply(2.0), 0, axis
        )
    if choice == "gather":
        rows = draw(st.lists(st.integers(0, size - 1), min_size=1, max_size=3))
        return f"gather {axis} {rows}", lambda x: jnp.take(x, np.array(rows), axis)
    start = draw(st.integers(0, size - 1))
    return f"dynamic slice {axis} {start}", lambda x: jax.lax.dynamic_slice_in_dim(
        x, jnp.asarray(start) + jnp.asarray(x.sum() * 0, int), max(1, size - 1), axis
    )


@st.composite
def _products(draw, shape: tuple[int, ...]) -> tuple[str, Callable]:
    """Operations that multiply or sum along axes."""
    if not shape:
        return "exp", lambda x: jnp.exp(-x * x)
    axis = draw(st.integers(0, len(shape) - 1))
    choice = draw(
        st.sampled_from(["sum", "mean", "max", "cumsum", "gram", "outer", "softmax", "norm", "diagonal", "constant"])
    )
    if choice in ("sum", "mean", "max"):
        return f"{choice} {axis}", lambda x: getattr(jnp, choice)(x, axis=axis)
    if choice == "cumsum":
        return f"cumsum {axis}", lambda x: jnp.cumsum(x, axis)
    if choice == "gram" and len(shape) >= 2:
        return "gram", lambda x: jnp.einsum("...ij,...kj->...ik", x, x)
    if choice == "outer" and prod(shape) <= 6:
        return "outer", lambda x: jnp.outer(x, x)
    if choice == "softmax":
        return f"softmax {axis}", lambda x: jax.nn.softmax(x, axis)
    if choice == "diagonal" and len(shape) == 1:
        return "diagonal", jnp.diag
    if choice == "constant":
        weights = np.random.default_rng(axis).normal(size=(3, shape[-1]))
        return "constant matrix", lambda x: jnp.einsum("ij,...j->...i", weights, x)
    return "norm", lambda x: jnp.sqrt(1.0 + jnp.sum(x * x))


def _factorisations(size: int) -> list[tuple[int, ...]]:
    """All shapes of up to three axes with ``size`` elements."""
    pairs = [(n, size // n) for n in range(1, size + 1) if size % n == 0]
    triples = [(a, b, c) for a, rest in pairs for b in range(1, rest + 1) if rest % b == 0 for c in [rest // b]]
    return [(size,), *pairs, *triples]
