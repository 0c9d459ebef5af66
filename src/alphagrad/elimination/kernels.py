"""Compiled elimination, the basis of every order finder.

A graph during elimination is a pool of edges in doubly linked lists. Each node has one list of incoming and one of
outgoing edges, whose heads are the first entries of the pool. Eliminating a vertex unlinks its edges but leaves its own
lists intact, so the last elimination can be undone exactly (Knuth's dancing links). All other changes are in a log.

Structures are numbers. The results and costs of composing or adding two structures are in one hash table, which Python
fills from `graphax.structure`. When a kernel meets a pair for the first time, it returns `UNKNOWN` and is called again.
Full pools are handled in the same way. So the counts equal those of `graphax.plan` by construction.
"""

from typing import NamedTuple

import numpy as np

from .compiling import compiled, inlined
from .hash_table import PRODUCT, SUM, find
from .random_numbers import MIX, mixed
from .structures import NO_EDGE

DONE, UNKNOWN, FULL = 0, 1, 2
# Indices into `Net.now` and into the rows of `Net.saved`.
EDGES, LOGGED, LIVE, MULTIPLICATIONS, ADDITIONS, DEPTH, STAMP = range(7)
# Columns of `Net.edges`: one row is one cache line.
SOURCE, TARGET, STRUCTURE, NEXT_IN, PREV_IN, NEXT_OUT, PREV_OUT = range(7)
COLUMNS = 8


class Net(NamedTuple):
    """The pool of edges, and the data needed to undo eliminations.

    Attributes:
        edges: a row per edge, with the columns named above. The first rows are the heads of the lists of the nodes.
        log: the edges that eliminations made (with old structure -1) or changed, and their old structures.
        eliminated, peak, saved, saved_digest: by depth, the vertex, the largest number of values held, and the state to
            return to.
        mark, stamp: by node, the edge to the current target, valid if its stamp is the current one.
        now: counters, at the indices named above.
        digest: a sum over all edges that distinguishes states.
    """

    edges: np.ndarray
    log: np.ndarray
    eliminated: np.ndarray
    peak: np.ndarray
    saved: np.ndarray
    saved_digest: np.ndarray
    mark: np.ndarray
    stamp: np.ndarray
    now: np.ndarray
    digest: np.ndarray


def empty_net(nodes: int, vertices: int, edges: int, room: int) -> Net:
    """A pool without edges, with space for ``edges`` edges and ``room`` more."""
    depths = vertices + 1
    return Net(
        edges=np.zeros((nodes + edges + room, COLUMNS), np.int32),
        log=np.zeros((room, 2), np.int32),
        eliminated=np.zeros(depths, np.int32),
        peak=np.zeros(depths, np.int64),
        saved=np.zeros((depths, DEPTH), np.int64),
        saved_digest=np.zeros(depths, np.uint64),
        mark=np.zeros(nodes, np.int32),
        stamp=np.zeros(nodes, np.int64),
        now=np.zeros(STAMP + 1, np.int64),
        digest=np.zeros(1, np.uint64),
    )


class Prices(NamedTuple):
    """The charges of an elimination: a weight per operation, and a power of the live numbers.

    Live numbers are relative to a reference. The sum of their powers over all eliminations stands for the peak.
    """

    multiplication: float
    addition: float
    peak: float
    reference: float


@inlined
def edge_digest(net, table, edge):
    source, target = np.uint64(net.edges[edge, SOURCE]), np.uint64(net.edges[edge, TARGET])
    ends = mixed((source << np.uint64(32)) + target + MIX) | np.uint64(1)
    return ends * table.signature[net.edges[edge, STRUCTURE]]


@inlined
def _append(net, edge, head, following, preceding):
    """Append an edge to the list of a node."""
    last = net.edges[head, preceding]
    net.edges[last, following], net.edges[edge, preceding] = edge, last
    net.edges[edge, following], net.edges[head, preceding] = head, edge


