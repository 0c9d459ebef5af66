import shutil
import subprocess

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import graphax as gx
from graphax.native import handler

POINTS = np.linspace(0.1, 1.0, 8)


@pytest.fixture
def doctored(monkeypatch, tmp_path):
    """Replace jaxlib's header by one of another major version."""
    text = handler.header().read_text()
    assert "#define XLA_FFI_API_MAJOR 0" in text
    path = tmp_path / "c_api.h"
    path.write_text(text.replace("#define XLA_FFI_API_MAJOR 0", "#define XLA_FFI_API_MAJOR 7"))
    monkeypatch.setattr(handler, "header", lambda: path)
    handler.interface_version.cache_clear()
    yield
    handler.interface_version.cache_clear()


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
def test_every_offset_is_that_of_the_header(tmp_path):
    """A C compiler reads the header that ships with jaxlib."""
    checks = [
        f'_Static_assert(offsetof({struct}, {member}) == {offset}, "{name}");'
        for name, (struct, member, offset) in handler.OFFSETS.items()
    ]
    source = tmp_path / "offsets.c"
    source.write_text(
        "\n".join(["#include <stddef.h>", "#include <stdint.h>", f'#include "{handler.header()}"', *checks])
    )
    done = subprocess.run(["cc", "-fsyntax-only", str(source)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_another_major_version_is_left_to_xla(doctored):
    function = lambda x: jnp.sin(x) * x
    got = jax.jit(jax.vmap(gx.jacve(function)))(POINTS)
    np.testing.assert_allclose(got, np.cos(POINTS) * POINTS + np.sin(POINTS))
    assert "has version 7." in gx.explain(function, 0.5).backend.reason


def test_another_major_version_is_one_clear_line_under_native(doctored):
    with pytest.raises(gx.NativeError, match=r"interface has version 7\.\d+, but kernels are written for 0\.x"):
        jax.jit(jax.vmap(gx.jacve(lambda x: jnp.sin(x) * x, backend="native")))(POINTS)


@pytest.mark.parametrize("lanes", [1, 8, 16, 32, 64])
@pytest.mark.parametrize("work", [0, 1, 1_000, 100_000, 10**9])
def test_chunks_are_whole_blocks(work, lanes):
    """A block that began before its chunk would write outside the points."""
    chunk = handler.chunk_size(work, lanes)
    assert chunk >= lanes
    assert chunk % lanes == chunk % 16 == 0


@pytest.mark.parametrize("points", [1, 63, 64, 65, 257])
def test_long_loops_stay_within_their_points(points):
    """If steps are short, several vectors run side by side; if loops are long, a thread takes few points."""

    def function(x):
        return jax.lax.fori_loop(0, 4_000, lambda _, c: c * 0.999 + 0.001 * x, x)

    x = np.linspace(0.1, 1.0, points, dtype=np.float32)
    got = jax.jit(jax.vmap(gx.kernel(function, backend="native")))(x)
    np.testing.assert_allclose(got, x, rtol=1e-3)
