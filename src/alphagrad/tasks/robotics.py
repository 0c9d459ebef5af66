"""Differential kinematics of a robot arm."""

import jax.numpy as jnp


def _sin_of_sum(a, b):
    return jnp.cos(a) * jnp.sin(b) + jnp.sin(a) * jnp.cos(b)


def _cos_of_sum(a, b):
    return jnp.cos(a) * jnp.cos(b) - jnp.sin(a) * jnp.sin(b)


def robot_arm_6dof(t1, t2, t3, t4, t5, t6):
    """Position and orientation of the tool of an arm with six revolute joints at the given angles."""
    c1, c2, c4, c5, c6 = (jnp.cos(t) for t in (t1, t2, t4, t5, t6))
    c23 = _cos_of_sum(t2, t3)
    s1, s2, s4, s5, s6 = (jnp.sin(t) for t in (t1, t2, t4, t5, t6))
    s23 = _sin_of_sum(t2, t3)
    ax = s5 * (c1 * c23 * c4 + s1 * s4) + c1 * s23 * c5
    ay = s5 * (s1 * c23 * c4 - c1 * s4) + s1 * s23 * c5
    az = s23 * c4 * s5 - c23 * c5
    nz = c6 * (c23 * s5 + s23 * c4 * c5) - s23 * s4 * s6
    oz = -s6 * (c23 * s5 + s23 * c4 * c5) - s23 * s4 * c6
    z = jnp.arctan2(ay, ax)
    y_tilde = jnp.arctan2(jnp.sqrt(1 - az**2), az)
    z_tilde = jnp.arctan2(oz, -nz)
    px = 185 * (s5 * (c1 * c23 * c4 + s1 * s4) + c1 * s23 * c5) + c1 * (175 + 890 * c2 + 50 * c23 + 1035 * s23)
    py = 185 * (s5 * (s1 * c23 * c4 + c1 * s4) + s1 * s23 * c5) + s1 * (175 + 890 * c2 + 50 * c23 + 1035 * s23)
    pz = 890 * s2 + 575 + 50 * s23 - 1035 * c23 + 185 * (s23 * c4 * s5 - c23 * c5)
    return px, py, pz, z, y_tilde, z_tilde
