"""An attempt that is a script, run in a fresh process."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from .attempt import CRASHED, RIGHT, WRONG, Attempt, Outcome

# A script prints the number of compared numbers after this text, and exits with 3 if some were wrong.
COMPARED = "compared "
WRONG_CODE = 3
PREAMBLE = f'''
import os, sys, threading
os.environ.setdefault("GRAPHAX_CACHE", __import__("tempfile").mkdtemp())
import numpy as np

def finish(compared, problem=None):
    print("{COMPARED}" + str(compared), flush=True)
    if problem:
        print(problem, file=sys.stderr, flush=True)
    sys.exit({WRONG_CODE} if problem else 0)
'''


@dataclass(frozen=True)
class Script:
    """Source text that ends with ``finish(compared, problem)``, and its maximum duration."""

    text: str
    label: str
    seconds: float = 60.0

    def check(self) -> Outcome:
        with tempfile.TemporaryDirectory(prefix="adversary-") as folder:
            path = Path(folder) / "attack.py"
            path.write_text(self.source())
            environment = {**os.environ, "GRAPHAX_CACHE": str(Path(folder) / "cache"), "JAX_TRACEBACK_FILTERING": "off"}
            try:
                done = subprocess.run(
                    [sys.executable, str(path)], env=environment, capture_output=True, text=True, timeout=self.seconds
                )
            except subprocess.TimeoutExpired:
                return Outcome(CRASHED, what=f"no answer in {self.seconds:g} s", kind=f"{self.label}: hangs")
        said = [line for line in done.stdout.splitlines() if line.startswith(COMPARED)]
        numbers = int(said[-1].removeprefix(COMPARED)) if said else 0
        complaint = [line for line in done.stderr.strip().splitlines() if line.strip()][-1:] or [""]
        if done.returncode == 0 and said:
            return Outcome(RIGHT, numbers)
        if done.returncode == WRONG_CODE:
            return Outcome(WRONG, numbers, complaint[0][:500], self.label)
        what = f"exit code {done.returncode}: {complaint[0]}"[:800]
        return Outcome(CRASHED, numbers, what, f"{self.label}: {done.returncode} {complaint[0][:40]}")

    def simpler(self, outcome: Outcome) -> Iterator[Attempt]:
        return iter(())

    def source(self) -> str:
        return PREAMBLE.lstrip() + self.text
