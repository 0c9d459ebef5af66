"""Compiled elimination: what every order finder runs on.

A graph on its way to becoming bipartite is a pool of edges in doubly linked lists, one list of incoming and one of
outgoing edges for each node, whose heads are the pool's first entries. Eliminating a vertex unlinks its edges but leaves
its own lists whole, so the last elimination can be undone exactly (Knuth's dancing links); what else changed is in a log.

Structures are numbers. What composing or adding two of them gives, and costs, stands in one hash table that Python
fills from `graphax.structure` when a kernel meets a pair for the first time: a kernel then returns `UNKNOWN`, and is
called again. Pools that are full are handled alike. So the counts are those of `graphax.plan`, by construction.
"""

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numba import njit

_SOURCES = sorted([Path(__file__), *Path(__file__).with_name("finders").glob("*.py")])
_STAMP = hashlib.sha256(b"".join(path.read_bytes() for path in _SOURCES)).hexdigest()


def compiled(function: Callable, **options: Any) -> Callable:
    """Compile a kernel at its first call, or load it from the cache of an earlier process.

    Kernels inline each other, but numba takes a cached one for good as long as its own file is unchanged. So all of
    them are stamped with the content of all files that have kernels.
    """
    dispatcher = njit(cache=True, **options)(function)
    dispatcher._cache._cache_file._source_stamp = _STAMP
    return dispatcher


def kernel(function: Callable) -> Callable:
    """Compile a kernel that allocates nothing: without reference counts calls are four times faster."""
    return compiled(function, _nrt=False)


DONE, UNKNOWN, FULL = 0, 1, 2
PRODUCT, SUM = 0, 1
# Places in `Net.now` and in the rows of `Net.saved`.
EDGES, LOGGED, LIVE, MULTIPLICATIONS, ADDITIONS, DEPTH, STAMP = range(7)

_MIX = np.uint64(0x9E3779B97F4A7C15)
_MIX_2 = np.uint64(0xBF58476D1CE4E5B9)


class Table(NamedTuple):
    """The algebra of structures, by open addressing, and facts about each structure."""

    keys: np.ndarray
    result: np.ndarray
    multiplications: np.ndarray
    additions: np.ndarray
    stored: np.ndarray
    signature: np.ndarray
    missing: np.ndarray


class Net(NamedTuple):
    """The pool of edges and what it takes to go back."""

    source: np.ndarray
    target: np.ndarray
    structure: np.ndarray
    key: np.ndarray
    next_in: np.ndarray
    prev_in: np.ndarray
    next_out: np.ndarray
    prev_out: np.ndarray
    log_edge: np.ndarray
    log_old: np.ndarray
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


@kernel
def mixed(x):
    x = (x ^ (x >> np.uint64(30))) * _MIX_2
    return x ^ (x >> np.uint64(27))


@kernel
def random_bits(rng):
    rng[0] += _MIX
    return mixed(rng[0])


@kernel
def random_unit(rng):
    """Uniform in (0, 1]."""
    return (np.float64(random_bits(rng) >> np.uint64(11)) + 1.0) * 2.0**-53


@kernel
def random_below(rng, limit):
    return np.int64(random_bits(rng) >> np.uint64(33)) % limit


@kernel
def table_key(operation, left, right):
    return (
        (np.uint64(operation) << np.uint64(62)) + (np.uint64(left) << np.uint64(31)) + np.uint64(right) + np.uint64(1)
    )


@kernel
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


@kernel
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


@kernel
def connect(net, table, source, target, structure):
    """Add an edge to the pool."""
    edge = net.now[EDGES]
    net.now[EDGES] += 1
    net.source[edge], net.target[edge], net.structure[edge] = source, target, structure
    net.key[edge] = mixed((np.uint64(source) << np.uint64(32)) + np.uint64(target) + _MIX) | np.uint64(1)
    last = net.prev_in[target]
    net.next_in[last], net.prev_in[edge], net.next_in[edge], net.prev_in[target] = edge, last, target, edge
    last = net.prev_out[source]
    net.next_out[last], net.prev_out[edge], net.next_out[edge], net.prev_out[source] = edge, last, source, edge
    net.digest[0] += net.key[edge] * table.signature[structure]
    net.now[LIVE] += table.stored[structure]


@kernel
def load(net, table, sources, targets, structures):
    """Fill an empty pool."""
    for node in range(len(net.mark)):
        net.next_in[node] = net.prev_in[node] = net.next_out[node] = net.prev_out[node] = node
    net.now[:] = 0
    net.digest[0] = 0
    net.stamp[:] = -1
    net.now[EDGES] = len(net.mark)
    for edge in range(len(sources)):
        connect(net, table, sources[edge], targets[edge], structures[edge])


