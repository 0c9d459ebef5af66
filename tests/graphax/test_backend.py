import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import assume, given, settings

import graphax as gx
from alphagrad.tasks import TASKS
from graphax import native
from graphax.errors import GraphaxError, NativeError

from .comparing import array, assert_same
from .programs import programs

# JAX can differentiate these for matrices with distinct singular values, but kernels do not support them.
DISTINCT = np.diag([1.0, 2.0, 4.0])


def scalars(x, y):
    return jnp.sin(x) * y, jnp.where(x > y, x * x, y / x)


def many_scalars(x, y):
    for _ in range(12):
        x, y = jnp.sin(x) * y, jnp.tanh(x + y)
    return x, y


def names(function, *args):
    return {eqn.primitive.name for eqn in jax.make_jaxpr(function)(*args).jaxpr.eqns}


@pytest.mark.parametrize("order", ["auto", "fwd", "rev", "markowitz"])
@pytest.mark.parametrize("batch", [None, 5, 16])
def test_native_is_the_jacobian(order, batch):
    args = (array(seed=1), array(seed=2)) if batch is None else (array(batch, seed=1), array(batch, seed=2))
    ours, theirs = gx.jacve(scalars, order=order, argnums=(0, 1), backend="native"), jax.jacfwd(scalars, (0, 1))
    if batch is not None:
        ours, theirs = jax.vmap(ours), jax.vmap(theirs)
    assert_same(jax.jit(ours)(*args), theirs(*args))


@settings(max_examples=5, deadline=None)
@given(programs(steps=5, inputs=2))
def test_random_programs(program):
    args = program.arguments()
    numbers = tuple(range(len(args)))
    try:
        got = jax.jit(gx.jacve(program, argnums=numbers, backend="native"))(*args)
    except NativeError:
        # A program may index by what it computes.
        assume(False)
    assert_same(got, jax.jacrev(program, numbers)(*args))


@pytest.mark.parametrize("sparse", [False, True])
def test_value_aux_and_sparse(sparse):
    def function(w, x):
        return jnp.tanh(w @ x), {"norm": jnp.sum(x * x)}

    w, x = array(2, 3), array(3)
    run = gx.value_and_jacve(function, argnums=(0, 1), has_aux=True, sparse=sparse, backend="native")
    (value, aux), jacobian = jax.jit(run)(w, x)
    jacobian = [block.todense() for block in jacobian] if sparse else list(jacobian)
    assert_same(value, jnp.tanh(w @ x))
    assert_same(aux["norm"], jnp.sum(x * x))
    assert_same(jacobian, list(jax.jacrev(lambda *a: function(*a)[0], (0, 1))(w, x)))
    assert_same(gx.jacve(function, has_aux=True, backend="native")(w, x)[1]["norm"], aux["norm"])


def test_hessian():
    x = array(3)
    function = lambda x: jnp.sum(jnp.sin(x) * x[::-1])
    assert_same(gx.hessve(function, backend="native")(x), jax.hessian(function)(x))


def test_other_arguments_are_operands():
    """Mapped or traced, an argument that is not differentiated reaches the kernel."""
    run = jax.vmap(gx.jacve(lambda x, y: x * x * y, backend="native"), in_axes=(0, 0))
    assert_same(jax.jit(run)(np.arange(3.0), np.arange(3.0)), 2 * np.arange(3.0) ** 2)


def test_inside_another_elimination_it_is_seen_through():
    inner = lambda backend: lambda x: gx.jacve(lambda x: jnp.sin(x) * x, backend=backend)(x) * x
    graphs = [gx.build_graph(inner(backend), 0.3, simplify=True) for backend in ("xla", "native")]
    assert graphs[0].fingerprint == graphs[1].fingerprint
    mapped = lambda x: jax.vmap(inner("native"))(x)
    x = array(3)
    assert_same(gx.jacve(mapped)(x), jax.jacrev(jax.vmap(inner("xla")))(x))


