import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optimistix as optx
import pytest

import graphax as gx
from graphax import _jax, solvers

from ..comparing import assert_same

ROOTS, LEAST_SQUARES = ("Newton", "Chord"), ("GaussNewton", "LevenbergMarquardt", "Dogleg")
START = {"x": jnp.array([1.0, 0.5]), "z": jnp.array(0.3)}
LOADS = np.linspace(1.0, 2.0, 5)


def residual(y, load):
    x, z = y["x"], y["z"]
    return {"p": jnp.stack([x[0] ** 2 + z - load, jnp.sin(x[1]) + x[0] * z - 0.3]), "q": z * x[1] + z - 0.1 * load}


def overdetermined(y, load):
    return residual(y, load), 0.1 * y["x"]


def both(name, **settings):
    return [getattr(package, name)(1e-8, 1e-8, **settings) for package in (solvers, optx)]


def solution(solver, load, **settings):
    if isinstance(solver, optx.AbstractRootFinder):
        return optx.root_find(residual, solver, START, load, throw=False, **settings)
    return optx.least_squares(overdetermined, solver, START, load, throw=False, **settings)


@pytest.mark.parametrize("name", ["Newton", pytest.param("Chord", marks=pytest.mark.slow)])
def test_the_same_iterates(name):
    def found(solver, load):
        result = solution(solver, load)
        return result.value, result.stats["num_steps"], result.result._value

    got, want = (jax.vmap(lambda load, s=s: found(s, load))(LOADS) for s in both(name))
    assert_same(got, want, 1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("name", [*ROOTS, *LEAST_SQUARES])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_all_have_the_same_answers(name, dtype):
    tolerance = 1e-4 if dtype == np.float32 else 1e-8
    start = jax.tree.map(lambda leaf: leaf.astype(dtype), START)

    def found(package, load):
        solver = getattr(package, name)(tolerance, tolerance)
        way, function = (optx.root_find, residual) if name in ROOTS else (optx.least_squares, overdetermined)
        return way(function, solver, start, load, throw=False).value

    # optimistix supports single precision only if JAX computes in it.
    with jax.enable_x64(dtype == np.float64):
        got, want = (jax.jit(jax.vmap(lambda load, p=p: found(p, load)))(LOADS.astype(dtype)) for p in (solvers, optx))
    assert_same(got, want, 10 * tolerance)


ADJOINTS = {"implicit": optx.ImplicitAdjoint(), "checkpoints": optx.RecursiveCheckpointAdjoint()}


@pytest.mark.slow
# Here, optimistix itself cannot differentiate the iterates of Dogleg.
@pytest.mark.parametrize(
    ("name", "adjoint"),
    [*((name, "checkpoints") for name in (*ROOTS, *LEAST_SQUARES[:-1])),
     *((name, "implicit") for name in (*ROOTS, *LEAST_SQUARES))],
)  # fmt: skip
def test_gradients(name, adjoint):
    def first(solver):
        return lambda load: solution(solver, load, adjoint=ADJOINTS[adjoint], max_steps=32).value["z"]

    got, want = (jax.vmap(jax.grad(first(solver)))(LOADS[:2]) for solver in both(name))
    assert_same(got, want, 1e-6)


@pytest.mark.slow
def test_forward_derivatives():
    got, want = (jax.jvp(lambda load, s=s: solution(s, load).value["z"], (LOADS[0],), (1.0,)) for s in both("Newton"))
    assert_same(got, want, 1e-9)


@pytest.mark.slow
def test_a_step_is_a_kernel():
    def found(load):
        return solution(solvers.Newton(1e-8, 1e-8), load).value["z"]

    program = jax.make_jaxpr(jax.vmap(found))(LOADS)
    names = {eqn.primitive.name for eqn in _jax.all_equations(program.jaxpr.eqns)}
    assert "graphax_kernel" in names
    assert not names & {"lu", "triangular_solve", "sin"}


def test_a_whole_solve_in_a_kernel():
    whole = gx.kernel(lambda load: solution(solvers.Newton(1e-8, 1e-8), load).value, backend="native")
    program = jax.make_jaxpr(jax.vmap(whole))(LOADS)
    assert {e.primitive.name for e in _jax.all_equations(program.jaxpr.eqns)} <= {"jit", "pjit", "graphax_kernel"}
    found = jax.vmap(whole)(LOADS)
    assert all(np.abs(leaf).max() < 1e-8 for leaf in jax.tree.leaves(jax.vmap(residual)(found, LOADS)))


@pytest.mark.slow
@pytest.mark.parametrize("settings", [{"cauchy_termination": False}, {"norm": optx.rms_norm, "kappa": 1e-3}])
def test_settings_are_those_of_optimistix(settings):
    got, want = (jax.vmap(lambda load, s=s: solution(s, load).value)(LOADS) for s in both("Chord", **settings))
    assert_same(got, want, 1e-9)


@pytest.mark.slow
def test_auxiliary_values_and_bounds():
    def found(solver):
        options = {"lower": jnp.zeros(2), "upper": 2 * jnp.ones(2)}
        result = optx.root_find(
            lambda y, args: (y**2 - jnp.array([2.0, 3.0]), {"count": jnp.arange(3), "y": y}),
            solver, jnp.ones(2), None, options, has_aux=True, throw=False,
        )  # fmt: skip
        return result.value, result.aux

    assert_same(*(jax.jit(lambda s=s: found(s))() for s in both("Newton")), 1e-9)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("start", "function"),
    [
        (jnp.ones(70), lambda y, _: y**2 - jnp.arange(1.0, 71.0)),
        (jnp.ones(2), lambda y, _: jnp.stack([y[0] * jnp.nan, y[1]])),
    ],
    ids=["large", "not a number"],
)
def test_what_is_left_to_optimistix(start, function):
    got, want = (optx.root_find(function, s, start, throw=False) for s in both("Newton"))
    np.testing.assert_array_equal(got.result._value, want.result._value)
    # Unlike with LAPACK, results that do not depend on a NaN entry stay finite here.
    finite = np.isfinite(want.value)
    np.testing.assert_allclose(got.value[finite], want.value[finite], rtol=1e-12)
    assert finite.all() or not np.isfinite(got.value).all()


def test_solvers_are_pytrees():
    one, other = both("Newton")[0], both("Newton")[0]
    assert eqx.tree_equal(one, other)
    assert isinstance(solvers.LevenbergMarquardt(1e-3, 1e-3), optx.LevenbergMarquardt)
