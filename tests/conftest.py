import atexit
import os
import shutil
import tempfile
import time
from importlib.metadata import version

import pytest

# Programs in tests run once, so compiling fast matters and running fast does not. Without its fusion emitters, XLA
# compiles three times as fast. Newer versions of it have nothing else, and reject the option.
os.environ.setdefault(
    "XLA_FLAGS",
    "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true"
    + " --xla_cpu_use_fusion_emitters=false" * version("jaxlib").startswith("0.10."),
)

# Kernels compiled by tests have their own cache folder.
if "GRAPHAX_CACHE" not in os.environ:
    os.environ["GRAPHAX_CACHE"] = tempfile.mkdtemp(prefix="graphax-")
    atexit.register(shutil.rmtree, os.environ["GRAPHAX_CACHE"], ignore_errors=True)

import jax

jax.config.update("jax_enable_x64", True)
# To test kernels on a GPU: GRAPHAX_TEST_PLATFORM=cuda,cpu pytest tests/graphax/native/test_gpu.py
jax.config.update("jax_platforms", os.environ.get("GRAPHAX_TEST_PLATFORM", "cpu"))


def pytest_runtest_setup(item):
    """Skip slow tests after the time limit, if there is one."""
    until = float(os.environ.get("SLOW_TESTS_UNTIL", "inf"))
    if item.get_closest_marker("slow") and time.time() > until:
        pytest.skip("the time for slow tests is over")
