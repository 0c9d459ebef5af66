"""Invalid requests lead to one line that says why, and what to do instead."""

import sys

import pytest

import graphax

from .commands import OWN_MODULE, alphagrad

LIMIT = "--iterations 1"
BAD = {
    "search RoeFlux1d": "did you mean RoeFlux_1d",
    "search RoeFlux_1d --args mine:make_args": "--args is only for module:function",
    "search absent:f": "cannot import absent: ModuleNotFoundError: No module named 'absent'; run alphagrad in",
    "search mine.py:f": "write mine",
    "search broken:f": "cannot import broken: ValueError: not today",
    "search leaving:f": "cannot import leaving: SystemExit: 3",
    "search mine:absent": "mine has no absent; it contains: jnp, np, f, make_args",
    "search mine:number.real.absent": "mine has no number.real.absent",
    "search mine:number": "mine:number is float, not a function",
    "search mine:": "not of the form module:name",
    "search generated:": "such as generated:7",
    "search generated:x": "such as generated:7",
    "search generated:7 --args mine:POINT": "--args is only for module:function",
    "search mine:f": "give --args module:make_args",
    "search mine:f --args make_args": "--args 'make_args' is not of the form module:name",
    "search mine:f --args mine:failing": "--args mine:failing cannot be called without arguments: RuntimeError: no",
    "search mine:f --args mine:number": "it must return a tuple of arguments",
    "search mine:f --args mine:one": "f() missing 1 required positional argument: 'x'",
    "search mine:f --args mine:whole_numbers": "nothing can be differentiated",
    "search mine:f --args mine:POINT --argnums 7": "asks for positional argument 7",
    "search mine:f --args mine:POINT --argnums x": "such as 0,2",
    "search mine:branches --args mine:one": "branches cannot be traced",
    "search RoeFlux_1d --budget 0": "more than zero, but has 0 seconds",
    "search RoeFlux_1d --budget nan": "more than zero",
    "search RoeFlux_1d --budget soon": "--budget",
    "search RoeFlux_1d --evaluations 0": "more than zero, but has 0 evaluations",
    "search RoeFlux_1d --certified --budget 1": "give it or a budget, not both",
    "search RoeFlux_1d --minimize time": "one of: multiplications, operations, peak",
    "search RoeFlux_1d --minimize 1,x": "a pair of weights",
    "search RoeFlux_1d --minimize 0,0": "not both zero",
    "search RoeFlux_1d --counting odd": "one of: folded, raw",
    "search RoeFlux_1d --method magic": "one of: auto, presets",
    "search RoeFlux_1d --seed -1": "Invalid value for '--seed'",
    "search RoeFlux_1d --workers 0": "Invalid value for '--workers'",
    "search RoeFlux_1d --save absent/order.json": "there is no folder absent",
    "search RoeFlux_1d --save order.txt": "ends in .json",
    "search RoeFlux_1d --save folder.json": "cannot be written",
    "search RoeFlux_1d --plot absent/order.png": "there is no folder absent",
    "search RoeFlux_1d --plot order.txt": "--plot order.txt: give it a name that ends in .png or .svg or .pdf",
    "search RoeFlux_1d --plot order.png --minimize runtime": "compares run times; leave one out",
    "search RoeFlux_1d --start junk.json": "'junk.json' is not a saved order",
    "search RoeFlux_1d --start mine.py": "'mine.py' is not a saved order",
    "search RoeFlux_1d --start other.json": "made for the graph another",
    "search RoeFlux_1d --start absent.json": "no order file 'absent.json'",
    "search RoeFlux_1d --start folder.json": "cannot be read",
    "search RoeFlux_1d --start best": "presets are: auto, fwd",
    "search": "Missing argument",
    "search RoeFlux_1d --odd": "--odd",
    "odd": "No such command 'odd'. See alphagrad --help",
    "serch RoeFlux_1d": "Did you mean 'search'",
    "table Odd": "no task is called 'Odd'",
    "table --counting odd": "'raw', 'folded', 'both'",
    "table --budget -1": "more than zero",
    "tasks RoeFlux_1d": "unexpected extra argument",
    "train": "Missing argument",
    "train dqn EnzymeReaction": "'alphazero', 'ppo'",
    f"train ppo {LIMIT}": "name the tasks to train on, or give --joint",
    f"train ppo EnzymeReaction --joint {LIMIT}": "or give --joint",
    f"train ppo --generated -1 {LIMIT}": "--generated -1: it must be zero or more",
    f"train ppo EnzymeReaction --track paper {LIMIT}": "one of: tensorboard, wandb",
    "train ppo EnzymeReaction": "--seconds, --iterations or both",
    "train ppo EnzymeReaction --iterations 0": "--iterations 0: it must be more than zero",
    "train ppo EnzymeReaction --seconds nan": "--seconds nan: it must be more than zero",
    "train ppo EnzymeReaction --seconds soon": "--seconds",
    f"train ppo EnzymReaction {LIMIT}": "did you mean EnzymeReaction",
    f"train ppo EnzymeReaction enzymereaction {LIMIT}": "EnzymeReaction was given twice",
    f"train ppo mine:f {LIMIT}": "give --args module:make_args",
    f"train ppo mine:absent {LIMIT}": "mine has no absent",
    f"train ppo mine:same --args mine:one {LIMIT}": "same has no vertices to eliminate",
    f"train ppo EnzymeReaction --seed 4294967296 {LIMIT}": "a seed must be less than 2**32",
    f"train ppo EnzymeReaction --seeds 1,4294967296 {LIMIT}": "a seed must be less than 2**32",
    f"train ppo EnzymeReaction --seeds 1,1 {LIMIT}": "--seeds 1,1: give different whole numbers",
    f"train ppo EnzymeReaction --seeds 1,a {LIMIT}": "--seeds 1,a: give different whole numbers",
    f"train ppo EnzymeReaction --counting odd {LIMIT}": "one of: folded, raw",
    f"train ppo EnzymeReaction --minimize time {LIMIT}": "one of: multiplications",
    f"train ppo EnzymeReaction --minimize peak {LIMIT}": "cannot minimize the peak",
    f"train ppo EnzymeReaction --preset large {LIMIT}": "'paper', 'small', 'graph'",
    f"train ppo EnzymeReaction --folder file {LIMIT}": "it is a file; name a folder",
    f"train ppo EnzymeReaction --results file {LIMIT}": "it is a file; name a folder",
    f"train ppo EnzymeReaction --set environments {LIMIT}": "write name=value, such as environments=64",
    f"train ppo EnzymeReaction --set =4 {LIMIT}": "write name=value",
    f"train ppo EnzymeReaction --set odd=4 {LIMIT}": "there is no field odd; the fields are: environments, minibatches",
    f"train ppo EnzymeReaction --set clip.odd=4 {LIMIT}": "there is no field clip.odd",
    f"train ppo EnzymeReaction --set policy_network=4 {LIMIT}": "policy_network.layers",
    f"train ppo EnzymeReaction --set environments=many {LIMIT}": "'many' is not a whole number",
    f"train ppo EnzymeReaction --set environments=1.5 {LIMIT}": "'1.5' is not a whole number",
    f"train ppo EnzymeReaction --set environments=0 {LIMIT}": "environments is 0, but it must be more than zero",
    f"train ppo EnzymeReaction --set environments=6 {LIMIT}": "6 environments cannot be shared equally",
    f"train ppo EnzymeReaction --set entropy_weight=-1 {LIMIT}": "zero or more",
    f"train ppo EnzymeReaction --set clip=nan {LIMIT}": "'nan' is not a number",
    f"train ppo EnzymeReaction --set scaling=odd {LIMIT}": "one of: root, log",
    f"train ppo EnzymeReaction --set value_network.dtype=int8 {LIMIT}": "one of: float32, bfloat16, float16",
    f"train ppo EnzymeReaction --preset paper --set value_network.heads=3 {LIMIT}": "does not divide the embedding",
    f"train ppo EnzymeReaction --set value_network.policy_hidden=8,x {LIMIT}": "'x' is not whole numbers",
    "play": "Missing argument",
    "play EnzymReaction": "did you mean EnzymeReaction",
    "play EnzymeReaction --minimize peak": "cannot minimize the peak",
    "play EnzymeReaction --counting odd": "one of: folded, raw",
    "play EnzymeReaction --agent absent": "absent is not the folder of a training run",
    "show RoeFlux1d": "did you mean RoeFlux_1d",
    "show": "Missing argument",
    "show RoeFlux_1d --order odd": "unknown order 'odd'; choose one of: best, auto, fwd",
    "show RoeFlux_1d --order absent.json": "no order file 'absent.json'",
    "show RoeFlux_1d --order junk.json": "'junk.json' is not a saved order",
    "show RoeFlux_1d --order other.json": "made for the graph another",
    "show RoeFlux_1d --out page.pdf": "ends in .html or .svg or .dot",
    "show RoeFlux_1d --out page": "ends in .html",
    "show RoeFlux_1d --out absent/page.html": "there is no folder absent",
    "show RoeFlux_1d --out folder.html": "cannot be written",
    "show RoeFlux_1d --out graph.svg --step 99": "give a number from 0 to 98",
    "show RoeFlux_1d --step -1": "give a number from 0 to 98",
    "show RoeFlux_1d --out graph.svg --order rev --order fwd": "give one --order",
    "show RoeFlux_1d --out graph.dot --open": "without --open",
    "show RoeFlux_1d --counting odd": "one of: folded, raw",
    "show RoeFlux_1d --budget 0": "more than zero",
    "report": "Missing argument",
    "report RoeFlux_1d Odd": "no task is called 'Odd'",
    "report RoeFlux_1d --out report.svg": "ends in .html",
    "report RoeFlux_1d --timings absent.json": "cannot be read",
    "report RoeFlux_1d --timings junk.json": "alphagrad bench --save",
    "bench Nothing": "Nothing",
    "bench --batch 0": "--batch 0: give whole numbers of at least 1, such as --batch 1,512",
    "bench --batch many": "--batch many: give whole numbers",
    "bench --batch ,": "give whole numbers",
    "bench MLP --scale 1.5": "--scale 1.5: give whole numbers",
    "bench RoeFlux_1d --scale 16": "RoeFlux_1d has no sizes to multiply",
    "bench --backend cuda": "unknown backend 'cuda'; choose one of: auto, native, xla",
    "bench --orders quick": "unknown order 'quick'; choose one of: ",
    "bench --orders no.json": "there is no order file 'no.json'",
    "bench --peers tapenade": "unknown peer 'tapenade'",
    "bench --dtype float16": "float16",
    "bench --repeat 0": "--repeat 0: it must be more than zero",
    "bench --seconds inf": "--seconds inf: it must be more than zero",
    "bench --threads -1": "--threads -1: it must be more than zero",
    "bench --check speed": "speed",
    "bench --check accuracy --batch 2": "--check sets batches and sizes",
    "bench --figures --batch 2": "--figures sets batches and sizes",
    "bench --save b.txt": "--save b.txt: give it a name that ends in .json",
    "bench --save no/b.json": "there is no folder no; create it, or name another",
    "bench --plot b.doc": "--plot b.doc: give it a name that ends in .png or .svg or .pdf",
}


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "mine.py").write_text(OWN_MODULE)
    (tmp_path / "broken.py").write_text("raise ValueError('not\\ntoday')")
    (tmp_path / "leaving.py").write_text("import sys; sys.exit(3)")
    (tmp_path / "junk.json").write_text("{")
    (tmp_path / "file").write_text("")
    graphax.Order((1, 2), fingerprint="another").save("other.json")
    (tmp_path / "folder.json").mkdir()
    (tmp_path / "folder.html").mkdir()
    yield
    for name in ("mine", "broken", "leaving"):
        sys.modules.pop(name, None)


