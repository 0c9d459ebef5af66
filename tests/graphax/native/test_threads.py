"""GPU kernels without a GPU: the same code runs on this machine, and the generated code is inspected."""

import shutil
import subprocess
from importlib.util import find_spec
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import assume, given, settings
from jax import lax

import graphax as gx
from alphagrad.tasks import TASKS
from graphax import _jax
from graphax.errors import NativeError
from graphax.native import cuda, primitive
from graphax.native.operations import OPERATIONS
from graphax.native.ptx import ptx, target
from graphax.native.statements import StatementBuilder, Statements
from graphax.native.threads import reason_for_xla, thread_code
from graphax.native.unroll import unroll

from ..comparing import array, assert_same
from ..programs import programs
from .warps import on_warps


def function(x, y, w):
    wide = jnp.arange(40.0, dtype=y.dtype) * x
    return [jnp.sin(x) * y[0], w @ y, jnp.outer(y, y) * x, jnp.exp(-x * x) / (2 + y), jnp.float32(3.0), y > 0, wide]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("batch", [1, 3, 32, 70])
def test_batches_of_every_size(batch, dtype):
    args = [x.astype(dtype) for x in (array(batch, seed=1), array(batch, 3, seed=2), array(2, 3, seed=3))]
    expected = jax.vmap(function, in_axes=(0, 0, None))(*args)
    assert_same(on_warps(function, args, (True, True, False)), expected, 1e-5 if dtype == np.float32 else 1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("batch", [1, 64, 131, 300])
def test_threads_with_several_points(batch, dtype):
    """A thread computes several points if all arrays have one number per point."""
    task = TASKS["HumanHeartDipole"]
    points = [(x * (1 + 0.1 * array(batch, seed=n))).astype(dtype) for n, x in enumerate(task.arguments())]
    jacobian = gx.jacve(task.function, task.argnums, backend="xla")
    got = on_warps(jacobian, points, [True] * len(points))
    assert_same(got, jax.vmap(jacobian)(*points), 1e-4 if dtype == np.float32 else 1e-12)


@pytest.mark.parametrize(
    ("sizes", "dtype"),
    [
        ((144,), np.float32),
        ((400,), np.float32),
        ((231,), np.float64),
        ((100, 90, 80), np.float64),
        ((7, 300), np.bool_),
    ],
)
def test_rows_in_rooms(sizes, dtype):
    """Test whole rows, pieces of rows, and rows with separate or shared rooms."""
    function = lambda x: [(jnp.sin(x[0] * jnp.arange(size)) + x[1]).astype(dtype) for size in sizes]
    x = array(41, 2)
    assert_same(on_warps(function, [x], [True]), jax.vmap(function)(x), 1e-5)


@settings(max_examples=8, deadline=None)
@given(programs(steps=4, inputs=2))
def test_random_programs(program):
    points = [np.stack([x, 1.1 * x]) for x in program.arguments()]
    flat = lambda *xs: jax.tree.leaves(program(*xs))
    try:
        got = on_warps(flat, points, [True] * len(points))
    except NativeError:
        # A program may index by what it computes.
        assume(False)
    assert_same(got, jax.vmap(flat)(*points))


SPECIAL = np.array([0.0, -0.0, 1.5, -1.5, np.inf, -np.inf, np.nan])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    "operation", [lax.neg, lax.sign, lax.abs, lax.floor, lambda x: 1.0 * lax.is_finite(x), lax.sqrt, lax.rsqrt]
)
def test_zeros_infinities_and_nan_of_one(operation, dtype):
    special = SPECIAL.astype(dtype)
    (got,), want = on_warps(lambda x: [operation(x)], [special], [True]), jax.vmap(operation)(special)
    np.testing.assert_allclose(got, want, rtol=1e-6 if dtype == np.float32 else 1e-15)
    numbers = ~np.isnan(want)
    np.testing.assert_array_equal(np.signbit(got)[numbers], np.signbit(want)[numbers])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("operation", [lax.max, lax.min, lax.div, lax.atan2, lax.rem])
def test_zeros_infinities_and_nan_of_two(operation, dtype):
    pairs = [x.ravel().astype(dtype) for x in np.meshgrid(SPECIAL, SPECIAL)]
    (got,) = on_warps(lambda x, y: [operation(x, y)], pairs, [True, True])
    np.testing.assert_allclose(got, operation(*pairs), rtol=1e-6)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", ["sin", "cos", "tan"])
