"""Sums of terms: neighbours, borders, index lists and zeros of constants store only entries that exist."""

import jax
import jax.numpy as jnp
import moves
import numpy as np
import pytest

import graphax as gx
from graphax import labelled, plan, presets, prices, rule, terms

RNG = np.random.default_rng(0)
N = 60
INDEX, FIRST, SECOND = RNG.integers(0, N, 90), RNG.integers(0, N, 80), RNG.integers(0, N, 80)
ROTATED = np.roll(np.arange(N)[::-1], 3)
SPARSE = np.where(RNG.random((N, N)) < 0.05, RNG.random((N, N)), 0.0)
FEW = np.unique(INDEX)[:7]


def grid(x):
    flow = jnp.sin(x[FIRST] - x[SECOND])
    return jnp.zeros(N).at[FIRST].add(flow).at[SECOND].add(-flow)


def padded(x):
    wide = jnp.pad(x.reshape(6, 10), 1, constant_values=0.5)
    return (wide[2:, 1:-1] * wide[:-2, 1:-1] + wide[1:-1, 2:]).ravel()


# Functions of 60 numbers, by what they pick.
CASES = {
    "neighbours": lambda x: x[1:] * x[:-1],
    "strides": lambda x: x[::2] * x[1::2] + x[::-2],
    "wraps": lambda x: jnp.roll(x, 1) * jnp.roll(x, -2) - x,
    "borders": padded,
    "batches": lambda x: (x.reshape(3, 20)[:, 1:] * x.reshape(3, 20)[:, :-1]).ravel(),
    "gather": lambda x: (x[INDEX] ** 2)[::2],
    "permutation": lambda x: jnp.sin(x)[ROTATED] * x,
    "scatter": grid,
    "set": lambda x: x.at[FEW].set(jnp.cos(x)[FEW]),
    "segments": lambda x: jax.ops.segment_sum(x**2, np.arange(N) // 7, 9),
    "triangle": lambda x: jnp.outer(x[:9], x[3:12])[np.tril_indices(9)],
    "rows": lambda x: (x.reshape(12, 5)[np.array([3, 1, 3, 11])] ** 2).sum(1),
    "mask": lambda x: (x**2)[np.arange(N) % 7 == 2],
    "repeat": lambda x: jnp.repeat(jnp.sin(x), 3),
    "clipped": lambda x: jnp.take(x, np.array([3, 99, -1, 70]), mode="clip"),
    "filled": lambda x: jnp.take(x, np.array([3, 99, -1, 70]), mode="fill") * 2,
    "wrapped": lambda x: jnp.take(x, np.array([3, 99, -1, 70]), mode="wrap") ** 2,
    "dropped": lambda x: x.at[np.array([3, 99, 70])].add(x[:3] ** 2, mode="drop"),
    "repeated indices": lambda x: x.at[np.array([3, 3, 3])].add(x[:3] ** 2),
    "sparse matrix": lambda x: SPARSE @ jnp.sin(x),
    "two sparse matrices": lambda x: SPARSE @ (SPARSE @ x**2),
    "quadratic form": lambda x: jax.grad(lambda x: x @ SPARSE @ x)(x),
    "matrix of zeros": lambda x: np.zeros((9, N)) @ x + x[:9],
    "unknown indices": lambda x: x[(x[:5] * N).astype(int)] * x[:5],
}
# The functions that differ most from each other. The slow tests cover the others.
FIRST_CASES = {
    "neighbours", "wraps", "borders", "gather", "scatter", "set", "dropped", "two sparse matrices", "unknown indices",
}  # fmt: skip
# Functions for which the stored numbers depend on values, or on a primitive without a rule.
MORE_THAN_NONZERO = {"unknown indices"}


def forget():
    """Clear caches that were filled under other settings."""
    for cached in (terms.add, terms.compose, plan.make_plan, prices.prices_of, presets.preset_vertices):
        cached.cache_clear()
    rule.clear_caches()


@pytest.fixture
def apart(monkeypatch):
    """Keep all terms apart. By default, small arrays are kept whole."""
    monkeypatch.setattr(terms, "WORTH_KEEPING_APART", 0)
    forget()
    yield
    forget()


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in FIRST_CASES else pytest.mark.slow) for name in CASES]
)
def test_the_jacobian(name, apart):
    function, x = CASES[name], np.random.default_rng(1).random(N)
    want = np.asarray(jax.jacfwd(function)(x))
    np.testing.assert_allclose(jax.jit(gx.jacve(function, order="rev"))(x), want, rtol=1e-12, atol=1e-12)
    block = gx.jacve(function, sparse=True)(x)
    nonzero = int(np.count_nonzero(want))
    if name not in MORE_THAN_NONZERO:
        assert block.sparsity.nnz <= max(nonzero, 1) * 1.05 + 2
        assert block.structure.stored <= 1.05 * nonzero + 2
    assert gx.sparsity(function, x).nnz == block.sparsity.nnz


