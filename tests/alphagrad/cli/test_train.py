import io
import json
import subprocess
import sys

import pytest
from matplotlib import use

from alphagrad.agents import presets, settings, training
from alphagrad.agents.run_folder import RunError
from alphagrad.cli import status_line
from alphagrad.cli.outcome import Outcome
from alphagrad.cli.target import Target
from alphagrad.cli.train import AgentName, Preset, Train
from alphagrad.elimination.objective import Objective
from alphagrad.errors import SearchError
from alphagrad.plot import learning_curve
from alphagrad.tasks import TASKS, get
from graphax import Order

from .commands import alphagrad, answered

MODULE = """
import jax.numpy as jnp

def f(x, y):
    a = jnp.sin(x) * y
    return a * jnp.cos(a) + y

def make_args():
    return 0.3, 0.7

def same(x):
    return x

def one():
    return (1.0,)
"""
ALPHAZERO = (
    "environments=4", "simulations=4", "considered_actions=2", "network.layers=1", "network.embedding=16",
    "network.heads=2", "network.policy_hidden=8", "network.value_hidden=8",
)  # fmt: skip
PPO = (
    "environments=4", "minibatches=2", "epochs=1",
    *(f"{network}.{setting}" for network in ("policy_network", "value_network")
      for setting in ("layers=1", "embedding=16", "heads=2", "policy_hidden=8", "value_hidden=8")),
)  # fmt: skip
TINY = {"alphazero": ALPHAZERO, "ppo": PPO}


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "mine.py").write_text(MODULE)
    (tmp_path / "file").write_text("")
    yield
    sys.modules.pop("mine", None)


def setting_options(agent):
    return [word for setting in TINY[agent] for word in ("--set", setting)]


def training_of(agent, *arguments):
    """Train the paper's network, which does not finish after a single iteration."""
    return ("train", agent, *arguments, "--preset", "paper", *setting_options(agent))


@pytest.fixture(scope="module")
def enzymes(tmp_path_factory):
    """A run of AlphaZero, its results and what was printed."""
    place = tmp_path_factory.mktemp("enzymes")
    command = training_of("alphazero", "enzymereaction", "--iterations", "2", "--seed", "3")
    return place, command, answered(*command, "--folder", place / "run", "--results", place / "results")


@pytest.fixture(scope="module")
def joint(tmp_path_factory):
    """A run of PPO on two tasks, and what was printed."""
    place = tmp_path_factory.mktemp("joint")
    command = training_of("ppo", "EnzymeReaction", "ElasticRod", "--iterations", "2", "--minimize", "1,0.5")
    return place, json.loads(answered(*command, "--folder", place / "run", "--results", place / "results", "--json"))


def test_training_ends_with_a_table_and_the_lines_that_use_the_order(enzymes):
    place, _, text = enzymes
    lines, graph = text.splitlines(), get("EnzymeReaction").graph()
    order = Order.load(place / "run" / "orders" / "EnzymeReaction.json")
    assert lines[0] == "alphazero, multiplications (raw)"
    assert lines[2].split()[:5] == ["EnzymeReaction", f"{order.cost:g}", "132", "110", "112"]
    assert graph.cost(order, "raw").multiplications == order.cost
    space = {}
    for line in lines[-3:-1]:
        exec(line, space)
    assert len(eval(lines[-1], space)(*get("EnzymeReaction").arguments())) == len(graph.inputs)


def test_results_are_written(enzymes):
    place, _, _ = enzymes
    found = json.loads((place / "results" / "alphazero" / "EnzymeReaction-3.json").read_text())
    keys = {"task", "order", "multiplications", "counting", "seed", "config", "seconds", "command", "curve"}
    assert keys <= set(found)
    assert found["multiplications"] == get("EnzymeReaction").graph().cost(found["order"], "raw").multiplications
    assert (found["seed"], found["counting"], found["config"]["network"]["layers"]) == (3, "raw", 1)
    assert [line["iteration"] for line in found["curve"]] == [1, 2]
    assert found["command"].startswith("alphagrad train alphazero enzymereaction --iterations 2 --seed 3 ")
    assert "--set network.heads=2" in found["command"]


def test_a_finished_run_is_reported_again(enzymes):
    place, command, text = enzymes
    assert answered(*command, "--folder", place / "run").splitlines()[:3] == text.splitlines()[:3]


