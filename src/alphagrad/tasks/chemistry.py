"""Chemistry: equations of state, kinetics and force fields."""

import jax
import jax.numpy as jnp
import numpy as np

GAS_CONSTANT = 8.314
# The enzyme problem of the MINPACK-2 collection: concentrations and the rates measured at them.
CONCENTRATIONS = np.array([4.0, 2.0, 1.0, 0.5, 0.25, 0.167, 0.125, 0.1, 0.0833, 0.0714, 0.0625])
RATES = np.array([0.1957, 0.1947, 0.1735, 0.1600, 0.0844, 0.0627, 0.0456, 0.0342, 0.0323, 0.0235, 0.0246])


def peng_robinson(temperature, volume, critical_temperature, critical_pressure, acentric):
    """Pressure, residual enthalpy and residual heat of a real gas, by its equation of state."""
    a = 0.45724 * GAS_CONSTANT**2 * critical_temperature**2 / critical_pressure
    b = 0.07780 * GAS_CONSTANT * critical_temperature / critical_pressure
    kappa = 0.37464 + 1.54226 * acentric - 0.26992 * acentric**2
    root = 1 + kappa * (1 - jnp.sqrt(temperature / critical_temperature))
    alpha = root**2
    pressure = GAS_CONSTANT * temperature / (volume - b) - a * alpha / (volume**2 + 2 * b * volume - b**2)
    slope = -a * kappa * root / jnp.sqrt(temperature * critical_temperature)
    ratio = jnp.log((volume + (1 + 2**0.5) * b) / (volume + (1 - 2**0.5) * b)) / (2 * 2**0.5 * b)
    energy = (temperature * slope - a * alpha) * ratio
    return pressure, energy + pressure * volume - GAS_CONSTANT * temperature, energy


def enzyme_reaction(x1, x2, x3, x4):
    """Residuals of the Kowalik-Osborne kinetics of an enzyme at eleven concentrations."""
    dtype = jnp.result_type(x1)
    v = jnp.asarray(CONCENTRATIONS, dtype)
    return jnp.asarray(RATES, dtype) - x1 * (v**2 + x2 * v) / (v**2 + x3 * v + x4)


def _torsion_energy(a, b, c, d, barrier, stiffness):
    """Energy of the dihedral angle of four atoms, and of the angle at the second."""
    first, axis, last = b - a, c - b, d - c
    normal, other = jnp.cross(first, axis), jnp.cross(axis, last)
    length = jnp.sqrt(jnp.sum(axis**2))
    angle = jnp.arctan2(length * jnp.sum(first * other), jnp.sum(normal * other))
    cosine = -jnp.sum(first * axis) / (jnp.sqrt(jnp.sum(first**2)) * length)
    return barrier * (1 + jnp.cos(3 * angle)) + 0.5 * stiffness * (cosine + 1 / 3) ** 2


def torsion_forces(a, b, c, d, barrier, stiffness):
    """Forces on four atoms in a chain. Their Jacobian contains the Hessian of the energy."""
    gradients = jax.grad(_torsion_energy, argnums=(0, 1, 2, 3))(a, b, c, d, barrier, stiffness)
    return tuple(-gradient for gradient in gradients)
