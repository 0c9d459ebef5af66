import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import lineax as lx
import numpy as np
import optimistix as optx
import pytest

from graphax import _jax, solvers

from ..comparing import assert_same

RATES = np.linspace(1e7, 5e7, 5)
START = jnp.array([1.0, 0.0, 0.0])
IMPLICIT = ("Kvaerno3", "Kvaerno4", "Kvaerno5", "ImplicitEuler")


def robertson(t, y, rate):
    a, b, c = y
    fast, slow = 1e4 * b * c, rate * b * b
    return jnp.stack([-0.04 * a + fast, 0.04 * a - fast - slow, slow])


def integrated(solver, start, rate, field=robertson, end=0.01, tolerance=1e-5, **settings):
    terms = field if isinstance(field, diffrax.AbstractTerm) else diffrax.ODETerm(field)
    controller = diffrax.PIDController(rtol=tolerance, atol=tolerance)
    settings = {"throw": False, "max_steps": 256, "stepsize_controller": controller, **settings}
    found = diffrax.diffeqsolve(terms, solver, 0.0, end, 1e-4, start, rate, **settings)
    return found.ys, found.stats["num_steps"], found.result._value


def same_steps(solver, field=robertson, start=START, args=RATES, **settings):
    def each(solver):
        return jax.vmap(lambda rate: integrated(solver, start, rate, field, **settings))(args)

    got, want = each(solvers.compiled(solver)), each(solver)
    assert_same(got, want, 1e-9)
    return got


@pytest.mark.slow
def test_the_same_steps_to_the_same_end():
    _, steps, result = same_steps(diffrax.Kvaerno3())
    assert steps.min() > 3
    assert not result.any()


@pytest.mark.slow
@pytest.mark.parametrize("name", IMPLICIT)
def test_implicit_solvers(name):
    same_steps(getattr(diffrax, name)(), tolerance=1e-3 if name == "ImplicitEuler" else 1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["Tsit5", "Dopri5"])
