"""Passes through loops: Jacobians carried forward and adjoints carried backward, with one elimination per step."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from . import _jax, backend
from ._jax import Var
from .block import JacobianBlock
from .bundles import Key, Passing, members_of
from .edge_block import PassageBlock, blocks_of, bundled, perform
from .elements import Element, Time, settled_positions
from .labelled import arranged, of_dtype, place, view
from .loop import Loop
from .part import Part, recast, settled
from .plan import Edge, Plan
from .structure import Structure, without_lists
from .sums import add
from .terms import AnyStructure, terms_of
from .while_loop import Through, While

Blocks = dict[Key, JacobianBlock]
Evaluate = Callable[[Any, Sequence[Any], str], tuple[list[Any], dict[Edge, Any]]]
Eliminate = Callable[[Plan, dict[Edge, Any]], dict[Edge, Any]]


@partial(jax.tree_util.register_dataclass, data_fields=["operands"], meta_fields=["passage", "backend"])
@dataclass(frozen=True, eq=False)
class LoopBlock(PassageBlock):
    """A loop with the values of its operands. Its steps run on ``backend``."""

    passage: Loop
    operands: list[Any]
    backend: str

    @property
    def parts(self) -> tuple[list[Any], list[Any], list[Any]]:
        """The constants, the initial carries, and the elements over time."""
        first, second = self.passage.constants, self.passage.constants + self.passage.carries
        return self.operands[:first], self.operands[first:second], self.operands[second:]

    def run(self, step: Callable, *args: Any) -> Any:
        """Run a step, a function of pytrees, on the backend."""
        leaves, tree = jax.tree.flatten(args)
        return backend.run(lambda *flat: step(*jax.tree.unflatten(tree, flat)), leaves, self.backend)

    def scan(self, step: Callable, start: Any, elements: Any, turned: bool = False) -> Any:
        """Carry a state through all steps, with the number of each step; ``turned`` from last to first.

        A state that is carried forward through a `While` must begin with the carries of the loop itself.
        """
        loop = self.passage
        if isinstance(loop, While):
            return self._while(loop, lambda state: step(state, (elements, 0))[0], start), {}
        numbered = elements, jnp.arange(loop.length, dtype=np.int32)
        return lax.scan(step, start, numbered, loop.length, reverse=loop.backward != turned)

    def _while(self, loop: While, step: Callable, start: Any) -> Any:
        constants, *_ = self.parts
        return lax.while_loop(lambda state: loop.condition(*constants, *state[0])[0], step, start)


def push(passing: Passing, left: Any, behind: Blocks, evaluate: Evaluate, eliminate: Eliminate) -> Blocks:
    """Carry edges into a loop forward through it."""
    loop, way = left.passage, passing.how
    graph = loop.graph
    constants, start, elements = left.parts
    over_time = {key: Cut(behind[key], found, way.time) for key, found in way.elements.items()}
    kept = {key: block for key, block in behind.items() if key[0] < loop.constants}
    vertices = {key: (graph.inputs[key[0]], way.ends[key[1]]) for key in (*kept, *over_time, *way.carried)}
    after: dict[Key, Any] = {
        key: (graph.outputs[key[0] - loop.constants], way.ends[key[1]]) for key in way.carried
    }  # fmt: skip
    written: dict[Key, Any] = {
        (o, member): (vertex, end)
        for o, vertex in enumerate(graph.outputs)
        for member, end in way.ends.items()
        if o >= loop.carries and (vertex, end) in way.plan.results
    }

    def enclosed(blocks: dict[Any, Any], key: Any) -> Any:
        return embedded(blocks.get(after[key]), way.carried[key], graph.vertices[graph.inputs[key[0]]].dtype)

    def step(values: Any, carried: Any, now: Any, number: Any) -> Any:
        results, local = evaluate(loop.body, values, "xla")
        local |= {vertices[key]: block for key, block in kept.items()}
        local |= {vertices[key]: cut.at(now[key], number) for key, cut in over_time.items()}
        local |= {vertices[key]: JacobianBlock.of(way.carried[key], numbers) for key, numbers in carried.items()}
        found = eliminate(way.plan, local)
        arrays = {key: arrays_of(found[edge], way.time) for key, edge in written.items()}
        return results[: loop.carries], {key: enclosed(found, key) for key in carried}, arrays

    def one(state: Any, given: Any) -> Any:
        (carries, carried), ((now, moved), number) = state, given
        values, new, arrays = left.run(step, [*constants, *carries, *now], carried, moved, number)
        return (values, new), arrays

    first = {key: enclosed({after[key]: behind.get(key)}, key) for key in way.carried}
    moved = {key: cut.moving for key, cut in over_time.items()}
    (_, last), arrays = left.scan(one, (start, first), (elements, moved))
    results = {(i - loop.constants, j): JacobianBlock.of(way.carried[i, j], v) for (i, j), v in last.items()}
    structures = members_of(passing.structure)
    results |= {key: block_over_time(structures[key], found, way.time, behind) for key, found in arrays.items()}
    return {key: results[key] for key in structures}


def pull(passing: Passing, right: Any, before: Blocks, evaluate: Evaluate, eliminate: Eliminate) -> Blocks:
    """Carry edges out of a loop backward through it."""
    if isinstance(passing.how, Through):
        units = {key: JacobianBlock.of(structure) for key, structure in passing.how.units.items()}
        jacobian = push(passing.how.pushing, right, units, evaluate, eliminate)
        return blocks_of(perform(passing.how.product, bundled(before), bundled(jacobian)))
    loop, way = right.passage, passing.how
    graph = loop.graph
    ran = right if isinstance(right, LoopRun) else run_forward(right, passing, evaluate)
    over_time = {key: Cut(before[key].transpose(), found, way.time) for key, found in way.elements.items()}
    vertices = {key: (way.ends[key[0]], graph.outputs[key[1]]) for key in (*over_time, *way.carried)}
    written = {
        (member, n): (end, vertex)
        for n, vertex in enumerate(graph.inputs)
        for member, end in way.ends.items()
        if loop.is_element(n) and (end, vertex) in way.plan.results
    }

    def dtype(n: int) -> Any:
        return graph.vertices[graph.inputs[n]].dtype

    def step(saved: Any, carried: Any, summed: Any, now: Any, number: Any) -> Any:
        local = ran.local_of(saved)
        local |= {vertices[key]: cut.at(now[key], number).transpose() for key, cut in over_time.items()}
        local |= {vertices[key]: JacobianBlock.of(way.carried[key], numbers) for key, numbers in carried.items()}
        found = eliminate(way.plan, local)
        new = {
            (m, c): embedded(found.get((way.ends[m], graph.inputs[loop.constants + c])), s, dtype(loop.constants + c))
            for (m, c), s in way.carried.items()
        }
        added = {
            (m, n): lax.add(summed[m, n], embedded(found[way.ends[m], graph.inputs[n]], s, dtype(n)))
            for (m, n), s in way.summed.items()
        }
        return new, added, {key: arrays_of(found[edge].transpose(), way.time) for key, edge in written.items()}

    def one(state: Any, given: Any) -> Any:
        (saved, moved), number = given
        new, added, arrays = right.run(step, saved, *state, moved, number)
        return (new, added), arrays

    first = {key: embedded(before.get(key), s, dtype(loop.constants + key[1])) for key, s in way.carried.items()}
    zero = {key: embedded(None, s, dtype(key[1])) for key, s in way.summed.items()}
    moved = {key: cut.moving for key, cut in over_time.items()}
    (last, total), arrays = right.scan(one, (first, zero), (ran.stored, moved), turned=True)
    results = {(m, loop.constants + c): JacobianBlock.of(way.carried[m, c], v) for (m, c), v in last.items()}
    results |= {key: JacobianBlock.of(way.summed[key], numbers) for key, numbers in total.items()}
    structures = members_of(passing.structure)
    for key, found in arrays.items():
        results[key] = block_over_time(structures[key].transposed, found, way.time, before).transpose()
    return {key: results[key] for key in structures}


@dataclass(frozen=True, eq=False)
class LoopRun(LoopBlock):
    """A loop that has been run forward, with the local blocks of all its steps.

    Attributes:
        results: the results of the loop.
        local_of: maps the arrays of one step to its local blocks.
        stored: the arrays of all steps, over time.
    """

    results: list[Any]
    local_of: Callable[[Any], dict[Edge, Any]]
    stored: list[Any]


def run_forward(block: LoopBlock, passing: Passing, evaluate: Evaluate) -> LoopRun:
    """Run a loop that will be passed backward. Blocks that are the same in all steps are kept once."""
    loop = block.passage
    wanted = {edge for edge in passing.how.plan.operands if edge in loop.graph.edges}
    constants, start, elements = block.parts
    trees: list[Any] = []

    def once(*values: Any) -> list[Any]:
        results, local = evaluate(loop.body, values, "xla")
        arrays, tree = jax.tree.flatten({edge: local[edge] for edge in wanted if edge in local})
        trees.append(tree)
        return [*results, *arrays]

    program = _jax.trace(once, *(var.aval for var in loop.body.traced.program.inputs))
    steady, varying = _jax.split_by(program, program.inputs[loop.constants :])
    known = program.constants | dict(zip(program.inputs, constants, strict=False))
    _jax.run(steady, known)
    moves = set(program.inputs[loop.constants :]).union(*(eqn.outvars for eqn in varying))
    count = len(loop.body.traced.program.outputs)
    outputs, atoms = program.outputs[loop.carries : count], program.outputs[count:]
    places = [n for n, atom in enumerate(atoms) if isinstance(atom, Var) and atom in moves]

    def one(carries: Any, given: Any) -> Any:
        now, _ = given
        values = known | dict(zip(program.inputs[loop.constants :], [*carries, *now], strict=True))
        _jax.run(varying, values)
        kept = _jax.read_all(values, [atoms[n] for n in places])
        return _jax.read_all(values, program.outputs[: loop.carries]), (_jax.read_all(values, outputs), kept)

    last, (rows, stored) = block.scan(one, start, elements)

    def local_of(saved: Sequence[Any]) -> dict[Edge, Any]:
        arrays = [None if n in places else _jax.read_all(known, [atom])[0] for n, atom in enumerate(atoms)]
        for n, array in zip(places, saved, strict=True):
            arrays[n] = array
        return jax.tree.unflatten(trees[0], arrays)

    return LoopRun(loop, block.operands, block.backend, [*last, *rows], local_of, stored)


class Cut:
    """A block over time, to be read one step at a time."""

    def __init__(self, block: JacobianBlock, elements: Sequence[Element], time: Time):
        self.elements, self.time = elements, time
        self.parts = [recast(settled(part), e.first) for part, e in zip(block.parts, elements, strict=True)]
        # The values that vary between steps, with the steps along the first axis.
        self.moving = [
            jnp.moveaxis(part.values, part.structure.values.index(e.label), 0)
            for part, e in zip(self.parts, elements, strict=True)
            if e.label is not None
        ]

    def at(self, moved: Iterable[Any], number: Any) -> JacobianBlock:
        """The block at one step, given the values that vary."""
        rest = iter(moved)
        parts = []
        for part, element in zip(self.parts, self.elements, strict=True):
            values = part.values if element.label is None else next(rest)
            lists = {**part.lists, self.time.step: jnp.reshape(number, (1,))}
            named = {name: lists[name] for name in element.structure.names}
            parts.append(Part(element.structure, _without_time(values, part, element), part.dtype, lists=named))
        return JacobianBlock(tuple(parts))


def _without_time(values: Any, part: Part, element: Element) -> Any:
    """The values in the shape of a single step."""
    return values if values is None else jnp.reshape(values, element.structure.value_shape)


def embedded(block: JacobianBlock | None, pattern: Structure, dtype: Any) -> jax.Array:
    """The values of a block within a structure that holds all of its entries that can differ from zero."""
    total = jnp.zeros(pattern.value_shape, dtype)
    placed = []
    for part in () if block is None else block.parts:
        part = settled(part)
        if not all(isinstance(d.at, range) for axis in part.structure.out + part.structure.inp for d in axis):
            part = recast(part, without_lists(part.structure))
        how = add(pattern, part.structure)
        if how is not None and how.structure == pattern:
            part = recast(part, how.right_first)
            values = place(part.coefficient(), part.structure.values, how.right, part.lists)
        else:
            # The plan of a step may hold entries that no step can fill; drop them.
            dense = part.placed(part.structure.out + part.structure.inp)
            values = arranged(*view(dense, pattern.out + pattern.inp), pattern.values)
        placed.append(of_dtype(values, dtype))
    return reduce(lax.add, placed) if placed else total


def arrays_of(block: JacobianBlock, time: Time) -> list[Any]:
    """The values of all terms, at positions that are the same in all steps or follow the step number."""
    return [recast(settled(part), settled_positions(part.structure, time)).values for part in block.parts]


def block_over_time(structure: AnyStructure, arrays: Sequence[Any], time: Time, blocks: Blocks) -> JacobianBlock:
    """The block that all steps have written together. Steady positions are taken from ``blocks``."""
    steady = {name: array for block in blocks.values() for part in block.parts for name, array in part.lists.items()}
    parts = []
    for term, array in zip(terms_of(structure), arrays, strict=True):
        values = array[0] if array is not None and time.length == 1 else array
        parts.append(Part(term, values, lists={name: steady[name] for name in term.names}))
    return JacobianBlock(tuple(parts))
