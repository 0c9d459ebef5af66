"""Tasks from other fields than the paper's, to test orders and finders on functions that they were not made for."""

import numpy as np

from .task import Arguments, FunctionsOf, Task, by_name, on_batches

biology, chemistry, deep_learning, equations, estimation, finance, fluids, mechanics = map(
    FunctionsOf, ("biology", "chemistry", "deep_learning", "equations", "estimation", "finance", "fluids", "mechanics")
)

LSTM_INPUTS, LSTM_UNITS = 3, 4


def _lstm_args(scale: int = 1, seed: int = 0) -> Arguments:
    rng = np.random.Generator(np.random.PCG64(seed))
    inputs, units = LSTM_INPUTS * scale, LSTM_UNITS * scale
    return (
        rng.normal(size=inputs),
        np.tanh(rng.normal(size=units)),
        rng.normal(size=units),
        rng.normal(size=(4 * units, inputs)) / inputs**0.5,
        rng.normal(size=(4 * units, units)) / units**0.5,
        0.1 * rng.normal(size=4 * units),
    )


UNSEEN = by_name(
    on_batches("LotkaVolterra", "biology", biology.lotka_volterra_step,
               "a Runge-Kutta step of predators and prey, from populations and parameters",
               10.0, 5.0, 1.1, 0.4, 0.1, 0.4),
    on_batches("HodgkinHuxley", "biology", biology.hodgkin_huxley, "rates of the potential and the gates of a neuron",
               -60.0, 0.08, 0.55, 0.35, 10.0),
    on_batches("DoublePendulum", "mechanics", mechanics.double_pendulum_step, "a Runge-Kutta step of a double pendulum",
               1.2, 0.7, 0.4, -0.6),
    on_batches("OrbitJ2", "astronomy", mechanics.orbit_acceleration, "acceleration of a satellite by an oblate planet",
               [0.9, 0.6, 0.5], 1.0, 1.08e-3),
    on_batches("NeoHookean", "mechanics", mechanics.neo_hookean_stress,
               "stress of an elastic solid from its deformation gradient",
               [[1.1, 0.1, 0.05], [-0.08, 0.95, 0.12], [0.03, 0.07, 1.05]], 1.0, 5.0),
    on_batches("ElasticRod", "mechanics", mechanics.elastic_rod_tip,
               "the end of an inextensible elastic rod, and its energy",
               [0.8, 0.6, 0.4, -0.3, -0.5, -0.7], 0.3, 1.2),
    on_batches("PengRobinson", "chemistry", chemistry.peng_robinson,
               "pressure and residual energies of carbon dioxide by the Peng-Robinson equation",
               350.0, 1e-3, 304.1, 7.38e6, 0.225),
    on_batches("EnzymeReaction", "chemistry", chemistry.enzyme_reaction, "residuals of the kinetics of an enzyme",
               0.25, 0.39, 0.415, 0.39),
    on_batches("TorsionForces", "chemistry", chemistry.torsion_forces,
               "forces on four atoms in a chain; the Jacobian contains the Hessian of their energy",
               [0.2, 1.4, 0.1], [0.1, 0.2, -0.1], [1.5, -0.1, 0.2], [2.1, 0.9, 1.1], 1.4, 50.0),
    on_batches("Chebyquad", "nonlinear equations", equations.chebyquad,
               "residuals of quadrature with equal weights at six points", [0.07, 0.29, 0.37, 0.63, 0.71, 0.93]),
    on_batches("BundleAdjustment", "computer vision", estimation.bundle_residual,
               "reprojection error of a point in a camera with distortion",
               [0.9, 0.1, -0.2, 0.3], [0.1, -0.2, -4.0], 500.0, -0.1, 0.02, [0.6, -0.4, 0.5], [70.0, -40.0]),
    on_batches("KalmanUpdate", "estimation", estimation.kalman_update,
               "a step of a Kalman filter for position and velocity, with its likelihood",
               [1.0, 0.5], [[0.6, 0.1], [0.1, 0.4]], 1.3, 0.2, 0.05, 0.1),
    on_batches("SABR", "finance", finance.sabr_volatility, "implied volatility of the SABR model",
               0.03, 0.04, 2.0, 0.04, 0.5, -0.3, 0.4),
    on_batches("HLLCFlux_2d", "fluid dynamics", fluids.hllc_flux_2d, "the HLLC flux between two cells of a plane flow",
               [1.0, 0.4, 0.2, 2.5], [0.7, 0.2, -0.1, 1.8]),
    Task("LSTMCell", "a step of a long short-term memory", "deep learning", deep_learning.lstm_cell,
         _lstm_args, tuple(range(6)),
         (0, 0, 0, None, None, None)),
)  # fmt: skip
