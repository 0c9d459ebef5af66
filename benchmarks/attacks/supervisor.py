"""Starts workers for all areas, distributes time, and handles workers that die."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .areas import AREAS, Area
from .report import Finding, Tally

LONGEST_CHUNK = 180.0
# The seconds until a worker has imported everything. They count toward the time of its area.
STARTING = 4.0


@dataclass
class Running:
    """A worker process, and how far its report has been read."""

    area: Area
    process: subprocess.Popen
    folder: tempfile.TemporaryDirectory
    errors: Path
    report: Path
    started: float
    heard: float
    offset: int = 0
    at: int | None = None
    place: int = 0
    finished: bool = False

    def news(self) -> list[dict[str, Any]]:
        """The complete lines of the report that were not read yet."""
        if not self.report.exists():
            return []
        with self.report.open("rb") as file:
            file.seek(self.offset)
            text = file.read()
        whole = text[: text.rfind(b"\n") + 1]
        self.offset += len(whole)
        return [json.loads(line) for line in whole.splitlines()]

    def stop(self) -> None:
        """End the worker and everything that it started, which is its process group."""
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            return
        self.process.wait()


@dataclass
class Supervisor:
    """Splits time over areas and runs their attempts in processes, a few at once.

    Attributes:
        command: the command that starts a worker, without its options.
        only: the number of a single attempt to run in every area, instead of all that there is time for.
        patience: overrides the seconds that workers may be silent.
    """

    areas: Sequence[Area]
    seconds: float
    seed: int
    jobs: int
    only: int | None = None
    patience: float | None = None
    command: Sequence[str] = (sys.executable, "-m", "attacks.worker")
    progress: Callable[[dict[str, Tally]], None] = lambda tallies: None
    tallies: dict[str, Tally] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)

    def run(self) -> None:
        """Attack until time is up."""
        self.tallies.update({area.name: Tally() for area in self.areas})
        self._next = dict.fromkeys(self.tallies, 0 if self.only is None else self.only)
        running: list[Running] = []
        start = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="adversary-cache-") as cache:
            try:
                while True:
                    running = [worker for worker in running if not self._ended(worker)]
                    while len(running) < self.jobs and (area := self._neediest(running, time.monotonic() - start)):
                        running.append(self._start(area, cache))
                    self.progress(self.tallies)
                    if not running:
                        return
                    time.sleep(0.1)
            finally:
                for worker in running:
                    worker.stop()

    def _neediest(self, running: Sequence[Running], elapsed: float) -> Area | None:
        """The area that has used the smallest part of its share, if there is time for a chunk."""
        if self.only is not None:
            waiting = [area for area in self.areas if self._next[area.name] == self.only]
            return waiting[0] if waiting else None
        left = {area.name: self._budget(area) - self.tallies[area.name].seconds for area in self.areas}
        for worker in running:
            left[worker.area.name] -= max(time.monotonic() - worker.started, LONGEST_CHUNK / 4)
        needy = max(self.areas, key=lambda area: left[area.name] / area.share)
        unheard = self._next[needy.name] == 0
        return needy if unheard or (left[needy.name] > 2 * STARTING and elapsed < self.seconds) else None

    def _budget(self, area: Area) -> float:
        return self.seconds * self.jobs * area.share / sum(other.share for other in self.areas)

    def _start(self, area: Area, cache: str) -> Running:
        folder = tempfile.TemporaryDirectory(prefix="adversary-")
        report, skip, errors = (Path(folder.name) / name for name in ("report", "skip.json", "errors"))
        known = [f.kind for f in self.findings if f.area == area.name]
        skip.write_text(json.dumps(known))
        first = self._next[area.name]
        count = 1 if self.only is not None else area.chunk
        self._next[area.name] = first + count
        left = self._budget(area) - self.tallies[area.name].seconds - STARTING
        seconds = min(LONGEST_CHUNK, max(2.0, left))
        command = [*self.command, "--area", area.name, "--seed", self.seed, "--first", first, "--count", count]
        command += ["--seconds", seconds, "--report", report, "--skip", skip]
        with errors.open("wb") as file:
            process = subprocess.Popen(
                [str(part) for part in command],
                env=worker_environment(area, cache),
                stdout=subprocess.DEVNULL,
                stderr=file,
                start_new_session=True,
            )
        now = time.monotonic()
        return Running(area, process, folder, errors, report, now, now + STARTING)

    def _ended(self, worker: Running) -> bool:
        """Read the report of a worker. Returns whether the worker has ended."""
        code = worker.process.poll()
        tally = self.tallies[worker.area.name]
        for facts in worker.news():
            worker.heard = time.monotonic()
            self._hear(worker, tally, facts)
        patience = worker.area.patience if self.patience is None else self.patience
        silent = time.monotonic() - worker.heard > patience
        if code is None and not silent:
            return False
        worker.stop()
        tally.seconds += time.monotonic() - worker.started
        if silent and code is None:
            self._died(worker, f"no answer in {patience:g} s")
        elif not worker.finished:
            self._died(worker, f"the process ended with exit code {code}")
        worker.folder.cleanup()
        return True

    def _hear(self, worker: Running, tally: Tally, facts: dict[str, Any]) -> None:
        if "at" in facts:
            worker.at, worker.place = facts["at"], facts.get("place", 0)
        elif "outcome" in facts:
            tally.add(facts["outcome"], facts["numbers"])
        elif "finding" in facts:
            self._keep(Finding(worker.area.name, self.seed, **facts["finding"]))
        elif "done" in facts:
            worker.finished = True

    def _keep(self, finding: Finding) -> None:
        """Keep a finding, unless one of the same kind is known, which counts as the same bug."""
        if not any(f.area == finding.area and finding.kind == f.kind for f in self.findings):
            self.findings.append(finding)

    def _died(self, worker: Running, how: str) -> None:
        """Record a crash at the current attempt. The next worker starts after it."""
        self.tallies[worker.area.name].add("crashed", 0)
        said = worker.errors.read_text(errors="replace").strip().splitlines()[-12:]
        number = worker.at if worker.at is not None else -1
        if self.only is None and worker.at is not None:
            self._next[worker.area.name] = min(self._next[worker.area.name], worker.at + 1)
        what = "\n".join([how, *said])
        kind = f"{how} {worker.at if not said else said[-1][:60]}"
        source = self._described(worker)
        self._keep(Finding(worker.area.name, self.seed, number, worker.place, "crashed", what, kind, kind, source))

    def _described(self, worker: Running) -> str:
        """The source of the attempt at which a worker died, from another process that only creates the attempt."""
        if worker.at is None:
            return "# the worker died before its first attempt\n"
        path = Path(worker.folder.name) / "described"
        command = [*self.command, "--area", worker.area.name, "--seed", self.seed, "--first", worker.at, "--count", 1]
        command += ["--seconds", 60, "--report", path, "--describe"]
        environment = worker_environment(worker.area, worker.folder.name)
        try:
            subprocess.run([str(part) for part in command], env=environment, capture_output=True, timeout=60)
            sources = [json.loads(line)["source"] for line in path.read_text().splitlines()]
        except (OSError, subprocess.TimeoutExpired, ValueError):
            sources = []
        return sources[worker.place] if worker.place < len(sources) else "# the attempt cannot be made\n"


def worker_environment(area: Area, cache: str) -> dict[str, str]:
    """The environment of a worker: its folder of kernels, XLA's flags, and this package."""
    here = str(Path(__file__).resolve().parents[1])
    path = os.pathsep.join([here, *filter(None, [os.environ.get("PYTHONPATH")])])
    kept = {name: value for name, value in os.environ.items() if name != "XLA_FLAGS"}
    return {**kept, "PYTHONPATH": path, "GRAPHAX_CACHE": cache, "XLA_FLAGS": area.flags, "JAX_PLATFORMS": "cpu"}


def chosen_areas(names: str | None) -> list[Area]:
    """The named areas, or all."""
    unknown = [name for name in (names or "").split(",") if name and name not in AREAS]
    if unknown:
        raise ValueError(f"unknown areas {', '.join(unknown)}; the areas are: {', '.join(AREAS)}")
    return [AREAS[name] for name in names.split(",") if name] if names else list(AREAS.values())