def test_auto_makes_kernels_where_possible():
    assert names(gx.jacve(many_scalars, argnums=(0, 1)), 1.0, 2.0) == {"graphax_kernel"}
    assert names(gx.jacve(scalars, argnums=(0, 1)), 1.0, 2.0) == {"graphax_unmapped"}
    assert "graphax_kernel" not in names(gx.jacve(jnp.linalg.svdvals), DISTINCT)
    assert "graphax_kernel" not in names(gx.jacve(scalars, backend="xla"), 1.0, 2.0)
    assert_same(jax.jit(gx.jacve(jnp.linalg.svdvals))(DISTINCT), jax.jacrev(jnp.linalg.svdvals)(DISTINCT))


def quadratic(x):
    return jnp.sum((DISTINCT @ x) ** 2)


@pytest.mark.parametrize(
    ("derivative", "used"), [(lambda: gx.hessve(quadratic), 0), (lambda: gx.jacve(lambda x, y: x * y[1]), 1)]
)
def test_unused_operands_are_not_passed(derivative, used):
    args = [array(3, seed=n) for n in range(1 if used == 0 else 2)]
    signature = jax.jit(derivative()).lower(*args).as_text().partition("@main(")[2].partition(")")[0]
    assert signature.count("%arg") == used


@pytest.mark.parametrize("batch", [None, 4])
@pytest.mark.parametrize("backend", ["auto", "native", "xla"])
def test_constant_derivatives(backend, batch):
    x = array(3) if batch is None else array(batch, 3)
    ours, theirs = gx.hessve(quadratic, backend=backend), jax.hessian(quadratic)
    if batch is not None:
        ours, theirs = jax.vmap(ours), jax.vmap(theirs)
    assert_same(jax.jit(ours)(x), theirs(x))
    assert "do not depend" in gx.explain(lambda x: 2 * x, x).backend.reason


def test_constant_derivatives_are_computed_once():
    """XLA would compute them in every call."""

    def function(x):
        return jnp.linspace(0.0, 1.0, 40)[:, None] * (x[:-1] - x[1:])

    x = array(5)
    compiled = jax.jit(gx.jacve(function)).lower(x).compile()
    assert "fusion" not in compiled.as_text()
    assert_same(compiled(x), jax.jacfwd(function)(x))


@pytest.mark.parametrize("function", [lambda x: (x[:-1] - x[1:]) / 600, lambda x: x[:-2] - 2 * x[1:-1] + x[2:]])
def test_large_constants_of_a_few_diagonals_are_written_in_one_loop(function):
    x = array(400)
    derivative = jax.jit(gx.jacve(function))
    assert "scatter" not in derivative.lower(x).as_text()
    assert_same(derivative(x), jax.jacfwd(function)(x))


def test_constants_that_numpy_refuses_are_left_to_xla(monkeypatch):
    def refuse(*_):
        raise ValueError("refused")

    monkeypatch.setattr("graphax.backend.known_results", refuse)
    x = array(3)
    assert_same(jax.jit(gx.hessve(quadratic))(x), jax.hessian(quadratic)(x))


def test_auto_without_llvm(monkeypatch):
    monkeypatch.setattr("graphax.native.host.available", lambda: False)
    assert "graphax_kernel" not in names(gx.jacve(scalars), 1.0, 2.0)
    assert gx.explain(scalars, 1.0, 2.0).backend.reason == "llvmlite is not installed"


def test_one_point_of_large_arrays_is_left_to_xla():
    text = lambda function, x: jax.jit(function).lower(x).as_text()
    chain = lambda x: jnp.sin(x) * jnp.cos(x)
    assert "graphax" not in text(gx.jacve(chain, sparse=True), np.ones(64))
    assert "custom_call @graphax" in text(jax.vmap(gx.jacve(chain)), np.ones((64, 4)))


