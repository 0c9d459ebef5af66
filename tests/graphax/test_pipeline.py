"""The stages of a function: each is computed once, on demand."""

import jax
import jax.numpy as jnp
import pytest

import graphax as gx
from graphax import pipeline
from graphax.pipeline import Pipeline
from graphax.trace import Request

from .comparing import array, assert_same


def function(x, y):
    return jnp.sin(x @ y) * x.sum(), jnp.tanh(y)


def made(**how):
    return Pipeline(function, (array(2, 3), array(3)), {}, Request((0, 1)), **how)


@pytest.fixture
def calls(monkeypatch):
    """How often each stage is computed."""
    counted = {}

    def count(name):
        original = getattr(pipeline, name)

        def counting(*args, **options):
            counted[name] = counted.get(name, 0) + 1
            return original(*args, **options)

        monkeypatch.setattr(pipeline, name, counting)

    count("trace")
    count("derive")
    count("Accumulation")
    return counted


def test_nothing_is_made_before_it_is_needed(calls):
    made()
    assert calls == {}


def test_each_stage_is_made_once(calls):
    one = made()
    for stage in ("traced", "graph", "order", "plan", "program", "kernel") * 2:
        getattr(one, stage)
    assert one.plan is one.plan
    assert calls == {"trace": 1, "derive": 1, "Accumulation": 1}


def test_a_graph_needs_no_program(calls):
    assert made(simplify=True).graph.simplified
    assert calls == {"trace": 1, "derive": 1}


@pytest.mark.parametrize("order", ["auto", "rev", [1, 2, 3, 4, 5]])
def test_only_auto_may_renumber_vertices(order):
    assert made(asked=order).graph.simplified == (order == "auto")


@pytest.mark.parametrize("backend", ["xla", "native"])
@pytest.mark.parametrize("with_value", [False, True])
def test_runs_on_a_backend(backend, with_value):
    one = made(with_value=with_value)
    outputs, jacobian = one.run(backend)
    assert_same(jacobian, jax.jacfwd(function, (0, 1))(*one.args))
    assert_same(outputs, list(function(*one.args)) if with_value else [])


def test_jacve_explain_and_graphs_agree():
    one = made()
    explanation = gx.explain(function, *one.args, argnums=(0, 1))
    assert explanation.order == one.order
    assert explanation.plan.cost() == one.plan.cost()
    assert gx.build_graph(function, *one.args, argnums=(0, 1), simplify=True) == one.graph


def test_a_program_without_a_kernel_is_traced_once(monkeypatch):
    """XLA gets the equations that were traced for a kernel, and the function is not evaluated again."""
    runs = []
    accumulate = pipeline.Accumulation.__call__
    monkeypatch.setattr(pipeline.Accumulation, "__call__", lambda *args: runs.append(1) or accumulate(*args))
    spectrum = lambda x: jnp.linalg.eigvalsh(jnp.diag(x)) * x
    x = array(5)
    assert_same(jax.jit(gx.jacve(spectrum))(x), jax.jacfwd(spectrum)(x))
    assert len(runs) == 1
    with pytest.raises(gx.NativeError, match="eigh"):
        gx.jacve(spectrum, backend="native")(x)
