import importlib
import inspect
import json
import re
import shlex
import signal
import subprocess
import sys
import time

import jax
import numpy as np
import pytest
import typer

import graphax
from alphagrad import tasks
from alphagrad.__main__ import main
from alphagrad.cli import progress_line
from alphagrad.cli.app import app
from alphagrad.cli.examples import EXAMPLES
from alphagrad.finders import portfolio
from alphagrad.finders.budget import Budget

from .commands import OWN_MODULE, alphagrad, answered

FEW = ("--evaluations", "2000")
# A budget that suffices to find better orders than `auto`.
MORE = ("--evaluations", "20000")


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    """A user's folder with a module and some files. Nothing outside of it is written to."""
    monkeypatch.setenv("ALPHAGRAD_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "mine.py").write_text(OWN_MODULE)
    (tmp_path / "broken.py").write_text("raise ValueError('not\\ntoday')")
    (tmp_path / "leaving.py").write_text("import sys; sys.exit(3)")
    (tmp_path / "junk.json").write_text("{")
    graphax.Order((1, 2), fingerprint="another").save("other.json")
    (tmp_path / "folder.json").mkdir()
    yield
    for name in ("mine", "broken", "leaving"):
        sys.modules.pop(name, None)


def used(lines):
    """The result of the printed lines of Python."""
    space = {}
    for line in lines[:-1]:
        exec(line, space)
    return eval(lines[-1], space)


def check_usage(lines, function, args, argnums):
    jacobian = jax.jit(used(lines), static_argnums=[n for n, x in enumerate(args) if isinstance(x, int)])(*args)
    jax.tree.map(np.testing.assert_allclose, jacobian, jax.jacfwd(function, argnums=argnums)(*args))


HEAVY = ("jax", "numpy", "numba", "llvmlite", "equinox", "matplotlib", "rich")


def test_help_comes_at_once():
    """The help imports no slow packages; `benchmarks/command_line.py` measures the time."""
    script = (
        "import contextlib, sys; from alphagrad.__main__ import main\n"
        f"for name in ('', *{list(EXAMPLES)}):\n"
        "    sys.argv = ['alphagrad', *name.split(), '--help']\n"
        "    with contextlib.suppress(SystemExit): main()\n"
        f"print(sorted(set({HEAVY}) & set(sys.modules)))"
    )
    answer = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert answer.stdout.count("Usage: alphagrad") == len(EXAMPLES) + 1
    assert answer.stdout.endswith("[]\n")


def test_every_command_has_examples_and_they_can_be_read():
    group = typer.main.get_command(app)
    assert list(group.commands) == list(EXAMPLES)
    for name, lines in EXAMPLES.items():
        text = answered(name, "--help")
        for line in lines:
            assert f"  {line}\n" in text
            program, command, *words = shlex.split(line)
            assert (program, command) == ("alphagrad", name)
            assert group.commands[name].make_context(name, words).params


# The help of these options differs between commands, because they draw, write or limit different things.
OWN_HELP = {"--plot", "--save", "--out", "--seconds", "--minimize", "--counting"}


def test_options_are_the_same_in_all_commands():
    seen = {}
    for name, command in typer.main.get_command(app).commands.items():
        options = {option.opts[0]: option for option in command.params if option.opts[0].startswith("--")}
        assert {"--json", "--quiet"} <= set(options), name
        for flag, option in options.items():
            known = seen.setdefault(flag, option)
            # Typer 0.27 would mistake it for the name of the option, in capitals.
            assert str(option.metavar).lower() != option.name, (name, flag)
            assert option.is_flag == known.is_flag, (name, flag)
            assert option.metavar == known.metavar or flag in ("--counting", "--out"), (name, flag)
            assert option.help == known.help or flag in OWN_HELP, (name, flag)


def test_methods_are_listed():
    text = " ".join(answered("search", "--help").split())
    for name in portfolio.FINDERS:
        assert name in text


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("alphagrad se", {"search"}),
        ("alphagrad search RoeF", {"RoeFlux_1d", "RoeFlux_3d"}),
        ("alphagrad report RoeFlux_1d Robot", {"RobotArm_6DOF"}),
        ("alphagrad search RoeFlux_1d --method policy+", {"policy+anneal", "policy+beam"}),
        ("alphagrad search RoeFlux_1d --counting f", {"folded"}),
        ("alphagrad show RoeFlux_1d --order be", {"best"}),
        ("alphagrad train alphazero RoeFlux_1", {"RoeFlux_1d"}),
    ],
)
def test_completion(line, expected):
    words = line.split()
    env = {"_ALPHAGRAD_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(len(words) - 1)}
    assert set(alphagrad(env=env).stdout.split()) == expected


def test_version():
    assert re.fullmatch(r"alphagrad \d+(\.\w+)+\n", answered("--version"))


def test_a_closed_pipe_is_no_failure():
    command = f"{sys.executable} -m alphagrad tasks --json | true; echo ${{PIPESTATUS[0]}}"
    answer = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True)
    assert (answer.stdout, answer.stderr) == ("141\n", "")