def test_explain_says_which_and_why():
    explained = gx.explain(scalars, 1.0, 2.0)
    assert explained.backend.name == "native"
    assert "Backend on the CPU: native" in str(explained)
    explained = gx.explain(jnp.linalg.svdvals, DISTINCT)
    assert explained.backend.name == "xla"
    assert "no rule for svd" in explained.backend.reason
    assert gx.explain(scalars, 1.0, 2.0, backend="xla").backend.reason == "as asked for"
    assert "xla unless mapped" in str(gx.explain(lambda x: jnp.sin(x), np.ones(16)).backend)


@pytest.mark.parametrize("call", [gx.jacve, gx.value_and_jacve, gx.hessve, lambda f, **k: gx.explain(f, 1.0, **k)])
def test_unknown_backend(call):
    with pytest.raises(GraphaxError, match="unknown backend 'cuda'; choose one of: auto, native, xla"):
        call(jnp.sin, backend="cuda")


def test_native_names_unsupported_equations():
    with pytest.raises(NativeError, match=r"does not support svd float64\[3,3\].*no rule for svd"):
        gx.jacve(jnp.linalg.svdvals, backend="native")(DISTINCT)


def test_native_names_the_line_of_this_function_and_of_no_other():
    """JAX caches jaxprs of its own functions, and graphax derivatives of equations, also from other functions."""
    gx.jacve(lambda x: jnp.linalg.svdvals(x))(DISTINCT)
    gx.jacve(lambda x: jnp.linalg.svdvals(x) * jnp.sin(x))(DISTINCT)

    def culprit(x):
        return jnp.linalg.svdvals(x)

    with pytest.raises(NativeError, match=r"test_backend\.py:\d+:\d+ \(.*culprit\)"):
        gx.jacve(culprit, backend="native")(DISTINCT)


def test_one_point_of_many_operations_is_a_kernel():
    task = TASKS["RoeFlux_3d"]
    lowered = jax.jit(gx.jacve(task.function, argnums=task.argnums)).lower(*task.arguments())
    assert "custom_call @graphax" in lowered.as_text()


def test_auto_does_not_compile_for_long():
    """The Jacobian of an elementwise function of 256 numbers has 65,536 results and would take minutes to compile."""
    assert "graphax_kernel" not in names(gx.jacve(jnp.sin), np.ones(256))
    assert "elements of results would take long" in gx.explain(jnp.sin, np.ones(256)).backend.reason


def test_programs_left_to_xla_for_one_point_are_unrolled_only_when_mapped(monkeypatch):
    """ALJAZZAF of CUTEst: unrolling 1,000 elements took four times as long as everything that JAX does."""

    def function(x):
        return jnp.sum(jnp.sin(x) * jnp.arange(1.0, 101.0)) + x[0]

    x, taken_apart = array(100), []
    monkeypatch.setattr(native, "unroll", lambda *args: taken_apart.append(args))
    alone = jax.jit(gx.jacve(function))
    np.testing.assert_allclose(alone(x), jax.jacrev(function)(x), rtol=1e-6)
    np.testing.assert_allclose(jax.jacfwd(alone)(x), jax.hessian(function)(x), atol=1e-6)
    assert not taken_apart
    monkeypatch.undo()
    points = jnp.stack([x, 2 * x, 3 * x])
    mapped = jax.vmap(alone, in_axes=1)
    assert "graphax_kernel" in str(jax.make_jaxpr(mapped)(points.T))
    np.testing.assert_allclose(mapped(points.T), jax.vmap(jax.jacrev(function))(points), rtol=1e-6)


def test_a_mapped_program_without_a_kernel_is_left_to_xla(monkeypatch):
    alone, points = jax.jit(gx.jacve(lambda x: jnp.sin(x) * x[0])), array(3, 20)
    monkeypatch.setattr(native, "unroll", lambda *args: (_ for _ in ()).throw(NativeError("no")))
    found = jax.vmap(alone)(points)
    np.testing.assert_allclose(found, jax.vmap(jax.jacfwd(lambda x: jnp.sin(x) * x[0]))(points), rtol=1e-6)
