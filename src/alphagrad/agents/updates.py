"""Learning steps: minibatches of whole games, their gradients in chunks, and means over devices."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jax import Array

# The mesh axis along which environments are distributed.
DEVICES = "devices"
# An action that no game has. It changes nothing and costs nothing.
NO_ACTION = -1


class Learner(NamedTuple):
    """The state that changes with every step, as pytrees of arrays."""

    network: Any
    optimizer: Any

    @staticmethod
    def begin(network: Any, rule: optax.GradientTransformation) -> "Learner":
        return Learner(network, rule.init(network))

    def stepped(self, gradient: Any, rule: optax.GradientTransformation) -> "Learner":
        change, optimizer = rule.update(gradient, self.optimizer, self.network)
        return Learner(optax.apply_updates(self.network, change), optimizer)


def number_of_minibatches(environments: int, moves: int, batch_size: int) -> int:
    """The fewest parts of equal size with at most ``batch_size`` states each, if a single game has no more."""
    parts = [parts for parts in range(1, environments + 1) if environments % parts == 0]
    return next((number for number in parts if environments // number * moves <= batch_size), environments)


def minibatches(games: Any, number: int) -> Any:
    """[games, ...] to [number, games / number, ...]. On any number of devices, game n goes to part n modulo number."""
    return jax.tree.map(lambda leaf: leaf.reshape(-1, number, *leaf.shape[1:]).swapaxes(0, 1), games)


def moves_at_once(moves: int, games: int, states: int) -> int:
    """The number of moves in a chunk of all these games: at most ``states`` states, but at least one move.

    All chunks have about the same size.
    """
    chunks = math.ceil(moves / max(states // games, 1))
    return math.ceil(moves / chunks)


def filled_up(moves: Array, size: int, filling: int = 0) -> Array:
    """[games, moves, ...], padded along moves to a multiple of ``size``."""
    missing = -moves.shape[1] % size
    return jnp.pad(moves, [(0, 0), (0, missing), *[(0, 0)] * (moves.ndim - 2)], constant_values=filling)


def in_chunks(moves: Any, size: int) -> Any:
    """[moves, ...] to [moves / size, size, ...]."""
    return jax.tree.map(lambda leaf: leaf.reshape(-1, size, *leaf.shape[1:]), moves)


def summed_gradient(loss: Callable[[Any, Any], tuple[Any, Any]], network: Any, chunks: Any) -> tuple[Any, Any]:
    """The gradient and the metrics of a loss that is a sum over chunks, with one chunk in memory at a time."""

    def of_chunk(chunk: Any) -> tuple[Any, Any]:
        gradient, metrics = jax.grad(loss, has_aux=True)(network, chunk)
        return gradient, metrics

    def add(total: Any, chunk: Any) -> tuple[Any, None]:
        return jax.tree.map(jnp.add, total, of_chunk(chunk)), None

    shapes = jax.eval_shape(of_chunk, jax.tree.map(lambda leaf: leaf[0], chunks))
    nothing = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), shapes)
    return jax.lax.scan(add, nothing, chunks)[0]


def mean_over_devices(values: Any) -> Any:
    return jax.lax.pmean(values, DEVICES)
