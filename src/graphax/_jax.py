"""The only module that knows how JAX represents programs.

It uses `jax.extend` and public API. `tests/graphax/test_jax.py` pins what this module assumes of them, so a change in
JAX fails there first.
"""

import ctypes
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jax.extend import core, source_info_util
from jax.extend.core import ClosedJaxpr, JaxprEqn, Literal, Primitive, Var
from jax.extend.mlir.dialects import stablehlo
from jax.interpreters import ad, batching, mlir

# Exclude graphax's own frames, so that errors of JAX and of graphax name the user's lines.
source_info_util.register_exclusion(str(Path(__file__).parent) + os.sep)

# Calls that are replaced by their body: differentiating the body is differentiating the call.
_INLINED = frozenset({"jit", "pjit", "closed_call", "core_call", "remat", "remat2", "checkpoint"})

# The primitive of operations that are defined by others.
_HIGH_LEVEL = "call_hi_primitive"

# The linear map of a custom_vjp function. It can only be transposed.
_TRANSPOSE_ONLY = "custom_lin"

# Calls with a derivative of their own, which is irrelevant where nothing is differentiated.
_CUSTOM = frozenset({"custom_jvp_call", "custom_vjp_call", "custom_vjp_call_jaxpr", "custom_lin"})

# Primitives that name a mapped axis but do not read from other points.
_ALONE = frozenset({"axis_index", "pvary", "pcast", "pbroadcast", "core_pvary", "reshard"})

# The primitive of an equation that holds a program.
_TOGETHER = Primitive("collective")
_TOGETHER.multiple_results = True

# Primitives defined here that stand for a program.
_STANDING_FOR: dict[Primitive, Callable[[JaxprEqn], ClosedJaxpr]] = {}

Atom = Var | Literal


@dataclass(frozen=True, eq=False)
class Program:
    """Straight-line code: equations between variables, with nested calls inlined."""

    inputs: tuple[Var, ...]
    constants: dict[Var, Any]
    equations: tuple[JaxprEqn, ...]
    outputs: tuple[Atom, ...]

    def __call__(self, *args: Any) -> list[Any]:
        return self.run(args)

    def run(self, args: Sequence[Any], source_info: Any = None) -> list[Any]:
        """Run the program. `source_info` is the user's line to report, for a program that several functions share."""
        values = self.environment(args)
        run(self.equations, values, source_info)
        return read_all(values, self.outputs)

    def environment(self, args: Sequence[Any]) -> dict[Var, Any]:
        return self.constants | dict(zip(self.inputs, args, strict=True))


def trace(function: Callable, *args: Any) -> Program:
    """The program of a function from arrays to a flat list of arrays."""
    return inlined(jax.make_jaxpr(function)(*args))


def inlined(closed: ClosedJaxpr) -> Program:
    """The program of a jaxpr."""
    jaxpr = closed.jaxpr
    constants = dict(zip(jaxpr.constvars, closed.consts, strict=True))
    equations: list[JaxprEqn] = []
    names: dict[Var, Atom] = {}
    _inline(jaxpr.eqns, names, equations, constants, None)
    outputs = tuple(_renamed(atom, names) for atom in jaxpr.outvars)
    return Program(tuple(jaxpr.invars), constants, tuple(equations), outputs)


def _inline(
    body: Iterable[JaxprEqn], names: dict[Var, Atom], equations: list[JaxprEqn], constants: dict, caller: Any
) -> None:
    for eqn in body:
        invars = [_renamed(atom, names) for atom in eqn.invars]
        # Equations inside JAX's own functions have no line of the user's; use the line that called them.
        source_info = eqn.source_info if caller is None or source_line(eqn.source_info) else caller
        inner = _body(eqn)
        if inner is None:
            # A body that is called twice must not define its variables twice, so every copy gets its own.
            outvars = [Var(var.aval) for var in eqn.outvars]
            names.update(zip(eqn.outvars, outvars, strict=True))
            equations.append(eqn.replace(invars=invars, outvars=outvars, source_info=source_info))
            continue
        constants.update(zip(inner.jaxpr.constvars, inner.consts, strict=True))
        scope = dict(zip(inner.jaxpr.invars, invars, strict=True))
        _inline(inner.jaxpr.eqns, scope, equations, constants, source_info)
        names.update((var, _renamed(atom, scope)) for var, atom in zip(eqn.outvars, inner.jaxpr.outvars, strict=True))


