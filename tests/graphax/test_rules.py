"""Every rule: the structure it must find, and the values against JAX."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import graphax as gx

from .comparing import array, assert_same

INDICES = np.array([[2, 0], [1, 1]])


def convolution(x, kernel, stride=1, groups=1):
    return lax.conv_general_dilated(x, kernel, (stride,), "VALID", feature_group_count=groups)


def max_pool(x, window, stride):
    return lax.reduce_window(x, -np.inf, lax.max, (1, window), (1, stride), "VALID")


# function, shape of its argument, structure of the Jacobian
LISTS = "1[i@list,i@list|i@list,i@list]"
CASES = {
    "identity": (lambda x: x, (2, 3), "1[i,j|i,j]"),
    "convert": (lambda x: x.astype(jnp.float32), (3,), "1[i|i]"),
    "copy": (jnp.array, (3,), "1[i|i]"),
    "device_put": (jax.device_put, (3,), "1[i|i]"),
    "device_put on a device": (lambda x: jax.device_put(x, jax.devices()[0]), (3,), "1[i|i]"),
    "add": (lambda x: x + x, (3,), "2[i|i]"),
    "add a number": (lambda x: x + 1.0, (3,), "1[i|i]"),
    "sub": (lambda x: 1.0 - x, (3,), "-1[i|i]"),
    "neg": (lambda x: -x, (3,), "-1[i|i]"),
    "mul by a number": (lambda x: 2.5 * x, (3,), "2.5[i|i]"),
    "mul by a constant array": (lambda x: x * np.full(3, 4.0), (3,), "4[i|i]"),
    "mul by values": (lambda x: x * array(3), (3,), "vi[i|i]"),
    "mul by a sparse array": (lambda x: x * np.diag(array(9)), (9, 9), "vi[i,i|i,i]"),
    "mul of a row by a sparse array": (lambda x: x * np.diag(array(9)), (9,), "vi[i,i|i]"),
    "diag": (jnp.diag, (9,), "1[i,i|i]"),
    "where of few": (lambda x: jnp.where(np.arange(70) % 35 == 3, 0.0 * x, x), (70,), "vi[i|i]"),
    "where of few others": (lambda x: jnp.where(np.arange(70) % 35 == 3, x, 1.0), (70,), "1[i@3:35|i@3:35]"),
    "where of one": (lambda x: jnp.where(np.arange(70) == 3, x, 1.0), (70,), "1[@3|@3]"),
    "where of a row": (lambda x: jnp.where(np.eye(9, dtype=bool), x[None], 0.0), (9,), "1[i,i|i]"),
    "mul by a row": (lambda x: x * array(1, 3), (2, 3), "vj[i,j|i,j]"),
    "mul of a column": (lambda x: x * array(2, 3), (2, 1), "vij[i,j|i,1]"),
    "div": (lambda x: x / 4.0, (3,), "0.25[i|i]"),
    "select": (lambda x: jnp.where(array(3) > 0, x, 0.0), (3,), "vi[i|i]"),
    "transpose": (lambda x: x.transpose(2, 0, 1), (2, 3, 4), "1[i,j,k|j,k,i]"),
    "squeeze": (lambda x: x[:, 0], (3, 1), "1[i|i,1]"),
    "expand": (lambda x: x[None, :, None], (3,), "1[1,i,1|i]"),
    "broadcast": (lambda x: jnp.broadcast_to(x, (4, 3)), (3,), "1[i,j|j]"),
    "reshape together": (lambda x: x.reshape(6, 4), (2, 3, 4), "1[i·j,k|i,j,k]"),
    "reshape apart": (lambda x: x.reshape(2, 3), (6,), "1[i,j|i·j]"),
    "reshape across": (lambda x: x.reshape(3, 2), (2, 3), "vijkl[i,j|k,l]"),
    "reshape of turned axes": (lambda x: lax.reshape(x, (12, 2), (2, 1, 0)), (2, 3, 4), "1[i·j,k|k,j,i]"),
    "rev": (lambda x: x[::-1], (4,), "1[i|i@3:-1]"),
    "slice": (lambda x: x[1:4], (6,), "1[i|i@1]"),
    "strided slice": (lambda x: x[1::2], (6,), "1[i|i@1:2]"),
    "pick": (lambda x: x[2], (6,), "1[|@2]"),
    "pad": (lambda x: jnp.pad(x, (1, 2)), (3,), "1[i@1|i]"),
    "interior pad": (lambda x: lax.pad(x, 0.0, [(1, 0, 2)]), (3,), "1[i@1:3|i]"),
    "negative pad": (lambda x: lax.pad(x, 0.0, [(-1, 2, 0)]), (4,), "1[i@0|i@1]"),
    "pad everything away": (lambda x: lax.pad(x, 0.0, [(-2, 5, 0)]), (2,), "zero"),
    "pad with the argument": (lambda x: lax.pad(jnp.ones(2), x, [(1, 1, 0)]), (), "vi[i|]"),
    "concatenate": (lambda x: jnp.concatenate([jnp.ones(2), x]), (3,), "1[i@2|i]"),
    "concatenate with itself": (lambda x: jnp.concatenate([x, x]), (3,), "vij[i|j]"),
    "halves swapped": (lambda x: jnp.concatenate([x[2:], x[:2]]), (4,), "vij[i|j]"),
    "stack": (lambda x: jnp.stack([jnp.ones(3), x], 1), (3,), "1[i,@1|i]"),
    "stack of picks": (lambda x: jnp.stack([x[0], x[1], x[2]]), (3,), "1[i|i]"),
    "unstack": (lambda x: [*x][1], (3, 2), "1[i|@1,i]"),
    "split": (lambda x: jnp.split(x, [2])[1], (5,), "1[i|i@2]"),
    "dynamic slice": (lambda x: lax.dynamic_slice(x, (1, 0), (2, 3)), (4, 3), "1[i,j|i@1,j]"),
    "dynamic slice, start clamped": (lambda x: lax.dynamic_slice(x, (3,), (2,)), (4,), "1[i|i@2]"),
    "dynamic slice, start unknown": (
        lambda x: lax.dynamic_slice(x, (jnp.argmax(x[:, 0]) // 2, 0), (2, 3)),
        (4, 3),
        "1[i,j|i@run,j]",
    ),
    "dynamic update, operand": (lambda x: lax.dynamic_update_slice(x, jnp.ones(2), (1,)), (4,), "vi[i|i]"),
    "dynamic update, update": (lambda x: lax.dynamic_update_slice(jnp.ones((4, 2)), x, (1, 0)), (2, 2), "1[i@1,j|i,j]"),
    "gather of rows": (lambda x: x[INDICES[0]], (3, 4), "1[i,j|i@2:-2,j]"),
    "gather with batch": (lambda x: jax.vmap(lambda row, i: row[i])(x, INDICES), (2, 3), LISTS),
    "gather of rows that are not known": (
        lambda x: x[(x[:2, 0] > 0).astype(int)], (3, 4), "1[i,j|i@run,j]"
    ),
    "scatter-add, operand": (lambda x: x.at[INDICES[0]].add(1.0), (3,), "1[i|i]"),
    "scatter-add, updates": (lambda x: jnp.zeros((3, 4)).at[INDICES[0]].add(x), (2, 4), "1[i@2:-2,j|i,j]"),
    "scatter-mul": (lambda x: x.at[INDICES[0]].multiply(0.5, unique_indices=True), (3, 2), "vij[i,j|i,j]"),
    "set one row, operand": (lambda x: x.at[1].set(2.0), (3, 2), "vij[i,j|i,j]"),
    "set one row, update": (lambda x: jnp.zeros((3, 2)).at[1].set(x), (2,), "1[@1,i|i]"),
    "set a window": (lambda x: jnp.zeros((5, 2)).at[1:4, 1].set(x), (3,), "1[i@1,@1|i]"),
    "reduce_sum": (lambda x: x.sum(1), (2, 3), "1[i|i,j]"),
    "mean": (lambda x: x.mean(0), (2, 3), "0.5[i|j,i]"),
    "cumsum": (lambda x: jnp.cumsum(x, 1), (2, 3), "vjk[i,j|i,k]"),
    "reversed cumsum": (lambda x: lax.cumsum(x, 0, reverse=True), (3,), "vij[i|j]"),
    "matrix by vector": (lambda x: array(2, 3) @ x, (3,), "vij[i|j]"),
    "by the matrix": (lambda x: x @ array(3), (2, 3), "vj[i|i,j]"),
    "batched product": (lambda x: jnp.einsum("bij,bjk->bik", x, array(2, 4, 3)), (2, 5, 4), "vikl[i,j,k|i,j,l]"),
    "triangular solve": (
        lambda x: lax.linalg.triangular_solve(jnp.eye(3) + jnp.tril(array(3, 3)), x, left_side=True, lower=True),
        (3, 2),
        "vijk[i,j|k,j]",
    ),
    "fft": (lambda x: jnp.fft.rfft(x), (2, 4), "vijkl[i,j,k|i,l]"),
    "complex elementwise": (lambda x: jnp.abs(x * jnp.exp(2j * x)), (2, 3), "vij[i,j|i,j]"),
    "convolution": (lambda x: convolution(x, array(4, 3, 2)), (2, 3, 5), "vjklm[i,j,k|i,l,m]"),
    "convolution, kernel": (lambda x: convolution(array(2, 3, 5), x), (4, 3, 2), "viklm[i,j,k|j,l,m]"),
    "convolution, patches": (lambda x: convolution(x, array(4, 3, 2), 2), (2, 3, 6), "vjlm[i,j,k|i,l,k·m]"),
    "convolution, one entry": (lambda x: convolution(x, array(4, 3, 5)), (2, 3, 5), "vjkl[i,j,1|i,k,l]"),
    "convolution, kernel of zeros": (lambda x: convolution(x, np.zeros((4, 3, 2))), (2, 3, 5), "zero"),
    "depthwise convolution": (lambda x: convolution(x, array(6, 1, 2), 2, 3), (2, 3, 4), "vjkm[i,j·k,l|i,j,l·m]"),
    "window sum": (lambda x: lax.reduce_window(x, 0.0, lax.add, (1, 2), (1, 1), "VALID"), (2, 4), "vjk[i,j|i,k]"),
    "window sum, side by side": (
        lambda x: lax.reduce_window(x, 0.0, lax.add, (1, 2), (1, 2), "VALID"), (3, 4), "1[i,j|i,j·k]"
    ),
    "max of windows": (lambda x: max_pool(x, 2, 2), (3, 4), "vijk[i,j|i,j·k]"),
    "max of windows that overlap": (lambda x: max_pool(x, 2, 1), (3, 4), "vijk[i,j|i,k]"),
    "gradient of a max of windows": (jax.grad(lambda x: (max_pool(x, 2, 2) ** 2).sum()), (3, 4), "vijkl[i,j·k|i,j·l]"),
    "product of short rows": (lambda x: x.prod(1), (4, 3), "vij[i|i,j]"),
    "product of rows": (lambda x: x.prod(1), (3, 17), "vij[i|i,j]"),
    "product of an array": (jnp.prod, (3, 7), "vij[|i,j]"),
    "cumulative product": (lambda x: lax.cumprod(x, 1), (2, 17), "vijk[i,j|i,k]"),
    "reduction of rows": (lambda x: lax.reduce(x, 0.0, lambda a, b: a + b + a * b, (1,)), (3, 17), "vij[i|i,j]"),
    "max of rows": (lambda x: x.max(1), (3, 4), "vij[i|i,j]"),
    "sorted rows": (lambda x: jnp.sort(x, 1), (3, 4), "1[i@list,i@list|i@list,i@run]"),
    "no rule": (lambda x: jnp.linalg.slogdet(x)[1], (2, 2), "vij[|i,j]"),
}  # fmt: skip


def result_structure(function, x):
    graph = gx.build_graph(function, x, simplify=True)
    return next(iter(graph.plan().results.values()), "zero")


@pytest.mark.parametrize("name", CASES)
def test_rule(name):
    function, shape, structure = CASES[name]
    x = array(*shape)
    assert str(result_structure(function, x)) == structure
    for called, point in ((function, x), (jax.vmap(function), array(3, *shape))):
        assert_same(jax.jit(gx.jacve(called, backend="xla"))(point), jax.jit(jax.jacfwd(called))(point))


def test_every_rule_is_listed():
    assert {"mul", "dot_general", "reshape", "scan", "custom_linear_solve"} <= set(gx.supported_primitives())
