"""Tasks of middle size: hundreds to tens of thousands of operations on small arrays."""

import numpy as np

from .task import FunctionsOf, Task, by_name, on_batches

functions = FunctionsOf("middle_functions")


def _spread(count, seed, centre=0.5, width=0.2):
    return centre + width * np.random.default_rng(seed).normal(size=count)


# Far from -55 and -40 mV, where rates are zero divided by zero.
_CABLE = np.concatenate([_spread(12, 8, -70, 1.5), _spread(36, 9, 0.4, 0.05)])

MIDDLE: dict[str, Task] = by_name(
    on_batches("InverseDynamics_7", "robotics", functions.inverse_dynamics,
               "torques of an arm of seven joints", _spread(21, 0)),
    on_batches("InverseDynamics_15", "robotics", functions.inverse_dynamics,
               "torques of fifteen joints", _spread(45, 1)),
    on_batches("InverseDynamics_30", "robotics", functions.inverse_dynamics,
               "torques of thirty joints", _spread(90, 2)),
    on_batches("ForwardDynamics_7", "robotics", functions.forward_dynamics,
               "accelerations of seven joints", _spread(21, 3)),
    on_batches("EndEffector_30", "robotics", functions.end_effector,
               "the end of a chain of thirty joints", _spread(30, 4)),
    on_batches("Skinning", "graphics", functions.skinning, "forty vertices of a hand", _spread(12, 5)),
    on_batches("Kinetics_10", "chemistry", functions.kinetics,
               "ten species in fifteen reactions", np.abs(_spread(11, 6)) + 0.2),
    on_batches("Kinetics_53", "chemistry", functions.kinetics,
               "53 species in 79 reactions", np.abs(_spread(54, 7)) + 0.2),
    on_batches("Battery", "electrochemistry", functions.battery, "a single-particle model", _spread(25, 10, 0.5, 0.1)),
    on_batches("Cable", "neuroscience", functions.neuron, "a cable of twelve compartments", _CABLE),
    on_batches("Network_16", "deep learning", functions.network, "outputs of a network", _spread(16, 11)),
    on_batches("TransformerBlock", "deep learning", functions.transformer,
               "outputs of a transformer block", _spread(32, 12)),
    on_batches("Radiation", "climate", functions.radiation,
               "fluxes between sixteen layers", np.abs(_spread(32, 13)) + 0.1),
    on_batches("KalmanUpdate_20", "estimation", functions.kalman, "a measurement of twenty states", _spread(24, 14)),
    on_batches("Multibody", "mechanics", functions.multibody, "forces between eight bodies", _spread(24, 15, 0.0, 2.0)),
)  # fmt: skip
