"""The stages from a function to its Jacobian, in one place."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from . import _jax, backend
from ._jax import Program
from .derive import Derivation, derive
from .estimates import (
    MANY_POINTS,
    Way,
    better_mode,
    has_long_sums,
    instructions_of_plan,
    is_quickest,
    kernel_of_passes,
    kernel_of_plan,
    pays,
    plain_modes,
)
from .execute import Accumulation
from .gpu_times import LONGEST_CODE
from .graph import ComputationGraph
from .modes import FORWARD, REVERSE, Passes, PlainMode, ThreadPasses, arithmetic
from .order import Order, loaded
from .plan import Plan
from .presets import about_operations
from .sizes import elements_of
from .trace import Request, Traced, trace


@dataclass(frozen=True, eq=False)
class Pipeline:
    """A function with its arguments, and all stages on the way to its Jacobian.

    Every stage is computed once, on first use.

    Attributes:
        function, args, kwargs: the function and the arguments of the call.
        request: what to differentiate with respect to, and how.
        asked: the requested order, in any form that `jacve` accepts.
        simplify: whether to remove common subexpressions; None to do so unless vertex numbers matter.
        sparse: whether to return the Jacobian as blocks.
        with_value: whether to return the outputs of the function as well.
    """

    function: Callable
    args: Sequence[Any]
    kwargs: dict[str, Any]
    request: Request
    asked: Any = "auto"
    simplify: bool | None = None
    sparse: bool = False
    with_value: bool = False

    @cached_property
    def _asked(self) -> Any:
        return loaded(self.asked)

    @cached_property
    def traced(self) -> Traced:
        return trace(self.function, self.args, self.kwargs, self.request, self._simplified)

    @cached_property
    def derivation(self) -> Derivation:
        return derive(self.traced, self._simplified, whole=not self.sparse)

    @cached_property
    def without_residuals(self) -> Derivation:
        """The derivation in which linear solves are single vertices."""
        if not any(map(_jax.is_solve, self.traced.program.equations)):
            return self.derivation
        return derive(self.traced, self._simplified, whole=not self.sparse, with_residuals=False)

    @property
    def graph(self) -> ComputationGraph:
        return self.derivation.graph

    @cached_property
    def order(self) -> Order:
        return Order.of(self._asked, self.graph)

    @cached_property
    def plan(self) -> Plan:
        return self.graph.plan(self.order, whole=not self.sparse)

    @cached_property
    def program(self) -> Accumulation:
        """Maps flat arguments to flat outputs, and to the Jacobian by flat output and flat input."""
        return Accumulation(self.derivation, self.plan, self.sparse, self.first)

    @property
    def first(self) -> int:
        """The number of the first output to return."""
        return 0 if self.with_value else self.traced.out_count

    @cached_property
    def eliminated(self) -> Callable:
        """`program`, which is planned only when it is called."""
        return lambda *args: self.program(*args)

    @cached_property
    def kernel(self) -> Any:
        """The kernel that ``backend="native"`` runs when mapped; raises `NativeError` if there is none."""
        return backend.kernel_of(self.program, self.traced.args)

    def choice(self, name: str) -> backend.BackendChoice:
        """What a backend would run under `jax.jit`, and why."""
        return backend.choice(self.eliminated, self.traced.args, name, self.better, self.modes(1), self.candidates)

    def run(self, name: str) -> tuple[list[Any], Any]:
        """The requested flat outputs, and the Jacobian as `jax.jacfwd` arranges it, computed by a backend."""
        args = self.traced.args
        if name == "xla":
            outputs, blocks = replace(self.program, backend="xla")(*args)
        else:
            outputs, blocks = backend.run(
                self.eliminated, args, name,
                better=self.better, candidates=self.candidates, others=self.modes(self.points),
            )  # fmt: skip
        return outputs, self.traced.nest(blocks)

    @cached_property
    def candidates(self) -> tuple[Callable, ...]:
        """Functions that may become a kernel, in the order to try: elimination, and passes of JAX's modes in a loop.

        Passes are less code. They come first if elimination is so long that they should pay off.
        """
        if self.sparse or not self.is_automatic:
            return (self.eliminated,)
        if _jax.computes_on_gpu():
            return self._candidates_on_gpu
        points, statements = self.points, arithmetic(self.traced.program)
        ways = {
            passes: kernel_of_passes(passes.name, passes.count, statements, points)
            for passes in (Passes(self.traced, self.first, name) for name in (FORWARD, REVERSE))
            if passes.is_possible
        }
        quick = [passes for passes, way in ways.items() if is_quickest(way, self.modes(points), points)]
        quickest = sorted(quick, key=lambda passes: ways[passes].run)
        # Planning takes as long as compiling passes, so passes are considered before there is a plan.
        eliminated = kernel_of_plan(about_operations(self.graph), statements, points) if quickest else None
        first = [passes for passes in quickest[:1] if eliminated and pays(ways[passes], eliminated, points)]
        return (*first, self.eliminated, *(passes for passes in quickest if passes not in first))

    @property
    def _candidates_on_gpu(self) -> tuple[Callable, ...]:
        """Passes in several threads per point, and elimination in one, which comes last if its code is long."""
        passes = [ThreadPasses(self.traced, self.first, name) for name in (FORWARD, REVERSE)]
        possible = tuple(each for each in passes if each.is_possible)
        eliminated = instructions_of_plan(about_operations(self.graph), arithmetic(self.traced.program))
        return (*possible, self.eliminated) if eliminated > LONGEST_CODE else (self.eliminated, *possible)

    @property
    def points(self) -> int:
        """The expected number of points. A `jax.vmap` outside of a `jax.jit` is not known yet."""
        if _jax.computes_on_gpu():
            return _jax.points_of(self.traced.args)
        return MANY_POINTS if _jax.is_mapped(self.traced.args) else 1

    def better(self, eliminated: Program) -> PlainMode | None:
        """A mode of JAX that XLA runs clearly faster than the elimination program; None if there is none.

        An explicitly requested order is always kept.
        """
        mode = PlainMode(self.traced, self.first)
        if self.sparse or not self.is_automatic or not mode.is_possible:
            return None
        modes = [way for way in self.modes(self.points) if way.name in mode.names]
        scattered = any(eqn.primitive.name.startswith("scatter") for eqn in eliminated.equations)
        if scattered and not eliminated.inputs:
            # A large constant Jacobian. XLA would fill it with zeros first, although it could compute it in one loop.
            return replace(mode, name=min(modes, key=lambda way: way.run).name)
        few = self.points == 1 and has_long_sums(self.traced.program)
        # Elimination takes complex numbers apart, which JAX's modes do not.
        name = better_mode(eliminated, modes, self.points, few or _jax.has_complex(self.traced.program))
        return None if name is None else replace(mode, name=name)

    def modes(self, points: int) -> list[Way]:
        """The estimates of JAX's own modes for the given number of points."""
        program = self.traced.program
        sizes = elements_of(program.inputs), elements_of(program.outputs[: self.traced.out_count])
        return plain_modes(program, *sizes, points)

    @property
    def is_automatic(self) -> bool:
        """Whether graphax chooses the order."""
        return isinstance(self._asked, str) and self._asked == "auto"

    @property
    def _simplified(self) -> bool:
        if self.simplify is not None:
            return self.simplify
        return self._asked.simplified if isinstance(self._asked, Order) else self.is_automatic