def test_a_closed_output():
    command = f"{sys.executable} -m alphagrad tasks >&-"
    answer = subprocess.run(["bash", "-c", command], stderr=subprocess.PIPE, check=True)
    assert answer.stderr == b""


def test_it_runs_as_a_module():
    command = [sys.executable, "-m", "alphagrad", "--help"]
    assert "Usage: alphagrad" in subprocess.run(command, capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize(("absent", "command"), [("typer", "tasks"), ("numba", "search RoeFlux_1d"), ("rich", "table")])
def test_missing_packages_are_named(absent, command):
    script = (
        f"import sys; sys.modules[{absent!r}] = None; sys.argv = ['alphagrad', *{command.split()}]\n"
        "from alphagrad.__main__ import main; main()"
    )
    answer = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert answer.returncode == 2
    assert answer.stdout == ""
    assert answer.stderr.count("\n") == 1
    assert answer.stderr.startswith("alphagrad: ")
    assert absent in answer.stderr
    assert "pip install 'graphax-alphagrad[search]'" in answer.stderr


def test_a_broken_package_is_not_reported_as_missing():
    script = (
        "import sys, types; sys.modules['numba'] = types.ModuleType('numba')\n"
        "sys.argv = ['alphagrad', 'search', 'MLP']\n"
        "from alphagrad.__main__ import main; main()"
    )
    answer = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert answer.returncode == 2
    assert answer.stderr.startswith("alphagrad: cannot import name")


def test_main_prints_warnings_in_one_line(monkeypatch, capsys):
    import warnings

    monkeypatch.setattr(warnings, "formatwarning", warnings.formatwarning)
    monkeypatch.setattr(sys, "argv", ["alphagrad", "--help"])
    with pytest.raises(SystemExit) as left:
        main()
    assert not left.value.code
    assert "search" in capsys.readouterr().out
    assert warnings.formatwarning("odd", UserWarning, "file", 1) == "alphagrad: odd\n"


def test_no_arguments_print_the_help():
    assert answered() == answered("--help")


def test_tasks():
    text = answered("tasks")
    rows = json.loads(answered("tasks", "--json"))
    assert [row["name"] for row in rows] == list(tasks.TASKS | tasks.UNSEEN)
    for row in rows:
        assert row["name"] in text
        assert row["description"] in text
        assert (row["inputs"], row["intermediates"], row["outputs"]) == tasks.get(row["name"]).sizes


def test_search_ends_with_the_line_that_uses_the_order():
    lines = answered("search", "roeflux_1d", *FEW).splitlines()
    assert lines[0] == "98 vertices to eliminate"
    assert lines[-4:-1] == ["", "import graphax", "from alphagrad.tasks.fluids import roe_flux_1d"]
    task = tasks.get("RoeFlux_1d")
    check_usage(lines[-3:], task.function, task.arguments(), task.argnums)


def test_every_task_can_be_imported_as_the_line_says():
    for task in (tasks.TASKS | tasks.UNSEEN).values():
        function = inspect.unwrap(task.function)
        assert getattr(importlib.import_module(function.__module__), function.__qualname__) is function


@pytest.mark.parametrize(
    "options", [(), ("--simplify",), ("--save", "order.json"), ("--simplify", "--save", "a b.json")]
)
def test_orders_of_own_functions(options):
    lines = answered("search", "mine:f", "--args", "mine:make_args", *FEW, *options).splitlines()
    mine = sys.modules["mine"]
    check_usage(lines[-3:], mine.f, mine.make_args(), (0, 1))
    if "--save" in options:
        assert lines[-1] == f'graphax.jacve(f, order="{options[-1]}", argnums=(0, 1))'


@pytest.mark.parametrize("options", [(), ("--simplify",), ("--save", "order.json")])
def test_orders_of_functions_with_loops_have_those_of_bodies(options):
    text = answered("search", "mine:looped", "--args", "mine:make_args", *FEW, *options)
    assert "Steps of loops" in text
    lines = text.splitlines()
    assert ("bodies={" in lines[-1]) != ("--save" in options)
    check_usage(lines[-3:], sys.modules["mine"].looped, sys.modules["mine"].make_args(), (0, 1))


def test_arguments_that_are_not_floats_are_left_alone():
    lines = answered("search", "mine:weighted", "--args", "mine:make_weighted", *FEW).splitlines()
    assert lines[-1].endswith("argnums=(0, 2))")
    mine = sys.modules["mine"]
    check_usage(lines[-3:], mine.weighted, mine.make_weighted(), (0, 2))


def test_argnums_and_a_tuple_of_arguments():
    lines = answered("search", "mine:f", "--args", "mine:POINT", "--argnums", "1", *FEW).splitlines()
    assert lines[-1].endswith("argnums=1)")
    check_usage(lines[-3:], sys.modules["mine"].f, sys.modules["mine"].POINT, 1)
    assert "argnums=(0, 3))" in answered("search", "RoeFlux_1d", "--argnums", "0,3", *FEW)


def test_a_function_inside_a_class():
    lines = answered("search", "mine:Group.inside", "--args", "mine:one", *FEW).splitlines()
    assert lines[-2] == "from mine import Group"
    check_usage(lines[-3:], sys.modules["mine"].Group.inside, (0.7,), 0)


def test_the_function_of_a_task_needs_no_arguments():
    assert answered("search", "alphagrad.tasks.equations:human_heart_dipole", *FEW).startswith("78 vertices")


def test_nothing_to_eliminate_is_no_error():
    lines = answered("search", "mine:same", "--args", "mine:one", "--certified").splitlines()
    assert "optimal" in "\n".join(lines)
    assert float(used(lines[-3:])(2.0)) == 1.0


def test_json_is_the_only_output():
    result = alphagrad("search", "RobotArm_6DOF", "--counting", "raw", "--certified", "--json")
    assert result.stderr == ""
    found = json.loads(result.stdout)
    assert found["target"] == "RobotArm_6DOF"
    assert found["optimal"]
    assert found["value"] == found["bound"] == found["cost"]["multiplications"] == 221
    assert found["better_on_record"] is None
    assert list(used(found["usage"])(*tasks.get("RobotArm_6DOF").arguments()))


def test_options_reach_the_search():
    options = ("--minimize", "1,0.5", "--counting", "raw", "--method", "anneal", "--seed", "3", "--start", "markowitz")
    found = json.loads(answered("search", "RoeFlux_1d", *FEW, *options, "--json"))
    assert found["minimize"] == "1·multiplications + 0.5·additions (raw)"
    assert found["order"]["finder"] == "anneal"
    assert found["order"]["seed"] == 3
    assert found["history"][0][2] <= 407 + 0.5 * 164
    assert found == json.loads(answered("search", "RoeFlux_1d", *FEW, *options, "--json")) | {
        "history": found["history"],
        "seconds": found["seconds"],
    }


def test_a_saved_order_is_started_from():
    best = json.loads(answered("search", "RoeFlux_1d", *FEW, "--save", "best.json", "--json"))
    again = json.loads(answered("search", "RoeFlux_1d", "--method", "presets", "--start", "best.json", "--json"))
    assert again["value"] == best["value"]


def test_better_orders_on_record_are_mentioned():
    best = json.loads(answered("search", "DoublePendulum", *MORE, "--json"))["value"]
    text = answered("search", "DoublePendulum", "--method", "presets")
    assert f"A better order is on record, with {best}. --resume starts from it.\n" in text
    assert "On record" not in answered("search", "DoublePendulum", "--method", "presets", "--resume")


@pytest.mark.parametrize("command", ["search RoeFlux_1d --evaluations 2000", "show RoeFlux_1d --order rev --order fwd"])
def test_pictures(command, tmp_path):
    answered(*command.split(), "--plot", "picture.svg")
    assert "multiplications (folded)" in (tmp_path / "picture.svg").read_text()


def test_no_record_is_kept_if_none_is_wanted(tmp_path):
    answered("search", "RoeFlux_1d", *FEW, "--no-record")
    assert not (tmp_path / "cache").exists()


def test_workers():
    presets = json.loads(answered("search", "RoeFlux_1d", "--method", "presets", "--no-record", "--json"))
    found = json.loads(answered("search", "RoeFlux_1d", "--workers", "2", *MORE, "--json"))
    assert found["value"] < presets["value"]
    assert found["evaluations"] >= 20_000


def test_progress_is_shown_on_terminals_only():
    on_terminal = {"FORCE_COLOR": "1", "TERM": "xterm"}
    search = ("search", "RoeFlux_1d", "--budget", "0.3")
    shown = alphagrad(*search, env=on_terminal)
    assert "orders/s" in shown.stderr
    assert "of 0.3 s" in shown.stderr
    assert "\x1b" not in shown.stdout
    assert alphagrad(*search, "--quiet", env=on_terminal).stderr == ""
    assert json.loads(alphagrad(*search, "--json", env=on_terminal).stdout)
    assert alphagrad(*search).stderr == ""
    for plain in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
        assert "\x1b" not in alphagrad(*search, env=on_terminal | plain).stderr


@pytest.mark.parametrize(
    ("quiet", "said"), [(False, "preparing the search (compiled once per installation)…\n"), (True, "")]
)
def test_slow_compilation_is_announced(quiet, said, monkeypatch, capsys):
    monkeypatch.setattr(progress_line, "NOTICE_AFTER", 0.01)
    monkeypatch.setattr(progress_line, "warm_up", lambda method: time.sleep(0.2))
    with progress_line.ProgressLine(Budget(), quiet) as line:
        line.prepare("auto")
    assert capsys.readouterr().err == said


def test_table():
    rows = json.loads(answered("table", "RobotArm_6DOF", "EnzymeReaction", "--budget", "0.2", "--json"))
    assert [(row["task"], row["counting"]) for row in rows] == [
        ("RobotArm_6DOF", "paper, raw"),
        *(("RobotArm_6DOF", name) for name in ("raw", "folded", "folded, simplified")),
        *(("EnzymeReaction", name) for name in ("raw", "folded", "folded, simplified")),
    ]
    assert [rows[0][name] for name in ("forward", "reverse", "markowitz", "best")] == [397, 301, 288, 231]
    assert [rows[1][name] for name in ("forward", "reverse", "markowitz", "best", "bound")] == [397, 301, 288, 221, 221]
    assert rows[1]["gap"] == 0
    assert all(row["best"] <= min(row["forward"], row["reverse"], row["markowitz"]) for row in rows)
    text = answered("table", "RobotArm_6DOF", "--budget", "0.2", "--counting", "raw")
    assert "optimal" in text
    assert "folded" not in text
    assert "not to be compared" not in text
    assert "not comparable: MLP\n" in answered("table", "MLP", "--budget", "0.1", "--counting", "raw")
    assert "raw" not in answered("table", "EnzymeReaction", "--budget", "0.2", "--counting", "folded")


def interrupting(problem, seed, starts):
    yield from portfolio.presets(problem, seed, starts)
    raise KeyboardInterrupt


def test_an_interrupted_search_gives_the_best_so_far(monkeypatch):
    monkeypatch.setitem(portfolio.FINDERS, "auto", interrupting)
    found = alphagrad("search", "RoeFlux_1d", "--save", "order.json")
    assert "stopped: interrupted" in found.stdout
    assert callable(used(found.stdout.splitlines()[-3:]))
    assert found.stderr == "alphagrad: interrupted; the order is the best so far, and is in order.json\n"
    compared = alphagrad("table", "RoeFlux_1d", "--json")
    assert [row["counting"] for row in json.loads(compared.stdout)] == ["paper, raw", "raw", "folded"]
    assert compared.stderr == "alphagrad: interrupted; these are the rows so far\n"
    shown = alphagrad("show", "RoeFlux_1d")
    assert (shown.stdout, shown.stderr) == ("", "alphagrad: interrupted; nothing was written\n")
    assert [found.exit_code, compared.exit_code, shown.exit_code] == [130, 130, 130]


def test_an_interruption_with_nothing_found_is_one():
    result = alphagrad("search", "mine:f", "--args", "mine:interrupted")
    assert result.exit_code == 130
    assert result.stdout == ""


@pytest.mark.slow
@pytest.mark.usefixtures("interruptible")
def test_ctrl_c_during_a_proof():
    """The solver continues for a while, which once aborted the process."""
    answered("search", "RoeFlux_1d", "--evaluations", "10")  # compiles first, if necessary
    # Its folded counts are not proven yet.
    command = [sys.executable, "-m", "alphagrad", "search", "RoeFlux_1d", "--certified", "--no-record", "--quiet"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, **pipes) as process:
        try:
            time.sleep(15)
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=60)
        finally:
            process.kill()
    assert process.returncode == 130, err
    assert "184" in out
    assert "interrupted" in err
