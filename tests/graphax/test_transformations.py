"""Every public function under every transformation of JAX gives JAX's own results, or an error that says why not."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import export, lax

import graphax as gx

from .comparing import array, assert_same

AXIS = "points"
BATCH = 3


def function(x):
    """A function with smooth parts, a mask over a singular value, a small matrix product, and several results."""
    inner = jnp.sin(jnp.asarray([[0.5, -1.0], [2.0, 0.25], [1.0, 1.0]], x.dtype) @ x)
    return inner * jnp.exp(-x.sum()), jnp.where(x > 0, jnp.sqrt(x), x * x).sum()


def scalar(x):
    """A function with a mask between regular functions. For other masks, JAX's own second derivatives are NaN."""
    return function(jnp.abs(x))[0].sum() * jnp.where(x > 0, x**3, x * x).sum()


# The derivatives to compare, by graphax and by JAX.
DERIVATIVES = {
    "jacve": (gx.jacve, jax.jacfwd, function),
    "jacve, order rev": (lambda f: gx.jacve(f, order="rev"), jax.jacfwd, function),
    "jacve, xla": (lambda f: gx.jacve(f, backend="xla"), jax.jacfwd, function),
    "jacve, native": (lambda f: gx.jacve(f, backend="native"), jax.jacfwd, function),
    "value_and_jacve": (gx.value_and_jacve, lambda f: lambda x: (f(x), jax.jacfwd(f)(x)), function),
    "hessve": (gx.hessve, jax.hessian, scalar),
    "sparse": (
        lambda f: (
            lambda x: jax.tree.map(
                lambda block: block.todense(),
                gx.jacve(f, sparse=True)(x),
                is_leaf=lambda n: isinstance(n, gx.JacobianBlock),
            )
        ),
        jax.jacfwd,
        function,
    ),
}


def point(*batch, dtype=None):
    return jnp.asarray(array(*batch, 2, seed=5), dtype)


def total(derivative):
    return lambda x: sum(jnp.sum(leaf) for leaf in jax.tree.leaves(derivative(x)))


def sharded(checked):
    def run(derivative):
        mesh = jax.make_mesh((1,), (AXIS,), axis_types=(jax.sharding.AxisType.Auto,))
        spec = jax.sharding.PartitionSpec(AXIS)

        def one(x):
            return jax.tree.map(lambda leaf: leaf[None], derivative(x[0]))

        return jax.jit(jax.shard_map(one, mesh=mesh, in_specs=spec, out_specs=spec, check_vma=checked))(point(1))

    return run


def custom_jvp(derivative):
    @jax.custom_jvp
    def custom(x):
        return derivative(x)

    @custom.defjvp
    def rule(primals, tangents):
        return jax.jvp(derivative, primals, tangents)

    return jax.jvp(custom, (point(),), (jnp.ones(2),))


def custom_vjp(derivative):
    @jax.custom_vjp
    def custom(x):
        return total(derivative)(x)

    custom.defvjp(lambda x: (custom(x), x), lambda x, g: (g * jax.grad(total(derivative))(x),))
    return jax.value_and_grad(custom)(point())


def exported(derivative):
    written = export.export(jax.jit(jax.vmap(derivative)))(point(BATCH)).serialize()
    return export.deserialize(written).call(point(BATCH))


def linearized(derivative):
    value, push = jax.linearize(derivative, point())
    return value, push(jnp.ones(2))


def pulled_back(derivative):
    value, pull = jax.vjp(derivative, point())
    return value, pull(jax.tree.map(jnp.ones_like, value))


def looped(derivative):
    return lax.while_loop(
        lambda state: state[0] < 3,
        lambda state: (state[0] + 1, state[1] - 0.01 * total(derivative)(state[1])),
        (0, point()),
    )


def single_precision(derivative):
    with jax.enable_x64(False):
        return jax.jit(jax.vmap(derivative))(point(BATCH, dtype=np.float32))


def without_jit(derivative):
    with jax.disable_jit():
        return derivative(point()), jax.vmap(derivative)(point(BATCH))