def _renamed(atom: Atom, names: dict[Var, Atom]) -> Atom:
    return atom if isinstance(atom, Literal) else names.get(atom, atom)


def _body(eqn: JaxprEqn) -> ClosedJaxpr | None:
    if eqn.primitive in _STANDING_FOR:
        return _STANDING_FOR[eqn.primitive](eqn)
    if eqn.primitive.name == _HIGH_LEVEL:
        # Whole numbers have no derivatives, so none are lost.
        return None if any(is_differentiable(var.aval) for var in eqn.outvars) else _expanded(eqn)
    if eqn.primitive.name not in _INLINED:
        return None
    body = next(eqn.params[key] for key in ("jaxpr", "call_jaxpr") if key in eqn.params)
    return body if isinstance(body, ClosedJaxpr) else ClosedJaxpr(body, ())


def _expanded(eqn: JaxprEqn) -> ClosedJaxpr:
    """What an operation consists of that JAX defines by others, such as a search since JAX 0.12."""
    high_level = eqn.params["_prim"]
    operands = [jax.ShapeDtypeStruct(shape(atom), dtype(atom), weak_type=is_weak(atom)) for atom in eqn.invars]
    return jax.make_jaxpr(high_level.expand)(*jax.tree.unflatten(high_level.in_tree, operands))


def called(eqn: JaxprEqn) -> Program | None:
    """The program of a call with custom derivatives, None for any other equation."""
    if eqn.primitive.name not in _CUSTOM:
        return None
    body = next((eqn.params[key] for key in ("call_jaxpr", "fun_jaxpr") if key in eqn.params), None)
    return inlined(body) if isinstance(body, ClosedJaxpr) else None


def implemented(eqn: JaxprEqn) -> Program | None:
    """The program that implements a primitive defined by a library in terms of others; None for primitives of JAX."""
    if eqn.primitive.name == _HIGH_LEVEL:
        return inlined(_expanded(eqn))
    # Callbacks into Python cannot be inlined.
    if eqn.effects or "callback" in eqn.primitive.name:
        return None
    inputs = [jax.ShapeDtypeStruct(shape(atom), dtype(atom), weak_type=is_weak(atom)) for atom in eqn.invars]

    def results(*operands: Any) -> list[Any]:
        found = eqn.primitive.impl(*operands, **eqn.params)
        return list(found) if eqn.primitive.multiple_results else [found]

    program = inlined(jax.make_jaxpr(results)(*inputs))
    # The implementation of a primitive of JAX is a call of the same primitive.
    itself = any(inner.primitive is eqn.primitive for inner in program.equations)
    return None if itself else program


def evaluate(eqn: JaxprEqn, operands: Sequence[Any], source_info: Any = None) -> list[Any]:
    """Run one equation. Its line in the user's code is reported as its source, unless ``source_info`` is given."""
    if eqn.primitive is _TOGETHER:
        return eqn.params["program"](*operands)
    params = eqn.primitive.get_bind_params(eqn.params)
    with source_info_util.user_context((source_info or eqn.source_info).traceback), eqn.ctx.manager:
        results = eqn.primitive.bind(*operands, **params)
    return list(results) if eqn.primitive.multiple_results else [results]


def run(equations: Iterable[JaxprEqn], values: dict[Var, Any], source_info: Any = None) -> None:
    """Run equations, reading from and adding to ``values``."""
    for eqn in equations:
        values.update(zip(eqn.outvars, evaluate(eqn, read_all(values, eqn.invars), source_info), strict=True))


def read_all(values: dict[Var, Any], atoms: Iterable[Atom]) -> list[Any]:
    return [atom.val if isinstance(atom, Literal) else values[atom] for atom in atoms]


def needed(equations: Sequence[JaxprEqn], outputs: Iterable[Atom]) -> tuple[JaxprEqn, ...]:
    """The equations that ``outputs`` depend on, and those that have an effect."""
    wanted = {atom for atom in outputs if isinstance(atom, Var)}
    kept = []
    for eqn in reversed(equations):
        if eqn.effects or any(var in wanted for var in eqn.outvars):
            kept.append(eqn)
            wanted.update(atom for atom in eqn.invars if isinstance(atom, Var))
    return tuple(reversed(kept))


