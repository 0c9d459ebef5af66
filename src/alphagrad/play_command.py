"""``alphagrad play``: the game in the terminal, played by whoever types, or by an agent."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .cli_options import Args, AsJson, Counting, Minimize, TargetName, print_json, weights

if TYPE_CHECKING:
    from graphax import ComputationGraph

    from .finders.objective import Objective
    from .target import Target


def play(
    task: TargetName,
    agent: Annotated[
        Path | None, typer.Option(help="The folder of a training run, whose policy plays.", metavar="FOLDER")
    ] = None,
    args: Args = None,
    counting: Counting = "raw",
    minimize: Minimize = "multiplications",
    as_json: AsJson = False,
) -> None:
    """Eliminate vertices one by one, as cheaply as you can; or watch a trained agent do it.

    Moves are vertex numbers, read from the terminal or from lines of standard input. An agent counts as it was trained.
    """
    from .errors import SearchError
    from .finders.objective import Objective
    from .target import find

    if as_json and agent is None:
        raise SearchError("--json is for games of an agent; give --agent, too")
    objective = Objective.of(weights(minimize), counting)
    target = find(task, args)
    graph = target.graph(simplify=False)
    if agent is not None:
        _watch(agent, target, graph, as_json)
        return
    from .board import Board

    order = Board(graph, objective).play()
    if order is not None:
        _conclude(order, target, graph, objective)


def _watch(folder: Path, target: "Target", graph: "ComputationGraph", as_json: bool) -> None:
    from .trained import Trained

    trained = Trained.load(folder)
    order = trained.order(graph)
    if as_json:
        document = {"order": list(order), "objective": str(trained.objective), "usage": _usage(target, order)}
        print_json(document | _costs(graph, order, trained.objective))
    else:
        _conclude(order, target, graph, trained.objective)


def _conclude(order: tuple[int, ...], target: "Target", graph: "ComputationGraph", objective: "Objective") -> None:
    from .board import listed

    typer.echo(f"order: {' '.join(map(str, order))}")
    typer.echo(f"{objective}: {listed(_costs(graph, order, objective))}")
    for line in ("", *_usage(target, order)):
        typer.echo(line)


def _costs(graph: "ComputationGraph", order: tuple[int, ...], objective: "Objective") -> dict[str, Any]:
    """What this order costs, and what others do."""
    from .board import known_costs

    return {"cost": objective.value(graph.cost(order, objective.counting)), **known_costs(graph, objective)}


def _usage(target: "Target", order: tuple[int, ...]) -> list[str]:
    from graphax import Order

    return target.usage(Order(order))
