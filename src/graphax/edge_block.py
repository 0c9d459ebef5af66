"""Edges of all kinds with their values."""

from collections.abc import Mapping
from dataclasses import dataclass

from . import block
from .block import JacobianBlock
from .bundles import PLAIN, AnyEdge, Bundle, Key, Memberwise, Mirrored, Operation, Passage, Pick, Turned


@dataclass(frozen=True, eq=False)
class BundleBlock:
    """The blocks of a `Bundle`, by member."""

    members: dict[Key, JacobianBlock]


@dataclass(frozen=True, eq=False)
class PassageBlock:
    """A passage with the values that it carries."""

    passage: Passage


EdgeBlock = JacobianBlock | BundleBlock | PassageBlock


def edge_block(structure: AnyEdge) -> EdgeBlock:
    """The block of an edge whose coefficients are known."""
    assert not isinstance(structure, Passage)
    if isinstance(structure, Bundle):
        return bundled({key: JacobianBlock.of(member) for key, member in structure.members})
    return JacobianBlock.of(structure)


def bundled(members: Mapping[Key, JacobianBlock]) -> JacobianBlock | BundleBlock:
    return members[PLAIN] if tuple(members) == (PLAIN,) else BundleBlock(dict(members))


def blocks_of(edge: EdgeBlock) -> dict[Key, JacobianBlock]:
    assert not isinstance(edge, PassageBlock)
    return edge.members if isinstance(edge, BundleBlock) else {PLAIN: edge}


def perform(operation: Operation, left: EdgeBlock, right: EdgeBlock) -> EdgeBlock:
    """Carry out a product or a sum that the algebra has worked out, on edges other than passages."""
    assert not isinstance(operation, Pick)
    if isinstance(operation, Turned):
        assert isinstance(left, JacobianBlock)
        return block.mirrored(left) if isinstance(operation, Mirrored) else left.transpose()
    if not isinstance(operation, Memberwise):
        assert isinstance(left, JacobianBlock)
        assert isinstance(right, JacobianBlock)
        return block.perform(operation, left, right)
    first, second = blocks_of(left), blocks_of(right)
    found: dict[Key, JacobianBlock] = {}
    for step in operation.code:
        if step.product is not None:
            assert step.left is not None
            assert step.right is not None
            made = block.perform(step.product, first[step.left], second[step.right])
            found[step.key] = made if step.total is None else block.perform(step.total, found[step.key], made)
        elif step.total is not None:
            found[step.key] = block.perform(step.total, first[step.key], second[step.key])
        else:
            found[step.key] = (first if step.right is None else second)[step.key]
    return bundled(found)