@pytest.mark.parametrize("name", ["wraps", "borders", "scatter", "dropped"])
def test_forms_of_the_result(name, apart):
    from scipy.sparse import dia_array

    function, x = CASES[name], np.random.default_rng(2).random(N)
    want = np.asarray(jax.jacfwd(function)(x)).reshape(-1, N)
    block = jax.jit(gx.jacve(function, sparse=True))(x)
    rows, columns = block.indices()
    assert np.all(np.diff(rows * N + columns) > 0)
    dense = np.zeros(want.shape)
    dense[rows, columns] = jax.jit(lambda block: block.data)(block)
    close = {"rtol": 1e-12, "atol": 1e-12}
    np.testing.assert_allclose(dense, want, **close)
    np.testing.assert_allclose(block.to_bcoo().todense().reshape(want.shape), want, **close)
    np.testing.assert_allclose(block.to_bcsr().todense(), want, **close)
    for form in ("csr", "csc", "coo"):
        np.testing.assert_allclose(block.to_scipy(form).toarray(), want, **close)
    offsets, numbers = block.diagonals()
    np.testing.assert_allclose(dia_array((np.asarray(numbers), offsets), shape=want.shape).toarray(), want, **close)
    tangent = np.random.default_rng(3).random(N)
    np.testing.assert_allclose(jnp.ravel(block.apply(tangent)), want @ tangent, rtol=1e-10)
    cotangent = np.random.default_rng(4).random(block.shape[:-1])
    np.testing.assert_allclose(block.transpose().apply(cotangent), cotangent.ravel() @ want, rtol=1e-10)


@pytest.mark.parametrize("name", ["strides", "batches", "scatter", "two sparse matrices"])
def test_small_arrays_are_kept_whole(name):
    function, x = CASES[name], np.random.default_rng(1).random(N)
    np.testing.assert_allclose(gx.jacve(function)(x), jax.jacfwd(function)(x), rtol=1e-12, atol=1e-12)


