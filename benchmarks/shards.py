"""Long benchmarks in several processes, called shards, which are stopped if they take too long, and restarted.

A **shard** measures a share of the cases on its own cores. Before every step, it writes a note about the step. If the
process dies or takes too long, the supervisor reads the note to find out which step is to blame.
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
    """The current step of a shard: a way to compute a case, and its start, in seconds of `time.monotonic`."""

    case: str
    way: str
    since: float


def note(path: Path, case: str, way: str) -> None:
    """Note the current step of this shard. The file is replaced as a whole, so that no reader sees half of it."""
    partial = path.with_suffix(".partial")
    partial.write_text(json.dumps([case, way, time.monotonic()]), encoding="utf-8")
    partial.replace(path)


def noted(path: Path) -> Step | None:
    return Step(*json.loads(path.read_text(encoding="utf-8"))) if path.exists() else None


def pin(shard: int, shards: int) -> None:
    """Restrict this process to its share of the cores. XLA starts as many threads as a process has cores."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, share(sorted(os.sched_getaffinity(0)), shard, shards))


def share(cores: Sequence[int], shard: int, shards: int) -> Sequence[int]:
    """An even share of the cores. If there are fewer cores than shards, several shards share one."""
    each = len(cores) // shards
    return cores[shard * each : (shard + 1) * each] if each else [cores[shard % len(cores)]]


@dataclass(frozen=True, eq=False)
class Supervisor:
    """Runs shards, each in a process of its own, until all are done.

    Attributes:
        command: returns the command that starts a shard, given its number and the file for its notes.
        folder: the folder for notes.
        patience: the maximum seconds of a step.
        blamed: is called with the step at which a shard died or was stopped, and what happened.
        tell: is called regularly with the seconds since the start.
    """

    command: Callable[[int, Path], Sequence[str]]
    folder: Path
    patience: float
    blamed: Callable[[Step, str], None]
    tell: Callable[[float], None]

    def run(self, shards: int, seconds: float = float("inf")) -> bool:
        """Run all shards, and stop those that are not finished after some seconds. Returns whether all finished."""
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
            # A restarted shard would end in the same way.
            raise SystemExit(f"a shard ended before its first case: {reason}")
        self.blamed(step, reason)


@dataclass(frozen=True, eq=False)
class _Shard:
    path: Path
    process: subprocess.Popen

    def waiting(self) -> float:
        """The seconds since the current step began."""
        step = noted(self.path)
        return 0.0 if step is None else time.monotonic() - step.since
