"""The algebra of random structures, compared with dense matrices."""

from contextlib import contextmanager

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from graphax import block as blocks, terms
from graphax.axes import Digit, axis_size, point, whole
from graphax.block import JacobianBlock
from graphax.positions import listed, progression
from graphax.products import compacted, compose
from graphax.structure import Structure, canonical, dense, identity, zero
from graphax.sums import add

SHAPES = [(), (2,), (6,), (3, 4), (2, 6), (12,), (4, 3), (2, 3, 2)]


@st.composite
def random_blocks(draw, out_shape, inp_shape, lists=False) -> JacobianBlock:
    """A block with random ties, windows, points, digits and values; with lists of positions, if wanted."""
    sizes: list[int] = []

    def digit(size: int) -> Digit:
        kind = draw(
            st.sampled_from(["whole", "whole", "tied", "window", "point", *(["list", "tied list"] if lists else [])])
        )
        if kind == "point":
            return point(draw(st.integers(0, size - 1)), size)
        if kind == "tied":
            fitting = [n for n, length in enumerate(sizes) if length <= size]
            if fitting:
                label = draw(st.sampled_from(fitting))
                return Digit(label, _placed(draw, sizes[label], size), size)
        if kind == "tied list" and sizes:
            label = draw(st.sampled_from(range(len(sizes))))
            return Digit(label, _listed(draw, sizes[label], size), size)
        if kind == "list":
            sizes.append(draw(st.integers(2, size + 2)))
            return Digit(len(sizes) - 1, _listed(draw, sizes[-1], size), size)
        length = size if kind != "window" else draw(st.integers(2, size))
        sizes.append(length)
        return Digit(len(sizes) - 1, _placed(draw, length, size), size)

    def axis(size: int):
        if size == 1:
            return ()
        factors = [(n, size // n) for n in range(2, size) if size % n == 0]
        if factors and draw(st.booleans()):
            return tuple(digit(n) for n in draw(st.sampled_from(factors)))
        return (digit(size),)

    out, inp = [axis(n) for n in out_shape], [axis(n) for n in inp_shape]
    if draw(st.booleans()):
        scale = draw(st.sampled_from([1.0, -1.0, 2.5]))
        return JacobianBlock.of(canonical(out, inp, sizes, (), scale)[0])
    labels = [n for n in range(len(sizes)) if draw(st.booleans())]
    structure, _ = canonical(out, inp, sizes, labels, None)
    seed = draw(st.integers(0, 9))
    return JacobianBlock.of(structure, np.random.default_rng(seed).normal(size=structure.value_shape))


def _placed(draw, length: int, size: int) -> range:
    step = draw(st.integers(1, (size - 1) // (length - 1))) if length > 1 else 1
    start = draw(st.integers(0, size - 1 - step * (length - 1)))
    at = progression(start, step, length)
    return at[::-1] if draw(st.booleans()) else at


def _listed(draw, length: int, size: int):
    return listed(draw(st.lists(st.integers(0, size - 1), min_size=length, max_size=length)))


@contextmanager
def kept_apart(saving: int):
    """Set how many numbers must be saved to keep terms apart that one structure could hold."""
    before, terms.WORTH_KEEPING_APART = terms.WORTH_KEEPING_APART, saving
    terms.add.cache_clear(), terms.compose.cache_clear()
    try:
        yield
    finally:
        terms.WORTH_KEEPING_APART = before
        terms.add.cache_clear(), terms.compose.cache_clear()


def matrix(block: JacobianBlock) -> np.ndarray:
    """The Jacobian by its definition, entry by entry."""
    result = np.zeros(block.shape)
    for part in block.parts:
        structure = part.structure
        for index in np.ndindex(*structure.sizes):
            position = []
            for axis in structure.out + structure.inp:
                place = 0
                for label, at, size in axis:
                    place = place * size + at[0 if label is None else index[label]]
                position.append(place)
            value = structure.scale
            if value is None:
                value = part.values[tuple(index[label] for label in structure.values)]
            result[tuple(position)] += value
    return result


shapes = st.sampled_from(SHAPES)


@given(st.data(), shapes, shapes)
@settings(deadline=None, max_examples=15)
def test_todense_is_the_definition(data, out, inp):
    block = data.draw(random_blocks(out, inp))
    np.testing.assert_allclose(block.todense(), matrix(block))
    np.testing.assert_allclose(block.to_bcoo().todense(), matrix(block))
    np.testing.assert_allclose(
        matrix(block.transpose()), np.moveaxis(matrix(block), range(len(out)), range(-len(out), 0))
    )


@given(st.data(), shapes, shapes, shapes)
@settings(deadline=None, max_examples=15)
def test_compose_is_the_matrix_product(data, out, middle, inp):
    left, right = data.draw(random_blocks(out, middle)), data.draw(random_blocks(middle, inp))
    expected = np.tensordot(matrix(left), matrix(right), len(middle))
    product = blocks.compose(left, right)
    if product is None:
        assert not expected.any()
    else:
        np.testing.assert_allclose(matrix(product), expected, atol=1e-12)


@given(st.data(), shapes, shapes)
@settings(deadline=None, max_examples=15)
def test_add_is_the_matrix_sum(data, out, inp):
    left, right = data.draw(random_blocks(out, inp)), data.draw(random_blocks(out, inp))
    np.testing.assert_allclose(matrix(blocks.add(left, right)), matrix(left) + matrix(right), atol=1e-12)


@pytest.mark.parametrize("saving", [pytest.param(n, marks=pytest.mark.slow) for n in (0, 4, 512)])
@given(st.data(), shapes, shapes, shapes)
@settings(deadline=None, max_examples=5)
def test_sums_of_terms_and_lists_multiply_and_add(saving, data, out, middle, inp):
    """Products of sums and sums of products of blocks with lists equal those of matrices, for all limits."""

    def drawn(rows, columns):
        return data.draw(random_blocks(rows, columns, lists=True))

    with kept_apart(saving):
        left, right = (blocks.add(drawn(*sides), drawn(*sides)) for sides in ((out, middle), (middle, inp)))
        for block in (left, right):
            np.testing.assert_allclose(block.todense(), matrix(block), atol=1e-12)
            np.testing.assert_allclose(block.to_bcoo().todense(), matrix(block), atol=1e-12)
            turned = np.moveaxis(
                matrix(block), range(len(block.structure.out_shape)), range(-len(block.structure.out_shape), 0)
            )
            np.testing.assert_allclose(matrix(block.transpose()), turned, atol=1e-12)
        expected = np.tensordot(matrix(left), matrix(right), len(middle))
        product = blocks.compose(left, right)
        got = np.zeros(expected.shape) if product is None else matrix(product)
        np.testing.assert_allclose(got, expected, atol=1e-12)
        other = drawn(out, inp)
        total = other if product is None else blocks.add(product, other)
        np.testing.assert_allclose(matrix(total), expected + matrix(other), atol=1e-12)


@given(st.data(), shapes, shapes)
@settings(deadline=None, max_examples=15)
def test_adding_commutes(data, out, inp):
    left, right = (data.draw(random_blocks(out, inp)).structure for _ in range(2))
    assert add(left, right).structure.stored == add(right, left).structure.stored


@given(st.data(), shapes, shapes)
@settings(deadline=None, max_examples=15)
def test_identity_changes_nothing(data, out, inp):
    block = data.draw(random_blocks(out, inp))
    before, after = (JacobianBlock.of(identity(shape)) for shape in (inp, out))
    for left, right in ((after, block), (block, before)):
        product = compose(left.structure, right.structure)
        assert product is not None
        assert product.multiplications == product.additions == 0
        assert product.structure.stored == block.structure.stored
        np.testing.assert_array_equal(matrix(blocks.compose(left, right)), matrix(block))


def labelled(out, inp, values=None, **sizes) -> Structure:
    numbers = {name: n for n, name in enumerate(sizes)}

    def axes(names):
        return [(whole(numbers[name], sizes[name]),) for name in names]

    labels = [] if values is None else [numbers[name] for name in values]
    return canonical(axes(out), axes(inp), list(sizes.values()), labels, 1.0 if values is None else None)[0]


@pytest.mark.parametrize(
    ("left", "right", "multiplications", "additions"),
    [
        # The paper's section 2.5: an elementwise function after a matrix product needs no matrix product.
        (labelled("i", "i", "i", i=3), labelled("i", "ik", "k", i=3, k=4), 12, 0),
        (labelled("i", "i", "i", i=3), labelled("i", "k", "ik", i=3, k=4), 12, 0),
        # The paper's appendix C counts |i||j||n| = 18 for these two; the tensor has |i||j| distinct products.
        (labelled("ij", "ij", "ij", i=2, j=3), labelled("kl", "lk", "k", k=2, l=3), 6, 0),
        (labelled("i", "j", "ij", i=2, j=3), labelled("j", "k", "jk", j=3, k=4), 24, 16),
        (labelled("ij", "ij", i=2, j=3), labelled("ij", "k", "ijk", i=2, j=3, k=5), 0, 0),
    ],
)
def test_costs_of_products(left, right, multiplications, additions):
    product = compose(left, right)
    assert product is not None
    assert (product.multiplications, product.additions) == (multiplications, additions)


def test_sum_after_broadcast_is_a_number():
    broadcast = labelled("i", "", i=7)
    total = labelled("", "i", i=7)
    product = compose(total, broadcast)
    assert product is not None
    assert product.structure.scale == 7.0
    assert product.multiplications == product.additions == 0


def test_windows_that_miss_each_other_give_no_edge():
    low = canonical([(whole(0, 2),)], [(Digit(0, range(0, 2), 5),)], [2], (), 1.0)[0]
    high = canonical([(Digit(0, range(2, 5), 5),)], [(whole(0, 3),)], [3], (), 1.0)[0]
    assert compose(low, high) is None


def test_pieces_side_by_side_are_whole_again():
    first = canonical([(Digit(0, range(0, 2), 5),)], [(Digit(0, range(0, 2), 5),)], [2], (), 1.0, True)[0]
    second = canonical([(Digit(0, range(2, 5), 5),)], [(Digit(0, range(2, 5), 5),)], [3], (), 1.0, True)[0]
    total = add(first, second)
    assert total.structure == identity((5,), renaming=True)
    assert total.additions == 0


def test_text():
    assert str(labelled("ij", "ik", "jk", i=2, j=3, k=4)) == "vjk[i,j|i,k]"
    assert str(identity((3, 1))) == "1[i,1|i,1]"
    window = canonical([(whole(0, 2),)], [(Digit(0, range(4, 0, -2), 6),)], [2], (), -2.0)[0]
    assert str(window) == "-2[i|i@4:-2]"


def test_dense_and_zero():
    assert dense((2, 1), (3,)).stored == 6
    assert zero((2,), (3,)).stored == 0
    assert axis_size(dense((2,), (3,)).out[0]) == 2


def test_a_known_coefficient_has_no_values():
    with pytest.raises(ValueError, match="known coefficient"):
        Structure((), (), (3,), (0,), 1.0)


def test_entries_of_very_large_arrays_are_told_apart():
    """There are more entries than 64-bit integers can count. A list names four of them, one twice."""
    size, lists = 1 << 20, ([7, 3, 7, 3], [1, 0, 1, 2], [5, 5, 5, 5 << 10], [1 << 19, 4, 1 << 19, 4])
    axes = [(Digit(0, listed(entries), size),) for entries in lists]
    structure, (step,) = compacted(Structure(tuple(axes[:2]), tuple(axes[2:]), (4,), (0,)))
    assert structure.stored == 3
    assert step.groups.array.tolist() == [2, 0, 2, 1]
    assert list(structure.inp[1][0].at) == [4, 4, 1 << 19]
