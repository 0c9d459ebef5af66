"""Counts and findings, and how they are written to tables and files."""

import json
import platform
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

FEW = 5


@dataclass
class Tally:
    """The outcomes of the attempts of one area."""

    programs: int = 0
    numbers: int = 0
    wrong: int = 0
    crashed: int = 0
    refused: int = 0
    seconds: float = 0.0

    def add(self, verdict: str, numbers: int) -> None:
        self.programs += 1
        self.numbers += numbers
        if verdict != "right":
            setattr(self, verdict, getattr(self, verdict) + 1)


@dataclass(frozen=True)
class Finding:
    """A minimised failure. ``place`` is its position among the attempts with one number."""

    area: str
    seed: int
    attempt: int
    place: int
    verdict: str
    what: str
    kind: str
    small_kind: str
    source: str

    @property
    def command(self) -> str:
        return f"python benchmarks/adversary.py --areas {self.area} --seed {self.seed} --attempt {self.attempt}"


def table(tallies: Mapping[str, Tally]) -> str:
    """A Markdown table with a row for each area, and the sum of all."""
    total = Tally(*(sum(getattr(t, name) for t in tallies.values()) for name in Tally.__dataclass_fields__))
    lines = ["| area | programs | numbers | wrong | crashed | refused | seconds |", "|---|--:|--:|--:|--:|--:|--:|"]
    for name, tally in [*tallies.items(), ("all", total)]:
        counts = (tally.programs, tally.numbers, tally.wrong, tally.crashed, tally.refused)
        lines.append(f"| {name} | {' | '.join(f'{count:,}' for count in counts)} | {tally.seconds:.0f} |")
    return "\n".join(lines)


def written(path: Path, seed: int, seconds: float, tallies: Mapping[str, Tally], findings: Sequence[Finding]) -> None:
    """All counts and findings as JSON."""
    content = {
        "versions": versions(),
        "seed": seed,
        "seconds": seconds,
        "areas": {name: asdict(tally) for name, tally in tallies.items()},
        "findings": [{**asdict(finding), "command": finding.command} for finding in findings],
    }
    path.write_text(json.dumps(content, indent=1) + "\n")


def versions() -> dict[str, str]:
    found = {"python": platform.python_version()}
    for name in ("graphax-alphagrad", "jax", "jaxlib", "numpy", "llvmlite", "numba"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def write_repros(folder: Path, findings: Sequence[Finding]) -> list[Path]:
    """Write a script for each finding, but only a few of those that look alike once they are minimised."""
    folder.mkdir(parents=True, exist_ok=True)
    paths, alike = [], Counter[tuple[str, str]]()
    for finding in findings:
        group = finding.area, finding.small_kind
        alike[group] += 1
        if alike[group] > FEW:
            continue
        path = folder / f"{finding.area}_{finding.attempt}_{finding.place}.py"
        said = re.sub(r"\s*\n\s*", "\n# ", finding.what.strip())
        path.write_text(f"# {finding.command}\n# {finding.verdict}: {said}\n{finding.source}")
        paths.append(path)
    return paths