def test_another_configuration_is_refused(enzymes):
    place, command, _ = enzymes
    result = alphagrad(*command, "--set", "simulations=5", "--folder", place / "run")
    assert (result.exit_code, result.stderr.count("\n")) == (2, 1)
    assert "simulations is 4 there and 5 here" in result.stderr


@pytest.mark.slow
def test_several_seeds_are_runs_of_their_own(tmp_path):
    command = training_of("ppo", "EnzymeReaction", "--iterations", "1", "--seeds", "4,9", "--results", tmp_path)
    runs = json.loads(answered(*command, "--json"))["runs"]
    assert [run["folder"] for run in runs] == ["runs/ppo-EnzymeReaction-4", "runs/ppo-EnzymeReaction-9"]
    found = [json.loads((tmp_path / "ppo" / f"EnzymeReaction-{seed}.json").read_text()) for seed in (4, 9)]
    assert [result["seed"] for result in found] == [4, 9]
    assert [result["command"].split("--seed ")[1][0] for result in found] == ["4", "9"]
    assert found[0]["curve"][0]["mean_cost"] != found[1]["curve"][0]["mean_cost"]
    alone = training_of("ppo", "EnzymeReaction", "--iterations", "1", "--seed", "9", "--folder", "alone", "--json")
    assert json.loads(answered(*alone))["tasks"][0]["order"] == runs[1]["tasks"][0]["order"]


@pytest.mark.slow
def test_several_tasks(joint):
    place, found = joint
    assert [row["task"] for row in found["tasks"]] == ["EnzymeReaction", "ElasticRod"]
    assert (found["stopped"], found["iterations"]) == ("iterations", 2)
    assert found["objective"] == "1·multiplications + 0.5·additions (raw)"
    for number, row in enumerate(found["tasks"]):
        cost = get(row["task"]).graph().cost(row["order"], "raw")
        assert row["best"] == cost.multiplications + 0.5 * cost.additions
        assert row["bound"] <= row["best"]
        results = json.loads((place / "results" / "ppo-joint" / f"{row['task']}-0.json").read_text())
        metrics = [json.loads(line) for line in (place / "run" / "metrics.jsonl").read_text().splitlines()]
        assert [line["best_cost"] for line in results["curve"]] == [[line["best_cost"][number]] for line in metrics]


@pytest.mark.parametrize("name", ["EnzymeReaction", "ElasticRod"])
def test_an_agent_plays(joint, name):
    place, _ = joint
    found = json.loads(answered("play", name, "--agent", place / "run", "--json"))
    graph = get(name).graph()
    cost = graph.cost(found["order"], "raw")
    assert sorted(found["order"]) == sorted(graph.intermediates)
    assert found["cost"] == cost.multiplications + 0.5 * cost.additions
    text = answered("play", name, "--agent", place / "run")
    assert text.startswith(f"order: {' '.join(map(str, found['order']))}\n")
    assert f"cost {found['cost']:g}, reverse {found['reverse']:g}, markowitz {found['markowitz']:g}" in text


def test_an_agent_plays_what_fits(enzymes):
    place, _, _ = enzymes
    run = place / "run"
    answered("play", "mine:f", "--args", "mine:make_args", "--agent", run)
    result = alphagrad("play", "RoeFlux_1d", "--agent", run)
    assert result.exit_code == 2
    assert "but the tables are made for" in result.stderr


def test_a_run_without_checkpoints_cannot_play(enzymes, tmp_path):
    (tmp_path / "bare" / "checkpoints").mkdir(parents=True)
    (tmp_path / "bare" / "config.json").write_text((enzymes[0] / "run" / "config.json").read_text())
    assert "has no checkpoint" in alphagrad("play", "EnzymeReaction", "--agent", "bare").stderr
    (tmp_path / "bare" / "config.json").write_text("{}")
    assert "cannot be read" in alphagrad("play", "EnzymeReaction", "--agent", "bare").stderr


def played(*lines, task=("EnzymeReaction",)):
    return answered("play", *task, input="".join(f"{line}\n" for line in lines))


def test_a_game_by_hand():
    graph = get("EnzymeReaction").graph()
    text = played(*graph.intermediates)
    assert "to beat: reverse 110, markowitz 112" in text
    assert f"order: {' '.join(map(str, graph.intermediates))}\nmultiplications (raw): cost 132, reverse 110" in text
    assert text.splitlines()[-1].startswith("graphax.jacve(enzyme_reaction, order=[")