@pytest.mark.slow
def test_large_dense_arrays_of_few_entries():
    """The array is written at once, even if terms share entries."""
    function = lambda x: jnp.roll(x, 1) * jnp.roll(x, -2) + x.at[INDEX[:9]].add(x[:9] ** 2) + x[0]
    points = np.random.default_rng(0).random((2, 200))
    want = jax.vmap(jax.jacfwd(function))(points)
    np.testing.assert_allclose(gx.jacve(function)(points[0]), want[0], rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(jax.jit(jax.vmap(gx.jacve(function)))(points), want, rtol=1e-12, atol=1e-12)


def test_neighbours_store_what_is_there():
    block = gx.jacve(lambda x: x[1:] * x[:-1], sparse=True)(np.ones(10_000))
    assert block.structure.stored == 19_998
    assert str(block.structure) == "vi[i|i@1] + vi[i|i@0]"


def test_planning_does_not_depend_on_sizes():
    """Structures of a million entries are made of ranges, so nothing is counted one by one."""

    def laplace(u):
        return jnp.roll(u, 1) - 2 * u * u + jnp.roll(u, -1)

    texts = [str(gx.build_graph(laplace, jax.ShapeDtypeStruct((n,), np.float32)).plan().cost()) for n in (10**3, 10**6)]
    assert texts[0].replace("1000", "1000000").replace("2000", "2000000") == texts[1]


def edges(count: int, nodes: int) -> tuple[np.ndarray, np.ndarray]:
    first = np.random.default_rng(5).integers(0, nodes, count)
    return first, (first + 1 + np.random.default_rng(6).integers(0, nodes - 1, count)) % nodes


def test_lists_that_hardly_coincide_stay_apart():
    """In a power grid, there is one list per pair of ends, and one for the diagonal, to which both ends contribute."""
    first, second = edges(900, 600)

    def injections(angle):
        flow = jnp.sin(angle[first] - angle[second])
        return jnp.zeros(600).at[first].add(flow).at[second].add(-flow)

    x = np.random.default_rng(7).random(600)
    block = jax.jit(gx.jacve(injections, sparse=True))(x)
    want = np.asarray(jax.jacfwd(injections)(x))
    assert len(terms.terms_of(block.structure)) == 3
    # Few lines connect the same nodes, so their values are only summed on demand.
    assert block.sparsity.nnz < block.structure.stored <= 1.01 * block.sparsity.nnz
    rows, columns = block.indices()
    got = np.zeros(want.shape)
    got[rows, columns] = block.data
    np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(block.apply(x), want @ x, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(block.todense(), want, rtol=1e-12, atol=1e-12)


def test_lists_that_coincide_become_one():
    first, second = edges(900, 600)
    pairs = lambda x: jnp.zeros(900).at[np.arange(900)].add(jnp.sin(x[first])) + x[first[::-1]][::-1] ** 2 + x[second]
    block = gx.jacve(pairs, sparse=True)(np.random.default_rng(7).random(600))
    assert block.structure.stored <= 900


@pytest.mark.slow
def test_sums_that_are_read_often_are_computed_once():
    """HADAMALS of CUTEst: XLA would compute the sum of gathered values again for each entry of the Hessian."""
    rows, columns = np.tril_indices(8)

    def function(x):
        y = x.reshape(8, 8)
        return jnp.sum((y.T @ y)[columns, rows] ** 2)

    x = np.random.default_rng(9).random(64)
    assert "scatter-add" in str(jax.make_jaxpr(gx.hessve(function, backend="xla"))(x))
    for backend in ("xla", "native"):
        found = jax.jit(gx.hessve(function, backend=backend))(x)
        np.testing.assert_allclose(found, jax.hessian(function)(x), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("pieces", [1, 3])
@pytest.mark.parametrize("few", [0, 1 << 14])
@pytest.mark.parametrize("kind", [float, bool])
def test_sums_of_groups(pieces, few, kind, monkeypatch):
    """Values are gathered or scattered, in one piece or several, along any axis. Groups may be empty."""
    monkeypatch.setattr(labelled, "_FEW", few)
    monkeypatch.setattr(labelled, "_MOST_SIDE_BY_SIDE", 64)
    rng = np.random.default_rng(8)
    values = rng.normal(size=(2, 60, 3)) if kind is float else rng.random((2, 60, 3)) < 0.3
    groups = np.minimum(rng.integers(0, 40, 60), rng.integers(0, 40, 60))
    want = np.zeros((2, 50, 3))
    np.add.at(want, (slice(None), groups), values)
    got = labelled.summed_in_groups(np.split(values, pieces, 1), 1, groups, 50)
    np.testing.assert_allclose(got, want > 0 if kind is bool else want, rtol=1e-12)
    assert not np.any(np.signbit(np.asarray(got)[want == 0]))


def test_pieces_without_common_groups_are_gathered():
    """The pieces are put side by side, and nothing is scattered."""
    rng = np.random.default_rng(3)
    values, groups = rng.normal(size=(2, 600)), rng.permutation(700)[:600]

    def summed(values):
        return labelled.summed_in_groups([values[:, :100], values[:, 100:350], values[:, 350:]], 1, groups, 700)

    want = np.zeros((2, 700))
    want[:, groups] = values
    np.testing.assert_array_equal(summed(values), want)
    assert "scatter" not in str(jax.make_jaxpr(summed)(values))


def test_many_terms_become_one(monkeypatch):
    monkeypatch.setattr(terms, "MOST_TERMS", 3)
    monkeypatch.setattr(terms, "WORTH_KEEPING_APART", 0)
    forget()
    function = lambda x: sum((k + 1) * x[k : 12 + k] ** 2 for k in range(6))
    x = np.random.default_rng(0).random(20)
    block = gx.jacve(function, sparse=True)(x)
    np.testing.assert_allclose(block.todense(), jax.jacfwd(function)(x), rtol=1e-12)
    assert len(terms.terms_of(block.structure)) <= 3
    forget()


@pytest.mark.parametrize("seed", range(0, 96, 48))
def test_random_programs_of_moves(seed):
    """Slices, pads, rolls, concatenations, gathers, scatters and reshapes; ``benchmarks/moves.py`` tests thousands."""
    moves.check(seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1000, 1100))
def test_more_random_programs_of_moves(seed):
    moves.check(seed)
