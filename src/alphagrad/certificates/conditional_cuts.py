"""Lower bounds on the cost of eliminating a vertex, given which other vertices come before it and which after."""

from functools import cache

from graphax.cut import minimum_cut

from .scalar_graph import Coefficient, ScalarGraph

Vertices = frozenset[int]

_UNLIMITED = 1 << 60


class ConditionalCuts:
    """Minimum cuts around the vertices of a graph of single numbers.

    When v is eliminated, its predecessors P separate it from the inputs. A vertex known to come before v is gone, so it
    is not in P. A vertex known to come after v is still there, so P also separates v from it, or contains it. Either
    condition can only raise the minimum cut. A predecessor may be free only under two conditions: a path of known
    numbers leads from it to v through vertices that may be gone, and no path with values leads through vertices that
    are certainly gone. The same holds for the successors.
    """

    def __init__(self, graph: ScalarGraph):
        self.graph = graph
        self._position = {vertex: n for n, vertex in enumerate(graph.predecessors)}
        self._names = list(graph.predecessors)
        self._sides = [
            _Side(self._renamed(graph.predecessors), self._numbers(graph.inputs), backward=True),
            _Side(self._renamed(graph.successors), self._numbers(graph.outputs), backward=False),
        ]
        # The same few queries repeat often.
        self._around, self._cuts = cache(self._cones), cache(self._least)

    def _renamed(self, edges: dict[int, dict[int, Coefficient]]) -> list[dict[int, Coefficient]]:
        return [{self._position[n]: c for n, c in neighbours.items()} for neighbours in edges.values()]

    def _numbers(self, vertices: Vertices) -> Vertices:
        return frozenset(self._position[v] for v in vertices if v in self._position)

    def relevant(self, vertex: int) -> Vertices:
        """The intermediate vertices on a path with ``vertex``. No others affect its cost."""
        return frozenset().union(*self._around(vertex))

    def _cones(self, vertex: int) -> tuple[Vertices, Vertices]:
        """The intermediate vertices before and after ``vertex`` in the graph."""
        ends = self.graph.inputs | self.graph.outputs
        cones = (side.cone(self._position[vertex]) for side in self._sides)
        above, below = (frozenset(self._names[n] for n in cone) - ends for cone in cones)
        return above, below

    def bound(self, vertex: int, before: Vertices = frozenset(), after: Vertices = frozenset()) -> int:
        """The minimum cost of eliminating ``vertex`` if ``before`` are gone by then and ``after`` are not."""
        (inner, inner_scaled), (outer, outer_scaled) = (
            self._cuts(n, vertex, before & cone, after & cone) for n, cone in enumerate(self._around(vertex))
        )
        return inner * outer_scaled + (inner_scaled - inner) * outer

    def _least(self, side: int, vertex: int, before: Vertices, after: Vertices) -> tuple[int, int]:
        return self._sides[side].cuts(self._position[vertex], self._numbers(before), self._numbers(after))


class _Side:
    """The graph seen from its vertices toward the inputs, or toward the outputs. Vertices are positions."""

    def __init__(self, edges: list[dict[int, Coefficient]], ends: Vertices, backward: bool):
        self._edges, self._ends, self._backward = edges, ends, backward
        self._neighbours = [list(neighbours) for neighbours in edges]
        self._has_known = any(c is not None for neighbours in edges for c in neighbours.values())
        self.cone = cache(self._reached)

    def _reached(self, start: int) -> list[int]:
        """All vertices that ``start`` leads to, nearest in the order of the graph first."""
        seen, todo = set(self._neighbours[start]), list(self._neighbours[start])
        while todo:
            new = [n for n in self._neighbours[todo.pop()] if n not in seen]
            seen.update(new)
            todo.extend(new)
        return sorted(seen, reverse=self._backward)

    def cuts(self, start: int, before: Vertices, after: Vertices) -> tuple[int, int]:
        """Two minimum cuts by number of vertices.

        The first counts vertices with values; the second also those with a coefficient other than plus or minus one.
        """
        valued, scaled = self._weights(start, before, after)
        ends = self._ends | after
        cut = minimum_cut(start, self._neighbours, ends, valued)
        return cut, cut if scaled == valued else minimum_cut(start, self._neighbours, ends, scaled)

    def _weights(self, start: int, before: Vertices, after: Vertices) -> tuple[dict[int, int], dict[int, int]]:
        cone = self.cone(start)
        if not self._has_known:
            valued = scaled = dict.fromkeys(cone, 1)
        else:
            known = self._known_paths(start, before, after)
            certain = self._certainly_valued(start, before)
            valued = {n: int(n in certain or n not in known) for n in cone}
            scaled = {n: int(valued[n] or _is_scaled(known[n])) for n in cone}
        valued.update(dict.fromkeys(before, _UNLIMITED))
        scaled.update(dict.fromkeys(before, _UNLIMITED))
        return valued, scaled

    def _known_paths(self, start: int, before: Vertices, after: Vertices) -> dict[int, Coefficient]:
        """The vertices with a path of known numbers that avoids ``after``, and the combined number of all such paths.

        The number is None unless there is only one path, or all paths pass only through ``before``.
        """
        found: dict[int, Coefficient] = {start: 1.0}
        certain = {start}
        for here in (start, *self.cone(start)):
            if here in after or here not in found:
                continue
            stays = here in certain and (here == start or here in before)
            for there, coefficient in self._edges[here].items():
                if coefficient is None:
                    continue
                is_first = there not in found
                number, others = found[here], found.get(there, 0.0)
                keeps = stays and (is_first or there in certain)
                if number is None or others is None or not (is_first or keeps):
                    found[there] = None
                else:
                    found[there] = others + number * coefficient
                certain = certain | {there} if keeps else certain - {there}
        return found

    def _certainly_valued(self, start: int, before: Vertices) -> set[int]:
        """The vertices with a path with values that passes only through ``before``."""
        known, valued = {start}, set()
        for here in (start, *self.cone(start)):
            if here != start and here not in before:
                continue
            for there, coefficient in self._edges[here].items():
                if here in valued or (here in known and coefficient is None):
                    valued.add(there)
                if here in known and coefficient is not None:
                    known.add(there)
        return valued


def _is_scaled(coefficient: Coefficient) -> bool:
    # If the factors were multiplied in another order, the product might round to one.
    return coefficient is not None and abs(abs(coefficient) - 1) > 1e-6
