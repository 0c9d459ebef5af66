"""Jacobians of functions at their example points, by elimination and by JAX."""

import jax

import graphax as gx


def by_elimination_and_by_jax(function, args, argnums, jax_mode=jax.jacrev):
    # Compiling pays off for tasks with many shapes. Operations on scalars are compiled once for all tests.
    compiled = jax.jit if any(a.ndim for a in args) else lambda f: f
    eliminated = compiled(gx.jacve(function, order="rev", argnums=argnums))(*args)
    return eliminated, compiled(jax_mode(function, argnums=argnums))(*args)
