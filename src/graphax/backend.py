"""Which backend runs a derivative program, and why."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import wraps
from math import inf
from typing import TYPE_CHECKING, Any, Literal, cast, get_args

import jax
from jax.tree_util import tree_flatten, tree_unflatten

from . import _jax
from ._jax import Program
from .by_numpy import known_results
from .common_work import Split, split_common
from .errors import GraphaxError, LongCodeError, NativeError
from .estimates import MANY_POINTS, Way, elimination, is_quickest, kernel
from .gpu_times import FEW_POINTS, is_clearly_quicker, is_near_the_limit
from .labelled import nothing_told_apart
from .notices import left_to_xla
from .sizes import elements_of

if TYPE_CHECKING:
    from .native.primitive import Kernel

# Closed-over arrays of up to this many elements become part of the code of a patient kernel, or of any kernel on a GPU.
LARGEST_HELD, LARGEST_HELD_ON_GPU = 4_096, 64
Backend = Literal["auto", "native", "xla"]
"""What runs a derivative program: XLA, a kernel, or whichever should be faster."""
BACKENDS: tuple[str, ...] = get_args(Backend)
_LARGEST_CONSTANT = 1 << 16
_CONSTANT = "its results do not depend on its arguments, so they are constants of the compiled program"
_COMMON = "its results are the same at all points, so they are computed once"
# The attribute of compiled functions that holds a function that returns their backend.
_CHOSEN = "graphax_backend_choice"


def check_backend(backend: str) -> Backend:
    """Return ``backend`` if it is a valid name, and raise otherwise."""
    if backend not in BACKENDS:
        raise GraphaxError(f"unknown backend {backend!r}; choose one of: {', '.join(BACKENDS)}")
    return cast(Backend, backend)


@dataclass(frozen=True, eq=False)
class _Flat:
    """A traced function that returns a pytree, ready to be run by any backend.

    Attributes:
        whole: the program of the function.
        operands: its operands.
        tree: the pytree of its results.
        split: the program without the work that all mapped points have in common; None if there is hardly any.
        is_constant: whether its results do not depend on its arguments or on anything else that is not known yet. Large
            constant results are not treated specially, because XLA writes them as quickly as it would copy them, and
            neither are programs with effects.
    """

    whole: Program
    operands: list[Any]
    tree: Any
    split: Split | None = None
    is_constant: bool = False

    @property
    def program(self) -> Program:
        """The program that a backend runs for each point."""
        return self.whole if self.split is None else self.split.each.program

    @property
    def is_common(self) -> bool:
        """Whether all results are the same at all points."""
        return self.split is not None and not self.program.outputs

    @staticmethod
    def of(function: Callable, args: Sequence[Any], largest_held: int = 0) -> "_Flat":
        trees = []

        def flat(*leaves: Any) -> list[Any]:
            results, tree = tree_flatten(function(*leaves))
            trees.append(tree)
            return results

        with nothing_told_apart():
            program, operands = _jax.open_program(flat, args, largest_held)
        open_operands = [x for x in operands if _jax.is_traced([x]) or any(x is argument for argument in args)]
        small = elements_of(program.outputs) <= _LARGEST_CONSTANT
        known = not open_operands and not any(eqn.effects for eqn in program.equations)
        split = None
        if _jax.is_staged(operands):
            split = split_common(program, [_jax.is_mapped([x]) for x in operands], _jax.points_of(operands))
        return _Flat(program, operands, trees[-1], split, small and known)

    def run(self, by: Callable) -> Any:
        results = by(*self.operands) if self.split is None else self.split.run(self.operands, by)
        return tree_unflatten(self.tree, results)

    def known(self, *operands: Any) -> list[Any]:
        """The results of a constant program, as constants of the program around it.

        XLA would compute most of them again in every call, because it folds little.
        """
        try:
            results = known_results(self.program, operands)
        except Exception as error:  # noqa: BLE001  whatever NumPy refuses, XLA computes
            left_to_xla(str(error))
            results = None
        if results is None:
            return self.program(*operands)
        return [_jax.typed_like(x, atom) for x, atom in zip(results, self.program.outputs, strict=True)]


def run(
    function: Callable,
    args: Sequence[Any],
    backend: str,
    patient: bool = False,
    otherwise: Callable | None = None,
    better: Callable[[Program], Callable | None] | None = None,
    candidates: Sequence[Callable] = (),
    others: Sequence[Way] = (),
) -> Any:
    """``function(*args)``, a pytree, computed by a backend.

    With ``patient``, ``"auto"`` compiles programs and linear systems as large as ``"native"`` does. Arrays that the
    function closes over then become part of the code, where zeros and ones cost less.

    ``candidates`` are functions that return the same results, ``function`` among them. The first candidate that has a
    kernel is used, unless it is not ``function`` and one of the ``others`` should be faster. If no candidate has a
    kernel, ``otherwise`` is called in place of ``function``, if given; ``better`` may return a function that XLA runs
    faster than the traced program.
    """
    # Outside of jit and vmap every operation is a separate call anyway; a kernel for one point would not pay.
    # XLA can split its own operations across devices but not a kernel, so sharded arguments are left to XLA.
    if backend == "xla" or (backend == "auto" and (not _jax.is_traced(args) or _jax.is_sharded(args))):
        return (otherwise or function)(*args)
    required = backend == "native"
    later = None if required or patient or _jax.is_mapped(args) else _mapped_later(better)
    found = _found(function, args, required, patient, candidates, others, later)
    if found.kernel is not None:
        return found.run()
    left_to_xla(found.reason)
    if found.flat is None or otherwise:
        return (otherwise or function)(*args)
    instead = better(found.flat.program) if better else None
    results = attempted(instead, args) if instead else None
    # Reuse the traced program instead of tracing again.
    return found.flat.run(found.flat.program) if results is None else results


def attempted(instead: Callable, args: Sequence[Any]) -> Any:
    """The results of a mode of JAX; None if the mode refuses a function that elimination accepts.

    Examples are functions with a custom_vjp or a while loop.
    """
    try:
        return instead(*args)
    except (NotImplementedError, TypeError, ValueError) as error:
        left_to_xla(f"elimination stays: {error}")
        return None


def is_alone(args: Sequence[Any], backend: str) -> bool:
    """Whether graphax may choose what runs a single traced point on a CPU."""
    return backend == "auto" and _jax.is_traced(args) and not (_jax.is_mapped(args) or _jax.computes_on_gpu())


@dataclass(frozen=True)
class _Found:
    """The first of several functions that has a kernel, traced; or the traced function and the reason it has no kernel.

    Attributes:
        flat: None if the function could not even be traced.
        kernel: the kernel of ``function``, a function that becomes a kernel when mapped, or one of known results.
        reason: why there is no kernel.
    """

    function: Callable
    flat: _Flat | None
    kernel: Any
    reason: str = ""

    def run(self) -> Any:
        """The results of the kernel, after the work that is left to do outside of it."""
        assert self.flat is not None
        results, finished = self.flat.run(self.kernel), getattr(self.function, "finished", None)
        return results if finished is None else finished(results)


def _found(
    function: Callable,
    args: Sequence[Any],
    required: bool,
    patient: bool,
    candidates: Sequence[Callable],
    others: Sequence[Way],
    later: Callable[[Program], Callable | None] | None = None,
) -> _Found:
    """Look for a kernel. ``later`` may return a function whose kernel is only built once it is mapped."""
    if _jax.computes_on_gpu() and not required:
        return _quickest_on_gpu(function, args, patient, candidates, others)
    flat, failure = None, None
    for candidate in candidates or (function,):
        if candidate is not function and failure is not None and not isinstance(failure, LongCodeError):
            break
        try:
            _check_available(args, required)
            traced = _Flat.of(candidate, args, _largest_held(patient))
            if candidate is function:
                flat = traced
                if flat.is_constant and not required:
                    return _Found(candidate, flat, flat.known, _CONSTANT)
                if flat.is_common:
                    return _Found(candidate, flat, None, _COMMON)
                unmapped = later(traced.program) if later else None
                if unmapped is not None:
                    return _Found(candidate, traced, unmapped)
            elif traced.is_common:
                # Elimination is shorter than passes one after the other.
                continue
            made = _kernel(traced, required, patient)
            if candidate is function or required or _is_taken(made, args, flat, others):
                return _Found(candidate, traced, made)
        except Exception as error:  # noqa: BLE001  if anything prevents a kernel, XLA runs the program
            failure = error if candidate is function else failure
    assert failure is not None
    if required:
        raise failure
    return _Found(function, flat, None, str(failure))


def _quickest_on_gpu(
    function: Callable, args: Sequence[Any], patient: bool, candidates: Sequence[Callable], others: Sequence[Way]
) -> _Found:
    """The kernel with the lowest estimated time for the given number of points, if it should beat XLA."""
    points, held = _jax.points_of(args), _largest_held(patient)
    best, least, flat, reason = None, inf, None, ""
    for candidate in candidates or (function,):
        # If elimination is not the first candidate, its code is long; it is the last resort then.
        if is_near_the_limit(least) or (best is not None and candidate is function):
            break
        try:
            _check_available(args, False)
            traced = _Flat.of(candidate, args, held)
            flat = traced if candidate is function else flat
            if traced.is_common:
                best, reason = None, _COMMON
                continue
            if traced.is_constant and candidate is function:
                return _Found(candidate, traced, traced.known, _CONSTANT)
            made = _kernel(traced, False, patient)
            reason, seconds = made.reason_for_xla_on_gpu or "", made.seconds_on_gpu(points)
            if not reason and seconds < least:
                best, least = _Found(candidate, traced, made), seconds
        except Exception as error:  # noqa: BLE001  if anything prevents a kernel, XLA runs the program
            reason = str(error)
    ways = [*others, *([] if flat is None else [elimination(flat.program, points)])]
    if best is not None and (points > FEW_POINTS or is_clearly_quicker(least, [way.run for way in ways])):
        return best
    try:
        flat = flat or _Flat.of(function, args, held)
    except Exception as error:  # noqa: BLE001  a function that cannot be traced here raises where its result is needed
        reason = str(error)
    return _Found(function, flat, None, reason or "XLA should be quicker")


def _is_taken(made: "Kernel", args: Sequence[Any], eliminated: _Flat | None, others: Sequence[Way]) -> bool:
    """Whether a kernel of passes should be faster than XLA, which would run the passes one after the other."""
    points = MANY_POINTS if _jax.is_mapped(args) else 1
    ways = [*others, *([] if eliminated is None else [elimination(eliminated.program, points)])]
    alone = points == 1 and made.reason_for_xla_alone is not None
    return not alone and is_quickest(kernel(made.instructions, made.executed, points), ways, points)


def compiled(function: Callable, backend: str, otherwise: Callable | None = None) -> Callable:
    """``function`` of pytrees under `jax.jit`, run by a backend. Without a kernel, ``otherwise`` runs if given."""

    def flattened(of: Callable, tree: Any) -> Callable:
        def flat(*leaves: Any) -> Any:
            args, kwargs = tree_unflatten(tree, leaves)
            return of(*args, **kwargs)

        return flat

    @jax.jit
    @wraps(function)
    def on_backend(*args: Any, **kwargs: Any) -> Any:
        leaves, tree = tree_flatten((args, kwargs))
        instead = None if otherwise is None else flattened(otherwise, tree)
        return run(flattened(function, tree), leaves, backend, otherwise=instead)

    def chosen(*args: Any, **kwargs: Any) -> BackendChoice:
        leaves, tree = tree_flatten((args, kwargs))
        return choice(flattened(function, tree), leaves, backend)

    setattr(on_backend, _CHOSEN, chosen)
    return on_backend


def choice_of_kernel(function: Callable, args: Sequence[Any], kwargs: dict[str, Any]) -> "BackendChoice | None":
    """The backend of a function made by `compiled`, for arguments like these; None for any other function."""
    chosen = getattr(function, _CHOSEN, None)
    return None if chosen is None else chosen(*args, **kwargs)


def _check_available(args: Sequence[Any], required: bool) -> None:
    from . import native

    if _jax.is_varying(args):
        raise NativeError("kernels do not say along which axes of a mesh they vary, which jax.shard_map checks")
    native.check_available(required)


def _kernel(flat: _Flat, required: bool, patient: bool = False) -> "Kernel":
    from . import native

    return native.as_kernel(flat.program, required, patient, _jax.is_mapped(flat.operands))


def _mapped_later(better: Callable[[Program], Any] | None) -> Callable[[Program], Callable | None]:
    """A function that maps a program to one that XLA runs unmapped and that becomes a kernel when mapped.

    It returns None if ``better`` finds something, or if XLA is not certain to be the choice for a single point.
    """
    from . import native

    return lambda program: None if better and better(program) else native.unmapped(program)


def _largest_held(patient: bool) -> int:
    if patient:
        return LARGEST_HELD
    return LARGEST_HELD_ON_GPU if _jax.computes_on_gpu() else 0


def kernel_of(function: Callable, args: Sequence[Any], required: bool = True) -> "Kernel":
    """The kernel that ``backend="native"`` runs for such arguments; raises `NativeError` if there is none."""
    _check_available(args, required)
    return _kernel(_Flat.of(function, args, _largest_held(False)), required)


@dataclass(frozen=True)
class BackendChoice:
    """The backend that runs a program under `jax.jit` or `jax.vmap`, and the reason.

    Attributes:
        name, reason: the backend on the CPU and why it was chosen.
        reason_for_xla_on_gpu: why XLA runs the program on a GPU, or None if a kernel does.
        ways: the estimated time of each way on the CPU, for one point.
    """

    name: str
    reason: str
    reason_for_xla_on_gpu: str | None
    ways: tuple[Way, ...] = ()

    def __str__(self):
        reason = self.reason_for_xla_on_gpu
        gpu = f"xla ({reason})" if reason else "a kernel, where mapped over points"
        lines = [f"Backend on the CPU: {self.name} ({self.reason})", f"Backend on a GPU: {gpu}"]
        if self.ways:
            lines.append(f"Estimates for one point on the CPU: {', '.join(map(str, self.ways))}")
        return "\n".join(lines)


def choice(
    function: Callable,
    args: Sequence[Any],
    backend: str,
    better: Callable[[Program], Any] | None = None,
    others: Sequence[Way] = (),
    candidates: Sequence[Callable] = (),
) -> BackendChoice:
    """The choice that `run` would make for traced arguments of these shapes.

    ``others`` are estimates of ways besides those of `run`.
    """
    check_backend(backend)
    if backend == "xla":
        return BackendChoice("xla", "as asked for", "as asked for")
    found = _found(function, args, backend == "native", False, candidates, others)
    if found.reason == _CONSTANT:
        return BackendChoice("xla", _CONSTANT, _CONSTANT)
    if found.kernel is None:
        instead = better(found.flat.program) if better and found.flat else None
        name = "xla" if instead is None else f"xla, by {instead.name}"
        ways = (elimination(found.flat.program), *others) if found.flat else ()
        return BackendChoice(name, found.reason, found.reason, ways)
    return _choice_of(found, backend == "native", others)


def _choice_of(found: _Found, required: bool, others: Sequence[Way]) -> BackendChoice:
    assert found.kernel is not None
    made, label = found.kernel, getattr(found.function, "label", "")
    eliminated = (elimination(found.flat.program),) if found.flat and not label else ()
    ways = (kernel(made.instructions, made.executed), *eliminated, *others)
    if made.failure is not None and not required:
        return BackendChoice("xla", made.failure, made.reason_for_xla_on_gpu, ways)
    size = f"{label}{', ' if label else ''}{made.statements.operations:,} operations on single numbers"
    alone = None if required else made.reason_for_xla_alone
    reason = size + (f"; xla unless mapped: {alone}" if alone else "")
    return BackendChoice("native", reason, made.reason_for_xla_on_gpu, ways)
