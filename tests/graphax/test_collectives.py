"""Functions that read other points: `jax.jacfwd` pushes the tangents of all points together, and so must jacve."""

import os
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import graphax as gx

from .comparing import array, assert_same

SIZE = 4
RING = [(n, (n + 1) % SIZE) for n in range(SIZE)]

FUNCTIONS = {
    "psum": lambda v: lax.psum(v * v, "i") * v,
    "psum of several": lambda v: sum(lax.psum((jnp.sin(v), v * v), "i")) * v,
    "pmean": lambda v: lax.pmean(jnp.sin(v), "i") * v,
    "all_gather": lambda v: (lax.all_gather(v * v, "i") * v).sum(0),
    "all_gather, tiled": lambda v: lax.all_gather(v * v, "i", tiled=True).sum() * v,
    "ppermute": lambda v: lax.ppermute(jnp.sin(v), "i", RING) * v,
    "all_to_all": lambda v: lax.all_to_all(jnp.outer(jnp.arange(1.0, SIZE + 1), jnp.sin(v)), "i", 0, 0) * v,
    "psum_scatter": lambda v: lax.psum_scatter(jnp.outer(jnp.arange(1.0, SIZE + 1), v * v), "i") * v,
    "twice": lambda v: lax.psum(lax.psum(v * v, "i") * jnp.cos(v), "i") * v,
    "of a constant": lambda v: lax.psum(jnp.arange(2.0), "i") * v,
    "axis_index": lambda v: lax.axis_index("i") * jnp.sin(v),
    "in a loop": lambda v: lax.fori_loop(0, 2, lambda _, c: c * lax.pmean(c, "i"), v),
    "behind a mask": lambda v: jnp.where(v > 0, lax.psum(jnp.exp(v), "i"), v),
    "beside others": lambda v: (jnp.sin(v), {"sum": lax.psum(v, "i") * v}),
}
POINTS = array(SIZE, 2)


@pytest.mark.parametrize("order", ["auto", "fwd", "rev", "markowitz"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_under_vmap(name, order):
    function = FUNCTIONS[name]
    want = jax.vmap(jax.jacfwd(function), axis_name="i")(POINTS)
    assert_same(jax.vmap(gx.jacve(function, order=order), axis_name="i")(POINTS), want)


def test_the_reported_numbers():
    got = jax.vmap(gx.jacve(lambda v: lax.psum(v * v, "i") * v), axis_name="i")(jnp.array([0.1, 0.5, 1.0]))
    np.testing.assert_allclose(got, [1.58, 2.86, 4.46])


@pytest.mark.parametrize("name", FUNCTIONS)
def test_of_a_mapped_function(name):
    """If a function is mapped before it is differentiated, the mapped axis is an axis of an array."""
    mapped = jax.vmap(FUNCTIONS[name], axis_name="i")
    assert_same(gx.jacve(mapped)(POINTS), jax.jacfwd(mapped)(POINTS))


def test_of_a_mapped_function_under_another_map():
    def function(x):
        return jax.vmap(lambda v: lax.psum(lax.psum(v * v, "i") * v, "j") * v, axis_name="j")(x)

    points = array(SIZE, 3, 2)
    want = jax.vmap(jax.jacfwd(function), axis_name="i")(points)
    assert_same(jax.vmap(gx.jacve(function), axis_name="i")(points), want)


@pytest.mark.parametrize("transform", [jax.jit, jax.checkpoint], ids=["jit", "checkpoint"])
def test_under_further_transformations(transform):
    function = FUNCTIONS["psum"]
    want = jax.vmap(jax.hessian(lambda v: function(v).sum()), axis_name="i")(POINTS)
    assert_same(jax.vmap(transform(gx.hessve(lambda v: function(v).sum())), axis_name="i")(POINTS), want)
    inner = lambda derivative: lambda x: jax.vmap(derivative(function), axis_name="i")(x).sum()
    assert_same(jax.grad(transform(inner(gx.jacve)))(POINTS), jax.grad(inner(jax.jacfwd))(POINTS))


def test_only_what_leads_to_a_collective_is_kept_together():
    graphs = []

    def function(v):
        shared = lax.psum(v * v, "i")
        return jnp.sin(shared) * jnp.cos(v) * jnp.tanh(v)

    def build(v):
        graphs.append(gx.build_graph(function, v))
        return v

    jax.vmap(build, axis_name="i")(POINTS)
    names = [vertex.name for vertex in graphs[0].vertices.values()]
    assert names.count("collective") == 1
    assert {"sin", "cos", "tanh"} <= set(names)
    assert "psum" not in names


def test_a_custom_vjp_before_a_collective_is_refused_by_name():
    @jax.custom_vjp
    def custom(x):
        return x * x

    custom.defvjp(lambda x: (x * x, x), lambda x, g: (2 * x * g,))
    with pytest.raises(gx.GraphaxError, match="custom_vjp function between the inputs and a collective"):
        jax.vmap(gx.jacve(lambda v: lax.psum(custom(v), "i")), axis_name="i")(POINTS)


def mapped_over_devices():
    """Compare jacve with jacfwd on four devices. Yields the names of the comparisons."""
    mesh = jax.make_mesh((SIZE,), ("i",), axis_types=(jax.sharding.AxisType.Auto,))
    spec = jax.sharding.PartitionSpec("i")

    def sharded(checked):
        def over(function):
            def one(x):
                return jax.tree.map(lambda leaf: leaf[None], function(x[0]))

            return jax.jit(jax.shard_map(one, mesh=mesh, in_specs=spec, out_specs=spec, check_vma=checked))

        return over

    maps = {
        "pmap": lambda function: jax.pmap(function, axis_name="i"),
        "shard_map": sharded(False),
        "shard_map with checks": sharded(True),
    }
    for which, over in maps.items():
        for name, function in FUNCTIONS.items():
            assert_same(over(gx.jacve(function))(POINTS), over(jax.jacfwd(function))(POINTS))
            yield f"{which}, {name}"


@pytest.mark.slow
def test_over_devices():
    """Test `pmap` and `shard_map` with four devices, in a separate process."""
    code = "from tests.graphax.test_collectives import *; print(len(list(mapped_over_devices())))"
    flags = os.environ.get("XLA_FLAGS", "") + f" --xla_force_host_platform_device_count={SIZE}"
    environment = os.environ | {"XLA_FLAGS": flags, "JAX_ENABLE_X64": "1", "JAX_PLATFORMS": "cpu"}
    child = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    assert child.returncode == 0, child.stderr[-2000:]
    assert int(child.stdout) == 3 * len(FUNCTIONS)
