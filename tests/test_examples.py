"""Every example runs, at a small size, and comes to the right result."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"
# The arguments, and what the output must have in it.
RUNS = {
    "newton.py": (["--points", "16"], r"PropaneCombustion.*largest residual \d\.\de-1\d"),
    "inverse_kinematics.py": (["--poses", "32"], r"reached 100\.0% of the poses"),
    "shock_tube.py": (["--cells", "60"], r"mass lost: \d\.\de-\d\d; pressure behind the contact 0\.30"),
    "greeks.py": (["--options", "50"], r"vanna: .*; symmetric to \d\.\de-1\d"),
    "layer_jacobians.py": (["--samples", "16"], r"mean singular values"),
}


def run(name, arguments):
    environment = {**os.environ, "PYTHONWARNINGS": "error", "JAX_PLATFORMS": "cpu"}
    command = [sys.executable, str(EXAMPLES / name), *arguments]
    return subprocess.run(command, capture_output=True, text=True, env=environment, check=False)


@pytest.mark.slow
@pytest.mark.parametrize("name", RUNS)
def test_it_solves_what_it_says(name):
    arguments, expected = RUNS[name]
    result = run(name, arguments)
    assert result.returncode == 0, result.stderr
    assert re.search(expected, result.stdout, re.DOTALL), result.stdout
    assert "jax.jac" in result.stdout


@pytest.mark.slow
def test_the_shock_tube_is_drawn(tmp_path):
    path = tmp_path / "tube.png"
    assert run("shock_tube.py", ["--cells", "40", "--plot", str(path)]).returncode == 0
    assert path.stat().st_size > 10_000


def test_every_example_is_tested():
    assert {path.name for path in EXAMPLES.glob("*.py")} == {*RUNS, "demo.py", "comparing.py"}