def test_hints_and_undoing():
    text = played("hint", "undo", "3", "3", "undo", "odd", "", "2", "quit")
    assert "the cheapest now is 3, for 1\n" in text
    assert "there is nothing to undo\n" in text
    assert "3 is eliminated, for 1\n" in text
    assert "'3' is not a remaining vertex; type the number" in text
    assert "3 is back\n" in text
    assert "'odd' is not a remaining vertex" in text
    assert text.endswith("you leave with 6 vertices to go; cost so far 11\n")


def test_the_end_of_input_ends_a_game():
    assert played().endswith("you leave with 7 vertices to go; cost so far 0\n")


def test_folded_prices_are_those_of_the_plan():
    graph = get("EnzymeReaction").graph()
    text = played(*graph.intermediates, task=("EnzymeReaction", "--counting", "folded"))
    assert f"multiplications (folded): cost {graph.cost('fwd').multiplications}, " in text


def test_games_as_data():
    graph = get("EnzymeReaction").graph()
    moves = "".join(f"{vertex}\n" for vertex in graph.intermediates)
    found = json.loads(answered("play", "EnzymeReaction", "--json", input=moves))
    assert found["order"] == list(graph.intermediates)
    assert found["cost"] == graph.cost("fwd", "raw").multiplications
    left = json.loads(answered("play", "EnzymeReaction", "--json", input="quit\n"))
    assert (left["order"], left["cost"], left["reverse"]) == (None, None, 110)


def test_own_functions_can_be_played():
    text = played("hint", task=("mine:f", "--args", "mine:make_args"))
    assert "the cheapest now" in text


def finished(trainer, seed, folder, **options):
    """Replace training, and report the options through the progress line."""
    orders = folder / "orders"
    orders.mkdir(parents=True)
    name, graph = trainer.names[0], trainer.games.graphs[0]
    Order(tuple(graph.intermediates), graph.fingerprint, cost=1.0, bound=0.0).save(orders / f"{name}.json")
    report = training.TrainingProgress("ppo", 1, {name: 5.0}, {name: 4.0}, 8, 1.0, 8.0, {})
    options["progress"](report)
    raise KeyboardInterrupt


def test_an_interrupted_run_gives_the_best_so_far(monkeypatch, tmp_path):
    monkeypatch.setattr(training.Trainer, "train", finished)
    monkeypatch.setattr(status_line, "EVERY", 0.0)
    result = alphagrad("train", "ppo", "mine:f", "--args", "mine:make_args", "--seconds", "9", "--seed", "7")
    assert result.exit_code == 130
    assert result.stderr.splitlines()[-2:] == [
        "ppo: iteration 1, f 5 (at least 4), 8 games (8.0/s), 1.0 s",
        "alphagrad: interrupted; the run is kept in runs/ppo-f-7, and the same command resumes it",
    ]
    assert "stopped: interrupted" in result.stdout
    assert (tmp_path / "runs" / "ppo-f-7" / "orders" / "f.json").exists()
    assert 'order="runs/ppo-f-7/orders/f.json"' in result.stdout


def test_progress_on_a_terminal_and_in_silence(monkeypatch, tmp_path):
    monkeypatch.setattr(training.Trainer, "train", finished)
    monkeypatch.setattr(status_line, "EVERY", 0.0)
    command = ("train", "ppo", "EnzymeReaction", "--seconds", "9")
    shown = alphagrad(*command, "--folder", "a", env={"FORCE_COLOR": "1", "TERM": "xterm"})
    assert "EnzymeReaction 5 (at least 4)" in shown.stderr
    assert alphagrad(*command, "--folder", "b", "--quiet").stderr.startswith("alphagrad: interrupted")
    data = alphagrad(*command, "--folder", "c", "--json")
    assert "EnzymeReaction 5 (at least 4)" in data.stderr
    assert json.loads(data.stdout)["stopped"] == "interrupted"


