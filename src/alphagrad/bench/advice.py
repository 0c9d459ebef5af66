"""Advice from a benchmark, one sentence per case."""

from collections.abc import Sequence
from math import prod

import jax

from .case import Case
from .measure import Measurement
from .orders import BEST
from .report import best_of_jax, by_case, median

# The usual call, or JAX, is recommended unless another one is faster by more than this factor.
_WORTH_IT = 1.1
# A compile time that is this many seconds longer than JAX's is mentioned.
_LONG = 1.0


def advice(measurements: Sequence[Measurement]) -> tuple[str, ...]:
    """A sentence per case that has times of both sides."""
    said = [_sentence(rows) for rows in by_case(measurements)]
    return tuple(sentence for sentence in said if sentence)


def _sentence(rows: Sequence[Measurement]) -> str:
    theirs, ours = best_of_jax(rows), [row for row in rows if row.timing and "/" in row.contender]
    if theirs is None or not ours:
        return ""
    chosen = min(ours, key=median)
    usual = next((row for row in ours if row.contender == "auto/auto"), chosen)
    chosen = usual if median(usual) <= _WORTH_IT * median(chosen) else chosen
    case, ratio = chosen.case, median(theirs) / median(chosen)
    where = f"{case.task.name}, batch {case.batch:,}"
    mode, call = f"jax.{_mode(case, theirs.contender)}", _call(case, chosen.contender)
    if ratio < 1 / _WORTH_IT:
        return f"{where}: stay with {mode}; {call} takes {1 / ratio:.1f} times as long"
    if ratio <= _WORTH_IT:
        return f"{where}: stay with {mode}; {call} takes as long, give or take 10 %"
    return f"{where}: use {call}; it is {ratio:.1f} times as fast as {mode}{_compiling(chosen, theirs)}"


def _mode(case: Case, name: str) -> str:
    """The name of a mode in JAX: reverse mode of a function with one result is its gradient."""
    outputs = jax.tree.leaves(jax.eval_shape(case.function, *case.task.arguments(case.scale)))
    is_number = len(outputs) == 1 and prod(outputs[0].shape) == 1
    return "grad" if is_number and name == "jacrev" else name


def _call(case: Case, contender: str) -> str:
    order, _, backend = contender.rpartition("/")
    function = case.task.name.rpartition(":")[2]
    found = f"alphagrad.search({function}, ...).order" if order == BEST else f'"{order}"'
    options = [f"order={found}"] * (order != "auto") + [f'backend="{backend}"'] * (backend != "auto")
    return f"gx.jacve({', '.join([function, *options])})"


def _compiling(ours: Measurement, theirs: Measurement) -> str:
    if ours.compile_seconds is None or theirs.compile_seconds is None:
        return ""
    longer = ours.compile_seconds - theirs.compile_seconds
    return f", and takes {longer:.1f} s longer to compile" if longer > _LONG else ""
