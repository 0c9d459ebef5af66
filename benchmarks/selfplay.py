"""Self-play of AlphaZero on the local devices: moves per second, and where the time goes.

    python benchmarks/selfplay.py [--task RoeFlux_1d] [--preset graph] [--environments 32] [--simulations 32]

It times the network alone, with all that it is shown of a state, and the game alone, for as many states as the search
visits. The rest is the tree search.
"""

import argparse
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp

from alphagrad.agents.alphazero import AlphaZero
from alphagrad.agents.games import Environments, Experience, Games
from alphagrad.agents.networks import PolicyValueNetwork
from alphagrad.agents.presets import PRESETS
from alphagrad.game import GameState
from alphagrad.tasks import TASKS

REPETITIONS = 3


def seconds(function: Callable, *args: Any) -> float:
    """The minimum of a few run times of a compiled function."""
    compiled = jax.jit(function)
    jax.block_until_ready(compiled(*args))
    times = []
    for _ in range(REPETITIONS):
        began = time.perf_counter()
        jax.block_until_ready(compiled(*args))
        times.append(time.perf_counter() - began)
    return min(times)


def network_alone(
    network: PolicyValueNetwork, environments: Environments, states: GameState, evaluations: int
) -> jax.Array:
    """Evaluations that depend on each other, so that none can be optimised away."""

    def evaluate(_: Any, total: jax.Array) -> jax.Array:
        dependent = jax.tree.map(lambda weight: weight + 0.0 * total, network)
        logits, values = environments.each(dependent)(states)
        return values.sum() + logits.max()

    return jax.lax.fori_loop(0, evaluations, evaluate, jnp.float32(0.0))


def game_alone(environments: Environments, states: GameState, evaluations: int) -> Any:
    """Steps of games that start again when they are over."""
    moves = states.eliminated.shape[-1]

    def move(number: jax.Array, carry: Any) -> Any:
        now, total = carry
        now = jax.tree.map(lambda new, old: jnp.where(number % moves == 0, new, old), states, now)
        after, costs = environments.step(now, jnp.full(len(environments.tasks), number % moves))
        return after, total + costs.sum()

    return jax.lax.fori_loop(0, evaluations, move, (states, jnp.float32(0.0)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--task", default="RoeFlux_1d")
    parser.add_argument("--preset", default="graph", choices=PRESETS["alphazero"])
    parser.add_argument("--environments", type=int, default=32)
    parser.add_argument("--simulations", type=int, default=32)
    parser.add_argument("--moves", type=int, default=4)
    options = parser.parse_args()
    boards = Games.of([TASKS[options.task].graph()]).boards
    preset = PRESETS["alphazero"][options.preset]
    config = replace(preset, environments=options.environments, simulations=options.simulations)
    agent = AlphaZero(config, boards.sizes)
    network = agent.init(jax.random.key(0)).network
    tasks = jnp.zeros(options.environments, jnp.int32)
    environments, keys = boards.environments(tasks), jax.random.split(jax.random.key(1), options.environments)
    nothing = Experience.none(1, boards.sizes.intermediates)
    states, evaluations = environments.start(), options.moves * (options.simulations + 1)

    def play(network: PolicyValueNetwork, keys: jax.Array) -> Any:
        return agent.play(network, boards, tasks, keys, nothing, options.moves)

    whole = seconds(play, network, keys)
    net = seconds(lambda network: network_alone(network, environments, states, evaluations), network)
    game = seconds(lambda states: game_alone(environments, states, evaluations), states)
    moves = options.moves * options.environments
    print(f"{options.task}, {options.environments} environments, {options.simulations} simulations, {jax.devices()[0]}")
    print(f"  {moves / whole:,.1f} moves/s, {evaluations * options.environments / whole:,.0f} evaluations/s")
    print(f"  network alone {net / whole:.0%}, game alone {game / whole:.0%} of {whole:.2f} s")


if __name__ == "__main__":
    main()
