"""What is published: a wheel and a source distribution, their metadata, and the types that users see."""

import os
import re
import subprocess
import sys
import venv
import zipfile
from email import message_from_string
from pathlib import Path

import pytest

import alphagrad
import graphax

ROOT = Path(__file__).parents[1]
# A user's project. Every revealed type is compared. None may be or contain Any, except Jacobians, which are pytrees
# like the arguments.
PROJECT = """
from pathlib import Path

import alphagrad
import graphax as gx
import jax
import jax.numpy as jnp


def f(x: jax.Array, y: float) -> jax.Array:
    return jnp.sin(x) * y


class Reversed:
    def __call__(self, graph: gx.ComputationGraph) -> list[int]:
        return list(graph.intermediates)[::-1]


x = jnp.ones(3)
orders: list[gx.OrderLike] = ["rev", [1, 2], gx.Order((1, 2)), Path("order.json"), Reversed(), lambda g: g.inputs]
backend: gx.Backend = "xla"
for order in orders:
    gx.jacve(f, argnums=(0, 1), order=order, backend=backend)(x, 2.0)
reveal_type(gx.jacve)
reveal_type(gx.value_and_jacve(f))
reveal_type(gx.kernel(f))
result = alphagrad.search(f, x, 2.0, budget=1, start="rev", minimize=(1.0, 0.5))
reveal_type(result)
reveal_type(result.order.vertices)
reveal_type(result.cost.multiplications)
reveal_type(result.bound)
reveal_type(result.as_dict())
reveal_type(alphagrad.best_known(gx.build_graph(f, x, 2.0)))


def times(block: gx.JacobianBlock) -> jax.Array:
    reveal_type(block @ block.T + 2 * (block @ block.T))
    return block @ x


print(gx.explain(f, x, 2.0), gx.__version__, alphagrad.__version__)
"""
REVEALED = [
    "def (x: jax.Array, y: float) -> tuple[jax.Array, Any]",
    "def (x: jax.Array, y: float) -> jax.Array",
    "alphagrad.finders.result.SearchResult",
    "tuple[int, ...]",
    "int",
    "float",
    "dict[str, object]",
    "graphax.order.Order | None",
    "graphax.block.JacobianBlock",
]  # fmt: skip
MISTAKES = {
    'gx.jacve(f, order=3.5)(x, 2.0)': "arg-type",
    'gx.jacve(f, backend="cuda")(x, 2.0)': "arg-type",
    'gx.jacve(f)(x)': "call-arg",
    'gx.jacev(f)': "attr-defined",
    'alphagrad.search(f, x, 2.0, budget="long")': "arg-type",
}  # fmt: skip


def perform(*command: object, cwd: Path = ROOT) -> subprocess.CompletedProcess:
    """Run a command that does not inherit the import path of this process."""
    apart = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    words = [str(word) for word in command]
    return subprocess.run(words, cwd=cwd, env=apart, capture_output=True, text=True, timeout=300)


def run(*command: object) -> str:
    done = perform(*command)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def distributions(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    pytest.importorskip("hatchling")
    pytest.importorskip("hatch_fancy_pypi_readme")
    run(sys.executable, "-m", "hatchling", "build", "-d", folder)
    return folder


@pytest.fixture(scope="module")
def environment(distributions, tmp_path_factory) -> Path:
    """The interpreter of an environment with the wheel, and with all other packages that are installed here."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, with_pip=False)
    (site,) = folder.glob("lib/python*/site-packages")
    with zipfile.ZipFile(next(distributions.glob("*.whl"))) as wheel:
        wheel.extractall(site)
    others = [entry for entry in sys.path if entry.endswith("site-packages")]
    (site / "others.pth").write_text("\n".join(others) + "\n")
    return folder / "bin" / "python"


def test_both_packages_have_the_same_version():
    assert graphax.__version__ == alphagrad.__version__
    assert re.fullmatch(r"\d+\.\d+\.\d+", graphax.__version__)
    assert f"version: {graphax.__version__}\n" in (ROOT / "CITATION.cff").read_text()


@pytest.mark.slow
def test_distributions_pass_the_check_of_the_index(distributions):
    pytest.importorskip("twine")
    run(sys.executable, "-m", "twine", "check", "--strict", *distributions.iterdir())


@pytest.mark.slow
def test_the_wheel_has_types_and_metadata_but_no_extras_of_development(distributions):
    with zipfile.ZipFile(next(distributions.glob("*.whl"))) as wheel:
        names = wheel.namelist()
        (described,) = (name for name in names if name.endswith("/METADATA"))
        metadata = message_from_string(wheel.read(described).decode())
    assert {"graphax/py.typed", "alphagrad/py.typed"} <= set(names)
    assert {name.partition("/")[0] for name in names} == {"graphax", "alphagrad", described.partition("/")[0]}
    assert set(metadata.get_all("Provides-Extra")) == {"search", "native", "solvers", "rl", "plot", "peers"}
    assert metadata["Author"] == "graphax and alphagrad developers"
    links = re.findall(r"\]\(([^)]+)\)", metadata.get_payload())
    assert links
    assert all(link.startswith(("https://", "#")) for link in links)


def checked(environment: Path, folder: Path, text: str) -> subprocess.CompletedProcess:
    (folder / "project.py").write_text(text)
    command = (sys.executable, "-m", "mypy", "--strict", "--python-executable", environment, "project.py")
    return perform(*command, cwd=folder)


@pytest.mark.slow
def test_users_see_types(environment, tmp_path):
    pytest.importorskip("mypy")
    found = checked(environment, tmp_path, PROJECT)
    assert found.returncode == 0, found.stdout + found.stderr
    jacve, *shown = re.findall(r'Revealed type is "(.*)"', found.stdout)
    takes, _, _ = jacve.rpartition(" -> def ")
    assert "graphax.order.Order" in takes
    assert "Any" not in takes
    renamed = {"jax._src.basearray.Array": "jax.Array", "builtins.": ""}
    for old, new in renamed.items():
        shown = [text.replace(old, new) for text in shown]
    assert shown == REVEALED
    wrong = PROJECT + "\n".join(MISTAKES)
    codes = re.findall(r"error: .*\[(.*)\]", checked(environment, tmp_path, wrong).stdout)
    assert codes == list(MISTAKES.values())


@pytest.mark.slow
def test_the_wheel_runs(environment):
    code = "import graphax, alphagrad, jax.numpy as jnp; print(graphax.__file__, graphax.jacve(jnp.sin)(0.0))"
    assert str(environment.parents[1]) in run(environment, "-c", code)
