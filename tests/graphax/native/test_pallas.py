"""The kernels of a GPU, interpreted; those marked so are compiled where there is one."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import assume, given, settings
from jax import lax
from jax.sharding import AbstractDevice, AbstractMesh

import graphax as gx
from alphagrad.tasks import TASKS
from graphax import _jax
from graphax.errors import NativeError
from graphax.native import pallas
from graphax.native.statements import StatementBuilder, Statements
from graphax.native.unroll import unroll

from ..comparing import array, assert_same
from ..programs import programs

HAS_GPU = jax.default_backend() == "gpu"
# Of JAX; jacve itself does not pass it on.
pytestmark = pytest.mark.filterwarnings("ignore:The Pallas Triton backend is deprecated:DeprecationWarning")


def on_blocks(function, args, batched):
    """A function of one point for many, as the kernel of a GPU; each operand is marked that has an axis of points."""
    single = [x[0] if has_points else x for x, has_points in zip(args, batched, strict=True)]
    program, operands = _jax.open_program(function, single)
    constants = [np.asarray(x) for x in operands[: len(operands) - len(args)]]
    size = next(len(x) for x, has_points in zip(args, batched, strict=True) if has_points)
    marks = [False] * len(constants) + list(batched)
    kernel = pallas.on_blocks(unroll(program), marks, size, interpret=not HAS_GPU)
    assert kernel is not None
    return jax.jit(lambda *xs: kernel(*constants, *xs))(*args)


def function(x, y, w):
    return [jnp.sin(x) * y[0], w @ y, jnp.outer(y, y) * x, jnp.exp(-x * x) / (2 + y), jnp.float32(3.0)]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("batch", [1, 3, 128, 300])
def test_batches_of_every_size(batch, dtype):
    args = [x.astype(dtype) for x in (array(batch, seed=1), array(batch, 3, seed=2), array(2, 3, seed=3))]
    # By default a GPU rounds the factors of matrix products.
    with jax.default_matmul_precision("highest"):
        expected = jax.vmap(function, in_axes=(0, 0, None))(*args)
    assert_same(on_blocks(function, args, (True, True, False)), expected, 1e-5 if dtype == np.float32 else 1e-12)


@pytest.mark.parametrize("name", ["RoeFlux_1d", pytest.param("RoeFlux_3d", marks=pytest.mark.slow)])
def test_jacobians_of_tasks(name):
    task = TASKS[name]
    points = [np.float64(x) * (1 + 0.02 * array(5, *np.shape(x), seed=1)) for x in task.arguments()]
    jacobian = gx.jacve(task.function, argnums=task.argnums, backend="xla")
    flat = lambda *xs: jax.tree.leaves(jacobian(*xs))
    expected = jax.tree.leaves(jax.vmap(jax.jacrev(task.function, task.argnums))(*points))
    assert_same(on_blocks(flat, points, [True] * len(points)), expected, 1e-9)


@settings(max_examples=5, deadline=None)
@given(programs(steps=4, inputs=2))
def test_random_programs(program):
    points = [np.stack([x, 1.1 * x]) for x in program.arguments()]
    flat = lambda *xs: jax.tree.leaves(program(*xs))
    try:
        got = on_blocks(flat, points, [True] * len(points))
    except (NativeError, AssertionError):
        # A program may index by what it computes, or use what Triton does not have.
        assume(False)
    assert_same(got, jax.vmap(flat)(*points))


SPECIAL = np.array([0.0, -0.0, 1.5, -1.5, np.inf, -np.inf, np.nan])


@pytest.mark.parametrize("operation", [lax.neg, lax.sign, lax.abs, lax.floor, lambda x: 1.0 * lax.is_finite(x)])
def test_zeros_infinities_and_nan_of_one(operation):
    got, want = on_blocks(lambda x: [operation(x)], [SPECIAL], [True])[0], jax.vmap(operation)(SPECIAL)
    np.testing.assert_array_equal(got, want)
    numbers = ~np.isnan(want)
    np.testing.assert_array_equal(np.signbit(got)[numbers], np.signbit(want)[numbers])


@pytest.mark.parametrize("operation", [lax.max, lax.min, lax.div, lax.atan2])
def test_zeros_infinities_and_nan_of_two(operation):
    pairs = [x.ravel() for x in np.meshgrid(SPECIAL, SPECIAL)]
    np.testing.assert_array_equal(on_blocks(lambda x, y: [operation(x, y)], pairs, [True, True])[0], operation(*pairs))


@pytest.mark.parametrize("operation", sorted(pallas._OPERATIONS))
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_triton_knows_every_operation(operation, dtype):
    """What JAX says that it can lower may change between its versions."""
    builder = StatementBuilder()
    x, y = (builder.input(n, 0, dtype) for n in range(2))
    truth = builder.apply("lt", x, y)
    operands = {"select": (truth, x, y), "not": (truth,), **dict.fromkeys(("and", "or", "xor"), (truth, truth))}
    binary = {"add", "sub", "mul", "div", "eq", "ne", "lt", "le", "gt", "ge", "pow", "atan2", "max", "min"}
    found = builder.apply(operation, *operands.get(operation, (x, y) if operation in binary else (x,)))
    result = builder.convert(found, dtype)
    scalar = ((), np.dtype(dtype))
    statements = Statements(tuple(builder.statements), (scalar,) * 2, (scalar,), ((result,),))
    kernel = pallas.on_blocks(statements, (True, True), 256)
    device = AbstractDevice(platform="cuda", device_kind="NVIDIA H200", num_cores=None)
    with jax.sharding.use_abstract_mesh(AbstractMesh((1,), ("x",), abstract_device=device)):
        traced = jax.jit(kernel).trace(*[jax.ShapeDtypeStruct((256,), dtype)] * 2)
        assert "triton" in traced.lower(lowering_platforms=("cuda",)).as_text()


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (lambda x: [lax.erf(x)], "Triton has no erf"),
        (lambda x: [x > 0], "truth values"),
        (lambda x: [x * n for n in range(1500)], "more than 2,000 statements and results"),
    ],
)
def test_what_is_left_to_xla(function, reason):
    statements = unroll(_jax.open_program(function, [1.0])[0])
    assert reason in pallas.reason_for_xla(statements)
    assert pallas.on_blocks(statements, [True], 8) is None


def test_arrays_too_large_for_its_integers_are_left_to_xla():
    statements = unroll(_jax.open_program(lambda x: [jnp.sin(x)], [np.float32(1)])[0])
    assert pallas.on_blocks(statements, [True], 1 << 31) is None


@pytest.mark.parametrize(("operand", "result"), [(3, 0), (0, 3)])
def test_empty_arrays_are_left_to_xla(operand, result):
    function = lambda x: [jnp.full(result, x.sum())]
    assert pallas.on_blocks(unroll(_jax.open_program(function, (np.ones(operand),))[0]), [True], 8) is None


def test_without_triton_it_is_left_to_xla(monkeypatch):
    monkeypatch.setattr(_jax, "triton", lambda: None)
    statements = unroll(_jax.open_program(lambda x: [jnp.sin(x)], [1.0])[0])
    assert pallas.reason_for_xla(statements) == "this JAX has no Triton"
    assert pallas.on_blocks(statements, [True], 8) is None


@pytest.mark.parametrize("llvm", [True, False])
@pytest.mark.parametrize(("shape", "expected"), [((64,), [64]), ((3, 5), [15]), ((), []), ((0,), [])])
def test_maps_are_lowered_to_kernels(monkeypatch, llvm, shape, expected):
    """Without an axis of points there is nothing to share out; kernels of a GPU need no llvmlite."""
    batches = []
    monkeypatch.setattr("graphax.native.host.available", lambda: llvm)
    monkeypatch.setattr(_jax, "computes_on_gpu", lambda: True)
    monkeypatch.setattr(pallas, "on_blocks", lambda program, batched, batch: batches.append(batch))
    jacobian = gx.jacve(lambda x, y: jnp.sin(x) * y, argnums=(0, 1))
    for _ in shape:
        jacobian = jax.vmap(jacobian)
    traced = jax.jit(jacobian).trace(*[jax.ShapeDtypeStruct(shape, np.float32)] * 2)
    traced.lower(lowering_platforms=("cuda",))
    assert batches == expected


@pytest.mark.skipif(not HAS_GPU, reason="needs a GPU")
@pytest.mark.filterwarnings("error")
def test_on_a_gpu_it_is_what_runs():
    function = lambda x, y: jnp.sin(x) * y / (1 + x * x)
    mapped = jax.jit(jax.vmap(gx.jacve(function, argnums=(0, 1))))
    points = array(1000, seed=1), array(1000, seed=2)
    assert "triton" in mapped.lower(*points).as_text()
    assert_same(mapped(*points), jax.vmap(jax.jacrev(function, (0, 1)))(*points))