@kernel
def _detach(net, table, vertex):
    """Unlink all edges of ``vertex`` from its neighbours; returns the numbers they hold."""
    dropped = 0
    edge = net.next_in[vertex]
    while edge != vertex:
        net.next_out[net.prev_out[edge]], net.prev_out[net.next_out[edge]] = net.next_out[edge], net.prev_out[edge]
        net.digest[0] -= net.key[edge] * table.signature[net.structure[edge]]
        dropped += table.stored[net.structure[edge]]
        edge = net.next_in[edge]
    edge = net.next_out[vertex]
    while edge != vertex:
        net.next_in[net.prev_in[edge]], net.prev_in[net.next_in[edge]] = net.next_in[edge], net.prev_in[edge]
        net.digest[0] -= net.key[edge] * table.signature[net.structure[edge]]
        dropped += table.stored[net.structure[edge]]
        edge = net.next_out[edge]
    return dropped


@kernel
def undo(net):
    """Take the last elimination back."""
    net.now[DEPTH] -= 1
    depth = net.now[DEPTH]
    vertex = net.eliminated[depth]
    log = net.now[LOGGED]
    while log > net.saved[depth, LOGGED]:
        log -= 1
        edge, old = net.log_edge[log], net.log_old[log]
        if old >= 0:
            net.structure[edge] = old
        else:
            net.next_in[net.prev_in[edge]], net.prev_in[net.next_in[edge]] = net.next_in[edge], net.prev_in[edge]
            net.next_out[net.prev_out[edge]], net.prev_out[net.next_out[edge]] = net.next_out[edge], net.prev_out[edge]
    edge = net.prev_out[vertex]
    while edge != vertex:
        net.next_in[net.prev_in[edge]] = net.prev_in[net.next_in[edge]] = edge
        edge = net.prev_out[edge]
    edge = net.prev_in[vertex]
    while edge != vertex:
        net.next_out[net.prev_out[edge]] = net.prev_out[net.next_out[edge]] = edge
        edge = net.prev_in[edge]
    for place in range(DEPTH):
        net.now[place] = net.saved[depth, place]
    net.digest[0] = net.saved_digest[depth]


@kernel
def _join(net, table, source, target, structure, existing):
    """Add a product to the edge from ``source`` to ``target``, or make that edge. Returns a status."""
    if net.now[LOGGED] >= len(net.log_edge) or net.now[EDGES] >= len(net.source):
        return FULL
    log = net.now[LOGGED]
    if existing < 0:
        net.log_edge[log], net.log_old[log] = net.now[EDGES], -1
        net.now[LOGGED] += 1
        connect(net, table, source, target, structure)
        return DONE
    old = net.structure[existing]
    row = find(table, SUM, old, structure)
    if row < 0:
        return UNKNOWN
    net.now[ADDITIONS] += table.additions[row]
    new = table.result[row]
    if new != old:
        net.log_edge[log], net.log_old[log] = existing, old
        net.now[LOGGED] += 1
        net.structure[existing] = new
        net.digest[0] += net.key[existing] * (table.signature[new] - table.signature[old])
        net.now[LIVE] += table.stored[new] - table.stored[old]
    return DONE


@kernel
def _combine(net, table, vertex):
    """Compose every incoming with every outgoing edge of a detached vertex. Returns a status."""
    outgoing = net.next_out[vertex]
    while outgoing != vertex:
        target = net.target[outgoing]
        net.now[STAMP] += 1
        stamp = net.now[STAMP]
        edge = net.next_in[target]
        while edge != target:
            net.mark[net.source[edge]], net.stamp[net.source[edge]] = edge, stamp
            edge = net.next_in[edge]
        incoming = net.next_in[vertex]
        while incoming != vertex:
            row = find(table, PRODUCT, net.structure[outgoing], net.structure[incoming])
            if row < 0:
                return UNKNOWN
            result = table.result[row]
            if result >= 0:
                net.now[MULTIPLICATIONS] += table.multiplications[row]
                net.now[ADDITIONS] += table.additions[row]
                source = net.source[incoming]
                existing = net.mark[source] if net.stamp[source] == stamp else np.int32(-1)
                status = _join(net, table, source, target, result, existing)
                if status != DONE:
                    return status
            incoming = net.next_in[incoming]
        outgoing = net.next_out[outgoing]
    return DONE


@kernel
def eliminate(net, table, prices, vertex):
    """Eliminate ``vertex`` and return what that is charged, or minus a status if it could not be done."""
    depth = net.now[DEPTH]
    for place in range(DEPTH):
        net.saved[depth, place] = net.now[place]
    net.saved_digest[depth] = net.digest[0]
    net.eliminated[depth] = vertex
    net.now[DEPTH] += 1
    dropped = _detach(net, table, vertex)
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


@kernel
def rewind(net, depth):
    while net.now[DEPTH] > depth:
        undo(net)


@kernel
def price_of(net, table, prices, vertex):
    """What eliminating ``vertex`` now would be charged, or minus a status."""
    price = eliminate(net, table, prices, vertex)
    if price >= 0:
        undo(net)
    return price


@kernel
def evaluate(net, table, prices, order, price, digest):
    """Eliminate along ``order``, noting what each step is charged and the state after it. Leaves the net eliminated."""
    for position in range(net.now[DEPTH], len(order)):
        charged = eliminate(net, table, prices, order[position])
        if charged < 0:
            return int(-charged)
        price[position] = charged
        digest[position] = net.digest[0]
    return DONE
