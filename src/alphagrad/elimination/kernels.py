"""Compiled elimination: what every order finder runs on.

A graph on its way to becoming bipartite is a pool of edges in doubly linked lists, one list of incoming and one of
outgoing edges for each node, whose heads are the pool's first entries. Eliminating a vertex unlinks its edges but
leaves its own lists whole, so the last elimination can be undone exactly (Knuth's dancing links); what else changed
is in a log.

Structures are numbers. What composing or adding two of them gives, and costs, stands in one hash table that Python
fills from `graphax.structure` when a kernel meets a pair for the first time: a kernel then returns `UNKNOWN`, and is
called again. Pools that are full are handled alike. So the counts are those of `graphax.plan`, by construction.
"""

import hashlib
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from .structures import NO_EDGE

_WITH_KERNELS = ("elimination", "finders", "policy")
_SOURCES = sorted(path for folder in _WITH_KERNELS for path in (Path(__file__).parents[1] / folder).glob("*.py"))
_STAMP = hashlib.sha256(b"".join(path.read_bytes() for path in _SOURCES)).hexdigest()


def allocating(function: Callable, **options: Any) -> Callable:
    """Compile a kernel at its first call, or load it from the cache of an earlier process.

    Kernels inline each other, but numba takes a cached one for good as long as its own file is unchanged. So all of
    them are stamped with the content of all files that have kernels.
    """
    dispatcher = njit(cache=True, **options)(function)
    file = dispatcher._cache._cache_file
    file._source_stamp = _STAMP
    file._load_index = partial(_readable, file._load_index)
    return dispatcher


def _readable(load: Callable[[], dict]) -> dict:
    """What a cache has. One of another version may name types that are no more, and has nothing then."""
    try:
        return load()
    except (ImportError, AttributeError):
        return {}


def compiled(function: Callable) -> Callable:
    """Compile a kernel that allocates nothing: without reference counts calls are four times faster."""
    return allocating(function, _nrt=False)


def inlined(function: Callable) -> Callable:
    """A kernel that is written into its callers, so that its arguments are not passed."""
    return allocating(function, _nrt=False, inline="always")


DONE, UNKNOWN, FULL = 0, 1, 2
PRODUCT, SUM = 0, 1
# Places in `Net.now` and in the rows of `Net.saved`.
EDGES, LOGGED, LIVE, MULTIPLICATIONS, ADDITIONS, DEPTH, STAMP = range(7)
# Columns of `Net.edges`: one row is one cache line.
SOURCE, TARGET, STRUCTURE, NEXT_IN, PREV_IN, NEXT_OUT, PREV_OUT = range(7)
COLUMNS = 8

_MIX = np.uint64(0x9E3779B97F4A7C15)
_MIX_2 = np.uint64(0xBF58476D1CE4E5B9)


class HashTable(NamedTuple):
    """Products and sums of structures, by open addressing, and facts about each structure."""

    keys: np.ndarray
    result: np.ndarray
    multiplications: np.ndarray
    additions: np.ndarray
    stored: np.ndarray
    signature: np.ndarray
    missing: np.ndarray


