"""Imports between modules, also inside functions: no cycles, and packages as the documentation draws them."""

import ast
import importlib
import re
import subprocess
import sys
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src"
PACKAGES = ("graphax", "alphagrad")
# The folders and modules of alphagrad, except those that every package has.
MOST_ENTRIES = 12
ALWAYS = {"__init__.py", "__main__.py", "errors.py", "__pycache__", "py.typed"}
# Modules that work on shapes and need no JAX.
SHAPES_ONLY = (
    "graphax.positions", "graphax.axes", "graphax.structure", "graphax.products", "graphax.sums", "graphax.terms",
    "graphax.entries", "graphax.graph", "graphax.order", "graphax.presets", "graphax.plan", "graphax.cut",
    "graphax.prices", "graphax.mixed", "graphax.refine", "graphax.body_orders", "graphax.compile_times",
    "graphax.certainty", "graphax.bound", "graphax.bilinear", "graphax.rank_bound", "graphax.contained",
    "graphax.subgraph", "graphax.subgraph_bound", "graphax.sparsity_types", "graphax.table", "graphax.errors",
    "graphax.files", "graphax.notices", "graphax.modules",
)  # fmt: skip


def name_of(path: Path) -> str:
    return ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__")


@cache
def modules() -> dict[str, Path]:
    return {name_of(path): path for package in PACKAGES for path in (SOURCE / package).rglob("*.py")}


@cache
def imports() -> dict[str, set[str]]:
    """The imports of each module, at the top or inside functions, except those for type checkers."""
    return {name: set(_imported(name, path)) for name, path in modules().items()}


def _imported(name: str, path: Path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    blocks = [n for n in ast.walk(tree) if isinstance(n, ast.If) and "TYPE_CHECKING" in ast.dump(n.test)]
    skipped = {id(node) for block in blocks for node in ast.walk(block)}
    inside = name.split(".") if path.name == "__init__.py" else name.split(".")[:-1]
    for node in ast.walk(tree):
        if id(node) in skipped:
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            start = inside[: len(inside) - node.level + 1] if node.level else []
            origin = ".".join([*start, *([node.module] if node.module else [])])
            for alias in node.names:
                yield f"{origin}.{alias.name}" if f"{origin}.{alias.name}" in modules() else origin


def folder(module: str) -> str:
    """The package of a module. A module at the top level counts as a package."""
    package = module if modules()[module].name == "__init__.py" else module.rpartition(".")[0]
    return module if package in PACKAGES else package


def tree_in_documentation() -> dict[str, set[str]]:
    """The imports that `docs/architecture.md` allows for each package, from one line per package."""
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    lines = re.findall(r"^    ([a-z.]+) +◀─ (.*)$", text, re.MULTILINE)
    return {
        f"alphagrad.{name}": {f"alphagrad.{other}" for other in others.split() if other != "(nothing)"}
        for name, others in lines
    }


@pytest.mark.parametrize("package", PACKAGES)
def test_there_are_no_import_cycles(package):
    own = {name: {m for m in found if m in modules() and m != name and not name.startswith(f"{m}.")}
           for name, found in imports().items() if name.startswith(package)}  # fmt: skip
    try:
        TopologicalSorter(own).prepare()
    except CycleError as error:
        pytest.fail(" → ".join(error.args[1]))


def test_graphax_never_imports_alphagrad():
    assert not [name for name, found in imports().items() if name.startswith("graphax") and "alphagrad" in str(found)]


def test_packages_import_what_the_documentation_draws():
    known = ("alphagrad", "alphagrad.__main__", "alphagrad.errors")
    found: dict[str, set[str]] = {}
    for name, others in imports().items():
        if name.startswith("alphagrad.") and folder(name) not in known:
            targets = {folder(other) for other in others if other.startswith("alphagrad.") and other in modules()}
            found.setdefault(folder(name), set()).update(targets - {folder(name), *known})
    assert found == tree_in_documentation()
    list(TopologicalSorter(found).static_order())


def test_few_entries_at_the_top_of_alphagrad():
    entries = [path.name for path in (SOURCE / "alphagrad").iterdir() if path.name not in ALWAYS]
    assert len(entries) <= MOST_ENTRIES


@pytest.mark.parametrize("stage", ["trace", "derive", "make_plan"])
def test_the_pipeline_is_assembled_in_one_place(stage):
    """Outside its own module and the pipeline, at most one function calls a stage."""
    callers = [
        name
        for name, path in modules().items()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == stage
    ]
    assert len([name for name in callers if name not in ("graphax.pipeline", "graphax.graph")]) <= 1, callers


@pytest.mark.parametrize("name", SHAPES_ONLY)
def test_modules_of_shapes_do_not_name_jax(name):
    assert not [other for other in imports()[name] if other.partition(".")[0] == "jax"]


def test_shapes_need_no_jax():
    """A process that imports all of these modules, and graphax itself, does not load JAX."""
    code = f"import sys, {', '.join(('graphax', *SHAPES_ONLY))}; assert 'jax' not in sys.modules, 'jax is loaded'"
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True, timeout=60)


@pytest.mark.parametrize(
    ("old", "name", "new"),
    [
        ("alphagrad.environment", "VertexEnvironment", "alphagrad.game.environment"),
        ("graphax.display", "table", "graphax.table"),
        ("graphax.display", "explain", "graphax.explanation"),
    ],
)
def test_old_documented_paths_still_import(old, name, new):
    importlib.import_module(old.partition(".")[0])
    with pytest.warns(DeprecationWarning, match=f"{new}.{name} now"):
        found = getattr(importlib.import_module(old), name)
    assert found is getattr(importlib.import_module(new), name)
    with pytest.raises(AttributeError, match="has no attribute 'absent'"):
        importlib.import_module(old).absent  # noqa: B018


@pytest.mark.parametrize("package", PACKAGES)
def test_no_public_name_is_that_of_a_module(package):
    """Importing a module with the name of a public function would replace that function in the package."""
    public = importlib.import_module(package).__all__
    assert not {f"{package}.{name}" for name in public} & modules().keys()


@pytest.mark.parametrize("use", ["graphax.native.set_threads(1)", "graphax.plan.COUNTINGS", "alphagrad.tasks.TASKS"])
def test_modules_are_attributes_of_their_package(use):
    code = f"import graphax, alphagrad; {use}; assert not hasattr(graphax, 'absent')"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
