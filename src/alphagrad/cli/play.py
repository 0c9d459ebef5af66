"""``alphagrad play``: the game in the terminal, played by whoever types, or by an agent."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .options import Args, AsJson, Counting, Minimize, Quiet, TargetName, print_json, weights

if TYPE_CHECKING:
    from graphax import ComputationGraph

    from ..elimination.objective import Objective
    from .target import Target


def play(
    target: TargetName,
    agent: Annotated[
        Path | None, typer.Option(help="The folder of a training run, whose policy plays.", metavar="FOLDER")
    ] = None,
    args: Args = None,
    counting: Counting = "raw",
    minimize: Minimize = "multiplications",
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Eliminate vertices as cheaply as you can, or let an agent.

    Moves are vertex numbers, read from the terminal or from lines of standard input. An agent counts as it was trained.
    """
    from ..elimination.objective import Objective
    from .target import find

    objective = Objective.of(weights(minimize), counting)
    found = find(target, args)
    graph = found.graph(simplify=False)
    order: tuple[int, ...] | None
    if agent is not None:
        from ..agents.player import Player
        from .status_line import StatusLine

        with StatusLine(quiet) as line:
            line.show("compiling the network, and playing…")
            player = Player.load(agent)
            order, objective = player.order(graph), player.objective
    else:
        from .board import Board

        order = Board(graph, objective, partial(typer.echo, err=as_json)).play()
    _conclude(order, found, graph, objective, as_json)


def _conclude(
    order: tuple[int, ...] | None, target: "Target", graph: "ComputationGraph", objective: "Objective", as_json: bool
) -> None:
    """Print the order; a game that was left early has none."""
    from graphax import Order

    from .board import listed

    costs = _costs(graph, order, objective)
    usage = [] if order is None else target.usage(Order(order))
    if as_json:
        print_json({"order": order, "objective": str(objective), "usage": usage} | costs)
    if as_json or order is None:
        return
    typer.echo(f"order: {' '.join(map(str, order))}")
    typer.echo(f"{objective}: {listed(costs)}")
    for line in ("", *usage):
        typer.echo(line)


def _costs(graph: "ComputationGraph", order: tuple[int, ...] | None, objective: "Objective") -> dict[str, Any]:
    """What this order costs, and what others do."""
    from .board import known_costs

    cost = None if order is None else objective.value(graph.cost(order, objective.counting))
    return {"cost": cost, **known_costs(graph, objective)}
