"""Every public entry is given what a newcomer might give it by mistake, and answers with a message of ours.

Errors of the user's own function pass through as they are: it was they who wrote it.
"""

import os
import traceback
from pathlib import Path
from typing import get_origin

import jax.numpy as jnp
import numpy as np
import pytest

import alphagrad
import graphax as gx
from alphagrad import Budget, Objective, SearchError, plot, tasks
from alphagrad.agents.run_folder import RunError
from alphagrad.errors import AlphagradError, TaskError
from graphax import FingerprintError, GraphaxError, OrderError

OURS = tuple(os.path.dirname(package.__file__) for package in (gx, alphagrad))


def f(x, y):
    return jnp.sin(x * y) + jnp.cos(x)


def raising(x):
    raise KeyError("mine")


def branching(x):
    return x if x > 0 else -x


GRAPH = gx.build_graph(f, 1.0, 2.0, argnums=(0, 1))
OTHER = gx.Order((1, 2), fingerprint="another")
BLOCK = gx.jacve(jnp.sin, sparse=True)(jnp.ones(3))
RESULT = alphagrad.search(GRAPH, budget=Budget(evaluations=10), record=False)
AGENT = alphagrad.PPOConfig()
NETWORK = alphagrad.NetworkConfig
CALL = gx.LinearCall("odd", {}, 0, (None,), (True,), ((2,),), ((2,),), np.dtype(float))


def jacve(*args, at=(1.0, 2.0), **options):
    return gx.jacve(*args, **options)(*at)


def train(*args, **options):
    return alphagrad.train(*args, **({"iterations": 1} | options))


