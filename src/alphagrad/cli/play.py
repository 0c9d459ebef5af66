"""``alphagrad play``: the game in the terminal, played by the user or by an agent."""

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from .options import Args, AsJson, Counting, Minimize, Quiet, TargetName, option, weights
from .output import answer


def play(
    target: TargetName,
    agent: Annotated[Path | None, option("FOLDER", "The folder of a training run. Its policy plays.")] = None,
    args: Args = None,
    counting: Counting = "raw",
    minimize: Minimize = "multiplications",
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Play elimination yourself, or let an agent play.

    Eliminate all vertices as cheaply as you can. Moves are vertex numbers, read from the terminal or from standard
    input. An agent counts costs as it did in training.
    """
    from graphax import Order

    from ..elimination.objective import Objective
    from .status_line import StatusLine
    from .target import find
    from .typed_game import TypedGame, known_costs, listed

    objective = Objective.of(weights(minimize), counting)
    found = find(target, args)
    graph = found.graph(simplify=False)
    if agent is None:
        order = TypedGame(graph, objective, partial(typer.echo, err=as_json)).play()
    else:
        from ..agents.player import Player

        with StatusLine(quiet) as line:
            line.show("compiling the network, and playing…")
            player = Player.load(agent)
            order, objective = player.order(graph), player.objective
    cost = None if order is None else objective.value(graph.cost(order, objective.counting))
    costs = {"cost": cost, **known_costs(graph, objective)}
    usage = [] if order is None else found.usage(Order(order))
    # A game that the player left early has no order.
    if as_json or order is not None:
        lines = [f"order: {' '.join(map(str, order or ()))}", f"{objective}: {listed(costs)}", "", *usage]
        answer(as_json, {"order": order, "objective": str(objective), "usage": usage} | costs, "\n".join(lines))
