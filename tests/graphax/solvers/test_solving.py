import jax
import jax.numpy as jnp
import numpy as np
import optimistix as optx
import pytest

from graphax import _jax, solvers

from ..comparing import assert_same

STARTS, TARGETS = np.linspace(0.5, 1.5, 10).reshape(5, 2), np.linspace(1.0, 1.8, 5)


def residual(y, target):
    return jnp.stack([y[0] * jnp.exp(0.1 * y[1]) - target, y[0] + y[1] ** 2 - 2.0])


def roots(start, target, library=solvers, **settings):
    return library.root_find(residual, library.Newton(1e-8, 1e-8), start, target, **settings)


def test_all_iterations_are_one_kernel():
    program = jax.make_jaxpr(jax.vmap(lambda y, t: roots(y, t, throw=False).value))(STARTS, TARGETS)
    names = {eqn.primitive.name for eqn in _jax.all_equations(program.jaxpr.eqns)}
    assert names == {"jit", "graphax_kernel"}


def test_solutions_are_those_of_optimistix():
    def found(library):
        solution = jax.vmap(lambda y, t: roots(y, t, library, throw=False))(STARTS, TARGETS)
        return solution.value, solution.stats["num_steps"], solution.result._value

    assert_same(found(solvers), found(optx), 1e-9)


@pytest.mark.slow
def test_derivatives_are_those_of_optimistix():
    got, want = (
        jax.vmap(jax.grad(lambda t, y, p=p: roots(y, t, p).value.sum()))(TARGETS, STARTS) for p in (solvers, optx)
    )
    assert_same(got, want, 1e-8)


@pytest.mark.slow
def test_failures_are_raised_outside():
    with pytest.raises(Exception, match="maximum number of steps"):
        roots(STARTS[0], TARGETS[0], max_steps=1)
    assert roots(STARTS[0], TARGETS[0], max_steps=1, throw=False).result == optx.RESULTS.nonlinear_max_steps_reached


@pytest.mark.slow
def test_least_squares_with_auxiliary_values():
    def found(library):
        def residuals(y, target):
            return jnp.concatenate([residual(y, target), 0.1 * y]), {"norm": (y**2).sum()}

        solution = library.least_squares(
            residuals, library.LevenbergMarquardt(1e-8, 1e-8), STARTS[0], TARGETS[0], has_aux=True, throw=False
        )
        return solution.value, solution.aux

    assert_same(*(jax.jit(lambda p=p: found(p))() for p in (solvers, optx)), 1e-6)
