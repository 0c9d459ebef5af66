"""Inverse kinematics of a robot arm with six joints: the angles that reach thousands of poses.

python examples/inverse_kinematics.py [--poses 8192]
"""

import argparse

import jax
import jax.numpy as jnp
import numpy as np
from comparing import jacobians, race

from alphagrad.tasks.robotics import robot_arm_6dof

jax.config.update("jax_enable_x64", True)

JOINTS = 6
STEPS = 25
# Scales that make millimetres and radians comparable.
SCALE = np.array([1000.0, 1000.0, 1000.0, 1.0, 1.0, 1.0])
MIDDLE = np.array([0.6, 0.9, 0.7, 1.1, 0.8, 1.3])


def pose(angles):
    return jnp.stack(robot_arm_6dof(*(angles[n] for n in range(JOINTS))))


def reach(jacobian, target, angles):
    """Levenberg's method: Gauss-Newton steps, with more damping when the target is farther away."""

    def step(angles, _):
        rows = jacobian(*(angles[n] for n in range(JOINTS)))
        matrix = jnp.stack([jnp.stack(row) for row in rows]) / SCALE[:, None]
        missing = _difference(target, pose(angles))
        damping = 1e-3 * jnp.sum(missing**2) + 1e-12
        normal = matrix.T @ matrix + damping * jnp.eye(JOINTS)
        return angles + jnp.linalg.solve(normal, matrix.T @ missing), None

    angles, _ = jax.lax.scan(step, angles, length=STEPS)
    return angles, jnp.linalg.norm(_difference(target, pose(angles)))


def _difference(target, reached):
    """The difference between two poses. Angles differ by less than a turn."""
    difference = target - reached
    turned = jnp.arctan2(jnp.sin(difference[3:]), jnp.cos(difference[3:]))
    return jnp.concatenate([difference[:3], turned]) / SCALE


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--poses", type=int, default=8192)
    poses = parser.parse_args().poses
    rng = np.random.default_rng(0)
    angles = MIDDLE + 0.15 * rng.normal(size=(poses, JOINTS))
    targets = jax.vmap(pose)(angles)
    starts = angles + 0.1 * rng.normal(size=angles.shape)

    def solve(jacobian, targets, starts):
        return jax.vmap(lambda target, start: reach(jacobian, target, start))(targets, starts)

    ways = jacobians(robot_arm_6dof, tuple(range(JOINTS)))
    title = f"{STEPS} steps towards {poses:,} poses"
    _, missed = race(title, solve, ways, targets, starts, tolerance=np.inf)
    reached = np.asarray(missed) < 1e-6
    print(f"reached {reached.mean():.1%} of the poses, to a micrometre and a microradian")


if __name__ == "__main__":
    main()
