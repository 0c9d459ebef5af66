"""Patterns of linear loops, branches and solves.

The body of a `scan`, `while`, `cond` or linear solve is itself a linear program. Pushing patterns through it shows
which entries it keeps apart, so a batch stays block diagonal through control flow. The values are then found by
applying the whole equation to tangents.
"""

from collections.abc import Sequence
from typing import Any

import jax

from . import _jax
from .axes import labels_of, whole
from .block import JacobianBlock
from .linear_map import Pair, split
from .products import compose
from .rule import LinearCall, dense_pattern, remembered, rules_for
from .structure import Structure, canonical, identity
from .sums import hull
from .terms import pattern_of

Patterns = dict[Pair, Structure]

# A loop whose pattern keeps growing after this many rounds is treated as dense.
_MAX_ROUNDS = 12


@remembered(1024)
def body_patterns(body: Any, moving: tuple[bool, ...]) -> Patterns:
    """The pattern of a jaxpr that is linear in its ``moving`` inputs, by (output, input). Zero patterns are absent.

    The result is cached, because a rule is called once per operand and loops may be nested.
    """
    program = _jax.inlined(body)
    sources = [var for var, moves in zip(program.inputs, moving, strict=True) if moves]
    numbers = [n for n, moves in enumerate(moving) if moves]
    known, linear = split(program, sources, program.outputs)
    found: Patterns = {}

    def run(*operands: Any):
        values = program.environment(operands)
        for var in sources:
            del values[var]
        _jax.run(known, values)
        for (target, source), block in linear.push(values).items():
            found[target, numbers[source]] = pattern_of(block.structure)
        return ()

    jax.eval_shape(run, *(var.aval for var in program.inputs))
    return found


def _union(first: Structure | None, second: Structure | None) -> Structure | None:
    if first is None or second is None:
        return first or second
    return pattern_of(hull(first, second))


def _after(outer: Structure | None, inner: Structure | None) -> Structure | None:
    if outer is None or inner is None:
        return None
    product = compose(outer, inner)
    return None if product is None else product.structure


def _stacked(structure: Structure | None, length: int, out: bool = False, inp: bool = False) -> Structure | None:
    """The pattern with a leading axis over iterations on one or both sides. Iterations do not mix."""
    if structure is None:
        return None
    label = len(structure.sizes)
    axis = () if length == 1 else (whole(label, length),)
    outs = (axis, *structure.out) if out else structure.out
    inps = (axis, *structure.inp) if inp else structure.inp
    return canonical(outs, inps, (*structure.sizes, length), labels_of((*outs, *inps)), None)[0]


def _blocks(patterns: Sequence[Structure | None]) -> list[JacobianBlock | None]:
    return [None if pattern is None else JacobianBlock.of(pattern) for pattern in patterns]


@rules_for("custom_linear_solve")
def _linear_solve(call: LinearCall):
    lengths, solve = call.params["const_lengths"], call.params["jaxprs"].solve
    constants = sum(lengths)
    if call.position < constants:
        return dense_pattern(call)
    inner = call.position - constants
    moving = (False,) * lengths.solve + (True,) * (len(call.operands) - constants)
    patterns = body_patterns(solve, moving)
    return _blocks([patterns.get((n, lengths.solve + inner)) for n in range(len(call.out_shapes))])


@rules_for("cond")
def _cond(call: LinearCall):
    total: list[Structure | None] = [None] * len(call.out_shapes)
    for branch in call.params["branches"]:
        patterns = body_patterns(branch, call.moving[1:])
        total = [_union(old, patterns.get((n, call.position - 1))) for n, old in enumerate(total)]
    return _blocks(total)


@rules_for("scan")
def _scan(call: LinearCall):
    constants, carries = _jax.scan_counts(call.params)
    length = call.params["length"]
    if length == 0:
        # Carries pass through unchanged, and there are no outputs.
        same = JacobianBlock.of(identity(call.shape))
        return [same if constants + n == call.position else None for n in range(len(call.out_shapes))]
    body = _loop_body(call.params["jaxpr"], call.moving, constants, carries)
    sliced = call.position >= constants + carries
    reached = _carried_through(call, body, constants, carries, length if sliced else None)
    if reached is None:
        return dense_pattern(call)
    rows: list[Structure | None] = [reached.get(c) for c in range(carries)]
    for n in range(carries, len(call.out_shapes)):
        through = None
        for c, pattern in reached.items():
            through = _union(through, _after(body.get((n, constants + c)), pattern))
        through = _stacked(through, length, out=True)
        if sliced:
            through = _union(through, _stacked(body.get((n, call.position)), length, out=True, inp=True))
        elif call.position < constants:
            through = _union(through, _stacked(body.get((n, call.position)), length, out=True))
        rows.append(through)
    return _blocks(rows)


@rules_for("while")
def _while(call: LinearCall):
    skipped, constants = call.params["cond_nconsts"], call.params["body_nconsts"]
    if call.position < skipped:
        return [None] * len(call.out_shapes)
    carries = len(call.out_shapes)
    body = _loop_body(call.params["body_jaxpr"], call.moving[skipped:], constants, carries)
    reached = _carried_through(call, body, constants, carries, None, skipped)
    if reached is None:
        return dense_pattern(call)
    return _blocks([reached.get(c) for c in range(carries)])


def _loop_body(body: Any, moving: Sequence[bool], constants: int, carries: int) -> Patterns:
    """The patterns of a loop body, with every carry moving that an iteration can make depend on a moving input."""
    moving = list(moving)
    while True:
        patterns = body_patterns(body, tuple(moving))
        started = [c for c in range(carries) if not moving[constants + c] and any(o == c for o, _ in patterns)]
        if not started:
            return patterns
        for c in started:
            moving[constants + c] = True


def _carried_through(
    call: LinearCall, body: Patterns, constants: int, carries: int, length: int | None, skipped: int = 0
) -> dict[int, Structure] | None:
    """How each carry can depend on the operand after any number of iterations; None if this does not converge."""
    position = call.position - skipped
    start: dict[int, Structure] = {}
    for c in range(carries):
        if position == constants + c:
            start[c] = pattern_of(identity(call.shape))
        elif not constants <= position < constants + carries:
            direct = body.get((c, position))
            direct = direct if length is None else _stacked(direct, length, inp=True)
            if direct is not None:
                start[c] = direct
    reached = dict(start)
    for _ in range(_MAX_ROUNDS):
        grown = dict(reached)
        for c in range(carries):
            for other, pattern in reached.items():
                step = _union(grown.get(c), _after(body.get((c, constants + other)), pattern))
                if step is not None:
                    grown[c] = step
        if grown == reached:
            return reached
        reached = grown
    return None
