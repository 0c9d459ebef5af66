"""Newton's method from many starting points at once, for two systems of equations: the heart's dipole, and propane.

python examples/newton.py [--points 4096]
"""

import argparse
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from comparing import jacobians, race

from alphagrad.tasks import TASKS

jax.config.update("jax_enable_x64", True)

STEPS = 8


def newton(function, steps, jacobian, wanted, x):
    """Solve ``function(x) = wanted``. Returns the point after some steps, and the residual at that point."""
    arguments = range(x.shape[0])

    def residual(x):
        return jnp.stack(function(*(x[n] for n in arguments))) - wanted

    def step(x, _):
        rows = jacobian(*(x[n] for n in arguments))
        return x - jnp.linalg.solve(jnp.stack([jnp.stack(row) for row in rows]), residual(x)), None

    x, _ = jax.lax.scan(step, x, length=steps)
    return x, jnp.linalg.norm(residual(x))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--points", type=int, default=4096)
    points = parser.parse_args().points
    rng = np.random.default_rng(0)
    for name in ("HumanHeartDipole", "PropaneCombustion"):
        task = TASKS[name]
        solution = np.stack(task.arguments())
        wanted = jnp.stack(task.function(*solution))
        starts = solution * (1 + 0.01 * rng.normal(size=(points, len(solution))))

        def solve(jacobian, starts, task=task, wanted=wanted):
            return jax.vmap(partial(newton, task.function, STEPS, jacobian, wanted))(starts)

        title = f"\n{name}: {STEPS} steps of Newton's method from {points:,} points"
        x, norms = race(title, solve, jacobians(task.function, task.argnums), starts)
        print(f"largest residual {np.max(norms):.1e}, farthest from the solution {np.max(np.abs(x - solution)):.1e}")


if __name__ == "__main__":
    main()
