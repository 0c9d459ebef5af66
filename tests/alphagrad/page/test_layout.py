from itertools import pairwise

import jax.numpy as jnp
import pytest
from hypothesis import given, settings

from alphagrad.page.layout import lay_out
from graphax import build_graph

from ..graphs import program_graphs
from .views import graph_of


def check(graph):
    layout = lay_out(graph)
    assert set(layout.places) == set(graph.vertices)
    assert len(set(layout.places.values())) == len(graph.vertices)
    for x, y in layout.places.values():
        assert 0 < x < layout.width
        assert 0 < y < layout.height
    for target, source in graph.edges:
        way = [layout.places[source], *layout.bends.get((target, source), ()), layout.places[target]]
        assert [x for x, _ in way] == sorted({x for x, _ in way})
    for kind in ("input", "output"):
        assert len({layout.places[v.number][0] for v in graph.vertices.values() if v.kind == kind}) <= 1


@pytest.mark.parametrize("name", ["five", "RoeFlux_1d", "MLP", "TransformerEncoder", "random 500"])
def test_edges_go_forward_and_no_vertices_coincide(name):
    check(graph_of(name))


@settings(max_examples=25, deadline=None)
@given(graph=program_graphs())
def test_any_graph_can_be_laid_out(graph):
    check(graph)


def test_nothing_to_eliminate():
    check(build_graph(lambda x: x, 1.0))
    check(build_graph(lambda x: 2.0, 1.0))


def test_crossings_are_removed():
    def twisted(a, b, c):
        return [2 * x for x in (jnp.sin(c), jnp.sin(b), jnp.sin(a))]

    layout = lay_out(build_graph(twisted, 1.0, 1.0, 1.0, argnums=(0, 1, 2)))
    for source, *others in [(0, 3, 6), (-1, 2, 5), (-2, 1, 4)]:
        assert {layout.places[vertex][1] for vertex in others} == {layout.places[source][1]}


def test_drawings_are_the_same_each_time():
    assert lay_out(graph_of("RoeFlux_1d")) == lay_out(graph_of("RoeFlux_1d"))


def test_vertices_keep_their_distance():
    layout = lay_out(graph_of("RoeFlux_1d"))
    columns = {}
    for x, y in layout.places.values():
        columns.setdefault(x, []).append(y)
    for column in columns.values():
        below = sorted(column)
        assert all(b - a > 30 for a, b in pairwise(below))
