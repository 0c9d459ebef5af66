"""The code in the documents runs, and prints what they say."""

import re
from pathlib import Path

import pytest

import graphax as gx
from graphax import rule

ROOT = Path(__file__).parents[1]


def blocks(path):
    return re.findall(r"```python\n(.*?)```", (ROOT / path).read_text(), re.DOTALL)


@pytest.mark.parametrize("path", ["README.md", "docs/architecture.md"])
def test_code_runs(path, capsys):
    before = set(gx.supported_primitives())
    for block in blocks(path):
        exec(compile(block, path, "exec"), {})
        for printed in re.findall(r"print\(\w+\) +# (.*)", block):
            assert printed in capsys.readouterr().out
    for name in set(gx.supported_primitives()) - before:
        del rule._RULES[name]


def test_every_document_that_is_linked_exists():
    for target in re.findall(r"\]\(([^)#:]+)\)", (ROOT / "README.md").read_text()):
        assert (ROOT / target).exists(), target
