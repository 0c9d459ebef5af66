"""How threads of a GPU divide the work of a point, if that takes less time than one thread per point."""

from ..gpu_times import FEW_POINTS, ThreadWork, kernel_on_gpu
from .portions import Portions, portions
from .sharing import SharedLoop, shared_loop, work_of_a_thread
from .statements import Statements

Division = SharedLoop | Portions | None
"""Threads that take steps of a loop, warps that compute portions of the results, or one thread per point."""

# If a GPU is busy, threads that share a point may do this many times the work of a single thread.
_MOST_REPEATED = 2


def work(program: Statements, division: Division) -> ThreadWork:
    """The work of a thread."""
    return division.work if isinstance(division, Portions) else work_of_a_thread(program, division)


def best_division(program: Statements, points: int) -> Division:
    """The quickest division for this many points. With many, only a loop that is most of the work is divided."""
    loop = shared_loop(program)
    if points > FEW_POINTS:
        if loop is None:
            return None
        together, alone = work(program, loop), work(program, None)
        return loop if together.threads * together.executed <= _MOST_REPEATED * alone.executed else None
    ways = dict.fromkeys((None, loop, portions(program, points)))
    return min(ways, key=lambda way: kernel_on_gpu(work(program, way), points))