class Net(NamedTuple):
    """The pool of edges and what it takes to go back.

    Attributes:
        edges: a row for each edge, with the columns named above; the first rows are the heads of the nodes' lists.
        log: the edges that eliminations made (their old structure is -1) or changed, and their old structures.
        eliminated, peak, saved, saved_digest: by depth, the vertex, the most numbers held, and what to return to.
        mark, stamp: by node, the edge to the target in hand, valid if stamped with the present stamp.
        now: counters, by the places named above.
        digest: a sum over all edges that tells states apart.
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


class Prices(NamedTuple):
    """What an elimination is charged: a weight for each operation, and a power of the live numbers relative to a
    reference, whose sum over all eliminations stands for the peak."""

    multiplication: float
    addition: float
    peak: float
    reference: float


@inlined
def mixed(x):
    x = (x ^ (x >> np.uint64(30))) * _MIX_2
    return x ^ (x >> np.uint64(27))


@compiled
def random_bits(rng):
    rng[0] += _MIX
    return mixed(rng[0])


@compiled
def random_unit(rng):
    """Uniform in (0, 1]."""
    return (np.float64(random_bits(rng) >> np.uint64(11)) + 1.0) * 2.0**-53


@compiled
def random_below(rng, limit):
    return np.int64(random_bits(rng) >> np.uint64(33)) % limit


@inlined
def table_key(operation, left, right):
    return (
        (np.uint64(operation) << np.uint64(62)) + (np.uint64(left) << np.uint64(31)) + np.uint64(right) + np.uint64(1)
    )


@inlined
def find(table, operation, left, right):
    """The row of a product or sum, or -1 if it is not known yet."""
    key = table_key(operation, left, right)
    mask = np.uint64(len(table.keys) - 1)
    row = (key * _MIX >> np.uint64(20)) & mask
    while table.keys[row] != key:
        if table.keys[row] == 0:
            table.missing[0], table.missing[1], table.missing[2] = operation, left, right
            return np.int64(-1)
        row = (row + np.uint64(1)) & mask
    return np.int64(row)


@compiled
def insert(table, operation, left, right, result, multiplications, additions):
    key = table_key(operation, left, right)
    mask = np.uint64(len(table.keys) - 1)
    row = (key * _MIX >> np.uint64(20)) & mask
    while table.keys[row] != 0:
        row = (row + np.uint64(1)) & mask
    table.keys[row] = key
    table.result[row] = result
    table.multiplications[row] = multiplications
    table.additions[row] = additions


@inlined
def edge_digest(net, table, edge):
    source, target = np.uint64(net.edges[edge, SOURCE]), np.uint64(net.edges[edge, TARGET])
    ends = mixed((source << np.uint64(32)) + target + _MIX) | np.uint64(1)
    return ends * table.signature[net.edges[edge, STRUCTURE]]


@inlined
def _append(net, edge, head, following, preceding):
    """Put an edge at the end of the list of a node."""
    last = net.edges[head, preceding]
    net.edges[last, following], net.edges[edge, preceding] = edge, last
    net.edges[edge, following], net.edges[head, preceding] = head, edge


@inlined
def _unlink(net, edge, following, preceding):
    """Take an edge out of a list; it remembers its place there."""
    before, after = net.edges[edge, preceding], net.edges[edge, following]
    net.edges[before, following], net.edges[after, preceding] = after, before


@inlined
def _relink(net, edge, following, preceding):
    """Put an edge back to where it was in a list."""
    net.edges[net.edges[edge, preceding], following] = net.edges[net.edges[edge, following], preceding] = edge


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
    """Unlink the edges of ``vertex`` on one side from its neighbours there; returns the numbers they hold."""
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
        _relink(net, edge, following, preceding)
        edge = net.edges[edge, back]


@compiled
def undo(net):
    """Take the last elimination back."""
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
    """Add a product to the edge from ``source`` to ``target``, or make that edge. Returns a status."""
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
    """Eliminate ``vertex`` and return what that is charged, or minus a status if it could not be done."""
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
    """Eliminate along ``order``, of which all products and sums are known, up to a depth."""
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
    """Write the nodes before and after ``vertex`` to ``into`` and return how many there are. If it was eliminated last,
    those are the ones whose edges changed."""
    return _list_ends(net, vertex, NEXT_OUT, TARGET, into, _list_ends(net, vertex, NEXT_IN, SOURCE, into, 0))


@compiled
def price_of(net, table, prices, vertex):
    """What eliminating ``vertex`` now would be charged, or minus a status."""
    price = eliminate(net, table, prices, vertex)
    if price >= 0:
        undo(net)
    return price


@compiled
def evaluate(net, table, prices, order, price, digest):
    """Eliminate along ``order``, noting what each step is charged and the state after it. Leaves the net eliminated."""
    for position in range(net.now[DEPTH], len(order)):
        charged = eliminate(net, table, prices, order[position])
        if charged < 0:
            return int(-charged)
        price[position] = charged
        digest[position] = net.digest[0]
    return DONE
