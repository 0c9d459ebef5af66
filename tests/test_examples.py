"""Every example runs at a small size, and its result is right."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"
# The arguments, and text that the output must contain.
RUNS = {
    "newton.py": (["--points", "16"], r"PropaneCombustion.*largest residual \d\.\de-1\d"),
    "inverse_kinematics.py": (["--poses", "32"], r"reached 100\.0% of the poses"),
    "shock_tube.py": (["--cells", "60"], r"mass lost: \d\.\de-\d\d; pressure behind the contact 0\.30"),
    "greeks.py": (["--options", "50"], r"vanna: .*; symmetric to \d\.\de-1\d"),
    "layer_jacobians.py": (["--samples", "16"], r"mean singular values"),
    "stiff_network.py": (["--conditions", "8", "--repeat", "1"], r"number of steps for 100\.0% .*difference \d\.\de-"),
    "camera_calibration.py": (["--cameras", "8", "--repeat", "1"], r"(100\.0%.*){3}"),
}
# What graphax is compared with, if it is not a mode of JAX.
RIVALS = {"stiff_network.py": "diffrax.Kvaerno5", "camera_calibration.py": "optimistix.LevenbergMarquardt"}
DRAWN = {"shock_tube.py": ["--cells", "40"], "stiff_network.py": ["--conditions", "4", "--repeat", "1"]}


def run(name, arguments):
    environment = {**os.environ, "PYTHONWARNINGS": "error", "JAX_PLATFORMS": "cpu"}
    command = [sys.executable, str(EXAMPLES / name), *arguments]
    return subprocess.run(command, capture_output=True, text=True, env=environment, check=False)


@pytest.mark.slow
@pytest.mark.parametrize("name", RUNS)
def test_examples_give_the_right_result(name):
    arguments, expected = RUNS[name]
    result = run(name, arguments)
    assert result.returncode == 0, result.stderr
    assert re.search(expected, result.stdout, re.DOTALL), result.stdout
    assert RIVALS.get(name, "jax.jac") in result.stdout


@pytest.mark.slow
@pytest.mark.parametrize("name", DRAWN)
def test_results_are_drawn(name, tmp_path):
    path = tmp_path / "drawn.png"
    assert run(name, [*DRAWN[name], "--plot", str(path)]).returncode == 0
    assert path.stat().st_size > 10_000


def test_every_example_is_tested():
    assert {path.name for path in EXAMPLES.glob("*.py")} == {*RUNS, "demo.py", "comparing.py"}
