"""The command line as tests call it, and a module with functions for it."""

from typer.testing import CliRunner

from alphagrad.cli.app import app

# Users' functions, valid and invalid.
OWN_MODULE = """
import jax.numpy as jnp
import numpy as np

def f(w, x):
    return jnp.tanh(w @ x) * jnp.sin(x[0]) + jnp.sin(x[0])

def make_args():
    return np.linspace(0.1, 1.2, 12).reshape(3, 4), np.linspace(0.5, 2.0, 4)

POINT = make_args()

def looped(w, x):
    from jax import lax

    return lax.scan(lambda h, row: (jnp.sin(h) * jnp.tanh(row @ h), None), x, w)[0]

def weighted(x, n, parameters):
    return jnp.sin(x) ** n * parameters["scale"] + jnp.cos(jnp.sin(x))

def make_weighted():
    return np.array([0.3, 0.4]), 2, {"scale": np.float64(1.5)}

def same(x):
    return x

def one():
    return (1.0,)

def branches(x):
    return x if x > 0 else -x

def failing():
    raise RuntimeError("no\\npoint")

def interrupted():
    raise KeyboardInterrupt

number = 1.0
whole_numbers = (1, 2)

class Group:
    @staticmethod
    def inside(x):
        return jnp.sin(jnp.cos(x)) * x
"""


def alphagrad(*arguments, **options):
    return CliRunner().invoke(app, [str(word) for word in arguments], prog_name="alphagrad", **options)


def answered(*arguments, **options):
    result = alphagrad(*arguments, **options)
    assert result.exit_code == 0, (result.stdout, result.stderr, result.exception)
    return result.stdout
