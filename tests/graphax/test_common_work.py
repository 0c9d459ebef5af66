"""Work that does not depend on the point is done once, and results that do not are stored once."""

import jax
import jax.numpy as jnp
import pytest
from jax import lax

import graphax as gx
from graphax import _jax, common_work
from graphax.common_work import split_common

from .comparing import array, assert_same

WAYS = {
    "jit of vmap": lambda f, axes: jax.jit(jax.vmap(f, axes)),
    "vmap of jit": lambda f, axes: jax.vmap(jax.jit(f), axes),
    "vmap": jax.vmap,
    "two maps": lambda f, axes: jax.jit(lambda *a: jax.vmap(jax.vmap(f, axes), axes)(jnp.stack([a[0], -a[0]]), *a[1:])),
    "maps of other arguments": lambda f, axes: jax.jit(
        lambda x, *rest: jax.vmap(jax.vmap(f, axes), (None, *(0 for _ in rest)))(
            x, *(jnp.stack([y, y + 1]) for y in rest)
        )
    ),
}


def wave(u, c):
    """Linear in u, so its Jacobian depends on c alone."""
    return lax.scan(lambda s, _: (s + c * jnp.roll(s, 1) * 0.1, None), u, None, length=3)[0]


def projected(x, basis):
    return jnp.linalg.inv(basis @ basis.T + jnp.eye(3)) @ jnp.sin(x)


def scaled(x, c):
    return c * x, jnp.outer(jnp.exp(c), x * x), 1.0


def reshaped(x, table):
    """The table is only moved, so that there is nothing to do beforehand."""
    return table.T.reshape(-1)[:3] * x


CASES = {
    "a Jacobian that is the same at all points": (wave, (3,)),
    "a matrix that is the same at all points": (projected, (3, 2)),
    "several results": (scaled, (3,)),
    "moved entries": (reshaped, (2, 3)),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("case", CASES)
def test_jacobians(case, way, monkeypatch):
    monkeypatch.setattr(common_work, "_saves", lambda *_: True)
    function, shape = CASES[case]
    args = array(300, 3), array(*shape, seed=1)
    want = jax.jit(WAYS["jit of vmap"](jax.jacfwd(function), (0, None)))(*args)
    if "maps" in way:
        want = WAYS[way](jax.jacfwd(function), (0, None))(*args)
    assert_same(WAYS[way](gx.jacve(function), (0, None))(*args), want)


@pytest.mark.parametrize("backend", ["auto", "native"])
def test_values_and_derivatives_by_the_other_argument(backend, monkeypatch):
    monkeypatch.setattr(common_work, "_saves", lambda *_: True)
    args, axes = (array(300, 3), array(3, 2, seed=1)), (0, None)
    got = jax.jit(jax.vmap(gx.value_and_jacve(projected, 1, backend=backend), axes))(*args)
    want = jax.vmap(lambda *a: (projected(*a), jax.jacfwd(projected, 1)(*a)), axes)(*args)
    assert_same(got, want)


def test_derivatives_through_mapped_kernels():
    args = array(7, 3), array(3, 2, seed=1)

    def total(x, basis, jacobian):
        return jnp.sum(jax.vmap(jacobian(projected), (0, None))(x, basis) ** 2)

    got = jax.jit(jax.grad(lambda *a: total(*a, gx.jacve), (0, 1)))(*args)
    assert_same(got, jax.grad(lambda *a: total(*a, jax.jacfwd), (0, 1))(*args))


def program(function, *shapes):
    return _jax.trace(lambda *args: jax.tree.leaves(function(*args)), *(array(*shape) for shape in shapes))


def test_what_is_split_off():
    split = split_common(program(projected, (3,), (3, 2)), [True, False], 100_000)
    assert split is not None
    assert split.same == ()
    names = [eqn.primitive.name for eqn in split.common.program.equations]
    assert "lu" in names
    assert "sin" not in names
    assert {eqn.primitive.name for eqn in split.each.program.equations} == {"sin", "dot_general"}


def test_results_that_are_the_same_at_all_points():
    split = split_common(program(lambda x, c: (x * x, jnp.sin(c)), (3,), (3,)), [True, False], 1)
    assert split is not None
    assert split.same == (1,)
    x, c = array(3), array(3, seed=1)
    assert_same(split.run([x, c], split.each.program), [x * x, jnp.sin(c)])


@pytest.mark.parametrize(
    ("function", "mapped"),
    [(reshaped, [True, False]), (scaled, [True, True]), (scaled, [False, False])],
    ids=["only moves", "all mapped", "none mapped"],
)
def test_nothing_to_split_off(function, mapped):
    assert (
        split_common(program(function, (3,), CASES["moved entries"][1] if function is reshaped else (3,)), mapped, 9)
        is None
    )


def test_a_little_work_stays_in_the_kernel():
    """For few points, starting an operation takes longer than repeating it."""
    small = program(lambda x, c: x * jnp.sin(c), (3,), (3,))
    assert split_common(small, [True, False], 2) is None
    assert split_common(small, [True, False], 100_000) is not None
