"""The arithmetic operators of Jacobian blocks: ``@``, ``+``, ``-``, ``*`` and ``/``."""

from abc import ABC, abstractmethod
from numbers import Number
from typing import Any, Self, overload

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike


class BlockOperators(ABC):
    """The operators of a block, in terms of the methods of the block.

    A block deliberately lacks ``__jax_array__``. With it, JAX would make a block dense before ``array @ block`` reaches
    the block, and would contract other axes than a block does.
    """

    # NumPy leaves ``array @ block`` and ``number * block`` to the block.
    __array_ufunc__ = None

    @abstractmethod
    def todense(self) -> jax.Array: ...

    @abstractmethod
    def apply(self, tangent: ArrayLike) -> jax.Array: ...

    @abstractmethod
    def apply_transposed(self, cotangent: ArrayLike) -> jax.Array: ...

    @abstractmethod
    def after(self, other: Self) -> Self: ...

    @abstractmethod
    def plus(self, other: Self) -> Self: ...

    @abstractmethod
    def scaled(self, factor: ArrayLike) -> Self: ...

    @overload
    def __matmul__(self, other: Self) -> Self: ...

    @overload
    def __matmul__(self, other: ArrayLike) -> jax.Array: ...

    def __matmul__(self, other: Any) -> Any:
        """Multiply by a block, which gives a block, or by an array, which gives an array."""
        return self.after(other) if isinstance(other, type(self)) else self.apply(other)

    def __rmatmul__(self, other: ArrayLike) -> jax.Array:
        return self.apply_transposed(other)

    def __add__(self, other: Self) -> Self:
        return self.plus(other) if isinstance(other, type(self)) else NotImplemented

    def __sub__(self, other: Self) -> Self:
        return self.plus(-other) if isinstance(other, type(self)) else NotImplemented

    def __neg__(self) -> Self:
        return self.scaled(-1.0)

    def __pos__(self) -> Self:
        return self

    def __mul__(self, factor: ArrayLike) -> Self:
        return self.scaled(factor) if _is_number(factor) else NotImplemented

    __rmul__ = __mul__

    def __truediv__(self, divisor: ArrayLike) -> Self:
        return self.scaled(1 / divisor) if _is_number(divisor) else NotImplemented

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        """The dense Jacobian, for `numpy.asarray` and, outside of `jax.jit`, `jax.numpy.asarray`."""
        dense = self.todense()
        if isinstance(dense, jax.core.Tracer):
            raise TypeError("inside a transformation of JAX, block.todense() makes a block an array")
        return np.asarray(dense, dtype)


def _is_number(value: Any) -> bool:
    """True for Python numbers and for arrays without axes."""
    if isinstance(value, Number) and not isinstance(value, bool):
        return True
    return isinstance(value, np.generic | np.ndarray | jax.Array) and jnp.ndim(value) == 0
