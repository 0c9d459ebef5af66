"""Exact search: depth-first branch and bound over states of the graph. If it finishes, its result is optimal.

A state that was reached before at no higher cost is not entered again. States are identified by a 64-bit digest of all
their edges and structures. The remaining eliminations cost at least the sum of the bounds of their vertices.

On scalar graphs where all products count alike, some vertices are eliminated immediately, without trying others:

- A vertex whose only predecessor is an input, at a price equal to its bound. It will never cost less, nothing upstream
  exists that could meet its successors, and everything downstream meets the input in its place. The same holds at an
  output.
- A vertex whose only successor has no other predecessor, at a price equal to the lower of the two bounds. Whichever of
  the pair goes first costs at least that, and to all other vertices the pair looks like one vertex before and after.
  The same holds for a vertex whose only predecessor has no other successor.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from ..elimination.compiling import compiled
from ..elimination.kernels import DONE, NEXT_IN, NEXT_OUT, SOURCE, TARGET, advance, eliminate, price_of, undo
from ..elimination.problem import Problem
from .finder import Step, cheapest

# The number of states between two pauses, and the number of states remembered.
PAUSE = 5_000
REMEMBERED = 1 << 20
# Indices into `Tree.at`.
NODES, LEVEL, OPEN, REDUCE = range(4)


class Tree(NamedTuple):
    """The branch under search: candidates and prices by depth, and the states seen.

    ``step`` is the smallest difference by which an order counts as better.
    """

    candidates: np.ndarray
    charged: np.ndarray
    counts: np.ndarray
    next: np.ndarray
    path: np.ndarray
    done: np.ndarray
    spent: np.ndarray
    rest: np.ndarray
    bounds: np.ndarray
    best: np.ndarray
    upper: np.ndarray
    step: float
    seen_keys: np.ndarray
    seen_cost: np.ndarray
    at: np.ndarray


def new_tree(problem: Problem, incumbent: np.ndarray, upper: float) -> Tree:
    size = problem.size
    bounds = problem.vertex_bounds()
    return Tree(
        candidates=np.zeros((size + 1, size), np.int32),
        charged=np.zeros((size + 1, size)),
        counts=np.full(size + 1, -1, np.int64),
        next=np.zeros(size + 1, np.int64),
        path=np.zeros(size + 1, np.int32),
        done=np.zeros(size, np.bool_),
        spent=np.zeros(size + 1),
        rest=np.full(size + 1, bounds.sum()),
        bounds=bounds,
        best=incumbent.astype(np.int32),
        upper=np.array([upper]),
        step=problem.objective.step,
        seen_keys=np.zeros(REMEMBERED, np.uint64),
        seen_cost=np.zeros(REMEMBERED),
        at=np.array([0, 0, 1, _reducible(problem)], np.int64),
    )


def _reducible(problem: Problem) -> bool:
    """Whether some vertices can be eliminated without trying others.

    The arguments at the top of this file are about numbers of neighbours. They hold if every product of two edges costs
    one and nothing else costs anything.
    """
    objective = problem.objective
    counted = objective.counting == "raw" and objective.minimize == "multiplications"
    return counted and problem.scalar and not any(edge.renaming for edge in problem.graph.edges.values())


@compiled
def _seen(tree, key, spent):
    """Whether a state was entered before at no higher cost. Records the state."""
    mask = np.uint64(len(tree.seen_keys) - 1)
    row = key & mask
    for _ in range(8):
        if tree.seen_keys[row] == key:
            if tree.seen_cost[row] <= spent + 1e-9:
                return True
            tree.seen_cost[row] = spent
            return False
        if tree.seen_keys[row] == 0:
            break
        row = (row + np.uint64(1)) & mask
    tree.seen_keys[row], tree.seen_cost[row] = key, spent
    return False


@compiled
def _forced(net, tree, vertex, price):
    """Whether eliminating ``vertex`` now is at least as good as any other choice (see the top of this file)."""
    return _forced_by(net, tree, vertex, price, NEXT_IN, SOURCE, NEXT_OUT) or _forced_by(
        net, tree, vertex, price, NEXT_OUT, TARGET, NEXT_IN
    )


@compiled
def _forced_by(net, tree, vertex, price, following, end, back):
    """Whether the neighbours on one side force the elimination."""
    edge = net.edges[vertex, following]
    if net.edges[edge, following] != vertex:
        return False
    neighbour, least = net.edges[edge, end], tree.bounds[vertex]
    if neighbour < len(tree.bounds):
        if net.edges[net.edges[neighbour, back], back] != neighbour:
            return False
        least = min(least, tree.bounds[neighbour])
    return price <= least + 1e-9


@compiled
def _list_candidates(net, table, prices, tree, level):
    """List the vertices worth eliminating next, the most promising first. Returns a status."""
    count = 0
    for vertex in range(len(tree.bounds)):
        if tree.done[vertex]:
            continue
        price = price_of(net, table, prices, vertex)
        if price < 0:
            return int(-price)
        loss = price - tree.bounds[vertex]
        if tree.at[REDUCE] and _forced(net, tree, vertex, price):
            tree.candidates[level, 0], tree.charged[level, 0] = vertex, price
            count = 1
            break
        if tree.spent[level] + tree.rest[level] + loss >= tree.upper[0] - tree.step:
            continue
        place = count
        while place > 0 and tree.charged[level, place - 1] - tree.bounds[tree.candidates[level, place - 1]] > loss:
            tree.charged[level, place] = tree.charged[level, place - 1]
            tree.candidates[level, place] = tree.candidates[level, place - 1]
            place -= 1
        tree.charged[level, place], tree.candidates[level, place] = price, vertex
        count += 1
    tree.counts[level], tree.next[level] = count, 0
    return DONE


@compiled
def _enter(net, table, prices, tree, level):
    """Try the next candidate of this level. Descend if its state is new and may lead to a better order."""
    place = tree.next[level]
    tree.next[level] += 1
    vertex, price = tree.candidates[level, place], tree.charged[level, place]
    spent, rest = tree.spent[level] + price, tree.rest[level] - tree.bounds[vertex]
    if spent + rest >= tree.upper[0] - tree.step:
        return
    eliminate(net, table, prices, vertex)
    if _seen(tree, net.digest[0], spent):
        undo(net)
        return
    tree.path[level], tree.done[vertex] = vertex, True
    tree.spent[level + 1], tree.rest[level + 1], tree.counts[level + 1] = spent, rest, -1
    tree.at[LEVEL] = level + 1


@compiled
def _leave(net, tree, level):
    """Go back up. At the top, the search is over."""
    if level == 0:
        tree.at[OPEN] = 0
        return
    undo(net)
    tree.done[tree.path[level - 1]] = False
    tree.at[LEVEL] = level - 1


@compiled
def branch(net, table, prices, tree, nodes):
    """Continue the search for a number of states. Returns a status."""
    advance(net, table, prices, tree.path, tree.at[LEVEL])
    while tree.at[OPEN]:
        level = tree.at[LEVEL]
        if tree.counts[level] < 0:
            if tree.at[NODES] >= nodes:
                return DONE
            status = _list_candidates(net, table, prices, tree, level)
            if status != DONE:
                return status
            tree.at[NODES] += 1
            if level == len(tree.bounds) and tree.spent[level] < tree.upper[0] - tree.step:
                tree.upper[0] = tree.spent[level]
                for place in range(level):
                    tree.best[place] = tree.path[place]
        if tree.next[level] < tree.counts[level]:
            _enter(net, table, prices, tree, level)
        else:
            _leave(net, tree, level)
    return DONE


def exact(problem: Problem, seed: int, starts: list[np.ndarray]) -> Iterator[Step]:
    """Yield from branch and bound. If it finishes, its best order is optimal, and so is the bound it reports.

    It reports no bound for graphs with loops, because kernels count more than the order costs.
    """
    if problem.objective.minimize == "peak":
        return
    incumbent = cheapest(problem, starts)
    tree = new_tree(problem, incumbent, problem.charged(incumbent))
    upper = tree.upper[0]
    while tree.at[OPEN]:
        tree.at[NODES] = 0
        problem.call(branch, tree, PAUSE, prices=problem.plain_prices)
        improved = tree.upper[0] < upper
        upper = tree.upper[0]
        proven = 0.0 if tree.at[OPEN] or problem.graph.has_loops else problem.value(tree.best)
        yield Step(tree.best.copy() if improved else None, int(tree.at[NODES]), proven)
