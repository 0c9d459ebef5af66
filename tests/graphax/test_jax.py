"""The assumptions of graphax about JAX. If one of these tests fails after an upgrade, adapt `graphax._jax`."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from graphax import _jax

from .comparing import array


def names(program):
    return [eqn.primitive.name for eqn in program.equations]


@pytest.mark.parametrize(
    "wrap", [jax.jit, jax.checkpoint, lambda f: jax.jit(jax.jit(f))], ids=["jit", "checkpoint", "twice"]
)
def test_nested_calls_are_inlined(wrap):
    program = _jax.trace(lambda x: [wrap(lambda y: jnp.sin(y) * 2.0)(x) + 1.0], array(3))
    assert names(program) == ["sin", "mul", "add"]


def test_a_body_called_twice_defines_its_variables_twice():
    inner = jax.jit(jnp.sin)
    program = _jax.trace(lambda x: [inner(inner(x))], array(3))
    assert names(program) == ["sin", "sin"]
    assert len({var for eqn in program.equations for var in eqn.outvars}) == 2


def test_constants_of_nested_calls_are_kept():
    constant = array(3, seed=1)
    program = _jax.trace(lambda x: [jax.jit(lambda y: y * constant)(x)], array(3))
    np.testing.assert_allclose(program(array(3))[0], array(3) * constant)


def test_programs_evaluate_control_flow_and_custom_rules():
    def function(x):
        y = lax.scan(lambda c, a: (jnp.sin(c) * a, jax.nn.relu(c)), x, jnp.arange(3.0))[0]
        y = lax.cond(y[0] > 0, jnp.sin, jnp.cos, y)
        return [lax.while_loop(lambda c: c[0] < 3, lambda c: c + 1, y)]

    x = array(3)
    np.testing.assert_allclose(_jax.trace(function, x)(x)[0], function(x)[0])


def test_linearize_leaves_linear_equations_only():
    def derivative(x, t):
        return jax.linearize(jnp.sin, x)[1](t)

    program = _jax.trace(derivative, array(3), array(3))
    (tangent,) = program.inputs[1:]
    assert [eqn.primitive.name for eqn in program.equations if tangent in eqn.invars] == ["mul"]


def test_the_derivative_of_a_custom_vjp_function_is_recognised():
    @jax.custom_vjp
    def function(x):
        return x * x

    function.defvjp(lambda x: (x * x, x), lambda x, ct: (2 * x * ct,))

    def derivative(x, t):
        return jax.linearize(lambda y: lax.scan(lambda c, _: (function(c), None), y, None, length=2)[0], x)[1](t)

    assert _jax.only_transposable(_jax.trace(derivative, array(3), array(3)).equations)
    assert not _jax.only_transposable(_jax.trace(jnp.sin, array(3)).equations)


def test_scan_counts():
    program = _jax.trace(lambda x, w: lax.scan(lambda c, y: (c * w + y, c), 1.0, x), array(3), 2.0)
    (scan,) = [eqn for eqn in program.equations if eqn.primitive.name == "scan"]
    assert _jax.scan_counts(scan.params) == (1, 1)


def test_equations_know_the_line_they_come_from():
    program = _jax.trace(lambda x: [jnp.sin(x)], array(3))
    assert "test_jax.py" in _jax.source_line(program.equations[0].source_info)


def test_needed_keeps_what_outputs_depend_on():
    program = _jax.trace(lambda x: [jnp.sin(x), jnp.cos(x)], array(3))
    assert [eqn.primitive.name for eqn in _jax.needed(program.equations, program.outputs[:1])] == ["sin"]


@pytest.mark.parametrize(
    ("dtype", "differentiable"),
    [("float32", True), ("bfloat16", True), ("float16", True), ("complex64", True), ("int32", False), ("bool", False)],
)
def test_differentiable_dtypes(dtype, differentiable):
    assert _jax.is_differentiable(jax.ShapeDtypeStruct((2,), dtype)) is differentiable


def test_what_is_shared_out_over_devices_is_seen():
    seen = []

    def function(x):
        seen.append(_jax.is_sharded([x]))
        return x

    mesh = jax.make_mesh((1,), ("i",), axis_types=(jax.sharding.AxisType.Auto,))
    spec = jax.sharding.PartitionSpec("i")
    jax.shard_map(function, mesh=mesh, in_specs=spec, out_specs=spec)(jnp.ones(4))
    jax.jit(function)(jnp.ones(4))
    assert seen == [True, False]


def test_arrays_closed_over_are_operands_and_indices_are_not():
    weights, places = np.ones(3), np.array([2, 0, 1])
    program, operands = _jax.open_program(lambda x: [x[places] * weights], [jnp.ones(4)])
    assert [np.shape(operand) for operand in operands] == [(3,), (4,)]
    assert all(np.asarray(value).dtype != weights.dtype for value in program.constants.values())


def test_tracers_of_a_map_are_known_by_their_name():
    seen = []

    def function(x):
        seen.append(_jax.is_mapped([x, 1.0]))
        return x

    jax.jit(jax.vmap(function))(jnp.ones(3))
    jax.jit(function)(jnp.ones(3))
    jax.vmap(function)(jnp.ones(3))
    assert seen == [True, False, True]