@inlined
def _unlink(net, edge, following, preceding):
    """Remove an edge from a list. The edge remembers its place there."""
    before, after = net.edges[edge, preceding], net.edges[edge, following]
    net.edges[before, following], net.edges[after, preceding] = after, before


@inlined
def connect(net, table, source, target, structure):
    """Add an edge to the pool."""
    edge = net.now[EDGES]
    net.now[EDGES] += 1
    net.edges[edge, SOURCE], net.edges[edge, TARGET], net.edges[edge, STRUCTURE] = source, target, structure
    _append(net, edge, target, NEXT_IN, PREV_IN)
    _append(net, edge, source, NEXT_OUT, PREV_OUT)
    net.digest[0] += edge_digest(net, table, edge)
    net.now[LIVE] += table.stored[structure]


@compiled
def load(net, table, sources, targets, structures):
    """Fill an empty pool."""
    for node in range(len(net.mark)):
        net.edges[node, NEXT_IN:] = node
    net.now[:] = 0
    net.digest[0] = 0
    net.stamp[:] = -1
    net.now[EDGES] = len(net.mark)
    for edge in range(len(sources)):
        connect(net, table, sources[edge], targets[edge], structures[edge])


@inlined
def _detach(net, table, vertex, along, following, preceding):
    """Unlink the edges of ``vertex`` on one side from its neighbours there. Returns the numbers that they hold."""
    dropped = 0
    edge = net.edges[vertex, along]
    while edge != vertex:
        _unlink(net, edge, following, preceding)
        net.digest[0] -= edge_digest(net, table, edge)
        dropped += table.stored[net.edges[edge, STRUCTURE]]
        edge = net.edges[edge, along]
    return dropped


@inlined
def _attach(net, vertex, back, following, preceding):
    """Undo `_detach`, in the opposite order."""
    edge = net.edges[vertex, back]
    while edge != vertex:
        net.edges[net.edges[edge, preceding], following] = net.edges[net.edges[edge, following], preceding] = edge
        edge = net.edges[edge, back]


@compiled
def undo(net):
    """Undo the last elimination."""
    net.now[DEPTH] -= 1
    depth = net.now[DEPTH]
    vertex = net.eliminated[depth]
    log = net.now[LOGGED]
    while log > net.saved[depth, LOGGED]:
        log -= 1
        edge, old = net.log[log, 0], net.log[log, 1]
        if old >= 0:
            net.edges[edge, STRUCTURE] = old
        else:
            _unlink(net, edge, NEXT_IN, PREV_IN)
            _unlink(net, edge, NEXT_OUT, PREV_OUT)
    _attach(net, vertex, PREV_OUT, NEXT_IN, PREV_IN)
    _attach(net, vertex, PREV_IN, NEXT_OUT, PREV_OUT)
    for place in range(DEPTH):
        net.now[place] = net.saved[depth, place]
    net.digest[0] = net.saved_digest[depth]


@inlined
def _join(net, table, source, target, structure, existing):
    """Add a product to the edge from ``source`` to ``target``, or create that edge. Returns a status."""
    if net.now[LOGGED] >= len(net.log) or net.now[EDGES] >= len(net.edges):
        return FULL
    log = net.now[LOGGED]
    if existing < 0:
        net.log[log, 0], net.log[log, 1] = net.now[EDGES], -1
        net.now[LOGGED] += 1
        connect(net, table, source, target, structure)
        return DONE
    old = net.edges[existing, STRUCTURE]
    row = find(table, SUM, old, structure)
    if row < 0:
        return UNKNOWN
    net.now[ADDITIONS] += table.additions[row]
    new = table.result[row]
    if new != old:
        net.log[log, 0], net.log[log, 1] = existing, old
        net.now[LOGGED] += 1
        net.digest[0] -= edge_digest(net, table, existing)
        net.edges[existing, STRUCTURE] = new
        net.digest[0] += edge_digest(net, table, existing)
        net.now[LIVE] += table.stored[new] - table.stored[old]
    return DONE


