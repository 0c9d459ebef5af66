import importlib
import subprocess
import sys

import pytest

from graphax import solvers


@pytest.mark.parametrize("name", solvers.__all__)
def test_all_names_are_there(name):
    assert getattr(solvers, name).__name__ == name


@pytest.mark.parametrize(
    ("missing", "name"), [("diffrax", "compiled"), ("lineax", "SmallLU"), ("optimistix", "least_squares")]
)
def test_a_missing_package_is_named_in_one_line(monkeypatch, missing, name):
    for module in [m for m in sys.modules if m.startswith("graphax.solvers")]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, missing, None)
    package = importlib.import_module("graphax.solvers")
    with pytest.raises(ImportError) as error:
        getattr(package, name)
    assert str(error.value) == f"graphax.solvers.{name} needs {missing}: pip install 'graphax-alphagrad[solvers]'"


def test_the_core_imports_none_of_them():
    code = "import graphax, graphax.solvers, sys; graphax.jacve(lambda x: x)(1.0); assert 'equinox' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
