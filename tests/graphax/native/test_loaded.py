import gc
import hashlib
import multiprocessing
import os
import subprocess
import sys
import threading
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import graphax as gx
from graphax.native import disk, host, loaded

from .running import natively

POINTS = np.linspace(0.1, 1.0, 40)


def _function(constant):
    return lambda x: [jnp.sin(constant * x) / (constant + x * x)]


def _run(constant):
    """Run a kernel that differs for each constant."""
    return jax.jit(jax.vmap(natively(_function(constant))))(POINTS)[0]


def _expected(constant):
    return np.sin(constant * POINTS) / (constant + POINTS * POINTS)


def _entries():
    return set(loaded.on_cpu.entries)


def _in_threads(count, work):
    errors = []

    def guarded(number):
        try:
            work(number)
        except BaseException as error:  # noqa: BLE001  threads of a test have nobody else to tell
            errors.append(error)

    threads = [threading.Thread(target=guarded, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


def test_eight_threads_compile_load_and_run():
    def work(number):
        for step in range(4):
            # Some kernels are the same in all threads.
            constant = 2.0 + step if step % 2 else 100.0 + 10 * number + step
            np.testing.assert_allclose(_run(constant), _expected(constant), rtol=1e-12)

    _in_threads(8, work)


def test_eight_threads_run_kernels_that_are_dropped_meanwhile():
    """If the kernel of an executable is dropped, it is recalled when the executable runs."""
    compiled = [jax.jit(jax.vmap(natively(_function(200.0 + n)))) for n in range(4)]
    before = _entries()
    for function in compiled:
        function(POINTS)
    names = sorted(_entries() - before)
    assert len(names) == 4
    stop = threading.Event()

    def drop():
        while not stop.is_set():
            for name in names:
                loaded.on_cpu.entries[name].needed_by = lambda: None
                loaded.on_cpu.unneeded.append(name)
            loaded.on_cpu.drop_unneeded()

    dropper = threading.Thread(target=drop)
    dropper.start()

    def work(number):
        for step in range(50):
            which = (number + step) % 4
            np.testing.assert_allclose(compiled[which](POINTS)[0], _expected(200.0 + which), rtol=1e-12)

    try:
        _in_threads(8, work)
    finally:
        stop.set()
        dropper.join()


def test_a_kernel_that_nobody_needs_is_dropped():
    before = _entries()
    function = jax.jit(jax.vmap(natively(_function(300.0))))
    function(POINTS)
    (name,) = _entries() - before
    entry = loaded.on_cpu.entries[name]
    loaded.on_cpu.drop_unneeded()
    assert entry.kernel is not None
    del function
    jax.clear_caches()
    gc.collect()
    loaded.on_cpu.drop_unneeded()
    assert entry.kernel is None
    # The kernel is loaded under the same name when it is needed again.
    np.testing.assert_allclose(_run(300.0), _expected(300.0), rtol=1e-12)
    assert _entries() - before == {name}


def test_an_interrupt_before_xla_is_told_leaves_nothing_half_done(monkeypatch):
    """A second call works like the first, whether or not the kernel was registered with XLA."""
    register = jax.ffi.register_ffi_target

    def interrupted(*args, **options):
        if heard:
            register(*args, **options)
        raise KeyboardInterrupt

    for heard in (False, True):
        with monkeypatch.context() as patched:
            patched.setattr(jax.ffi, "register_ffi_target", interrupted)
            with pytest.raises(KeyboardInterrupt):
                _run(350.0 + heard)
        np.testing.assert_allclose(_run(350.0 + heard), _expected(350.0 + heard), rtol=1e-12)


def test_a_kernel_that_cannot_be_recalled_is_an_error(monkeypatch, tmp_path):
    monkeypatch.setenv("GRAPHAX_CACHE", str(tmp_path))
    before = _entries()
    function = jax.jit(jax.vmap(natively(_function(400.0))))
    function(POINTS)
    (name,) = _entries() - before
    loaded.on_cpu.entries[name].needed_by = lambda: None
    loaded.on_cpu.unneeded.append(name)
    loaded.on_cpu.drop_unneeded()
    for path in tmp_path.rglob("*.o"):
        path.unlink()
    with pytest.raises(ValueError, match="was dropped and cannot be loaded again"):
        jax.block_until_ready(function(POINTS))


def test_a_file_with_the_right_hash_that_is_no_machine_code_is_replaced(monkeypatch, tmp_path):
    monkeypatch.setenv("GRAPHAX_CACHE", str(tmp_path))
    write = disk.write
    kept = {}
    monkeypatch.setattr(disk, "write", lambda identity, content: kept.update({identity: content}))
    _run(500.0)
    ((identity, content),) = kept.items()
    monkeypatch.setattr(disk, "write", write)
    write(identity, b"no machine code at all")
    jax.clear_caches()
    gc.collect()
    loaded.on_cpu.drop_unneeded()
    np.testing.assert_allclose(_run(500.0), _expected(500.0), rtol=1e-12)
    stored = (disk.kernel_folder() / f"{identity}.o").read_bytes()
    assert stored == hashlib.sha256(content).digest() + content


def _child(queue, constant):
    queue.put(np.asarray(_run(constant)))


def test_a_spawned_process():
    context = multiprocessing.get_context("spawn")
    queue = context.Queue()
    process = context.Process(target=_child, args=(queue, 6.5))
    process.start()
    try:
        np.testing.assert_allclose(queue.get(timeout=100), _expected(6.5), rtol=1e-4)
    finally:
        process.join(100)


_FORKING = """
import os, warnings
warnings.simplefilter("ignore")
import alphagrad, jax
from tests.graphax.native.test_loaded import _expected, _run, np

child = os.fork()
constant = 5.5 if child else 7.5
np.testing.assert_allclose(_run(constant), _expected(constant), rtol=1e-4)
if child == 0:
    function = lambda x: (jax.numpy.sin(constant * x), x / constant)
    found = alphagrad.search(function, 0.5, budget=alphagrad.Budget(evaluations=50), record=False)
    os._exit(found.cost.multiplications > 2)
assert os.waitpid(child, 0)[1] == 0
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_both_processes_after_a_fork():
    """The fork comes before JAX runs anything, because the threads that JAX starts would not exist in the child."""
    child = subprocess.run([sys.executable, "-c", _FORKING], capture_output=True, text=True, timeout=500)
    assert child.returncode == 0, child.stderr[-2000:]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_process_loads_kernels_though_the_lock_was_held():
    """JAX itself does not survive a fork, but graphax does."""
    held, release = threading.Event(), threading.Event()

    def hold():
        with loaded.on_cpu.lock:
            held.set()
            release.wait(60)

    holder = threading.Thread(target=hold)
    holder.start()
    held.wait(60)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        child = os.fork()
    if child == 0:
        code = 1
        try:
            with loaded.on_cpu.lock:
                loaded.on_cpu.drop_unneeded()
                code = 0
        finally:
            os._exit(code)
    release.set()
    holder.join()
    assert os.waitpid(child, 0)[1] == 0


def test_a_kernel_that_cannot_be_loaded_is_left_to_xla(monkeypatch):
    """This holds for every failure with `auto`. With `native`, the error names the user's line."""

    def fail(*_):
        raise RuntimeError("out of memory for code")

    monkeypatch.setattr(loaded.host, "link", fail)
    monkeypatch.setenv("GRAPHAX_WARN", "1")
    function = lambda x: jnp.sin(700.0 * x)
    with pytest.warns(
        UserWarning, match=r"leaves a Jacobian to XLA: its kernel .*RuntimeError: out of memory for code"
    ):
        got = jax.jit(jax.vmap(gx.jacve(function)))(POINTS)
    np.testing.assert_allclose(got, 700 * np.cos(700 * POINTS), rtol=1e-9)
    assert "out of memory for code" in str(gx.explain(function, POINTS[0]).backend)
    with pytest.raises(gx.NativeError, match=r"does not support a function \(.*test_loaded.*out of memory for code"):
        jax.jit(jax.vmap(gx.jacve(function, backend="native")))(POINTS)


def test_an_interrupted_compilation_is_not_kept(monkeypatch, tmp_path):
    """It is kept neither on disk nor in the process. The next call compiles it."""
    monkeypatch.setenv("GRAPHAX_CACHE", str(tmp_path))
    # The first kernel of a process also stores a page of entries.
    _run(374.0)
    before = set(tmp_path.rglob("*.o"))

    def interrupted(code):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(host, "machine_code", interrupted)
        with pytest.raises(KeyboardInterrupt):
            _run(375.0)
    assert set(tmp_path.rglob("*.o")) == before
    np.testing.assert_allclose(_run(375.0), _expected(375.0), rtol=1e-12)
    assert len(set(tmp_path.rglob("*.o")) - before) == 1
