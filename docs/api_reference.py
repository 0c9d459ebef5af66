"""Writes docs/api.md, the reference of all public names, from their docstrings.

    python docs/api_reference.py

Signatures come from the source, so annotations and defaults look as they do there.
"""

import ast
import importlib
import inspect
import re
import textwrap
import typing
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

PATH = Path(__file__).resolve().parent / "api.md"
MODULES = ("graphax", "graphax.solvers", "alphagrad", "alphagrad.plot")
INTRODUCTION = """# API reference

Generated from docstrings by `docs/api_reference.py`; `make pages` writes it again. Examples are in the other
[pages](README.md).
"""
WIDTH = 100
# A section of a docstring, and an entry of a section.
SECTION = re.compile(r"^(Args|Attributes|Returns|Raises):\n((?:(?: {4}.*)?(?:\n|$))+)", re.M)
ENTRY = re.compile(r"^ {4}(\*{0,2}\w+(?:, \w+)*): ", re.M)


def reference() -> str:
    """The text of the page."""
    modules = [importlib.import_module(name) for name in MODULES]
    return "\n".join([INTRODUCTION, *(line for module in modules for line in _module(module))]).rstrip() + "\n"


def _module(module: Any) -> Iterator[str]:
    yield from (f"## {module.__name__}", "", _prose(inspect.getdoc(module).partition("\n\n")[0]), "")
    public = {name: getattr(module, name) for name in sorted(module.__all__)}
    kinds: dict[str, Callable[[Any], bool]] = {
        "Functions": inspect.isfunction,
        "Types": lambda value: inspect.isclass(value) and not issubclass(value, Exception),
        "Errors and warnings": lambda value: inspect.isclass(value) and issubclass(value, Exception),
        "Constants": lambda value: isinstance(value, Mapping),
        "Type aliases": lambda value: typing.get_origin(value) is not None,
    }
    for title, belongs in kinds.items():
        members = {name: value for name, value in public.items() if belongs(value)}
        if members:
            yield from (f"### {title}", "")
        for name, value in members.items():
            yield from _alias(module, name) if title == "Type aliases" else _member(f"{module.__name__}.{name}", value)


def _alias(module: Any, name: str) -> Iterator[str]:
    """A type alias as its module defines it, with the string below it."""
    home = next(place for place, names in module._PLACES.items() if name in names)
    text = inspect.getsource(importlib.import_module(f"{module.__name__}.{home}"))
    body = ast.parse(text).body
    place = next(
        n for n, node in enumerate(body) if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == name
    )
    said: Any = body[place + 1]
    yield from (f"#### {module.__name__}.{name}", "", _code(ast.get_source_segment(text, body[place]) or ""), "")
    yield from (_entry(said.value.value), "")


def _member(path: str, value: Any) -> Iterator[str]:
    yield from (f"#### {path}", "")
    if inspect.isfunction(value):
        source = Source(value)
        yield from (_code(source.signature(path.rpartition(".")[2], source.node)), "")
        yield from (_documentation(value), "")
    elif not inspect.isclass(value):
        yield from (*(f"- `{key}`: {_entry(inspect.getdoc(meaning))}" for key, meaning in value.items()), "")
    elif issubclass(value, Exception):
        yield from (_documentation(value), "")
        yield from (f"Can be caught as {' or '.join(f'`{base.__name__}`' for base in value.__bases__)}, too.", "")
    else:
        yield from _class(path.rpartition(".")[2], value)


def _class(name: str, value: type) -> Iterator[str]:
    source = Source(value)
    fields = [
        node for node in source.node.body if isinstance(node, ast.AnnAssign) and _public(source.quote(node.target))
    ]
    if fields:
        yield from (_code(_call(name, [source.quote(field) for field in fields])), "")
    yield from (_documentation(value), "")
    members = []
    for node in source.node.body:
        if not isinstance(node, ast.FunctionDef) or not _public(node.name) or not ast.get_docstring(node):
            continue
        kinds = {source.quote(decorator) for decorator in node.decorator_list}
        if kinds & {"property", "cached_property"}:
            heading = f"`{name}.{node.name}`"
        else:
            heading = f"`{source.signature(f'{name}.{node.name}', node, 'staticmethod' not in kinds)}`"
        heading = " ".join(heading.split()).replace("( ", "(").replace(", )", ")")
        members.append(f"- {heading}: {_entry(ast.get_docstring(node))}")
    yield from (*members, "") if members else ()


def _public(name: str) -> bool:
    return not name.startswith("_")


class Source:
    """The source of a function or class, to quote from."""

    def __init__(self, value: Any):
        self._text = textwrap.dedent(inspect.getsource(value))
        self.node: Any = ast.parse(self._text).body[0]

    def quote(self, node: ast.AST) -> str:
        return " ".join((ast.get_source_segment(self._text, node) or "").split())

    def signature(self, name: str, node: ast.FunctionDef, bound: bool = False) -> str:
        arguments = node.args
        given = [*arguments.posonlyargs, *arguments.args]
        texts = self._arguments(given, [None] * (len(given) - len(arguments.defaults)) + list(arguments.defaults))
        texts = texts[1:] if bound else texts
        if arguments.vararg:
            texts.append(f"*{self.quote(arguments.vararg)}")
        elif arguments.kwonlyargs:
            texts.append("*")
        texts += self._arguments(arguments.kwonlyargs, arguments.kw_defaults)
        if arguments.kwarg:
            texts.append(f"**{self.quote(arguments.kwarg)}")
        returned = f" -> {self.quote(node.returns)}" if node.returns else ""
        return _call(name, texts) + returned

    def _arguments(self, arguments: list[ast.arg], defaults: list[Any]) -> list[str]:
        pairs = zip(arguments, defaults, strict=True)
        return [self.quote(a) + ("" if default is None else f" = {self.quote(default)}") for a, default in pairs]


def _call(name: str, arguments: list[str]) -> str:
    line = f"{name}({', '.join(arguments)})"
    return line if len(line) <= WIDTH else "\n".join([f"{name}(", *(f"    {text}," for text in arguments), ")"])


def _code(text: str) -> str:
    return textwrap.indent(text, "    ")


def _documentation(value: Any) -> str:
    """A docstring as Markdown, with its sections as lists."""
    text = inspect.cleandoc(value.__doc__)
    return _prose(SECTION.sub(lambda match: f"{match[1]}:\n\n{_entries(match[2])}\n", text)).rstrip()


def _entries(text: str) -> str:
    starts = [match.start() for match in ENTRY.finditer(text)]
    if not starts:
        return textwrap.dedent(text).rstrip() + "\n"
    parts = [text[start:end] for start, end in zip(starts, [*starts[1:], len(text)], strict=True)]
    items = (" ".join(part.split()).partition(": ") for part in parts)
    return "".join(f"- **{names}**: {said}\n" for names, _, said in items)


def _entry(docstring: str) -> str:
    """A docstring in one paragraph."""
    return _prose(" ".join(docstring.split()))


def _prose(text: str) -> str:
    return text.replace("``", "`")


if __name__ == "__main__":
    PATH.write_text(reference(), encoding="utf-8")
