"""Losses of small neural networks, written out in elementary operations so that each one is a vertex."""

import jax.numpy as jnp

VARIANCE_FLOOR = 1e-5


def _layer_norm(x, gamma, beta, axis):
    mean = jnp.mean(x, axis, keepdims=True)
    variance = jnp.mean((x - mean) ** 2, axis, keepdims=True)
    return gamma * ((x - mean) / jnp.sqrt(variance + VARIANCE_FLOOR)) + beta


def _softmax(z, axis):
    powers = jnp.exp(z - jnp.max(z, axis, keepdims=True))
    return powers / jnp.sum(powers, axis, keepdims=True)


def _cross_entropy(logits, labels):
    """The cross entropy, summed over all samples. The classes are along the last axis."""
    return -jnp.sum(labels * jnp.log(_softmax(logits, -1)))


def _silu(z):
    return z * (1 / (1 + jnp.exp(-z)))


def mlp(x, y, w1, b1, gamma, beta, w2, b2):
    """Loss of a perceptron with two layers and a layer norm between them on one sample ``x`` with labels ``y``.

    Use `jax.vmap` over ``x`` and ``y`` for a batch. A batch of one takes as many multiplications as a single sample,
    because the additional vertices only rename axes.
    """
    hidden = _layer_norm(jnp.tanh(w1 @ x + b1), gamma, beta, 0)
    return _cross_entropy(jnp.tanh(w2 @ hidden + b2), y)


def _encoder_block(x, wq, wk, wv, gamma, beta, w, b):
    q, k, v = wq @ x, wk @ x, wv @ x
    a = x + _softmax(q.T @ k, 1) @ v
    return _silu(w @ _layer_norm(a, gamma, beta, 0) + b[:, None])


def transformer_encoder(x, y, wq1, wk1, wv1, gamma1, beta1, w1, b1, wq2, wk2, wv2, gamma2, beta2, w2, b2):
    """Loss of two blocks of attention with one head each, on the sequence in the columns of ``x``.

    Every row of ``y`` is a label for a row of the result. As in the paper's benchmark, the attention weights multiply
    ``v`` from the left, so there are as many positions as features.
    """
    hidden = _encoder_block(x, wq1, wk1, wv1, gamma1, beta1, w1, b1)
    return _cross_entropy(_encoder_block(hidden, wq2, wk2, wv2, gamma2, beta2, w2, b2), y)


def _batched_block(x, wq, wk, wv, gamma, beta, w, b):
    q, k, v = x @ wq, x @ wk, x @ wv
    a = x + _softmax(jnp.einsum("bse,bte->bst", q, k), 2) @ v
    return _silu(_layer_norm(a, gamma, beta, 2) @ w + b)


def batched_transformer(x, y, wq1, wk1, wv1, gamma1, beta1, w1, b1, wq2, wk2, wv2, gamma2, beta2, w2, b2):
    """Loss of two blocks of attention on a batch with the axes (batch, position, feature)."""
    hidden = _batched_block(x, wq1, wk1, wv1, gamma1, beta1, w1, b1)
    return _cross_entropy(_batched_block(hidden, wq2, wk2, wv2, gamma2, beta2, w2, b2), y)


def lstm_cell(x, h, c, w, u, b):
    """Next hidden and cell state of a long short-term memory; ``w``, ``u``, ``b`` stack those of its four gates."""
    size = h.shape[0]
    z = w @ x + u @ h + b
    forget, keep, output = (1 / (1 + jnp.exp(-z[n * size : (n + 1) * size])) for n in range(3))
    candidate = jnp.tanh(z[3 * size :])
    cell = forget * c + keep * candidate
    return output * jnp.tanh(cell), cell