def split_by(program: Program, moving: Iterable[Var]) -> tuple[list[JaxprEqn], list[JaxprEqn]]:
    """Split the equations that the outputs need into those independent of ``moving`` and those that depend on it."""
    depends = set(moving)
    apart: tuple[list[JaxprEqn], list[JaxprEqn]] = ([], [])
    for eqn in needed(program.equations, program.outputs):
        moves = any(isinstance(atom, Var) and atom in depends for atom in eqn.invars)
        depends.update(eqn.outvars if moves else ())
        apart[moves].append(eqn)
    return apart


def only_transposable(equations: Iterable[JaxprEqn]) -> bool:
    """True if a linear map contains, at any depth, the derivative of a custom_vjp function."""
    return any(eqn.primitive.name == _TRANSPOSE_ONLY for eqn in all_equations(equations))


def all_equations(equations: Iterable[JaxprEqn]) -> Iterator[JaxprEqn]:
    """Yield equations and the equations of their bodies, at any depth."""
    for eqn in equations:
        yield eqn
        for inner in core.jaxprs_in_params(eqn.params):
            yield from all_equations(inner.eqns)


# The assumed number of steps of a while loop, where a number is needed.
SOME_STEPS = 10


def repeated_equations(equations: Iterable[JaxprEqn], times: int = 1) -> Iterator[tuple[JaxprEqn, int]]:
    """Like `all_equations`, but with the number of times that each equation runs."""
    for eqn in equations:
        yield eqn, times
        steps = eqn.params.get("length", SOME_STEPS) if eqn.primitive.name in ("scan", "while") else 1
        for inner in core.jaxprs_in_params(eqn.params):
            yield from repeated_equations(inner.eqns, times * steps)


def has_loops(program: Program) -> bool:
    return any(eqn.primitive.name in ("scan", "while") for eqn in all_equations(program.equations))


def as_equation(program: Program, like: JaxprEqn) -> JaxprEqn:
    """A program as one equation, for `evaluate` to run. Its source is that of ``like``."""
    effects = frozenset().union(*(eqn.effects for eqn in program.equations))
    return like.replace(
        primitive=_TOGETHER,
        params={"program": program},
        invars=list(program.inputs),
        outvars=list(program.outputs),  # type: ignore[arg-type]
        effects=effects,
    )


def is_collective(eqn: JaxprEqn) -> bool:
    """True if an equation reads from other points of a mapped axis, at any depth."""
    if eqn.primitive is _TOGETHER:
        return True
    return any(_names_axis(inner) and inner.primitive.name not in _ALONE for inner in all_equations([eqn]))


def _names_axis(eqn: JaxprEqn) -> bool:
    """True if a parameter names a mapped axis. Axes of arrays are numbers, not names."""
    for key in ("axes", "axis_name"):
        names = eqn.params.get(key, ())
        if any(isinstance(name, str) or not hasattr(name, "__index__") for name in _as_tuple(names)):
            return True
    return False


def _as_tuple(value: Any) -> tuple:
    return tuple(value) if isinstance(value, (tuple, list, frozenset, set)) else (value,)


def source_line(source_info: Any) -> str:
    """The line of the user's code that an equation comes from, as ``file:line:column (function)``."""
    return source_info_util.summarize(source_info)


def first_source_line(program: Program) -> str:
    """The first line of the user's code that a program comes from."""
    lines = (source_line(eqn.source_info) for eqn in program.equations)
    return next(filter(None, lines), "of no line")


