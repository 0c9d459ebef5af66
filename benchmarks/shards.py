"""Long benchmarks in several processes: shards that are watched, stopped where they take too long, and started again.

A **shard** measures a share of the cases on cores of its own. Before every step it notes what it is at; the supervisor
reads the note, so that it knows which step to blame when the process dies, or takes longer than anyone wants to wait.
"""

import json
import os
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

INTERVAL = 1.0


@dataclass(frozen=True)
class Step:
    """What a shard is at: a way to compute a case, and since when, in seconds of `time.monotonic`."""

    case: str
    way: str
    since: float


def note(path: Path, case: str, way: str) -> None:
    """Say what this shard is at. The file is replaced as a whole, so that a reader never sees half of it."""
    partial = path.with_suffix(".partial")
    partial.write_text(json.dumps([case, way, time.monotonic()]), encoding="utf-8")
    partial.replace(path)


def noted(path: Path) -> Step | None:
    return Step(*json.loads(path.read_text(encoding="utf-8"))) if path.exists() else None


def pin(shard: int, shards: int) -> None:
    """Keep this process to its share of the cores; XLA has as many threads as a process has cores."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, share(sorted(os.sched_getaffinity(0)), shard, shards))


def share(cores: Sequence[int], shard: int, shards: int) -> Sequence[int]:
    """An even part of the cores. Where there are fewer cores than shards, several shards have the same one."""
    each = len(cores) // shards
    return cores[shard * each : (shard + 1) * each] if each else [cores[shard % len(cores)]]


@dataclass(frozen=True, eq=False)
class Supervisor:
    """Runs shards, each in a process of its own, until all are done.

    Attributes:
        command: what starts a shard, given its number and the file for its notes.
        folder: where notes are kept.
        patience: the seconds that a step may take.
        blamed: called with the step at which a shard died or was stopped, and what happened.
        tell: called now and then with the seconds since the start.
    """

    command: Callable[[int, Path], Sequence[str]]
    folder: Path
    patience: float
    blamed: Callable[[Step, str], None]
    tell: Callable[[float], None]

    def run(self, shards: int, seconds: float = float("inf")) -> bool:
        """Whether all shards finished within the seconds; those that did not are stopped, which is no failure."""
        begin = time.monotonic()
        running = {number: self._started(number) for number in range(shards)}
        try:
            while running and time.monotonic() - begin < seconds:
                time.sleep(INTERVAL)
                for number, shard in list(running.items()):
                    if shard.process.poll() is None:
                        if shard.waiting() > self.patience:
                            self._stop(shard, f"longer than {self.patience:g} s")
                            running[number] = self._started(number)
                    elif shard.process.returncode == 0:
                        del running[number]
                    else:
                        self._stop(shard, "the process died")
                        running[number] = self._started(number)
                self.tell(time.monotonic() - begin)
            return not running
        finally:
            for shard in running.values():
                shard.process.kill()
                shard.process.wait()

    def _started(self, number: int) -> "_Shard":
        path = self.folder / f"shard-{number}.json"
        path.unlink(missing_ok=True)
        return _Shard(path, subprocess.Popen(self.command(number, path)))

    def _stop(self, shard: "_Shard", reason: str) -> None:
        shard.process.kill()
        shard.process.wait()
        step = noted(shard.path)
        if step is None:
            # Starting again would end the same way.
            raise SystemExit(f"a shard ended before its first case: {reason}")
        self.blamed(step, reason)


@dataclass(frozen=True, eq=False)
class _Shard:
    path: Path
    process: subprocess.Popen

    def waiting(self) -> float:
        """The seconds since it began what it is at."""
        step = noted(self.path)
        return 0.0 if step is None else time.monotonic() - step.since
