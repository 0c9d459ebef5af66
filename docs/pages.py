"""Runs the pages of the documentation, and inserts what their code prints.

    python docs/pages.py [docs/quickstart.md ...]

runs pages (by default all of them), inserts what they print, and keeps the figures that they draw. The tests also run
the pages, and compare. docs/README.md says how to write a page.
"""

import argparse
import importlib
import io
import os
import re
import shlex
import shutil
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from contextlib import ExitStack, chdir, contextmanager, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import jax
import typer
from typer.testing import CliRunner

from alphagrad.cli.app import UsageError, app
from graphax import rule

ROOT = Path(__file__).resolve().parents[1]
PAGES = ("README.md", *sorted(f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md")))
# The folder for figures, below the folder that pages run in and below docs.
IMAGES = "images"
# Commands that would take minutes are marked with this word and are not run.
LONG = "long"

FENCE = re.compile(
    r"^```(?P<info>[^\n`]*)\n(?P<text>.*?)^```$(?P<shown>\n\n?```text\n(?P<output>.*?)^```$)?", re.M | re.S
)
MODULE = re.compile(r"# (\w+)\.py\n")
LINK = re.compile(r"\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ (.+)$", re.M)


class PageError(Exception):
    """A command of a page does not exist, is invalid, or fails."""


@dataclass(frozen=True)
class Block:
    """A fenced block of a page, with what is shown below it.

    Attributes:
        language, mark: the words after the fence.
        text: the content of the block.
        line: the line of the page on which the text begins.
        output: the ``text`` block below it; empty if there is none.
        end, shown: the positions in the page at which the block and its output end.
    """

    language: str
    mark: str
    text: str
    line: int
    output: str
    end: int
    shown: int


def blocks(page: str) -> list[Block]:
    """The blocks of a page that can be run, in order."""
    text = (ROOT / page).read_text(encoding="utf-8")
    found = []
    for match in FENCE.finditer(text):
        language, _, mark = match["info"].partition(" ")
        if language in ("python", "sh"):
            line = text.count("\n", 0, match.start("text")) + 1
            end = match.start("shown") if match["shown"] else match.end()
            found.append(Block(language, mark, match["text"], line, match["output"] or "", end, match.end()))
    return found


def links(page: str) -> list[Path]:
    """The files that a page links to."""
    return [target for target, _ in _targets(page)]


def broken_links(page: str) -> list[str]:
    """Links to files, or to headings of pages, that do not exist."""
    return [
        f"{target.name}#{heading}" if heading else str(target)
        for target, heading in _targets(page)
        if not target.exists() or (heading and heading not in _headings(target))
    ]


def _targets(page: str) -> list[tuple[Path, str]]:
    """The files that a page links to, each with the heading."""
    path = ROOT / page
    parts = [target.partition("#") for target in LINK.findall(path.read_text(encoding="utf-8")) if "://" not in target]
    return [(path.parent / file if file else path, heading) for file, _, heading in parts]


def _headings(path: Path) -> set[str]:
    """The headings of a page, in the form that links use."""
    titles = HEADING.findall(path.read_text(encoding="utf-8"))
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def run(page: str) -> Iterator[tuple[Block, str]]:
    """Run a page in the current folder. Yields each block and what it printed."""
    names: dict[str, Any] = {"__name__": "__main__"}
    for block in blocks(page):
        if block.language == "sh":
            yield block, "".join(perform(words, block.mark == LONG) for words in commands(block.text))
        else:
            for name in MODULE.findall(block.text[: block.text.find("\n") + 1]):
                Path(f"{name}.py").write_text(block.text, encoding="utf-8")
                importlib.invalidate_caches()
            printed = io.StringIO()
            # Empty lines in front make errors and explanations name the lines of the page.
            code = compile("\n" * (block.line - 1) + block.text, str(ROOT / page), "exec")
            with redirect_stdout(printed):
                exec(code, names)
            yield block, printed.getvalue()


@contextmanager
def workshop() -> Iterator[Path]:
    """A folder for a page to run in, with JAX's default settings. Changes that the page makes elsewhere are undone."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        (folder / IMAGES).mkdir()
        (folder / "results").symlink_to(ROOT / "results", target_is_directory=True)
        stack.enter_context(chdir(folder))
        stack.enter_context(mock.patch.dict(os.environ, ALPHAGRAD_CACHE=str(folder / "cache")))
        stack.enter_context(mock.patch.object(sys, "path", [str(folder), *sys.path]))
        stack.callback(rule.clear_caches)
        stack.enter_context(mock.patch.dict(rule._REGISTERED))
        stack.callback(_forget_modules, set(sys.modules), folder)
        stack.enter_context(jax.enable_x64(False))
        yield folder


def _forget_modules(before: set[str], folder: Path) -> None:
    for name in set(sys.modules) - before:
        if str(getattr(sys.modules[name], "__file__", "")).startswith(str(folder)):
            del sys.modules[name]


def commands(text: str) -> list[list[str]]:
    """The words of each command in a block."""
    lines = text.replace("\\\n", " ").splitlines()
    return [words for line in lines if (words := shlex.split(line, comments=True))]


def perform(words: list[str], long: bool = False) -> str:
    """What a command prints. A command that takes long or is not ours is not run, but only checked."""
    program, *arguments = words
    if program == "alphagrad" and not long:
        result = CliRunner().invoke(app, arguments, prog_name=program)
        if result.exit_code != 0:
            raise PageError(f"{shlex.join(words)} failed: {result.stderr}")
        return result.stdout
    checks = {"alphagrad": _check_arguments, "make": _check_target, "pip": _check_extras, "python": _check_script}
    if program not in checks:
        raise PageError(f"{program} is not one of: {', '.join(checks)}")
    checks[program](arguments)
    return ""


def _check_arguments(arguments: list[str]) -> None:
    """Parse a command line as alphagrad does, without running it."""
    group: Any = typer.main.get_command(app)
    try:
        outer = group.make_context("alphagrad", list(arguments))
        name, command, rest = group.resolve_command(outer, list(arguments))
        command.make_context(name, rest, parent=outer)
    except UsageError as error:
        raise PageError(f"alphagrad {shlex.join(arguments)}: {error.format_message()}") from None


def _check_target(arguments: list[str]) -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in arguments:
        if not re.search(rf"^{re.escape(target)}:", makefile, re.M):
            raise PageError(f"the Makefile has no target {target}")


def _check_extras(arguments: list[str]) -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    for name in re.findall(r"graphax-alphagrad\[([\w,]+)\]", " ".join(arguments)):
        if unknown := set(name.split(",")) - set(extras):
            raise PageError(f"there are no extras called {', '.join(unknown)}")


def _check_script(arguments: list[str]) -> None:
    """Check that the script exists and that its source contains the options."""
    is_module = arguments[0] == "-m"
    script = ROOT / (f"src/{arguments[1].replace('.', '/')}.py" if is_module else arguments[0])
    if is_module and script.with_suffix("").is_dir():
        script = script.with_suffix("") / "__main__.py"
    if not script.is_file():
        raise PageError(f"there is no script {script.relative_to(ROOT)}")
    source = script.read_text(encoding="utf-8")
    for option in arguments:
        if option.startswith("--") and f'"{option}"' not in source:
            raise PageError(f"{script.name} has no option {option}")


def write_down(page: str) -> None:
    """Insert what a page prints below its blocks, and store its figures.

    Explanations print line numbers of the page, which may have moved, so a page that changed is run once more.
    """
    if _written(page):
        _written(page)


def _written(page: str) -> bool:
    before = text = (ROOT / page).read_text(encoding="utf-8")
    with workshop() as folder:
        for block, printed in reversed(list(run(page))):
            if block.output or (printed and block.language == "python"):
                text = f"{text[: block.end]}\n\n```text\n{printed}```{text[block.shown :]}"
        for drawn in (folder / IMAGES).iterdir():
            shutil.copy(drawn, ROOT / "docs" / IMAGES)
    (ROOT / page).write_text(text, encoding="utf-8")
    return text != before


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("pages", nargs="*", metavar="PAGE", help="Default: all.")
    for page in parser.parse_args().pages or PAGES:
        write_down(page)


if __name__ == "__main__":
    main()
