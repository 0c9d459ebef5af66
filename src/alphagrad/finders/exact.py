"""Exact search: branch and bound over states of the graph. If it finishes, its result is optimal.

Vertices interact only along edges between them. So when the remaining vertices fall apart into parts, the best orders
of the parts are independent, and their costs add up. The search solves one part at a time, and remembers its cost or a
lower bound on it. A part is identified by a 64-bit digest of its vertices and edges. Many orders lead to the same part.

Additions are an exception: products of different parts may meet in an edge from an input to an output. If they cost
anything, the remaining vertices are always one part.

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

from ..elimination.compiling import compiled, inlined
from ..elimination.kernels import (
    DONE,
    NEXT_IN,
    NEXT_OUT,
    SOURCE,
    TARGET,
    advance,
    edge_digest,
    eliminate,
    list_neighbours,
    price_of,
    undo,
)
from ..elimination.problem import Problem
from ..elimination.random_numbers import MIX, mixed
from .finder import Step, cheapest

# The number of states between two pauses, and the number of parts remembered. The search gives up when it has met more.
PAUSE = 5_000
REMEMBERED = 1 << 22
# Indices into `Tree.at`.
STATES, LEVEL, OPEN, KNOWN, REDUCE, SPLIT = range(6)
# `Tree.first` of a part whose cost is only bounded.
UNSOLVED = -1
# `Tree.part` of vertices that do not belong to a part yet, and of those that are eliminated or in another part.
UNASSIGNED, ELSEWHERE = -1, -2


class Tree(NamedTuple):
    """The branch under search, and the parts met so far.

    At each level one more vertex is eliminated, which leaves a few parts. One of them is being solved, by trying its
    vertices one after the other at the next level.

    Attributes:
        part: by level, the part that each vertex belongs to.
        parts, current: by level, the number of parts, and the part being solved.
        key, floor, solved: by level and part, its digest, a lower bound on its cost, and whether it costs just that.
        total: by level, the price of the last elimination plus the floors of all parts.
        upper: the cost of the order known before.
        goal: by level, the cost that the total has to be below. It falls as better orders are found.
        price: by level and vertex, the price of eliminating the vertex there.
        candidates, listed, next: by level, the vertices of the part to try, their number (-1 if they are not listed
            yet), and how many were tried.
        least: by level, the sum of the bounds of the vertices of the part.
        best, refuted: by level, the vertex that leads to the best order of the part so far, or `UNSOLVED`; and a lower
            bound on all orders of the part that begin with another vertex that was tried.
        path: the eliminated vertices.
        order: the best order, once the search is over.
        near: work space for vertices.
        bounds: the lower bound on the cost of each vertex.
        step: the smallest difference by which a cost counts as lower.
        keys, cost, first: of the parts met so far, their digest, their cost, and the vertex to eliminate first. If that
            is `UNSOLVED`, the cost is only a lower bound.
        at: counters, at the indices named above.
    """

    part: np.ndarray
    parts: np.ndarray
    current: np.ndarray
    key: np.ndarray
    floor: np.ndarray
    solved: np.ndarray
    total: np.ndarray
    upper: float
    goal: np.ndarray
    price: np.ndarray
    candidates: np.ndarray
    listed: np.ndarray
    next: np.ndarray
    least: np.ndarray
    best: np.ndarray
    refuted: np.ndarray
    path: np.ndarray
    order: np.ndarray
    near: np.ndarray
    bounds: np.ndarray
    step: float
    keys: np.ndarray
    cost: np.ndarray
    first: np.ndarray
    at: np.ndarray


def new_tree(problem: Problem, upper: float) -> Tree:
    """A search for an order that costs less than ``upper``."""
    size, levels = problem.size, problem.size + 2
    splits = problem.plain_prices.addition == 0
    return Tree(
        part=np.full((levels, size), UNASSIGNED, np.int32),
        parts=np.full(levels, -1, np.int64),
        current=np.zeros(levels, np.int64),
        key=np.zeros((levels, size), np.uint64),
        floor=np.zeros((levels, size)),
        solved=np.zeros((levels, size), np.bool_),
        total=np.zeros(levels),
        upper=float(upper),
        goal=np.full(levels + 1, upper),
        price=np.zeros((levels, size)),
        candidates=np.zeros((levels, size), np.int32),
        listed=np.full(levels, -1, np.int64),
        next=np.zeros(levels, np.int64),
        least=np.zeros(levels),
        best=np.full(levels, UNSOLVED, np.int32),
        refuted=np.zeros(levels),
        path=np.zeros(levels, np.int32),
        order=np.zeros(size, np.int32),
        near=np.zeros(2 * len(problem.numbers), np.int32),
        bounds=problem.vertex_bounds(),
        step=problem.objective.step,
        keys=np.zeros(REMEMBERED, np.uint64),
        cost=np.zeros(REMEMBERED),
        first=np.zeros(REMEMBERED, np.int32),
        at=np.array([0, 0, 1, 0, _reducible(problem), splits], np.int64),
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
def _row(tree, key):
    """The row of a part among those met so far, or the empty row where it belongs."""
    mask = np.uint64(len(tree.keys) - 1)
    row = key & mask
    while tree.keys[row] != 0 and tree.keys[row] != key:
        row = (row + np.uint64(1)) & mask
    return row


@compiled
def _remember(tree, key, cost, first):
    row = _row(tree, key)
    if tree.keys[row] == 0:
        tree.at[KNOWN] += 1
    tree.keys[row], tree.cost[row], tree.first[row] = key, cost, first


@inlined
def _claim(tree, level, node, number, end):
    """Add a vertex to a part, unless it belongs to one. ``near`` holds the members up to ``end``."""
    if node < len(tree.bounds) and tree.part[level, node] == UNASSIGNED:
        tree.part[level, node] = number
        tree.near[end] = node
        end += 1
    return end


@compiled
def _gather(net, table, tree, level, start, number):
    """Collect the part of ``start``. Returns its digest and the sum of the bounds of its vertices."""
    tree.part[level, start], tree.near[0] = number, start
    key, least, place, end = MIX, 0.0, 0, 1
    while place < end:
        vertex = tree.near[place]
        place += 1
        key += mixed(np.uint64(vertex) + MIX)
        least += tree.bounds[vertex]
        edge = net.edges[vertex, NEXT_IN]
        while edge != vertex:
            key += edge_digest(net, table, edge)
            end = _claim(tree, level, net.edges[edge, SOURCE], number, end)
            edge = net.edges[edge, NEXT_IN]
        edge = net.edges[vertex, NEXT_OUT]
        while edge != vertex:
            node = net.edges[edge, TARGET]
            # Edges between vertices of the part are counted at their targets.
            if node >= len(tree.bounds):
                key += edge_digest(net, table, edge)
            end = _claim(tree, level, node, number, end)
            edge = net.edges[edge, NEXT_OUT]
    return key, least


@compiled
def _split(net, table, tree, level, price):
    """Split the unassigned vertices of a level into parts, and look up what is known about them."""
    tree.parts[level], tree.total[level] = 0, price
    for start in range(len(tree.bounds)):
        if tree.part[level, start] != UNASSIGNED:
            continue
        if tree.at[SPLIT] or tree.parts[level] == 0:
            number = tree.parts[level]
            tree.key[level, number], tree.floor[level, number] = 0 if tree.at[SPLIT] else net.digest[0], 0.0
            tree.parts[level] += 1
        key, least = _gather(net, table, tree, level, start, number)
        tree.key[level, number] += key
        tree.floor[level, number] += least
    for number in range(tree.parts[level]):
        row = _row(tree, tree.key[level, number])
        tree.solved[level, number] = False
        if tree.keys[row] != 0:
            tree.floor[level, number] = max(tree.floor[level, number], tree.cost[row])
            tree.solved[level, number] = tree.first[row] != UNSOLVED
        tree.total[level] += tree.floor[level, number]


@compiled
def _open(tree, level):
    """Begin to solve a part of this level that is not solved yet. Returns whether there is one."""
    for number in range(tree.parts[level]):
        if not tree.solved[level, number]:
            tree.current[level], tree.listed[level] = number, -1
            tree.goal[level + 1] = tree.goal[level] - (tree.total[level] - tree.floor[level, number])
            return True
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
def _list_candidates(net, tree, level):
    """List the vertices of the part worth eliminating next, the most promising first."""
    number, count = tree.current[level], 0
    tree.least[level], tree.best[level], tree.refuted[level], tree.next[level] = 0.0, UNSOLVED, np.inf, 0
    for vertex in range(len(tree.bounds)):
        if tree.part[level, vertex] == number:
            tree.least[level] += tree.bounds[vertex]
    for vertex in range(len(tree.bounds)):
        if tree.part[level, vertex] != number:
            continue
        loss = tree.price[level, vertex] - tree.bounds[vertex]
        if tree.at[REDUCE] and _forced(net, tree, vertex, tree.price[level, vertex]):
            tree.candidates[level, 0], count = vertex, 1
            break
        place = count
        while place > 0:
            before = tree.candidates[level, place - 1]
            if tree.price[level, before] - tree.bounds[before] <= loss:
                break
            tree.candidates[level, place] = before
            place -= 1
        tree.candidates[level, place] = vertex
        count += 1
    tree.listed[level] = count


@compiled
def _price_around(net, table, prices, tree, level, vertex):
    """Update the prices that the elimination of ``vertex`` may have changed. Returns a status.

    Multiplications depend on the edges of a vertex only, but additions also on edges between its neighbours.
    """
    count = list_neighbours(net, vertex, tree.near) if tree.at[SPLIT] else len(tree.bounds)
    for place in range(count):
        node = tree.near[place] if tree.at[SPLIT] else place
        if node < len(tree.bounds) and tree.part[level, node] == UNASSIGNED:
            price = price_of(net, table, prices, node)
            if price < 0:
                return int(-price)
            tree.price[level, node] = price
    return DONE


@compiled
def _enter(net, table, prices, tree, level):
    """Try the next candidate of this level. Descend if it may lead to a better order. Returns a status."""
    vertex = tree.candidates[level, tree.next[level]]
    price, below = tree.price[level, vertex], level + 1
    bound = tree.least[level] - tree.bounds[vertex] + price
    if bound >= tree.goal[below] - tree.step:
        tree.refuted[level] = min(tree.refuted[level], bound)
        tree.next[level] += 1
        return DONE
    charged = eliminate(net, table, prices, vertex)
    if charged < 0:
        return int(-charged)
    for other in range(len(tree.bounds)):
        inside = tree.part[level, other] == tree.current[level] and other != vertex
        tree.part[below, other] = UNASSIGNED if inside else ELSEWHERE
        tree.price[below, other] = tree.price[level, other]
    status = _price_around(net, table, prices, tree, below, vertex)
    if status != DONE:
        undo(net)
        return status
    tree.next[level] += 1
    _split(net, table, tree, below, price)
    tree.path[level], tree.at[LEVEL] = vertex, below
    if tree.total[below] >= tree.goal[below] - tree.step or not _open(tree, below):
        _leave(net, tree, below)
    return DONE


@compiled
def _leave(net, tree, level):
    """Go back up from a level, where the total is a lower bound, or the cost itself if all parts are solved."""
    better = tree.total[level] < tree.goal[level] - tree.step
    tree.at[LEVEL], above = level - 1, level - 1
    if level == 0:
        tree.at[OPEN] = 0
    else:
        undo(net)
    if better:
        tree.goal[level] = tree.total[level]
    if better and level > 0:
        tree.best[above] = tree.path[above]
    elif level > 0:
        tree.refuted[above] = min(tree.refuted[above], tree.total[level])


@compiled
def _close(net, tree, level):
    """Note what the part costs after all candidates were tried. Go on with another part, or back up."""
    number, first = tree.current[level], tree.best[level]
    cost = tree.refuted[level] if first == UNSOLVED else tree.goal[level + 1]
    _remember(tree, tree.key[level, number], cost, first)
    tree.total[level] += cost - tree.floor[level, number]
    tree.floor[level, number], tree.solved[level, number] = cost, first != UNSOLVED
    if tree.total[level] >= tree.goal[level] - tree.step or not _open(tree, level):
        _leave(net, tree, level)


@compiled
def _begin(net, table, prices, tree):
    """Set up the first level. Returns a status."""
    for vertex in range(len(tree.bounds)):
        price = price_of(net, table, prices, vertex)
        if price < 0:
            return int(-price)
        tree.price[0, vertex] = price
    _split(net, table, tree, 0, 0.0)
    if not _open(tree, 0):
        _leave(net, tree, 0)
    return DONE


@compiled
def _read_order(net, table, prices, tree):
    """Write the best order, which follows from the parts met. Returns a status."""
    last = len(tree.part) - 1
    tree.part[last, :] = UNASSIGNED
    for place in range(len(tree.order)):
        for vertex in range(len(tree.order)):
            if tree.part[last, vertex] != ELSEWHERE:
                tree.part[last, vertex] = UNASSIGNED
        _split(net, table, tree, last, 0.0)
        vertex = tree.first[_row(tree, tree.key[last, 0])]
        charged = eliminate(net, table, prices, vertex)
        if charged < 0:
            return int(-charged)
        tree.order[place], tree.part[last, vertex] = vertex, ELSEWHERE
    return DONE


@compiled
def branch(net, table, prices, tree, states):
    """Continue the search for a number of states. Returns a status."""
    if tree.parts[0] < 0:
        status = _begin(net, table, prices, tree)
        if status != DONE:
            return status
    advance(net, table, prices, tree.path, tree.at[LEVEL])
    while tree.at[OPEN]:
        level = tree.at[LEVEL]
        if tree.listed[level] < 0:
            if tree.at[STATES] >= states:
                return DONE
            _list_candidates(net, tree, level)
            tree.at[STATES] += 1
        if tree.next[level] < tree.listed[level]:
            status = _enter(net, table, prices, tree, level)
            if status != DONE:
                return status
        else:
            _close(net, tree, level)
    return _read_order(net, table, prices, tree) if tree.goal[0] < tree.upper else DONE


def exact(problem: Problem, seed: int, starts: list[np.ndarray]) -> Iterator[Step]:
    """Yield from branch and bound. If it finishes, its best order is optimal, and so is the bound it reports.

    It reports no bound for graphs with loops, because kernels count more than the order costs.
    """
    if problem.objective.minimize == "peak":
        return
    best = cheapest(problem, starts)
    tree = new_tree(problem, problem.charged(best))
    while tree.at[OPEN] and tree.at[KNOWN] < REMEMBERED // 2:
        tree.at[STATES] = 0
        problem.call(branch, tree, PAUSE, prices=problem.plain_prices)
        improved = not tree.at[OPEN] and tree.goal[0] < tree.upper
        order = tree.order if improved else best
        proven = 0.0 if tree.at[OPEN] or problem.graph.has_loops else problem.value(order)
        yield Step(order.copy() if improved else None, int(tree.at[STATES]), proven)