def test_angles_of_any_size(name, dtype):
    largest = 87 if dtype == np.float32 else 700
    x = np.exp(np.random.default_rng(0).uniform(-5, largest, 200)).astype(dtype)
    (got,) = on_warps(lambda x: [getattr(jnp, name)(x)], [x], [True])
    want = getattr(np, name)(x.astype(np.longdouble))
    assert np.max(np.abs(got - want) / np.spacing(np.abs(want).astype(dtype))) < 3


def spread(rng, dtype, powers):
    with np.errstate(over="ignore"):
        return (rng.normal(size=300) * 10.0 ** rng.uniform(-powers, powers, 300)).astype(dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_remainders_are_exact(dtype):
    """This includes denormal numbers and divisors."""
    rng, powers = np.random.default_rng(1), 37 if dtype == np.float32 else 300
    a, b = spread(rng, dtype, 1.2 * powers), spread(rng, dtype, 1.2 * powers)
    a[:4], b[:4] = [1e-45, 7e-40, 3e38, -5], [1e-45, 1e-45, 1e-45, 3]
    (got,) = on_warps(lambda a, b: [lax.rem(a, b)], [a, b], [True, True])
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(got, np.fmod(a, b))


def test_quotients_before_jumps_are_the_nearest():
    """Other quotients are off by at most one unit in the last place."""
    rng = np.random.default_rng(2)
    a, b = (np.concatenate([spread(rng, np.float32, 36), rng.integers(1, 99, 300)]).astype(np.float32) for _ in "ab")
    (near,) = on_warps(lambda a, b: [jnp.floor(a / b)], [a, b], [True, True])
    (other,) = on_warps(lambda a, b: [a / b], [a, b], [True, True])
    with np.errstate(over="ignore"):
        quotient = a / b
    np.testing.assert_array_equal(near, np.floor(quotient))
    usual = np.isfinite(quotient) & (np.abs(quotient) > np.finfo(np.float32).tiny)
    other, quotient = other[usual], quotient[usual]
    assert np.max(np.abs(other - quotient) / np.spacing(np.abs(quotient))) <= 2


def every_operation(dtype):
    """A program with every operation except those on whole numbers."""
    builder = StatementBuilder()
    x, y = (builder.input(n, 0, dtype) for n in range(2))
    truth = builder.apply("lt", x, y)
    operands = {"select": (truth, x, y), "not": (truth,), **dict.fromkeys(("and", "or", "xor"), (truth, truth))}
    whole = builder.convert(x, np.int32 if dtype == np.float32 else np.int64)
    operands |= dict.fromkeys(("shift_left", "shift_right_logical", "shift_right_arithmetic"), (whole, whole))
    binary = {
        "add", "sub", "mul", "div", "eq", "ne", "lt", "le", "gt", "ge", "pow", "atan2", "max", "min", "rem", "quotient",
    }  # fmt: skip
    results = []
    for name in sorted(set(OPERATIONS) - {"inverse"}):
        found = builder.apply(name, *operands.get(name, (x, y) if name in binary else (x,)))
        results.append(builder.convert(found, dtype))
    outputs = (((len(results),), np.dtype(dtype)),)
    return Statements(tuple(builder.statements), (((), np.dtype(dtype)),) * 2, outputs, (tuple(results),))


def assembler():
    """NVIDIA's assembler, if it is installed."""
    found = find_spec("nvidia")
    places = [
        Path(folder) / "cuda_nvcc" / "bin" / "ptxas" for folder in (found.submodule_search_locations if found else ())
    ]
    return next((str(path) for path in places if path.exists()), shutil.which("ptxas"))


@pytest.mark.parametrize("machine", ["sm_70", "sm_80", "sm_90"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_every_operation_is_one_of_the_gpu(dtype, machine, tmp_path):
    code = ptx(thread_code(every_operation(dtype), (True, True)).text, machine)
    assert f".target {machine}".encode() in code
    if assembler() is None:
        return
    (tmp_path / "kernel.ptx").write_bytes(code)
    command = [assembler(), f"-arch={machine if machine != 'sm_70' else 'sm_75'}", "kernel.ptx", "-o", "kernel.cubin"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_the_code_of_a_small_kernel():
    """It loads two numbers at once, fuses products and sums, has a row in the room, and no jump in the arithmetic."""
    program, _ = _jax.open_program(
        lambda x: [jnp.stack([x[0] * x[1] + 1, x[0] / x[1], x[1]])], [np.ones(2, np.float32)]
    )
    code = ptx(thread_code(unroll(program), (True,)).text, "sm_90").decode()
    arithmetic = code[code.index("ld.global") : code.index("bar.warp.sync")]
    for instruction in ("ld.global.nc.v2.b32", "fma.rn.f32", "rcp.approx.ftz.f32", "st.shared.b32"):
        assert instruction in arithmetic
    for instruction in ("bra", "call", "div."):
        assert instruction not in arithmetic
    assert "st.local" not in code


def kept(length):
    """Cumulative sums of a vector, kept until a second loop reads them in another order."""
    sums = lambda x: lax.scan(lambda c, y: (c + y, c * y), 0.0, x)[1]
    return lambda x: [lax.scan(lambda c, y: (c + y, c * y), 0.0, sums(jnp.tile(x, length))[::-1])[0]]


def test_what_loops_keep_has_room():
    program, _ = _jax.open_program(kept(3), [np.ones(6)])
    assert reason_for_xla(unroll(program)) is None
    assert_same(on_warps(kept(3), [array(3, 6)], [True]), jax.vmap(kept(3))(array(3, 6)), 1e-12)


@pytest.mark.parametrize(
    ("function", "point", "reason"),
    [
        (lambda x: [x * n for n in range(600)], 1.0, "more operands and results"),
        (kept(400), np.ones(6), "no room for what its loops keep"),
    ],
)
def test_what_is_left_to_xla(function, point, reason):
    program, _ = _jax.open_program(function, [point])
    assert reason in reason_for_xla(unroll(program))


@pytest.mark.parametrize(("capability", "expected"), [(52, ""), (70, "sm_70"), (90, "sm_90"), (120, "sm_90")])
def test_code_is_for_the_gpu_or_older_ones(capability, expected):
    assert target(capability) == expected


@pytest.fixture
def pretended_gpu(monkeypatch):
    """Pretend that JAX computes on a GPU, and record the code that is loaded there."""
    loads = []
    monkeypatch.setattr(_jax, "computes_on_gpu", lambda: True)
    monkeypatch.setattr(cuda, "check_available", lambda: None)

    def load(code, calling):
        loads.append(calling)
        raise OSError("no GPU")

    monkeypatch.setattr(primitive.on_gpu, "load", load)
    return loads


@pytest.mark.parametrize(("shape", "kernels"), [((64,), 1), ((3, 5), 1), ((), 1), ((0,), 0)])
def test_maps_are_lowered_to_kernels(pretended_gpu, shape, kernels):
    """A single point is one thread. If code cannot be loaded, XLA runs the program."""

    def function(x, y):
        for n in range(30):
            x, y = x * y + n, y / (2 + x * x)
        return x, y

    jacobian = gx.jacve(function, argnums=(0, 1))
    for _ in shape:
        jacobian = jax.vmap(jacobian)
    traced = jax.jit(jacobian).trace(*[jax.ShapeDtypeStruct(shape, np.float32)] * 2)
    assert "graphax" not in traced.lower(lowering_platforms=("cuda",)).as_text()
    assert len(pretended_gpu) == kernels


@pytest.mark.parametrize("points", [None, 64, 100_000])
def test_few_points_of_arrays_are_left_to_xla(pretended_gpu, points):
    """One thread takes longer for hundreds of powers than XLA for a few kernels. With many points, a kernel wins."""

    def function(x):
        return jnp.sum(jnp.abs(x[:, None] - x[None] + 2.0) ** 1.5, 1)

    jacobian = gx.jacve(function) if points is None else jax.vmap(gx.jacve(function))
    shape = (12,) if points is None else (points, 12)
    jax.jit(jacobian).trace(jax.ShapeDtypeStruct(shape, np.float32)).lower(lowering_platforms=("cuda",))
    assert len(pretended_gpu) == (points == 100_000)


def test_what_cannot_be_loaded_is_named_under_native(pretended_gpu):
    traced = jax.jit(jax.vmap(gx.jacve(lambda x: jnp.sin(x) * x, backend="native"))).trace(np.ones(8, np.float32))
    with pytest.raises(NativeError, match=r"cannot be compiled or loaded \(OSError: no GPU\)"):
        traced.lower(lowering_platforms=("cuda",))


def test_without_a_driver_there_is_one_line(monkeypatch):
    cuda.driver.cache_clear()
    monkeypatch.setattr(cuda.ctypes, "CDLL", lambda name: (_ for _ in ()).throw(OSError(name)))
    with pytest.raises(NativeError, match="libcuda"):
        cuda.driver()
    cuda.driver.cache_clear()
