"""The ten tasks of the paper and a batched transformer, each with an example point."""

from collections.abc import Callable
from functools import cache, partial
from typing import TYPE_CHECKING

import numpy as np

from .task import Arguments, FunctionsOf, Task, by_name, on_batches

deep_learning, equations, finance, fluids, robotics = map(
    FunctionsOf, ("deep_learning", "equations", "finance", "fluids", "robotics")
)

if TYPE_CHECKING:
    from .random_functions import RandomFunction

SEQUENCE = EMBEDDING = FEATURES = CLASSES = 4
HIDDEN, LAST_ROWS, BATCH = 8, 2, 2


@cache
def generated_f() -> "RandomFunction":
    """A function of vectors and matrices. Among the first 120 seeds, its counts are nearest to the paper's."""
    from .random_functions import random_function

    return random_function(42, inputs=4, outputs=5, intermediates=75, ranks=(1, 2), sizes=(4,))


@cache
def generated_g() -> "RandomFunction":
    """A function of scalars. Among the first 250 seeds, its counts are nearest to the paper's."""
    from .random_functions import random_function

    return random_function(209, inputs=15, outputs=20, intermediates=85, ranks=(0,))


def random_f(*args):
    """The random function of vectors and matrices that stands for the paper's f."""
    return generated_f()(*args)


def random_g(*args):
    """The random function of scalars that stands for the paper's g."""
    return generated_g()(*args)


def _random_point(generated: "Callable[[], RandomFunction]", scale: int, seed: int) -> Arguments:
    return generated().arguments(seed)


def _mlp_args(scale: int = 1, seed: int = 0) -> Arguments:
    rng = np.random.Generator(np.random.PCG64(seed))
    features, hidden, classes = FEATURES * scale, HIDDEN * scale, CLASSES * scale
    return (
        rng.normal(size=features),
        _one_hot(rng, (), classes),
        *_dense_layer(rng, hidden, features),
        *_norm(rng),
        *_dense_layer(rng, classes, hidden),
    )


def _transformer_args(scale: int = 1, seed: int = 0) -> Arguments:
    rng = np.random.Generator(np.random.PCG64(seed))
    size, positions, rows = EMBEDDING * scale, SEQUENCE * scale, LAST_ROWS * scale
    blocks = (*_encoder_block(rng, size, size), *_encoder_block(rng, rows, size))
    return rng.normal(size=(size, positions)), _one_hot(rng, (rows,), positions), *blocks


def _batched_transformer_args(scale: int = 1, seed: int = 0) -> Arguments:
    rng = np.random.Generator(np.random.PCG64(seed))
    size, classes, shape = EMBEDDING * scale, LAST_ROWS * scale, (BATCH, SEQUENCE * scale)
    blocks = [array.T for out in (size, classes) for array in _encoder_block(rng, out, size)]
    return rng.normal(size=(*shape, size)), _one_hot(rng, shape, classes), *blocks


def _encoder_block(rng: np.random.Generator, out: int, size: int) -> Arguments:
    attention = rng.normal(size=(3, size, size)) / size**0.5
    return *attention, *_norm(rng), *_dense_layer(rng, out, size)


def _dense_layer(rng: np.random.Generator, out: int, inp: int) -> Arguments:
    return rng.normal(size=(out, inp)) / inp**0.5, 0.1 * rng.normal(size=out)


def _norm(rng: np.random.Generator) -> Arguments:
    return np.asarray(1 + 0.1 * rng.normal()), np.asarray(0.1 * rng.normal())


def _one_hot(rng: np.random.Generator, shape: tuple[int, ...], classes: int) -> np.ndarray:
    return np.eye(classes)[rng.integers(0, classes, shape)]


def _generated(
    name: str, function: Callable, generated: "Callable[[], RandomFunction]", inputs: int, what: str
) -> Task:
    make_args = partial(_random_point, generated)
    return Task(name, what, "random functions", function, make_args, tuple(range(inputs)), (0,) * inputs)


def _network(name: str, function: Callable, make_args: Callable, inputs: int, description: str) -> Task:
    """A task for a loss of (samples, labels, parameters...).

    The labels are not differentiated, and the samples of a batch share the parameters.
    """
    argnums = (0, *range(2, inputs))
    return Task(name, description, "deep learning", function, make_args, argnums, (0, 0) + (None,) * (inputs - 2))


TASKS = by_name(
    on_batches("RoeFlux_1d", "fluid dynamics", fluids.roe_flux_1d,
               "Roe's flux between two cells of a one-dimensional flow",
               1.0, 0.3, 2.0, 0.8, 0.2, 1.7),
    on_batches("RobotArm_6DOF", "robotics", robotics.robot_arm_6dof,
               "position and orientation of the tool of a robot arm with six joints", 0.6, 0.9, 0.7, 1.1, 0.8, 1.3),
    on_batches("HumanHeartDipole", "nonlinear equations", equations.human_heart_dipole,
               "residuals of the dipole model of the heart", 0.7, 0.6, 0.5, 0.9, 1.1, 1.2, 0.8, 1.3),
    on_batches("PropaneCombustion", "nonlinear equations", equations.propane_combustion,
               "residuals of the chemical equilibrium of burning propane",
               2.8, 3.5, 18.0, 0.1, 0.5, 0.2, 0.8, 0.4, 0.9, 0.3, 28.0),
    _generated("random_g", random_g, generated_g, 15, "a random function of 15 scalars with 20 outputs"),
    on_batches("BlackScholes", "finance", finance.black_scholes_jacobian,
               "first-order greeks of a call option; the Jacobian contains those of second order",
               100.0, 110.0, 0.05, 0.2, 1.0),
    on_batches("RoeFlux_3d", "fluid dynamics", fluids.roe_flux_3d, "Roe's flux between two cells of a flow in space",
               [1.0], [0.3, 0.2, -0.1], [2.0], [0.8], [0.2, 0.15, -0.12], [1.7]),
    _generated("random_f", random_f, generated_f, 4, "a random function of 4 vectors and matrices with 5 outputs"),
    _network("MLP", deep_learning.mlp, _mlp_args, 8, "loss of a perceptron with two layers and a layer norm"),
    _network("TransformerEncoder", deep_learning.transformer_encoder, _transformer_args, 16,
             "loss of two blocks of self-attention with a layer norm"),
    _network("BatchedTransformer", deep_learning.batched_transformer, _batched_transformer_args, 16,
             "loss of two blocks of self-attention on a batch of sequences"),
)  # fmt: skip
