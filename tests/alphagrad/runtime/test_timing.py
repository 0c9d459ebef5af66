import time

import pytest

from alphagrad.runtime.timing import FEWEST, Timing, take_turns


def nothing(*_):
    pass


def test_percentiles():
    timing = Timing.of([1.0, 2.0, 3.0])
    assert (timing.median, timing.runs) == (2.0, 3)
    assert 1.0 < timing.low < 1.1
    assert 2.9 < timing.high < 3.0


def test_every_contender_has_a_turn_in_every_round():
    ran, ticks = [], []
    seconds = {"a": [], "b": []}
    take_turns({name: lambda name=name: ran.append(name) for name in seconds}, seconds, 5, 60.0, ticks.append)
    assert ticks == [0, 1, 2, 3, 4]
    assert all(set(ran[n : n + 2]) == {"a", "b"} for n in range(0, 10, 2))
    assert all(len(values) == 5 and min(values) >= 0 for values in seconds.values())


def test_slow_contenders_run_less_often():
    seconds = {"slow": [], "fast": []}
    take_turns({"slow": lambda: time.sleep(0.02), "fast": nothing}, seconds, 8, 0.04, nothing)
    assert len(seconds["slow"]) == FEWEST
    assert len(seconds["fast"]) == 8


def test_an_interruption_keeps_what_was_measured():
    def interrupted(turn):
        if turn == 2:
            raise KeyboardInterrupt

    seconds = {"a": []}
    with pytest.raises(KeyboardInterrupt):
        take_turns({"a": nothing}, seconds, 9, 1.0, interrupted)
    assert len(seconds["a"]) == 2
