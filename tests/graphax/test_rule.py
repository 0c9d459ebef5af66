import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir

import graphax as gx
from graphax import rule

from .comparing import array, assert_same


@pytest.fixture
def swap_halves():
    """A linear primitive that graphax does not know."""
    primitive = Primitive("swap_halves")
    implementation = lambda x: jnp.concatenate([x[x.shape[0] // 2 :], x[: x.shape[0] // 2]])
    primitive.def_impl(implementation)
    primitive.def_abstract_eval(lambda x: x)
    mlir.register_lowering(primitive, mlir.lower_fun(implementation, multiple_results=False))
    ad.deflinear2(primitive, lambda ct, _: [primitive.bind(ct)])
    batching.primitive_batchers[primitive] = lambda args, dims: (
        jnp.moveaxis(implementation(jnp.moveaxis(args[0], dims[0], -1)), -1, 0),
        0,
    )
    yield primitive.bind
    rule._REGISTERED.pop("swap_halves", None)
    rule.clear_caches()


def test_a_primitive_without_a_rule_is_dense_and_exact(swap_halves):
    function = lambda x: swap_halves(jnp.sin(x))
    assert "swap_halves" not in gx.supported_primitives()
    assert_same(gx.jacve(function)(array(6)), jax.jacrev(function)(array(6)))
    explanation = gx.explain(function, array(6))
    assert [value.name for value, _, _ in explanation.fallbacks] == ["swap_halves"]


def test_a_registered_rule_is_used(swap_halves):
    @gx.register_rule("swap_halves")
    def halves(call):
        half = call.shape[0] // 2
        digits = ((gx.Digit("half", range(2)[::-1], 2), gx.Digit("rest", range(half), half)),)
        return call.renaming(digits, ((gx.Digit("half", range(2), 2), gx.Digit("rest", range(half), half)),))

    function = lambda x: swap_halves(jnp.sin(x))
    assert "swap_halves" in gx.supported_primitives()
    block = gx.jacve(function, sparse=True)(array(6))
    assert block.structure.stored == 6
    assert_same(block.todense(), jax.jacrev(function)(array(6)))
    assert not gx.explain(function, array(6)).fallbacks


def test_a_rule_of_the_wrong_shape_is_named(swap_halves):
    def careless(call):
        return gx.JacobianBlock.labelled("i", "j", (2,), (3,), np.ones((2, 3)), "ij")

    gx.register_rule("swap_halves", careless)
    with pytest.raises(gx.RuleError, match=r"the rule .*careless for primitive 'swap_halves' .* shape \(2, 3\)"):
        gx.jacve(lambda x: swap_halves(x) * 2.0)(array(4))


def test_a_rule_with_too_few_results_is_named(swap_halves):
    gx.register_rule("swap_halves", lambda call: [])
    with pytest.raises(gx.RuleError, match="returned 0 blocks for 1 results"):
        gx.jacve(lambda x: swap_halves(x) * 2.0)(array(4))


def test_a_rule_that_returns_something_else_is_named(swap_halves):
    gx.register_rule("swap_halves", lambda call: np.eye(4))
    with pytest.raises(gx.RuleError, match="must return a JacobianBlock"):
        gx.jacve(lambda x: swap_halves(x) * 2.0)(array(4))


def test_a_rule_registered_later_replaces_what_was_remembered(swap_halves):
    function = lambda x: swap_halves(jnp.sin(x))
    assert gx.jacve(function, sparse=True)(array(4)).structure.stored == 16
    half = lambda: (gx.Digit("half", range(2), 2), gx.Digit("rest", range(2), 2))
    turned = (gx.Digit("half", range(2)[::-1], 2), gx.Digit("rest", range(2), 2))
    gx.register_rule("swap_halves", lambda call: call.renaming([turned], [half()]))
    assert gx.jacve(function, sparse=True)(array(4)).structure.stored == 4


@pytest.mark.parametrize("first", ["import graphax.rule", "from graphax import jacve; jacve(abs)"])
def test_rules_of_users_take_precedence_whenever_they_are_registered(first):
    """Modules are imported on demand, so a user's rule may be registered before those of graphax."""
    code = f"""
{first}
import graphax as gx
gx.register_rule("neg", lambda call: call.elementwise(scale=-1.5))
assert float(gx.jacve(lambda x: -x)(2.0)) == -1.5
assert len(gx.supported_primitives()) > 40 and "neg" in gx.supported_primitives()
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)