@inlined
def _combine(net, table, vertex):
    """Compose every incoming with every outgoing edge of a detached vertex. Returns a status."""
    outgoing = net.edges[vertex, NEXT_OUT]
    while outgoing != vertex:
        target = net.edges[outgoing, TARGET]
        net.now[STAMP] += 1
        stamp = net.now[STAMP]
        edge = net.edges[target, NEXT_IN]
        while edge != target:
            net.mark[net.edges[edge, SOURCE]], net.stamp[net.edges[edge, SOURCE]] = edge, stamp
            edge = net.edges[edge, NEXT_IN]
        incoming = net.edges[vertex, NEXT_IN]
        while incoming != vertex:
            row = find(table, PRODUCT, net.edges[outgoing, STRUCTURE], net.edges[incoming, STRUCTURE])
            if row < 0:
                return UNKNOWN
            result = table.result[row]
            if result != NO_EDGE:
                net.now[MULTIPLICATIONS] += table.multiplications[row]
                net.now[ADDITIONS] += table.additions[row]
                source = net.edges[incoming, SOURCE]
                existing = net.mark[source] if net.stamp[source] == stamp else np.int32(-1)
                status = _join(net, table, source, target, result, existing)
                if status != DONE:
                    return status
            incoming = net.edges[incoming, NEXT_IN]
        outgoing = net.edges[outgoing, NEXT_OUT]
    return DONE


@compiled
def eliminate(net, table, prices, vertex):
    """Eliminate ``vertex`` and return its charge, or minus a status on failure."""
    depth = net.now[DEPTH]
    for place in range(DEPTH):
        net.saved[depth, place] = net.now[place]
    net.saved_digest[depth] = net.digest[0]
    net.eliminated[depth] = vertex
    net.now[DEPTH] += 1
    dropped = _detach(net, table, vertex, NEXT_IN, NEXT_OUT, PREV_OUT)
    dropped += _detach(net, table, vertex, NEXT_OUT, NEXT_IN, PREV_IN)
    status = _combine(net, table, vertex)
    if status != DONE:
        undo(net)
        return -float(status)
    net.peak[depth] = net.now[LIVE]
    net.now[LIVE] -= dropped
    multiplications = net.now[MULTIPLICATIONS] - net.saved[depth, MULTIPLICATIONS]
    additions = net.now[ADDITIONS] - net.saved[depth, ADDITIONS]
    price = prices.multiplication * multiplications + prices.addition * additions
    if prices.peak > 0:
        price += prices.peak * (net.peak[depth] / prices.reference) ** 16
    return price


@compiled
def rewind(net, depth):
    while net.now[DEPTH] > depth:
        undo(net)


@compiled
def advance(net, table, prices, order, depth):
    """Eliminate along ``order`` up to a depth. All its products and sums must be known."""
    while net.now[DEPTH] < depth:
        eliminate(net, table, prices, order[net.now[DEPTH]])


@inlined
def _list_ends(net, vertex, along, end, into, count):
    edge = net.edges[vertex, along]
    while edge != vertex:
        into[count] = net.edges[edge, end]
        count += 1
        edge = net.edges[edge, along]
    return count


@compiled
def list_neighbours(net, vertex, into):
    """Write the nodes before and after ``vertex`` to ``into`` and return their number.

    If ``vertex`` was eliminated last, these are the nodes whose edges changed.
    """
    return _list_ends(net, vertex, NEXT_OUT, TARGET, into, _list_ends(net, vertex, NEXT_IN, SOURCE, into, 0))


@compiled
def price_of(net, table, prices, vertex):
    """The charge for eliminating ``vertex`` now, or minus a status."""
    price = eliminate(net, table, prices, vertex)
    if price >= 0:
        undo(net)
    return price


@compiled
def evaluate(net, table, prices, order, price, digest):
    """Eliminate along ``order``, recording the charge of each step and the state after it. Does not undo the steps."""
    for position in range(net.now[DEPTH], len(order)):
        charged = eliminate(net, table, prices, order[position])
        if charged < 0:
            return int(-charged)
        price[position] = charged
        digest[position] = net.digest[0]
    return DONE