# Wrong calls of each public name: the call, the error, and its message.
CASES = {
    "graphax.kernel": [
        (lambda: gx.kernel(3), TypeError, "kernel takes a function, but got 3"),
        (lambda: gx.kernel(f, backend="gpu"), GraphaxError, "unknown backend 'gpu'"),
    ],
    "graphax.gauss_newton": [
        (lambda: gx.gauss_newton(3), TypeError, "but got 3"),
        (lambda: gx.gauss_newton(f, backend="gpu"), GraphaxError, "unknown backend 'gpu'"),
        (lambda: gx.gauss_newton(jnp.sin)(jnp.ones(3), weights=jnp.ones(2)), GraphaxError, "weights must be one"),
    ],
    "graphax.jacve": [
        (lambda: gx.jacve(3), TypeError, "expected a function to differentiate, .* but got 3"),
        (lambda: gx.jacve("f"), TypeError, "but got 'f'"),
        (lambda: gx.jacve(jnp.ones(3)), TypeError, "expected a function"),
        (lambda: gx.jacve(f, 0, False, False, False, "rev"), TypeError, "positional arguments"),
        (lambda: gx.jacve(f, ordr="rev"), TypeError, "'ordr'"),
        (lambda: gx.jacve(f, backend="cuda"), GraphaxError, "unknown backend 'cuda'; choose one of: auto"),
        (lambda: gx.jacve(f, backend=None), GraphaxError, "unknown backend None"),
        (lambda: jacve(f, order=3), OrderError, "cannot read 3 as an elimination order. It must be one of"),
        (lambda: jacve(f, order=None), OrderError, "cannot read None"),
        (lambda: jacve(f, order=[1.5, 2]), OrderError, "cannot read"),
        (lambda: jacve(f, order=jnp.ones(3)), OrderError, "cannot read"),
        (lambda: jacve(f, order=lambda graph: 7), OrderError, "cannot read 7"),
        (lambda: jacve(f, order=[1]), OrderError, "missing vertices: 2"),
        (lambda: jacve(f, order=[1, 1, 2]), OrderError, "repeats: 1"),
        (lambda: jacve(f, order=[1, 2, 3, 99]), OrderError, "cannot be eliminated: .*99"),
        (lambda: jacve(f, order=[-1, 2, 3]), OrderError, "cannot be eliminated: -1"),
        (lambda: jacve(f, order=OTHER), FingerprintError, "made for the graph another"),
        (lambda: jacve(f, order="reverse"), OrderError, "unknown order 'reverse'; presets are: auto, fwd"),
        (lambda: jacve(f, order="absent.json"), OrderError, "no order file 'absent.json'"),
        (lambda: jacve(f, order="junk.json"), OrderError, "'junk.json' is not a saved order"),
        (lambda: jacve(f, argnums=5), ValueError, "asks for positional argument 5, but f was called with 2"),
        (lambda: jacve(f, argnums="x"), TypeError, "argnums must be a number or a tuple of numbers, .* but is 'x'"),
        (lambda: jacve(f, "rev"), TypeError, "Pass an elimination order by name: order='rev'"),
        (lambda: jacve(f, [2, 1]), TypeError, r"order=\[2, 1\], and several arguments as a tuple: argnums=\(2, 1\)"),
        (lambda: jacve(f, OTHER), TypeError, "Pass an elimination order by name: order=Order"),
        (lambda: jacve(f, holomorphic=True), TypeError, "requires inputs with complex dtype, but got float64 for x"),
        (lambda: jacve(lambda z: abs(z), holomorphic=True, at=(1j,)), TypeError, "requires outputs with complex dtype"),
        (lambda: jacve(f, argnums=1.0), TypeError, "argnums must be .* but is 1.0"),
        (lambda: jacve(f, argnums=None), TypeError, "argnums must be .* but is None"),
        (lambda: jacve(f, argnums=[[0]]), TypeError, "argnums must be"),
        (lambda: jacve(f, at=(1, 2)), TypeError, "real-valued inputs .* got int64 for x. Choose other argnums"),
        (lambda: jacve(f, at=(1j, 2.0)), TypeError, "got complex128 for x"),
        (lambda: jacve(f, at=("a", 2.0)), TypeError, "'a' .* is not a valid JAX type .*differentiating by x"),
        (lambda: jacve(f, at=()), ValueError, "f was called with 0"),
        (lambda: jacve(f, at=(1.0,)), TypeError, "missing 1 required positional argument: 'y'"),
        (lambda: gx.jacve(f)(x=1.0, y=2.0), ValueError, "pass them by position"),
        (lambda: gx.jacve(f)(1.0, 2.0, z=3.0), TypeError, "unexpected keyword argument 'z'"),
        (lambda: jacve(f, has_aux=True), TypeError, "has_aux=True to be a pair"),
        (lambda: jacve(lambda x: "a", at=(1.0,)), TypeError, "<lambda> .* returned a value of type <class 'str'>"),
    ],
    "graphax.value_and_jacve": [
        (lambda: gx.value_and_jacve(3), TypeError, "expected a function"),
        (lambda: gx.value_and_jacve(f, order="odd")(1.0, 2.0), OrderError, "unknown order 'odd'"),
        (lambda: gx.value_and_jacve(f, argnums=2)(1.0, 2.0), ValueError, "positional argument 2"),
    ],
    "graphax.hessve": [
        (lambda: gx.hessve(None), TypeError, "expected a function"),
        (lambda: gx.hessve(f, order="odd")(1.0, 2.0), OrderError, "unknown order 'odd'"),
        (lambda: gx.hessve(f, order=[7])(1.0, 2.0), OrderError, "missing vertices"),
        (lambda: gx.hessve(f, backend="odd"), GraphaxError, "unknown backend 'odd'"),
        (lambda: gx.hessve(f, has_aux=True)(1.0, 2.0), TypeError, "to be a pair"),
    ],
    "graphax.value_grad_hess": [
        (lambda: gx.value_grad_hess(3), TypeError, "expected a function"),
        (lambda: gx.value_grad_hess(f, argnums=2)(1.0, 2.0), ValueError, "positional argument 2"),
        (lambda: gx.value_grad_hess(f)(1, 2), TypeError, "real-valued inputs"),
    ],
    "graphax.check_jacobian": [
        (lambda: gx.check_jacobian(3, 1.0), TypeError, "expected a function"),
        (lambda: gx.check_jacobian(f), ValueError, "f was called with 0"),
        (lambda: gx.check_jacobian(f, 1, 2), TypeError, "real-valued inputs"),
        (lambda: gx.check_jacobian(f, "a", 2.0), TypeError, "not a valid JAX type"),
        (lambda: gx.check_jacobian(f, 1.0, 2.0, argnums=7), ValueError, "positional argument 7"),
        (lambda: gx.check_jacobian(f, 1.0, 2.0, probes=0), ValueError, "1 or more, but is 0"),
        (lambda: gx.check_jacobian(f, 1.0, 2.0, probes="many"), ValueError, "1 or more, but is 'many'"),
        (lambda: gx.check_jacobian(f, 1.0, 2.0, rtol=-1.0), ValueError, "0 or more, but is -1.0"),
        (lambda: gx.check_jacobian(f, 1.0, 2.0, rtol="small"), ValueError, "but is 'small'"),
        (lambda: gx.check_jacobian(f, 1.0, 2.0, ordr="rev"), TypeError, "'ordr'"),
    ],
    "graphax.explain": [
        (lambda: gx.explain(3, 1.0), TypeError, "expected a function"),
        (lambda: gx.explain(f), ValueError, "f was called with 0"),
        (lambda: gx.explain(f, 1.0, 2.0, order="odd"), OrderError, "unknown order 'odd'"),
        (lambda: gx.explain(f, 1.0, 2.0, backend="odd"), GraphaxError, "unknown backend 'odd'"),
    ],
    "graphax.build_graph": [
        (lambda: gx.build_graph(jnp.ones(3)), TypeError, "expected a function"),
        (lambda: gx.build_graph(f), ValueError, "f was called with 0"),
        (lambda: gx.build_graph(f, 1, 2), TypeError, "real-valued inputs"),
        (lambda: gx.build_graph(f, 1.0, 2.0, argnums=9), ValueError, "positional argument 9"),
    ],
    "graphax.sparsity": [
        (lambda: gx.sparsity(3, 1.0), TypeError, "expected a function"),
        (lambda: gx.sparsity(f), ValueError, "f was called with 0"),
        (lambda: gx.sparsity(f, 1, 2), TypeError, "real-valued inputs"),
        (lambda: gx.sparsity(f, 1.0, 2.0, order="odd"), OrderError, "unknown order 'odd'"),
    ],
    "graphax.ComputationGraph": [
        (lambda: GRAPH.plan("odd"), OrderError, "unknown order 'odd'"),
        (lambda: GRAPH.cost([1]), OrderError, "missing vertices"),
        (lambda: GRAPH.cost("rev", "odd"), GraphaxError, "'odd'.* folded"),
        (lambda: GRAPH.lower_bound("odd"), GraphaxError, "'odd'.* multiplications"),
        (lambda: GRAPH.lower_bound("peak", "odd"), GraphaxError, "'odd'.* folded"),
    ],
    "graphax.Plan": [(lambda: GRAPH.plan("rev").cost("odd"), GraphaxError, "'odd'.* folded")],
    "graphax.Order": [
        (lambda: gx.Order("abc"), OrderError, r"vertex numbers, such as \(3, 1, 2\), but was given 'abc'"),
        (lambda: gx.Order((1.5,)), OrderError, "but was given"),
        (lambda: gx.Order(3), OrderError, "but was given 3"),
        (lambda: gx.Order((1,), finger="a"), TypeError, "'finger'"),
        (lambda: gx.Order.load("absent.json"), OrderError, "no order file 'absent.json'"),
        (lambda: gx.Order.load("junk.json"), OrderError, "not a saved order"),
        (lambda: gx.Order.load("list.json"), OrderError, "not a saved order"),
        (lambda: gx.Order.load("odd.json"), OrderError, "not a saved order .*'odd'"),
        (lambda: gx.Order.load("folder"), OrderError, "cannot be read"),
        (lambda: gx.Order.load(None), TypeError, "not NoneType"),
        (lambda: OTHER.save("absent/order.json"), OrderError, "cannot be written: No such file"),
        (lambda: OTHER.save("folder"), OrderError, "cannot be written"),
    ],
    "graphax.JacobianBlock": [
        (lambda: BLOCK.apply(jnp.ones(2)), ValueError, r"the tangent has shape \(2,\), but the input has \(3,\)"),
        (lambda: gx.JacobianBlock.labelled("i", "ij", (2,), (2,)), ValueError, "inp has 2 labels"),
        (lambda: gx.JacobianBlock.labelled("i", "i", (2,), (3,)), ValueError, "label 'i' has size 2 .* and 3"),
        (lambda: gx.JacobianBlock.labelled("i", "i", (2,), (2,), jnp.ones(2), "k"), ValueError, "label 'k', which no"),
        (lambda: gx.JacobianBlock.labelled("i", "i", (2,), (2,), jnp.ones(2), "ii"), ValueError, "on has 2 labels"),
    ],
    "graphax.LinearCall": [
        (lambda: CALL.block("ij", "i"), ValueError, "out has 2 labels"),
        (lambda: CALL.renaming("i", "jk"), ValueError, "inp has 2 labels"),
    ],
    "graphax.register_rule": [
        (lambda: gx.register_rule(3), TypeError, "the name of a primitive, such as 'mul', but got 3"),
        (lambda: gx.register_rule("odd", 3), TypeError, "the rule of primitive 'odd' is a function"),
    ],
    "graphax.sparsity_type": [
        (lambda: gx.sparsity_type(3), TypeError, "takes a Structure, such as block.structure, but got 3"),
        (lambda: gx.sparsity_type(BLOCK), TypeError, "takes a Structure"),
    ],
    "alphagrad.search": [
        (lambda: alphagrad.search(3), SearchError, "give a function, a graph or a task"),
        (lambda: alphagrad.search("RoeFlux_1d"), SearchError, "cannot search an order for 'RoeFlux_1d'"),
        (lambda: alphagrad.search(jnp.ones(3)), SearchError, "give a function, a graph or a task"),
        (lambda: alphagrad.search(GRAPH, 1.0), SearchError, "already has its arguments"),
        (lambda: alphagrad.search(f), SearchError, "f was called with 0"),
        (lambda: alphagrad.search(f, 1, 2), SearchError, "real-valued inputs"),
        (lambda: alphagrad.search(f, 1.0, 2.0, argnums=9), SearchError, "positional argument 9"),
        (lambda: alphagrad.search(raising, 1.0), SearchError, "raising cannot be traced .* KeyError: 'mine'"),
        (lambda: alphagrad.search(branching, 1.0), SearchError, "branching cannot be traced"),
        (lambda: alphagrad.search(GRAPH, budget=-1), SearchError, "more than zero, but has -1 seconds"),
        (lambda: alphagrad.search(GRAPH, budget="soon"), SearchError, "cannot read 'soon' as a budget"),
        (lambda: alphagrad.search(GRAPH, budget=None), SearchError, "cannot read None as a budget"),
        (lambda: alphagrad.search(GRAPH, minimize="odd"), SearchError, "cannot minimize 'odd'; choose one of"),
        (lambda: alphagrad.search(GRAPH, minimize=None), SearchError, "cannot minimize None"),
        (lambda: alphagrad.search(GRAPH, counting="odd"), SearchError, "unknown counting 'odd'; choose one of"),
        (lambda: alphagrad.search(GRAPH, method="odd"), SearchError, "unknown method 'odd'; choose one of: auto"),
        (lambda: alphagrad.search(GRAPH, method=["auto"]), SearchError, r"unknown method \['auto'\]"),
        (lambda: alphagrad.search(GRAPH, seed=-1), SearchError, "seed must be a whole number, 0 or more, but is -1"),
        (lambda: alphagrad.search(GRAPH, seed="a"), SearchError, "but is 'a'"),
        (lambda: alphagrad.search(GRAPH, workers=1.5), SearchError, "workers must be a whole number, .* but is 1.5"),
        (lambda: alphagrad.search(GRAPH, start="odd"), OrderError, "unknown order 'odd'"),
        (lambda: alphagrad.search(GRAPH, start=OTHER), FingerprintError, "made for the graph another"),
        (lambda: alphagrad.search(GRAPH, progress=3), SearchError, "progress must be a function"),
        (lambda: alphagrad.search(GRAPH, executor=3), SearchError, "executor must be a concurrent.futures.Executor"),
        (lambda: alphagrad.search(GRAPH, minimize="runtime"), SearchError, "give the function"),
        (lambda: alphagrad.search(f, 1.0, 2.0, minimize="runtime", batch_axes=3), SearchError, "but is 3"),
        (lambda: alphagrad.search(GRAPH, bugdet=3), TypeError, "'bugdet'"),
    ],
    "alphagrad.best_known": [
        (lambda: alphagrad.best_known(f), SearchError, "takes a graph, such as graphax.build_graph"),
        (lambda: alphagrad.best_known(tasks.get("RoeFlux_1d")), SearchError, "takes a graph"),
        (lambda: alphagrad.best_known(GRAPH, "odd"), SearchError, "cannot minimize 'odd'"),
    ],
    "alphagrad.Budget": [
        (lambda: Budget(seconds="a"), SearchError, "the seconds of a budget must be a number, but are 'a'"),
        (lambda: Budget(evaluations=0), SearchError, "more than zero, but has 0 evaluations"),
        (lambda: Budget.of(float("nan")), SearchError, "more than zero"),
        (lambda: Budget(minutes=3), TypeError, "'minutes'"),
    ],
    "alphagrad.Objective": [
        (lambda: Objective("odd"), SearchError, "cannot minimize 'odd'; choose one of"),
        (lambda: Objective("peak", "odd"), SearchError, "unknown counting 'odd'"),
        (lambda: Objective("weighted", "raw", ("a", "b")), SearchError, "a pair of weights"),
        (lambda: Objective.of((0, 0)), SearchError, "not both zero"),
        (lambda: Objective.of((-1, 1)), SearchError, "not negative"),
        (lambda: Objective.of((1, 2, 3)), SearchError, "a pair of weights"),
        (lambda: Objective.read("odd"), SearchError, "cannot minimize"),
    ],
    "alphagrad.train": [
        (lambda: train(3, AGENT), SearchError, "cannot train on 3; give tasks or graphs"),
        (lambda: train(f, AGENT), SearchError, "give tasks or graphs"),
        (lambda: train("RoeFlux_1d", AGENT), SearchError, "cannot train on 'RoeFlux_1d'"),
        (lambda: train({"a": 3}, AGENT), SearchError, "cannot train on 3"),
        (lambda: train([], AGENT), SearchError, "nothing to train on"),
        (lambda: train(GRAPH, "ppo"), SearchError, "an AlphaZeroConfig or a PPOConfig, but is 'ppo'"),
        (lambda: train(GRAPH, AGENT, iterations=None), SearchError, "needs a limit"),
        (lambda: train(GRAPH, AGENT, iterations=-1), SearchError, "iterations must be a whole number, 1 or more"),
        (lambda: train(GRAPH, AGENT, seconds=-1), SearchError, "seconds must be more than zero"),
        (lambda: train(GRAPH, AGENT, seed="a"), SearchError, "seed must be a whole number"),
        (lambda: train(GRAPH, AGENT, checkpoint_every=0), SearchError, "checkpoint_every must be a whole number"),
        (lambda: train(GRAPH, AGENT, sizes=3), SearchError, "but are 3"),
        (lambda: train(GRAPH, AGENT, counting="odd"), SearchError, "unknown counting 'odd'"),
        (lambda: train(GRAPH, AGENT, minimize="peak"), AlphagradError, "cannot minimize the peak"),
        (lambda: train(GRAPH, AGENT, folder="junk.json"), RunError, "cannot be stored in junk.json"),
    ],
    "alphagrad.AlphaZeroConfig": [
        (lambda: train(GRAPH, alphagrad.AlphaZeroConfig(simulations=-1)), SearchError, "simulations is -1"),
        (lambda: train(GRAPH, alphagrad.AlphaZeroConfig(network="big")), SearchError, "network is 'big'"),
        (lambda: alphagrad.AlphaZeroConfig(odd=3), TypeError, "'odd'"),
    ],
    "alphagrad.PPOConfig": [
        (lambda: train(GRAPH, alphagrad.PPOConfig(environments="a")), SearchError, "environments is 'a', .* int"),
        (lambda: train(GRAPH, alphagrad.PPOConfig(environments=0)), SearchError, "environments is 0"),
    ],
    "alphagrad.NetworkConfig": [
        (lambda: train(GRAPH, alphagrad.AlphaZeroConfig(network=NETWORK(heads=7))), SearchError, "does not divide"),
        (lambda: train(GRAPH, alphagrad.AlphaZeroConfig(network=NETWORK(layers="a"))), SearchError, "layers is"),
    ],
    "alphagrad.compare": [
        (lambda: alphagrad.compare(3), SearchError, "cannot search an order for 3"),
        (lambda: alphagrad.compare(jnp.sin, 1.0, batch=0), SearchError, "batch must be a whole number, 1 or more"),
    ],
    "alphagrad.GraphNetworkConfig": [
        (
            lambda: train(GRAPH, alphagrad.AlphaZeroConfig(network=alphagrad.GraphNetworkConfig(layers="a"))),
            SearchError,
            "layers is 'a'",
        ),
    ],
    "plot.search_history": [
        (lambda: plot.search_history(), SearchError, "no search to draw"),
        (lambda: plot.search_history(3), SearchError, "give what alphagrad.search returned"),
        (lambda: plot.search_history(RESULT, labels=3), SearchError, "a name for each of the 1 results, but is 3"),
        (lambda: plot.search_history(RESULT, labels="a"), SearchError, "but is 'a'"),
    ],
    "plot.cost_over_time": [
        (lambda: plot.cost_over_time(3), SearchError, "give a function, a graph or a task"),
        (lambda: plot.cost_over_time({"a": 3}), SearchError, "'a' is int; give what alphagrad.search returned"),
        (lambda: plot.cost_over_time(GRAPH, finders=3), SearchError, "unknown finder 3"),
        (lambda: plot.cost_over_time(GRAPH, finders="odd"), SearchError, "unknown finder 'odd'"),
        (lambda: plot.cost_over_time(GRAPH, budget=-1), SearchError, "more than zero"),
        (lambda: plot.cost_over_time(GRAPH, bugdet=1), TypeError, "'bugdet'"),
    ],
    "plot.order_comparison": [
        (lambda: plot.order_comparison(3), SearchError, "give a function, a graph or a task"),
        (lambda: plot.order_comparison(GRAPH, orders=3), OrderError, "cannot read 3"),
        (lambda: plot.order_comparison(GRAPH, orders=("odd",)), SearchError, "unknown order 'odd'"),
        (lambda: plot.order_comparison(GRAPH, orders=([1],)), OrderError, "missing vertices"),
        (lambda: plot.order_comparison(GRAPH, budget="soon"), SearchError, "cannot read 'soon'"),
    ],
    "plot.learning_curve": [
        (lambda: plot.learning_curve("absent"), RunError, "absent cannot be read"),
        (lambda: plot.learning_curve("junk.json"), RunError, "junk.json cannot be read"),
        (lambda: plot.learning_curve("odd.json"), RunError, "does not hold task"),
        (lambda: plot.learning_curve("folder"), RunError, "give the folder of a run"),
    ],
    "plot.batch_scaling": [
        (lambda: plot.batch_scaling("absent.json"), AlphagradError, "cannot be read"),
        (lambda: plot.batch_scaling("junk.json"), AlphagradError, "cannot be read"),
        (lambda: plot.batch_scaling("odd.json"), AlphagradError, "alphagrad bench --save"),
        (lambda: plot.batch_scaling({}), RunError, "alphagrad bench --save"),
        (lambda: plot.batch_scaling({"measurements": [{}]}), RunError, "alphagrad bench --save"),
    ],
    "tasks.get": [
        (lambda: tasks.get("RoeFlux1d"), TaskError, "did you mean RoeFlux_1d"),
        (lambda: tasks.get(3), TaskError, "such as 'RoeFlux_1d', but got 3"),
    ],
}  # fmt: skip
# Names that users do not call themselves, or cannot call wrongly.
MADE_BY_US = {
    "BenchmarkReport",
    "Cost", "Digit", "Explanation", "NormalEquations", "Progress", "SearchResult", "Sparsity", "Speeds", "Structure",
    "Terms",
    "TrainingProgress", "TrainingResult",
    "calibrate", "supported_primitives",
}  # fmt: skip


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    monkeypatch.setenv("ALPHAGRAD_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    for name, content in {"junk": "{", "list": "[1, 2]", "odd": '{"odd": 1}'}.items():
        Path(f"{name}.json").write_text(content)
    Path("folder").mkdir()


def test_every_public_entry_has_cases():
    for title, module in {"graphax": gx, "alphagrad": alphagrad, "plot": plot}.items():
        for name in module.__all__:
            entry = getattr(module, name)
            raised = isinstance(entry, type) and issubclass(entry, Exception)
            # Type aliases are callable, but nobody calls them.
            if callable(entry) and not raised and name not in MADE_BY_US and get_origin(entry) is None:
                assert f"{title}.{name}" in CASES, f"{title}.{name} is given nothing wrong"


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [pytest.param(*case, id=f"{name}-{number}") for name, cases in CASES.items() for number, case in enumerate(cases)],
)
def test_wrong_input_raises_a_clear_error(call, kind, message):
    with pytest.raises(kind, match=message) as caught:
        call()
    assert isinstance(caught.value, GraphaxError | TypeError | ValueError)
    # Python itself reports misspelt keywords at the call.
    place = traceback.extract_tb(caught.tb)[-1].filename
    assert place.startswith(OURS) or place == __file__, place


@pytest.mark.parametrize("entry", [gx.jacve, gx.value_and_jacve, gx.hessve])
def test_errors_of_the_function_pass_through(entry):
    with pytest.raises(KeyError, match="mine"):
        entry(raising)(1.0)
    with pytest.raises(TypeError, match="incompatible shapes"):
        entry(f)(jnp.ones(3), jnp.ones(2))