def tangent_placeholder(aval: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    """A type to trace a function with, for the tangent of a value. The type also carries the mesh of the value."""
    if shape == aval.shape and dtype == aval.dtype:
        return aval.strip_weak_type()
    return jax.ShapeDtypeStruct(shape, dtype)


def _varying(aval: Any) -> frozenset:
    """The axes of a `jax.shard_map` along which a value is known to vary."""
    return getattr(getattr(aval, "mat", None), "varying", frozenset())


def varying_like(value: Any, atom: Atom) -> Any:
    """``value``, marked as varying along the axes of a `jax.shard_map` that ``atom`` varies along."""
    missing = _varying(atom.aval) - _varying(jax.typeof(value))
    return jax.lax.pcast(value, tuple(missing), to="varying") if missing else value


def typed_like(value: Any, atom: Atom) -> Any:
    """An array whose type is weak if that of ``atom`` is."""
    return typed_as(value, atom.aval)


def typed_as(value: Any, aval: Any) -> Any:
    """Like `typed_like`, but for a type."""
    value = jax.numpy.asarray(value)
    if value.weak_type == aval.weak_type or value.dtype != aval.dtype:
        return value
    convert = core.primitives.convert_element_type_p
    return convert.bind(value, new_dtype=value.dtype, weak_type=aval.weak_type, sharding=None)


def shape(atom: Atom) -> tuple[int, ...]:
    return tuple(atom.aval.shape)  # type: ignore[attr-defined]


def unknown_shape(program: Program) -> tuple[Any, ...] | None:
    """The first shape in a program with a size that is unknown until it runs; None if there is none."""
    results = (var for eqn in program.equations for var in eqn.outvars)
    shapes = (shape(atom) for atom in (*program.inputs, *results) if hasattr(atom.aval, "shape"))
    return next((found for found in shapes if not all(isinstance(size, int) for size in found)), None)


def dtype(atom: Atom) -> Any:
    return atom.aval.dtype  # type: ignore[attr-defined]


def is_weak(atom: Atom) -> bool:
    return atom.aval.weak_type  # type: ignore[attr-defined]


def has_function(eqn: JaxprEqn) -> bool:
    """True if an equation carries a function, as custom derivatives do.

    Such a function is created again by each trace and may close over tracers of an outer trace, so nothing derived from
    it may be cached.
    """
    values = [value for value in eqn.params.values() if not isinstance(value, type)]
    return any(callable(value) or hasattr(value, "call_wrapped") for value in values)


def scan_counts(params: dict[str, Any]) -> tuple[int, int]:
    """The number of constants and the number of carried values among the operands of a scan."""
    if "num_consts" in params:
        return params["num_consts"], params["num_carry"]
    constants, carry, _ = params["ft_in"].unpack()
    return len(constants), len(carry)


def is_loop(eqn: JaxprEqn) -> bool:
    """True for a loop that derivatives can be carried through: a while loop, or a scan of at least one step."""
    some = eqn.primitive.name == "scan" and eqn.params["length"] > 0
    return (some or is_while(eqn)) and _is_plain(eqn)


def is_while(eqn: JaxprEqn) -> bool:
    return eqn.primitive.name == "while"


def is_choice(eqn: JaxprEqn) -> bool:
    """True for a `cond` whose branches can be differentiated one by one."""
    return eqn.primitive.name == "cond" and _is_plain(eqn)


def _is_plain(eqn: JaxprEqn) -> bool:
    """True for an equation of real values that has no effects and does not read from other points."""
    if eqn.effects or is_collective(eqn):
        return False
    atoms = (*eqn.invars, *eqn.outvars)
    return not any(is_complex(atom.aval) or _varying(atom.aval) for atom in atoms)


def is_solve(eqn: JaxprEqn) -> bool:
    """True for a linear solve that is defined by its products with vectors."""
    return eqn.primitive.name == "custom_linear_solve" and _is_plain(eqn)


def linear_product(eqn: JaxprEqn, operands: Sequence[Any]) -> tuple[Program, Sequence[Any], Sequence[Any]]:
    """The product with the matrix of a linear solve, the operands that it closes over, and the right-hand sides."""
    lengths = eqn.params["const_lengths"]
    return inlined(eqn.params["jaxprs"].matvec), operands[: lengths.matvec], operands[sum(lengths) :]


def linear_solver(eqn: JaxprEqn, operands: Sequence[Any]) -> tuple[Program, Sequence[Any], Sequence[Any]]:
    """The solver of a linear solve, the operands that it closes over, and the right-hand sides."""
    lengths = eqn.params["const_lengths"]
    before = lengths.matvec + lengths.vecmat
    solver = inlined(eqn.params["jaxprs"].solve)
    return solver, operands[before : before + lengths.solve], operands[sum(lengths) :]


def is_differentiable(aval: Any) -> bool:
    return jax.dtypes.issubdtype(getattr(aval, "dtype", np.dtype(bool)), np.inexact)


def has_complex(program: Program) -> bool:
    """Whether any equation has a complex result."""
    return any(is_complex(var.aval) for eqn in all_equations(program.equations) for var in eqn.outvars)


def is_complex(aval: Any) -> bool:
    return jax.dtypes.issubdtype(getattr(aval, "dtype", np.dtype(bool)), np.complexfloating)


def open_program(function: Callable, args: Sequence[Any], largest_held: int = 0) -> tuple[Program, list[Any]]:
    """The program of a function from arrays to a flat list of arrays, and operands for it.

    Arrays that the function closes over become operands too, tracers among them. Two kinds of known arrays stay
    constants: integers and truth values, and arrays of at most ``largest_held`` elements. As under `jax.jit`, equations
    and operands that the results do not depend on are dropped.
    """
    program = inlined(jax.make_jaxpr(function)(*args))
    equations = needed(program.equations, program.outputs)
    read = {atom for atom in (*(a for eqn in equations for a in eqn.invars), *program.outputs) if isinstance(atom, Var)}
    given = {**program.constants, **dict(zip(program.inputs, args, strict=True))}
    held = {var: value for var, value in program.constants.items() if _is_held(value, largest_held)}
    passed = [var for var in given if var in read and var not in held]
    return Program(tuple(passed), held, equations, program.outputs), [given[var] for var in passed]


def _is_held(value: Any, largest: int) -> bool:
    known = not isinstance(value, jax.core.Tracer)
    return known and (not is_differentiable(jax.typeof(value)) or np.size(value) <= largest)


def is_traced(values: Iterable[Any]) -> bool:
    return any(isinstance(value, jax.core.Tracer) for value in values)


def is_mapped(values: Iterable[Any]) -> bool:
    """True under `jax.vmap`. A `jax.vmap` outside of a `jax.jit` cannot be seen yet."""
    # JAX exports no class for these tracers, so they are recognised by the name of their class, which a test pins.
    return any(type(value).__name__ == "BatchTracer" for value in values)


def is_staged(values: Iterable[Any]) -> bool:
    """True where operations become part of a program, as under `jax.jit`, instead of running at once."""

    def staged(value: Any) -> bool:
        if type(value).__name__ == "BatchTracer":
            return staged(value.val)
        return isinstance(value, jax.core.Tracer)

    return any(map(staged, values))


def points_of(values: Iterable[Any]) -> int:
    """The number of points that `jax.vmap` maps values over, as far as it is known; 1 without `jax.vmap`."""

    def points(value: Any) -> int:
        if type(value).__name__ != "BatchTracer":
            return 1
        axis = value.batch_dim
        size = value.val.shape[axis] if isinstance(axis, int) else 1
        return points(value.val) * (size if isinstance(size, int) else 1)

    return max(map(points, values), default=1)


def is_sharded(values: Iterable[Any]) -> bool:
    """True where the types of values carry a mesh of devices, for example under `jax.shard_map`."""
    meshes = [getattr(getattr(jax.typeof(value), "sharding", None), "mesh", None) for value in values]
    return any(mesh is not None and not mesh.empty for mesh in meshes)


def is_varying(values: Iterable[Any]) -> bool:
    """True under a `jax.shard_map` that checks which axes values vary along."""
    return any(_varying(jax.typeof(value)) for value in values)


def computes_on_gpu() -> bool:
    return jax.default_backend() == "gpu"


def gpu_capability() -> int | None:
    """The lowest compute capability of the GPUs of this process, times ten; None if no GPU has one."""
    found = [getattr(device, "compute_capability", None) for device in jax.local_devices()]
    numbers = [round(10 * float(text)) for text in found if text and text.replace(".", "").isdecimal()]
    return min(numbers, default=None)


def define_primitive(
    name: str,
    results: Callable[..., Sequence[tuple[tuple[int, ...], Any, bool]]],
    program: Callable[..., Callable],
    batch: Callable[..., tuple[Sequence[Any], Sequence[int]]],
    lowerings: Mapping[str, Callable[..., Any]],
) -> Primitive:
    """A primitive that stands for a program and has faster implementations on some platforms.

    Args:
        results: maps the avals of the operands and the parameters to the shapes, dtypes and weak types of the results.
        program: maps the parameters to the function that the primitive stands for. Derivatives and all other platforms
            use this function.
        batch: the rule for `jax.vmap`. Takes the operands, their mapped axes (None for unmapped operands) and the
            parameters.
        lowerings: per platform, a function that maps the operand avals and the parameters to a lowering rule, or to
            None to use the program.
    """
    primitive = Primitive(name)
    primitive.multiple_results = True

    def abstract(*avals: Any, **params: Any) -> list[Any]:
        return [jax.core.ShapedArray(shape, dtype, weak_type=weak) for shape, dtype, weak in results(avals, **params)]

    @lru_cache(128)
    def compiled(params: tuple) -> Callable:
        return jax.jit(lambda *operands: primitive.bind(*operands, **dict(params)))

    def run_now(*operands: Any, **params: Any) -> Any:
        # Without `jax.jit` there is no compiled program to put a kernel into.
        if jax.config.jax_disable_jit:  # type: ignore[attr-defined]
            return program(**params)(*operands)
        return compiled(tuple(params.items()))(*operands)

    def derivative(primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> Any:
        return jax.jvp(program(**params), tuple(primals), tuple(map(ad.instantiate_zeros, tangents)))

    def lower_anywhere(ctx: Any, *operands: Any, **params: Any) -> Any:
        return lowering_rule(program(**params))(ctx, *operands)

    def lower_on(special: Callable[..., Any]) -> Callable[..., Any]:
        def lower(ctx: Any, *operands: Any, **params: Any) -> Any:
            # An exported program has to run in other processes, which do not have the machine code of this one.
            exported = getattr(ctx.module_context.lowering_parameters, "for_export", False)
            rule = None if exported else special(ctx.avals_in, **params)
            return rule(ctx, *operands) if rule else lower_anywhere(ctx, *operands, **params)

        return lower

    def standing_for(eqn: JaxprEqn) -> ClosedJaxpr:
        return jax.make_jaxpr(program(**eqn.params))(*(atom.aval for atom in eqn.invars))

    primitive.def_abstract_eval(abstract)
    primitive.def_impl(run_now)
    ad.primitive_jvps[primitive] = derivative
    batching.primitive_batchers[primitive] = batch
    mlir.register_lowering(primitive, lower_anywhere)
    for platform, special in lowerings.items():
        mlir.register_lowering(primitive, lower_on(special), platform=platform)
    _STANDING_FOR[primitive] = standing_for
    return primitive


def define_number(name: str, value: float) -> Callable[[Any], Any]:
    """A number that programs can tell apart from other numbers of equal value, as a function of the dtype."""
    primitive = Primitive(name)
    primitive.def_abstract_eval(lambda *, dtype: jax.core.ShapedArray((), dtype))
    primitive.def_impl(lambda *, dtype: jax.numpy.asarray(value, dtype))
    mlir.register_lowering(
        primitive, mlir.lower_fun(lambda *, dtype: jax.lax.full((), value, dtype), multiple_results=False)
    )
    return lambda dtype: primitive.bind(dtype=np.dtype(dtype))


def lowering_rule(function: Callable) -> Callable[..., Any]:
    """The lowering rule of a function that returns several results."""
    return mlir.lower_fun(function, multiple_results=True)


def apart(results: Sequence[Any]) -> Sequence[Any]:
    """The results of a call, behind an optimization barrier, so that a loop body never ends with the call itself.

    XLA compares the operands of the last operation of a loop body with the values that the loop carries, to find values
    that stay the same in all steps. It does so even if that operation is a call instead of a tuple; the call would then
    run once, before the loop.
    """
    return stablehlo.OptimizationBarrierOp(results).results


def keep_alive(ctx: Any, thing: Any) -> None:
    """Keep an object alive at least as long as JAX keeps the program being lowered."""
    ctx.module_context.add_keepalive(thing)


def capsule(address: int) -> Any:
    """The address of a function as a capsule, the form that JAX accepts."""
    new = ctypes.pythonapi.PyCapsule_New
    new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    return new(address, None, None)