@pytest.mark.parametrize("command", BAD)
def test_bad_input_is_answered_in_one_line(command):
    result = alphagrad(*command.split())
    assert result.exit_code == 2, (result.stderr, result.exception)
    assert result.stdout == ""
    assert result.stderr.startswith("alphagrad: ")
    assert result.stderr.count("\n") == 1
    assert result.stderr.endswith("\n")
    assert BAD[command] in result.stderr


UNWRITABLE = {
    "search RoeFlux_1d --certified --save order.json": "--save order.json: it cannot be written",
    "search RoeFlux_1d --certified --plot order.png": "--plot order.png: it cannot be written",
    "show RoeFlux_1d --budget 100": "--out RoeFlux_1d.html: it cannot be written",
    "report RoeFlux_1d --budget 100": "--out report.html: it cannot be written",
    "train ppo EnzymeReaction --seconds 1000": "--folder runs/ppo-EnzymeReaction-0: it cannot be written to",
    "train ppo EnzymeReaction --seconds 1000 --results r --folder f": "--folder f: it cannot be written to",
    "bench RoeFlux_1d --save b.json": "--save b.json: it cannot be written",
}


@pytest.mark.parametrize("command", UNWRITABLE)
def test_what_cannot_be_written_is_refused_before_the_work(command, monkeypatch):
    monkeypatch.setattr("os.access", lambda path, mode: False)
    result = alphagrad(*command.split())
    assert result.exit_code == 2
    assert UNWRITABLE[command] in result.stderr