def with_debug_nans(derivative):
    with jax.debug_nans(True):
        return jax.jit(derivative)(jnp.abs(point()))


TRANSFORMATIONS = {
    "none": lambda d: d(point()),
    "jit": lambda d: jax.jit(d)(point()),
    "vmap": lambda d: jax.vmap(d)(point(BATCH)),
    "vmap, in_axes and out_axes": lambda d: jax.vmap(d, in_axes=1, out_axes=-1)(point(BATCH).T),
    "vmap, axis_name": lambda d: jax.vmap(d, axis_name=AXIS)(point(BATCH)),
    "vmap of vmap": lambda d: jax.vmap(jax.vmap(d))(point(2, BATCH)),
    "jit of vmap": lambda d: jax.jit(jax.vmap(d))(point(BATCH)),
    "pmap": lambda d: jax.pmap(d, axis_name=AXIS)(point(1)),
    "shard_map": sharded(False),
    "shard_map with checks": sharded(True),
    "grad": lambda d: jax.grad(total(d))(point()),
    "grad of vmap": lambda d: jax.grad(total(jax.vmap(d)))(point(BATCH)),
    "jvp": lambda d: jax.jvp(d, (point(),), (jnp.ones(2),)),
    "vjp": pulled_back,
    "linearize": linearized,
    "jacrev": lambda d: jax.jacrev(d)(point()),
    "checkpoint": lambda d: jax.grad(total(jax.checkpoint(d)))(point()),
    "scan": lambda d: lax.scan(lambda c, _: (c - 0.01 * total(d)(c), d(c)), point(), None, length=3),
    "cond": lambda d: lax.cond(point()[0] > 0, d, lambda x: jax.tree.map(jnp.negative, d(x)), point()),
    "while": looped,
    "custom_jvp": custom_jvp,
    "custom_vjp": custom_vjp,
    "disable_jit": without_jit,
    "debug_nans": with_debug_nans,
    "export": exported,
    "donation": lambda d: jax.jit(d, donate_argnums=0)(point() + 0),
    "x64 off": single_precision,
}


# The others use another order, backend or result of the same function; `make slow` runs all of them.
FAST = "jacve", "jacve, native"
CASES = [name if name in FAST else pytest.param(name, marks=pytest.mark.slow) for name in DERIVATIVES]


@pytest.mark.filterwarnings("ignore:Some donated buffers were not usable")
@pytest.mark.parametrize("transformation", TRANSFORMATIONS)
@pytest.mark.parametrize("name", CASES)
def test_equals_jax(name, transformation):
    ours, theirs, differentiated = DERIVATIVES[name]
    run = TRANSFORMATIONS[transformation]
    if (name, transformation) == ("jacve, native", "shard_map with checks"):
        with pytest.raises(gx.NativeError, match=r"which jax\.shard_map checks"):
            run(ours(differentiated))
        return
    want = run(theirs(differentiated))
    assert_same(run(ours(differentiated)), want, 2e-4 if transformation == "x64 off" else 1e-9)


# These work on shapes, or on numbers that must be known.
@pytest.mark.parametrize("transformation", TRANSFORMATIONS)
@pytest.mark.parametrize("name", ["build_graph", "explain", pytest.param("check_jacobian", marks=pytest.mark.slow)])
def test_tools_work_or_say_why_not(name, transformation):
    seen = []

    def tool(x):
        seen.append(getattr(gx, name)(function, x))
        return x * 1.0

    run = TRANSFORMATIONS[transformation]
    try:
        run(tool)
    except (jax.errors.ConcretizationTypeError, jax.errors.TracerArrayConversionError):
        assert name == "check_jacobian"  # it compares numbers, which are not known yet
        return
    if name == "build_graph":
        same = all(graph.fingerprint == gx.build_graph(function, point()).fingerprint for graph in seen)
        assert same or "checks" in transformation  # those add equations of their own
    elif name == "explain":
        assert all(explained.costs["rev"] == gx.explain(function, point()).costs["rev"] for explained in seen)
    else:
        assert all(error < 1e-6 for error in seen)
    assert seen
