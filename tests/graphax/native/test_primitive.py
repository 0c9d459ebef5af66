import os
import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from graphax import GraphaxError, _jax, native
from graphax.native import host, primitive
from graphax.native.memory import Stores
from graphax.native.unroll import unroll

from ..comparing import array, assert_same
from .running import natively


def function(x, y, w):
    """Scalars, a vector and a matrix; results of several shapes and kinds."""
    return [jnp.sin(x) * y[0], w @ y, jnp.outer(y, y) * x, x > y[1], jnp.exp(-x * x) / (2 + y), x * 1.0]


def _arguments(batch=(), dtype=np.float64):
    arrays = array(*batch, seed=1), array(*batch, 3, seed=2), array(2, 3, seed=3)
    return [x.astype(dtype) for x in arrays]


AXES = (0, 0, None)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("batch", [1, 2, 3, 7, 16, 37, 1003])
def test_batches_of_every_size(batch, dtype):
    args = _arguments((batch,), dtype)
    got = jax.jit(jax.vmap(natively(function), in_axes=AXES))(*args)
    assert_same(got, jax.vmap(function, in_axes=AXES)(*args), 1e-5 if dtype == np.float32 else 1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("size", [2, 3, 4, 7, 8, 9, 16, 25])
def test_elements_that_are_the_same_number(size, dtype):
    rng = np.random.default_rng(size)
    points, picks = rng.normal(size=(37, 3)).astype(dtype), [rng.integers(3, size=size) for _ in range(8)]
    picks += [np.zeros(size, int), np.arange(size) // 2 % 3]
    got = jax.jit(jax.vmap(natively(lambda x: [jnp.stack([x[n] for n in pick]) for pick in picks])))(points)
    for result, pick in zip(got, picks, strict=True):
        np.testing.assert_array_equal(result, points[:, pick])


def test_one_point():
    args = _arguments()
    assert_same(jax.jit(natively(function))(*args), function(*map(jnp.asarray, args)), 1e-12)
    assert_same(natively(function)(*args), function(*map(jnp.asarray, args)), 1e-12)


def test_no_points():
    args = _arguments((0,))
    got = jax.jit(jax.vmap(natively(function), in_axes=AXES))(*args)
    assert [x.shape for x in got][:3] == [(0,), (0, 2), (0, 3, 3)]


@pytest.mark.parametrize(
    ("outer", "inner"), [((0, None, None), (0, 0, None)), ((None, 0, None), (0, None, 0)), ((1, 0, None), (0, 1, 0))]
)
def test_maps_of_maps(outer, inner):
    args = []
    for position, rest in enumerate([(), (3,), (2, 3)]):
        shape = list(rest)
        for axis, size in ((inner[position], 4), (outer[position], 5)):
            if axis is not None:
                shape.insert(axis, size)
        args.append(array(*shape, seed=position))
    got = jax.vmap(jax.vmap(natively(function), in_axes=inner), in_axes=outer)(*args)
    want = jax.vmap(jax.vmap(function, in_axes=inner), in_axes=outer)(*args)
    assert_same(got, want, 1e-12)


def test_in_loops():
    def step(run):
        def body(carry, x):
            results = run(x, jnp.stack([carry, x, x]), jnp.ones((2, 3)))
            return carry + results[0], results[1]

        return body

    xs = array(20)
    assert_same(
        jax.jit(lambda xs: jax.lax.scan(step(natively(function)), 0.5, xs))(xs),
        jax.lax.scan(step(function), 0.5, xs),
        1e-12,
    )


@pytest.mark.parametrize("transform", [jax.jacfwd, jax.jacrev, jax.hessian])
def test_derivatives(transform):
    args = _arguments()

    def total(run):
        return lambda y: sum(jnp.sum(part) for part in run(args[0], y, args[2])[:3])

    assert_same(transform(total(natively(function)))(args[1]), transform(total(function))(args[1]), 1e-12)


def test_derivatives_of_a_mapped_kernel():
    args = _arguments((6,))

    def total(run):
        return lambda x: sum(jnp.sum(part) for part in jax.vmap(run, in_axes=AXES)(x, *args[1:])[:3])

    assert_same(jax.jit(jax.grad(total(natively(function))))(args[0]), jax.grad(total(function))(args[0]), 1e-12)


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("way", Stores)
def test_threads_and_ways_to_write(monkeypatch, threads, way):
    """There are enough points for several threads. Every point is computed, however results are written."""
    monkeypatch.setattr(primitive, "_stores", lambda statements, batch: way)
    count = 70_003
    x = array(count).astype(np.float32)

    def powers(x):
        return [x**n + jnp.sin(x) for n in range(40)]

    before = native.set_threads(threads)
    got = jax.jit(jax.vmap(natively(powers)))(x)
    native.set_threads(before)
    for n, ours in enumerate(got):
        np.testing.assert_allclose(ours, x.astype(float) ** n + np.sin(x.astype(float)), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("batch", "way"), [(1000, Stores.CACHED), (100_000, Stores.PREFETCHED), (1_000_000, Stores.STREAMED)]
)
def test_the_way_to_write_follows_from_the_size_of_the_results(batch, way):
    program, _ = _jax.open_program(lambda x: [x * n for n in range(1, 11)], [np.float32(1)])
    assert primitive._layout(unroll(program), (True,), batch).stores is way


def test_an_invalid_limit_of_threads_is_an_error(monkeypatch):
    monkeypatch.setenv(host.THREADS_VARIABLE, "many")
    with pytest.raises(GraphaxError, match=r"GRAPHAX_THREADS must be .* but is 'many'"):
        host._most_threads()


def test_export_leaves_kernels_out():
    exported = jax.export.export(jax.jit(jax.vmap(natively(lambda x: [jnp.sin(x)]))))(np.ones(8))
    np.testing.assert_allclose(exported.call(np.ones(8))[0], np.sin(np.ones(8)))


def test_equal_programs_are_compiled_once(monkeypatch, tmp_path):
    monkeypatch.setenv("GRAPHAX_CACHE", str(tmp_path))
    for batch in (64, 128):
        jax.jit(jax.vmap(natively(lambda x: [jnp.cosh(x) * 0.12345])))(np.ones(batch))
    assert len(list(tmp_path.rglob("*.o"))) == 1


_CHILD = """
import jax, numpy as np, sys
from graphax import backend
def run(x):
    return backend.run(lambda x: [jax.numpy.sin(x) + 1], [x], "native")
print(float(jax.jit(jax.vmap(run))(np.zeros(32, np.float32))[0][3]))
"""


def test_files_in_the_cache_and_nowhere_else(tmp_path):
    """A damaged kernel is replaced, and a process only writes to the cache."""
    cache, home = tmp_path / "cache", tmp_path / "home"
    home.mkdir()
    source = str(Path(native.__file__).parents[2])
    environment = os.environ | {
        "PYTHONPATH": source,
        "GRAPHAX_CACHE": str(cache),
        "HOME": str(home),
        "XDG_CACHE_HOME": str(home),
    }

    def run():
        child = subprocess.run(
            [sys.executable, "-c", _CHILD], cwd=home, env=environment, capture_output=True, text=True, check=True
        )
        return float(child.stdout)

    assert run() == 1.0
    good = {path: path.read_bytes() for path in cache.rglob("*.o")}
    assert len(good) == 2  # the kernel, and the entries
    for path, content in good.items():
        path.write_bytes(content[:50] + b"damage" + content[56:])
    assert run() == 1.0
    assert {path: path.read_bytes() for path in cache.rglob("*.o")} == good
    assert list(home.iterdir()) == []


def test_missing_llvm_is_an_error_that_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "llvmlite", None)
    host.host.cache_clear()
    try:
        with pytest.raises(Exception, match=r"graphax-alphagrad\[native\]"):
            natively(lambda x: [x])(1.0)
    finally:
        host.host.cache_clear()


@pytest.mark.parametrize(("platform", "kernel"), [("cpu", True), ("cuda", False), ("tpu", False)])
def test_other_platforms_get_the_program(platform, kernel):
    traced = jax.jit(jax.vmap(natively(lambda x: [jnp.sin(x) * x]))).trace(np.ones(8))
    assert ("custom_call @graphax" in traced.lower(lowering_platforms=(platform,)).as_text()) == kernel


@pytest.mark.parametrize("way", ["while_loop", "fori_loop"])
def test_a_kernel_may_be_the_whole_body_of_a_loop(way):
    """XLA assumed that the results of a call are the same in all steps if the call is the whole body."""
    step = lambda state: tuple(natively(lambda x, y: [jnp.sin(x) * 0.5, jnp.cos(x) + y])(*state))
    plain = lambda state: (jnp.sin(state[0]) * 0.5, jnp.cos(state[0]) + state[1])

    def run(step):
        if way == "fori_loop":
            return lambda *start: lax.fori_loop(0, 9, lambda _, state: jax.vmap(lambda *s: step(s))(*state), start)
        return lambda *start: lax.while_loop(
            lambda state: jnp.max(state[0]) > 1e-3, lambda state: jax.vmap(lambda *s: step(s))(*state), start
        )

    start = np.linspace(0.1, 1, 8), np.zeros(8)
    assert_same(jax.jit(run(step))(*start), jax.jit(run(plain))(*start), 1e-12)


@pytest.mark.slow
def test_long_code_is_cut_into_blocks_and_computes_the_same():
    """A block jumps only to the next one, also if there is a loop between them."""

    def steps(x):
        for n in range(300):
            x = jnp.stack([x[0] * 0.9 + jnp.sin(x[1]), x[1] * x[2] - 0.1 * n / 300, jnp.tanh(x[0] + x[2])])
        x = lax.fori_loop(0, 500, lambda n, y: jnp.sin(y) + 1e-3 * y, x)
        for _ in range(200):
            x = jnp.cos(x) * jnp.roll(x, 1)
        return [x]

    points = array(21, 3)
    program = _jax.trace(steps, points[0])
    statements = unroll(program)
    code = primitive.kernel_code(statements, primitive._layout(statements, (True,), 21))
    assert code.count("br i1 %never") > 10
    got = jax.jit(jax.vmap(natively(steps)))(points)
    # Without `jax.jit`, because XLA would compute every step again for each later step.
    assert_same(got, jax.vmap(steps)(points), 1e-10)


@pytest.mark.parametrize("batch", [1, 5, 16, 1003])
def test_results_that_are_mostly_zeros_begin_as_zeros(batch):
    """Other elements are stored over the zeros. Negative zeros do not count as zeros."""

    def sparse(x):
        matrix = jnp.zeros((9, 9)).at[2, 3].set(x[0]).at[8, 8].set(-0.0).at[0, 0].set(jnp.sin(x[1]))
        return [matrix, matrix > 0.1, matrix[0]]

    points = array(batch, 2)
    got = jax.jit(jax.vmap(natively(sparse)))(points)
    want = jax.vmap(sparse)(points)
    assert_same(got, want, 1e-12)
    assert np.signbit(got[0][:, 8, 8]).all()
    statements = unroll(_jax.trace(sparse, points[0]))
    code = primitive.kernel_code(statements, primitive._layout(statements, (True,), batch))
    assert "llvm.memset" in code


@pytest.mark.parametrize("batch", [3, 16, 40])
def test_points_that_are_computed_again_are_computed_one_by_one(batch):
    """One huge angle makes the kernel compute its block point by point, also for results of several elements."""

    def turned(x):
        return [jnp.sin(x), jnp.stack([jnp.cos(x[0]), 1 / x[1], x[0] / x[1]]), x > 0]

    points = array(batch, 2)
    points[batch // 2, 0] = 1e300
    points[0, 1] = 2e-308
    got = jax.jit(jax.vmap(natively(turned)))(points)
    assert_same(got, jax.jit(jax.vmap(turned))(points), 1e-12)
