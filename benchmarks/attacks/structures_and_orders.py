"""All orders must give the same Jacobian, and blocks must hold the same values as dense Jacobians."""

from dataclasses import dataclass, replace

import jax
import numpy as np

import graphax as gx

from .attempt import CRASHED, RIGHT, WRONG, Outcome
from .case import Case, namespace
from .random_programs import jitted, random_case

HELPERS = (
    "def blocks(tree):",
    "    return jax.tree.leaves(tree, is_leaf=lambda b: isinstance(b, gx.JacobianBlock))",
    "",
)
IS_BLOCK = "is_leaf=lambda b: isinstance(b, gx.JacobianBlock)"
SPARSE_WAYS = (
    (f"jax.tree.map(lambda b: b.todense(), {{sparse}}, {IS_BLOCK})", "{dense}"),
    ("[b.to_bcoo().todense() for b in blocks({sparse})]", "jax.tree.leaves({dense})"),
    ("[b.transpose().todense() for b in blocks({sparse})]", "[turned(b) for b in jax.tree.leaves({dense})]"),
    (
        "[b.apply(args[0]) for b in blocks({sparse})]",
        "[jnp.tensordot(b, args[0], args[0].ndim) for b in jax.tree.leaves({dense})]",
    ),
    ("[b.transpose().transpose().todense() for b in blocks({sparse})]", "jax.tree.leaves({dense})"),
)
TURNED = ("def turned(b):", "    n = b.ndim - args[0].ndim", "    return b.transpose(*range(n, b.ndim), *range(n))", "")


@dataclass(frozen=True)
class Repeated:
    """Check that planning twice gives the same cost, and that a preset costs as much as its vertex numbers."""

    case: Case

    def check(self) -> Outcome:
        try:
            graphs = [graph_of(self.case) for _ in range(2)]
            costs = [[graph.cost(name) for name in gx.PRESETS] for graph in graphs]
            orders = [graphs[0].plan(name).order for name in gx.PRESETS]
            costs.append([graphs[1].cost(list(order)) for order in orders])
        except Exception as error:  # noqa: BLE001  every exception is an outcome
            return Outcome(CRASHED, what=f"{type(error).__name__}: {error}", kind=type(error).__name__)
        if costs[0] == costs[1] == costs[2]:
            return Outcome(RIGHT, 3 * len(costs[0]))
        return Outcome(WRONG, len(costs[0]), f"costs {costs} of the same plans", "costs")

    def simpler(self, outcome: Outcome):
        return (replace(self, case=case) for case in self.case.simpler(outcome))

    def source(self) -> str:
        call = self.case.way.replace("jac(f", "gx.build_graph(f, *args").removesuffix("(*args)")
        return self.case.source() + f"for name in gx.PRESETS:\n    print(name, {call}.cost(name))\n"


def attempts(seed: int, number: int) -> list[Case | Repeated]:
    """A program in random orders and in presets, or its blocks."""
    rng = np.random.default_rng((seed, number, 3))
    case = random_case(rng, steps=int(rng.integers(2, 10)))
    try:
        vertices = graph_of(case).intermediates
    except Exception:  # noqa: BLE001  the plain attempt reports it
        return [case]
    found: list[Case | Repeated] = []
    for _ in range(2):
        order = [int(v) for v in rng.permutation(vertices)]
        found.append(jitted(replace(case, options=f'order={order}, backend="xla"')))
    found.append(jitted(replace(case, options=f'order="{rng.choice(list(gx.PRESETS))}"')))
    if number % 5 == 0:
        found.append(Repeated(case))
    if "has_aux" not in case.way and "argnums=0)" in case.way and case.params != ("p",):
        ours, theirs = SPARSE_WAYS[number % len(SPARSE_WAYS)]
        sparse, dense = "jac(f, sparse=True)(*args)", "jac(f)(*args)"
        options = f"order={[int(v) for v in rng.permutation(vertices)]}" if number % 3 else ""
        before = (*case.before, *HELPERS, *TURNED)
        way, theirs = ours.format(sparse=sparse), theirs.format(dense=dense)
        way = way if number % 4 == 0 else f"jax.jit(lambda *args: {way})(*args)"
        # The values of a block have no weak types.
        tolerance = replace(case.tolerance, weak_types=False)
        found.append(replace(case, way=way, theirs=theirs, options=options, before=before, tolerance=tolerance))
    return found


def graph_of(case: Case) -> gx.ComputationGraph:
    """The graph of the function of a case."""
    space = namespace()
    exec(
        "\n".join(
            [*case.before, f"def f({', '.join(case.params)}):"]
            + [f"    {line}" for line in (*case.lines, f"return {case.result}")]
        ),
        space,
    )
    jax.config.update("jax_enable_x64", case.x64)
    space["args"] = tuple(eval(arg, space) if isinstance(arg, str) else arg for arg in case.args)
    call = case.way.replace("jac(f", "gx.build_graph(f, *args").removesuffix("(*args)")
    return eval(call, space)
