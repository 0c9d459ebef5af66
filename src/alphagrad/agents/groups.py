"""Groups of tasks with games of similar size, and their shares of an iteration.

All games of a group have the same sizes, so that they can be played side by side. Padding a small graph to the sizes of
a large one makes its games as slow as those of the large one. So one agent plays several groups, one after another.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, sqrt
from typing import Any

from .. import game
from ..game import Sizes
from .agent import Agent
from .games import Games

# Padding may at most multiply the work of a game by this.
_MOST_PADDING = 2.5


@dataclass(frozen=True, eq=False)
class Group:
    """Tasks that are played together: their numbers among all tasks, and their games, which have one size."""

    tasks: tuple[int, ...]
    games: Games


def together(games: Games) -> tuple[Group, ...]:
    """All tasks as one group."""
    return (Group(tuple(range(len(games.graphs))), games),)


def by_size(games: Games) -> tuple[Group, ...]:
    """Groups of tasks, such that padding does not cost much. Each task joins the first group that it fits."""
    sizes = [game.sizes_of(graph) for graph in games.graphs]
    largest_first = sorted(range(len(sizes)), key=lambda task: -_work(sizes[task]))
    groups: list[list[int]] = []
    for task in largest_first:
        fitting = (
            group for group in groups if _most_padding([sizes[other] for other in (*group, task)]) <= _MOST_PADDING
        )
        group = next(fitting, None)
        if group is None:
            groups.append([task])
        else:
            group.append(task)
    if len(groups) == 1:
        return together(games)
    return tuple(Group(tuple(sorted(group)), games.some(sorted(group))) for group in groups)


@dataclass(frozen=True, eq=False)
class Share:
    """How many games of a group an iteration plays, and in how many minibatches it learns from them."""

    group: Group
    games: int
    minibatches: int

    def is_equal(self, devices: int) -> bool:
        """Whether the games of each minibatch can be split equally among the devices."""
        return self.games % (devices * self.minibatches) == 0

    @staticmethod
    def of(groups: Sequence[Group], kind: type[Agent], config: Any, devices: int) -> tuple["Share", ...]:
        """Shares that are proportional to the square root of the number of tasks, since similar tasks help each other.

        A group plays some more games if that makes minibatches larger, or if devices could not share them equally
        otherwise.
        """
        total, weights = config.environments, sum(sqrt(len(group.tasks)) for group in groups)

        def share(group: Group, games: int) -> Share:
            return Share(group, games, kind.minibatches(config, games, group.games.sizes.intermediates))

        def found(group: Group) -> Share:
            least = max(ceil(total * sqrt(len(group.tasks)) / weights), len(group.tasks))
            several = devices * share(group, least).minibatches
            most = least + max(least // 4, several) if len(groups) > 1 else least
            shares = [share(group, games) for games in range(least, most + 1)]
            equal = [share for share in shares if share.is_equal(devices)]
            return max(equal or shares[:1], key=lambda share: share.games // share.minibatches)

        return tuple(found(group) for group in groups)


def _most_padding(sizes: Sequence[Sizes]) -> float:
    """How many times as much work one of these games is, at most, when all are padded to common sizes."""
    return _work(game.common_sizes(sizes)) / min(map(_work, sizes))


def _work(sizes: Sizes) -> float:
    """The work of a game, up to a factor: the matrix products that describe the states after all its moves."""
    edges = sizes.inputs + sizes.intermediates + sizes.outputs
    return sizes.intermediates**2 * (sizes.intermediates * edges + sizes.structures**2)
