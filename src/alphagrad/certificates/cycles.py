"""Cycles in the precedence of vertices, which no order can satisfy."""

from collections import deque

import numpy as np

from .scenarios import Solution


def shortest_cycles(following: dict[int, set[int]], among: set[int]) -> set[tuple[int, ...]]:
    """A shortest cycle through each of the vertices that lies on one."""
    cycles = set()
    for start in sorted(among):
        seen, paths = {start}, deque([[start]])
        while paths:
            path = paths.popleft()
            if start in following[path[-1]]:
                cycles.add(_turned(path))
                break
            new = sorted(following[path[-1]] & among - seen)
            seen.update(new)
            paths.extend([*path, there] for there in new)
    return cycles


def violated_cycles(solution: Solution) -> set[tuple[int, ...]]:
    """Cycles in which the arcs of the solution sum to more than their number minus one.

    For each arc, the worst cycle is found by shortest paths.
    """
    vertices = sorted({vertex for pair in solution.first for vertex in pair})
    position = {vertex: n for n, vertex in enumerate(vertices)}
    missing = np.full((len(vertices), len(vertices)), np.inf)
    for a, b in solution.first:
        for one, other in ((a, b), (b, a)):
            missing[position[one], position[other]] = max(0.0, 1.0 - solution.precedence(one, other))
    distance, towards = missing.copy(), np.tile(np.arange(len(vertices)), (len(vertices), 1))
    for middle in range(len(vertices)):
        through = distance[:, middle, None] + distance[middle]
        shorter = through < distance - 1e-9
        distance = np.where(shorter, through, distance)
        towards = np.where(shorter, towards[:, middle, None], towards)
    cycles = set()
    for start, there in zip(*np.nonzero(missing + distance.T < 1 - 1e-4), strict=True):
        cycle = [int(start)]
        while there != start and len(cycle) <= len(vertices):
            cycle.append(int(there))
            there = towards[there, start]
        if 2 < len(cycle) == len(set(cycle)):
            cycles.add(_turned([vertices[n] for n in cycle]))
    return cycles


def _turned(cycle: list[int]) -> tuple[int, ...]:
    """The cycle, rotated to begin with its smallest vertex."""
    start = cycle.index(min(cycle))
    return tuple(cycle[start:] + cycle[:start])
