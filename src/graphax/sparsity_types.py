"""The paper's sparsity types, derived from structures of rank at most two.

Blocks are written J[i, j, k, l] with output axes i, j and input axes k, l; a missing axis has size 1. The numbers are
only names: graphax does not store them or compute with them.

     1  T[i,j,k,l]                     -1  entries are only moved (slice, reshape, ...)
     2  T[i,j,l] δ[i,k]                -2  T[j,l] δ[i,k]
     3  T[i,j,k] δ[j,l]                -3  T[i,k] δ[j,l]
     4  T[i,j,k] δ[i,l]                -4  T[j,k] δ[i,l]
     5  T[i,j,l] δ[j,k]                -5  T[i,l] δ[j,k]
     6  T[i,j] δ[i,k] δ[j,l]           -6  δ[i,k] δ[j,l]
     7  T[i,j] δ[i,l] δ[j,k]           -7  δ[i,l] δ[j,k]
     8  T[i] δ[i,k] δ[j,l]             -8  T[j] δ[i,k] δ[j,l]
     9  T[i] δ[i,l] δ[j,k]             -9  T[j] δ[i,l] δ[j,k]
    10  c δ[i,k] δ[j,l]               -10  c δ[i,l] δ[j,k]

(The paper prints the same tensor for 4 and -4 and for 5 and -5. The positive types are read here by analogy with 2 and
3: the values vary along the tied axis.)
"""

from .axes import Axis
from .structure import Structure
from .terms import AnyStructure, Terms

_ONE_DELTA = {"ik": 2, "jl": 3, "il": 4, "jk": 5}


def sparsity_type(structure: AnyStructure | None) -> int:
    """The paper's number for a structure; 0 for no edge. Raises ValueError above rank 2 and for sums of terms."""
    if structure is None:
        return 0
    if isinstance(structure, Terms):
        raise ValueError(f"the paper has no sparsity type for sums of terms, but the block is {structure}")
    if not isinstance(structure, Structure):
        raise TypeError(f"sparsity_type takes a Structure, such as block.structure, but got {structure!r}")
    if len(structure.out) > 2 or len(structure.inp) > 2:
        raise ValueError(f"the paper's sparsity types end at rank 2, but the block is {structure}")
    out = [*structure.out, *([()] * (2 - len(structure.out)))]
    inp = [*structure.inp, *([()] * (2 - len(structure.inp)))]
    if not all(_runs_through(axis) for axis in out + inp):
        return -1 if structure.scale is not None else 1
    i, j = (_label(axis) for axis in out)
    k, l = (_label(axis) for axis in inp)  # noqa: E741
    ties = {name for name, a, b in (("ik", i, k), ("jl", j, l), ("il", i, l), ("jk", j, k)) if a is not None and a == b}
    # Axes of size 1 can be counted as tied to one another or not.
    parallel, crossed = ties <= {"ik", "jl"}, ties <= {"il", "jk"}
    free = {label for label in (i, j, k, l) if label is not None} - {label for label in (i, j) if label in (k, l)}
    if not free and (i is not None or j is not None) and (parallel or crossed):
        return _two_deltas(structure, i, j, sign=1 if parallel else -1)
    if structure.scale is not None and free:
        return 1 if not ties else _one_delta(ties, varies=False)
    return 1 if not ties else _one_delta(ties, varies=any(n in structure.values for n in _tied(ties, i, j)))


def _runs_through(axis: Axis) -> bool:
    return len(axis) == 0 or (len(axis) == 1 and axis[0].label is not None and axis[0].at == range(axis[0].size))


def _label(axis: Axis) -> int | None:
    return axis[0].label if axis else None


def _tied(ties: set[str], i: int | None, j: int | None) -> list[int | None]:
    return [i if tie[0] == "i" else j for tie in ties]


def _one_delta(ties: set[str], varies: bool) -> int:
    number = _ONE_DELTA[min(ties)]
    return number if varies else -number


def _two_deltas(structure: Structure, i: int | None, j: int | None, sign: int) -> int:
    if structure.scale == 1.0:
        return -6 if sign > 0 else -7
    if structure.scale is not None or not structure.values:
        return 10 * sign
    carried = (i is None or i in structure.values, j is None or j in structure.values)
    if all(carried):
        return 6 if sign > 0 else 7
    number = 8 if sign > 0 else 9
    return number if carried[0] else -number
