"""While loops: derivatives are carried forward through them. No values."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

from .bundles import Bundle, Key, Memberwise, Passing, compose
from .graph import ComputationGraph
from .loop import Loop, Structures
from .order import Order
from .structure import identity
from .terms import AnyStructure

# The number of steps is not known in advance; this many are counted.
COUNTED_STEPS = 10


@dataclass(frozen=True)
class Through:
    """How to pull by pushing: units of all operands pass through the loop, and edges are multiplied by the results."""

    units: Structures
    pushing: Passing
    product: Memberwise

    @property
    def graph(self) -> ComputationGraph:
        return self.pushing.how.graph

    @property
    def order(self) -> Order:
        return self.pushing.how.order


@dataclass(frozen=True, eq=False)
class While(Loop):
    """A loop whose number of steps is known only after it has ended. It has carries but no elements or other outputs.

    The steps cannot be stored, so there is no backward pass through them. Edges that are pulled are multiplied by the
    Jacobian of the loop.

    Attributes:
        condition: a program of all operands, constants and carries, that says whether there is another step.
        operands: the operands to differentiate with respect to.
    """

    condition: Any = None
    operands: tuple[int, ...] = ()
    unbounded: ClassVar[bool] = True

    @cached_property
    def _content(self) -> tuple:
        return (*super()._content, self.operands)

    def __getstate__(self):
        return super().__getstate__() | {"condition": None}

    def __str__(self):
        return "loop of any number of steps"

    @property
    def digest(self) -> str:
        return f"while {super().digest} {self.operands}"

    @cached_property
    def _whole(self) -> tuple[Structures, Passing | None]:
        """The units of all operands, and the passing that pushes them through the loop."""
        vertices, inputs = self.graph.vertices, self.graph.inputs
        units: Structures = {(n, n): identity(vertices[inputs[n]].shape) for n in self.operands}
        return units, self.pushed(units)

    def pulled(self, before: Mapping[Key, AnyStructure]) -> Passing | None:
        units, pushing = self._whole
        product = None if pushing is None else compose(Bundle.of(before), pushing.structure)
        if pushing is None or product is None:
            return None
        assert isinstance(product, Memberwise)
        return Passing(
            product.structure,
            pushing.multiplications + product.multiplications,
            pushing.raw_multiplications + product.raw_multiplications,
            pushing.additions + product.additions,
            False,
            Through(units, pushing, product),
            self.length,
            0,
            self.unbounded,
        )
