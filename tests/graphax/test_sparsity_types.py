import numpy as np
import pytest

from graphax import JacobianBlock, build_graph, sparsity_type
from graphax.structure import identity

SIZES = {"i": 2, "j": 3, "k": 4, "l": 5}


@pytest.mark.parametrize(
    ("number", "inp", "values"),
    [
        (1, "kl", "ijkl"),
        (2, "il", "ijl"),
        (-2, "il", "jl"),
        (3, "kj", "ijk"),
        (-3, "kj", "ik"),
        (4, "ki", "ijk"),
        (-4, "ki", "jk"),
        (5, "jl", "ijl"),
        (-5, "jl", "il"),
        (6, "ij", "ij"),
        (7, "ji", "ij"),
        (8, "ij", "i"),
        (-8, "ij", "j"),
        (9, "ji", "i"),
        (-9, "ji", "j"),
        (10, "ij", ""),
        (-10, "ji", ""),
        (-6, "ij", None),
        (-7, "ji", None),
    ],
)
def test_every_type_of_the_paper(number, inp, values):
    shape = lambda labels: [SIZES[label] for label in labels]
    numbers = None if values is None else np.ones(shape(values))
    block = JacobianBlock.labelled("ij", inp, shape("ij"), shape(inp), numbers, values or "")
    assert sparsity_type(block.structure) == number


def test_no_edge_and_copies():
    assert sparsity_type(None) == 0
    graph = build_graph(lambda x: x[1:3] * 2.0, np.ones(5))
    assert sparsity_type(graph.edges[1, 0]) == -1
    assert sparsity_type(graph.edges[2, 1]) == 10


def test_vectors_and_scalars_are_thin_matrices():
    diagonal = JacobianBlock.labelled("i", "i", (3,), (3,), np.ones(3), "i")
    assert sparsity_type(diagonal.structure) == 6
    assert sparsity_type(JacobianBlock.labelled("", "", (), (), np.ones(()), "").structure) == 1


def test_rank_three_has_no_number():
    with pytest.raises(ValueError, match="rank 2"):
        sparsity_type(identity((2, 3, 4)))
