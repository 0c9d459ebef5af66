"""The code in the documents runs, and prints what they say."""

import re
import shlex
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

import graphax as gx
from alphagrad.cli import app
from graphax import rule

ROOT = Path(__file__).parents[1]


def blocks(path, language="python"):
    return re.findall(rf"```{language}\n(.*?)```", (ROOT / path).read_text(), re.DOTALL)


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    """A folder with the files that the documents show; their searches keep nothing outside it."""
    monkeypatch.setenv("ALPHAGRAD_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    for block in blocks("README.md"):
        for name in re.findall(r"\A# (\w+)\.py\n", block):
            (tmp_path / f"{name}.py").write_text(block)
            monkeypatch.delitem(sys.modules, name, raising=False)


@pytest.mark.parametrize("path", ["README.md", "docs/architecture.md"])
def test_code_runs(path, capsys):
    before = set(gx.supported_primitives())
    for block in blocks(path):
        exec(compile(block, path, "exec"), {})
        for printed in re.findall(r"print\(\w+\) +# (.*)", block):
            assert printed in capsys.readouterr().out
    for name in set(gx.supported_primitives()) - before:
        del rule._RULES[name]


def test_commands_run():
    for command in "".join(blocks("README.md", "sh")).splitlines():
        program, *arguments = shlex.split(command, comments=True)
        result = CliRunner().invoke(app, arguments, prog_name=program)
        assert result.exit_code == 0, (command, result.stderr)


def test_every_document_that_is_linked_exists():
    for target in re.findall(r"\]\(([^)#:]+)\)", (ROOT / "README.md").read_text()):
        assert (ROOT / target).exists(), target