def test_an_interruption_with_nothing_found_is_one(monkeypatch):
    def interrupted(*args, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(training.Trainer, "train", interrupted)
    assert alphagrad("train", "ppo", "EnzymeReaction", "--seconds", "9").exit_code == 130


def test_joint_is_the_tasks_of_the_paper_and_generated_functions():
    command = Train(AgentName.ppo, joint=True, generated=2, seconds=5.0, seed=1, preset=Preset.small)
    ten = [name for name, task in TASKS.items() if task.paper]
    assert len(ten) == 10
    assert list(command.targets()) == [*ten, "random_function(0)", "random_function(1)"]
    assert str(command.run_folder(1, [])) == "runs/ppo-joint-generated2-1"
    assert command.command(1).startswith("alphagrad train ppo --joint --generated 2 --seconds 5.0 ")


def test_settings_have_the_types_of_their_fields():
    config = presets.PRESETS["alphazero"]["small"]
    changed = settings.configured(
        config, ["environments=64", "learning_rate=1e-4", "network.policy_hidden=8,4", "network.dtype=float32"]
    )
    assert (changed.environments, changed.learning_rate) == (64, 1e-4)
    assert (changed.network.policy_hidden, changed.network.dtype) == ((8, 4), "float32")
    assert changed.simulations == config.simulations
    assert settings.configured(config, ["network.value_hidden="]).network.value_hidden == ()


def test_presets_are_valid():
    for configs in presets.PRESETS.values():
        for config in configs.values():
            assert settings.configured(config, []) == config


def test_all_fields_are_named():
    with pytest.raises(SearchError) as caught:
        settings.configured(presets.PRESETS["ppo"]["paper"], ["layers=3"])
    for name in ("environments", "clip", "policy_network.layers", "value_network.dtype"):
        assert name in str(caught.value)


def test_help_says_how_to_set_fields():
    assert "network.layers=3" in answered("train", "alphazero", "--help", env={"COLUMNS": "300"})


@pytest.mark.parametrize("command", ["train ppo EnzymeReaction --seconds 1", "play EnzymeReaction --agent run"])
def test_missing_packages_are_named(command):
    script = (
        f"import sys; sys.modules['mctx'] = None; sys.argv = ['alphagrad', *{command.split()}]\n"
        "from alphagrad.__main__ import main; main()"
    )
    answer = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert answer.returncode == 2
    assert answer.stderr == "alphagrad: this command needs mctx: pip install 'graphax-alphagrad[rl]'\n"


def test_learning_curves(enzymes, joint):
    use("agg")
    for run in (enzymes[0] / "run", enzymes[0] / "results" / "alphazero" / "EnzymeReaction-3.json"):
        figure, axes = learning_curve(run)
        labels = [text.get_text() for text in axes.get_legend().get_texts()]
        assert labels[:2] == ["EnzymeReaction, best", "EnzymeReaction, mean"]
        assert labels[2:] == ["forward, 132", "reverse, 110", "markowitz, 112"]
        assert list(axes.lines[0].get_xdata()) == [4, 8]
        assert axes.get_ylabel() == "multiplications (raw)"
        image = io.BytesIO()
        figure.savefig(image, format="png")
        assert image.getvalue().startswith(b"\x89PNG")
    _, axes = learning_curve(joint[0] / "run")
    assert len(axes.lines) == 4


def test_curves_of_functions_that_are_not_ours(enzymes, tmp_path):
    config = json.loads((enzymes[0] / "run" / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(config | {"graphs": {"EnzymeReaction": "another"}}))
    (tmp_path / "metrics.jsonl").write_text((enzymes[0] / "run" / "metrics.jsonl").read_text() + '{"unfinished')
    assert len(learning_curve(tmp_path)[1].lines) == 2
    (tmp_path / "metrics.jsonl").unlink()
    with pytest.raises(RunError, match="no iterations"):
        learning_curve(tmp_path)


def test_what_has_no_curve(tmp_path):
    (tmp_path / "other.json").write_text("{}")
    for absent in ("file", "absent", tmp_path):
        with pytest.raises(RunError, match="cannot be read"):
            learning_curve(absent)
    with pytest.raises(RunError, match="does not hold task"):
        learning_curve("other.json")


def test_the_table_shows_bounds_on_record(tmp_path):
    task = get("PropaneCombustion")
    graph, target = task.graph(), Target("tasks", task.name, task.function, task.arguments(), task.argnums)
    (tmp_path / "orders").mkdir()
    graph.order(graph.intermediates, bound=1.0).save(tmp_path / "orders" / f"{task.name}.json")
    (tmp_path / "metrics.jsonl").write_text("")
    graphs, targets = {task.name: graph}, {task.name: target}
    outcome = Outcome.of("ppo", tmp_path, targets, graphs, Objective(counting="raw"), "seconds")
    assert outcome.found[0]["bound"] == 88