def test_explicit_solvers(name):
    same_steps(
        getattr(diffrax, name)(), lambda t, y, k: jnp.sin(k * y[::-1]) - t * y, args=np.array([0.5, 2.0]), end=1.0
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", ["KenCarp3", "KenCarp5"])
def test_implicit_and_explicit_terms(name):
    """Results agree only up to the tolerance, because a change of 1e-15 changes the number of steps of diffrax."""
    fast = diffrax.ODETerm(lambda t, y, args: -args * (y**3 - jnp.cos(t)))
    terms = diffrax.MultiTerm(diffrax.ODETerm(lambda t, y, args: 0.1 * jnp.sin(y)), fast)
    solver = getattr(diffrax, name)()
    got, want = (integrated(s, jnp.array([0.5, 1.5]), 10.0, terms, 0.5) for s in (solvers.compiled(solver), solver))
    assert_same((got[0], got[2]), (want[0], want[2]), 1e-4)


@pytest.mark.slow
def test_a_step_is_a_kernel():
    found = jax.make_jaxpr(jax.vmap(lambda k: integrated(solvers.compiled(diffrax.Kvaerno3()), START, k)))(RATES)
    names = {eqn.primitive.name for eqn in _jax.all_equations(found.jaxpr.eqns)}
    assert "graphax_kernel" in names
    assert not names & {"lu", "linear_solve", "maybe_set"}


@pytest.mark.slow
def test_only_the_root_finder_changes():
    finder = diffrax.with_stepsize_controller_tols(solvers.VeryChord)()
    got, want = (
        jax.vmap(lambda rate, s=s: integrated(s, START, rate))(RATES)
        for s in (diffrax.Kvaerno5(root_finder=finder), diffrax.Kvaerno5())
    )
    assert_same(got, want, 1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("adjoint", ["RecursiveCheckpointAdjoint", "DirectAdjoint"])
def test_gradients(adjoint):
    def last(solver):
        how = getattr(diffrax, adjoint)()
        return lambda rate: integrated(solver, START, rate, end=0.001, tolerance=1e-3, adjoint=how)[0][0, 1]

    solver = diffrax.Kvaerno3()
    got, want = (jax.vmap(jax.grad(last(s)))(RATES[:2]) for s in (solvers.compiled(solver), solver))
    assert_same(got * 1e7, want * 1e7, 1e-6)


@pytest.mark.slow
def test_forward_derivatives():
    def last(solver):
        how = {"end": 0.001, "tolerance": 1e-3, "adjoint": diffrax.ForwardMode()}
        return lambda rate: integrated(solver, START, rate, **how)[0][0]

    solver = diffrax.Kvaerno3()
    got, want = (jax.jvp(last(s), (RATES[0],), (1e7,)) for s in (solvers.compiled(solver), solver))
    assert_same(got, want, 1e-8)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("start", "field"),
    [
        ({"a": jnp.ones(2), "b": (jnp.zeros(()),)}, lambda t, y, k: {"a": -y["a"] * k, "b": (y["a"].sum() * k,)}),
        (jnp.ones(2, jnp.float32), lambda t, y, k: jnp.sin(y) * k.astype(jnp.float32)),
        (jnp.array([1.0 + 0.5j]), lambda t, y, k: 1j * k * y),
        (jnp.ones((2, 3)), lambda t, y, k: -k * y @ y.T @ y),
        (jnp.ones(40), lambda t, y, k: -k * y * jnp.roll(y, 1)),
    ],
    ids=["pytree", "float32", "complex", "matrix", "large"],
)
@pytest.mark.filterwarnings("ignore:Complex")
def test_states(start, field):
    same_steps(diffrax.Kvaerno3(), field, start, np.array([0.5, 1.0]), end=0.5, tolerance=1e-3)


@pytest.mark.slow
def test_dense_output_and_saved_points():
    times = jnp.linspace(0.0, 0.01, 4)
    ys, *_ = same_steps(diffrax.Kvaerno5(), saveat=diffrax.SaveAt(ts=times))
    assert ys.shape == (5, 4, 3)


@pytest.mark.slow
def test_nested_maps_and_no_arguments():
    solver = solvers.compiled(diffrax.Kvaerno3())
    starts = jnp.linspace(0.5, 1.5, 4).reshape(2, 2, 1)

    def solve(start):
        return integrated(solver, start, None, lambda t, y, args: -(y**3), end=1.0)[0]

    got = jax.jit(jax.vmap(jax.vmap(solve)))(starts)
    assert_same(got[..., 0, :], starts / jnp.sqrt(1 + 2 * starts**2), 1e-4)


def test_settings_are_kept():
    finder = diffrax.VeryChord(rtol=1e-3, atol=1e-4, norm=optx.rms_norm, kappa=0.5)
    ours = solvers.compiled(diffrax.Kvaerno5(root_finder=finder)).root_finder
    assert isinstance(ours, solvers.VeryChord)
    assert (ours.rtol, ours.atol, ours.norm, ours.kappa) == (1e-3, 1e-4, optx.rms_norm, 0.5)
    chosen = diffrax.VeryChord(rtol=1e-3, atol=1e-4, linear_solver=lx.GMRES(1e-3, 1e-3))
    kept = solvers.compiled(diffrax.Kvaerno5(root_finder=chosen)).root_finder
    assert isinstance(kept.linear_solver, lx.GMRES)
    other = optx.Bisection(1e-3, 1e-3)
    assert solvers.compiled(diffrax.Kvaerno5(root_finder=other)).root_finder == other


def test_it_passes_for_the_solver_in_it():
    solver = solvers.compiled(diffrax.Kvaerno5())
    assert isinstance(solver, diffrax.AbstractImplicitSolver)
    assert isinstance(solver, diffrax.AbstractAdaptiveSolver)
    assert solver.order(None) == 5
    assert eqx.tree_equal(solver, solvers.compiled(diffrax.Kvaerno5()))


def test_other_things_are_refused():
    with pytest.raises(TypeError, match="takes a solver of diffrax, but got 3"):
        solvers.compiled(3)
