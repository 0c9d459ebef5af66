"""GPU kernels on this machine: the same code, with one call per thread of a warp."""

import ctypes
import threading
from itertools import product

import jax
import numpy as np

from graphax.backend import _Flat
from graphax.native import host
from graphax.native.points import POINTS
from graphax.native.thread_memory import WARP
from graphax.native.threads import thread_code
from graphax.native.unroll import unroll


def run_warps(statements, operands, batched, points, division=None):
    """The results of a kernel for some points. Batched operands have a leading axis of points."""
    code = thread_code(statements, tuple(batched), division, device=False)
    barrier = threading.Barrier(WARP)
    wait = ctypes.CFUNCTYPE(None)(lambda: barrier.wait(60))
    given = {"graphax_wait": ctypes.cast(wait, ctypes.c_void_p).value}
    library = host.link(host.machine_code(code.text), (POINTS,), given)
    arrays = [np.ascontiguousarray(x, dtype) for x, (_, dtype) in zip(operands, statements.inputs, strict=True)]
    # Fill results with a marker, so that missing writes and writes beyond the end show.
    results = [np.empty((points + 1, *shape), dtype) for shape, dtype in statements.outputs]
    for x in results:
        ctypes.memset(x.ctypes.data, 77, x.nbytes)
    room = np.zeros(code.room + 16, np.int8)
    pointers = [x.ctypes.data for x in (*arrays, *results)]
    types = [ctypes.c_void_p] * len(pointers) + [ctypes.c_int64, ctypes.c_int64, ctypes.c_int32, ctypes.c_void_p]
    types.append(ctypes.c_int32)
    thread = ctypes.CFUNCTYPE(None, *types)(library[POINTS])
    counted = points * code.threads
    for first, portion in product(range(0, counted, WARP * code.points), range(code.portions)):
        threads = [
            threading.Thread(target=thread, args=(*pointers, counted, first, lane, room.ctypes.data, portion))
            for lane in range(WARP)
        ]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
    assert all(set(x[points:].tobytes()) <= {77} for x in results)
    return [x[:points] for x in results]


def on_warps(function, args, batched, divide=lambda statements: None):
    """A function of one point for many, as GPU threads compute it. ``divide`` chooses how they divide a point."""
    single = [np.asarray(x)[0] if marked else x for x, marked in zip(args, batched, strict=True)]
    flat = _Flat.of(function, single)
    points = next(len(x) for x, marked in zip(args, batched, strict=True) if marked)
    # Operands are the arrays that the function closes over, and the arguments that results depend on.
    places = [next((n for n, x in enumerate(single) if x is operand), None) for operand in flat.operands]
    given = [x if n is None else args[n] for x, n in zip(flat.operands, places, strict=True)]
    marks = [n is not None and batched[n] for n in places]
    statements = unroll(flat.program)
    found = run_warps(statements, given, marks, points, divide(statements))
    return jax.tree.unflatten(flat.tree, found)
