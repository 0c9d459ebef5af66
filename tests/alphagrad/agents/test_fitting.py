import re
from dataclasses import replace

import jax
import pytest

from alphagrad.agents import fitting
from alphagrad.agents.fitting import SHARE, Fitting
from alphagrad.agents.games import Games
from alphagrad.agents.groups import together
from alphagrad.agents.settings import configured
from alphagrad.agents.training import train
from alphagrad.errors import NotEnoughMemoryError

from .tiny import AGENTS, tiny_graph

GROUPS = together(Games.of([tiny_graph()]))
# The bytes that a configuration needs for its games and for the states that it learns from at once.
MADE_UP = property(lambda self: 1000 * self.config.environments + 200 * self.config.states_at_once)


def fitted(config, said=None):
    return Fitting(config, GROUPS, tuple(jax.devices()[:1]), (said if said is not None else []).append)


def refusal(config, room, monkeypatch):
    monkeypatch.setattr(fitting, "available", lambda devices: room)
    said = []
    with pytest.raises(NotEnoughMemoryError) as caught:
        _ = fitted(config, said).compiled
    return str(caught.value), said


def check_refusal(config, room, monkeypatch):
    """Check that the suggested setting fits by the same estimate."""
    message, said = refusal(config, room, monkeypatch)
    assert said[0].startswith("compiling an iteration")
    assert all("needs too much memory; compiling it with --set " in line for line in said[1:])
    changed = configured(config, re.findall(r"--set (\S+)", message))
    assert fitted(changed).memory <= SHARE * room
    assert ("learns the same" in message) == (changed.environments == config.environments)
    return changed


@pytest.mark.parametrize("name", AGENTS)
def test_suggested_settings_fit(name, monkeypatch):
    monkeypatch.setattr(Fitting, "memory", MADE_UP)
    config = replace(AGENTS[name], environments=32, states_at_once=100)
    fewer_states = check_refusal(config, 45_000, monkeypatch)
    assert (fewer_states.environments, fewer_states.states_at_once) == (32, 25 if name == "ppo" else 32)
    fewer_games = check_refusal(config, 30_000, monkeypatch)
    assert fewer_games.environments == 16


def test_an_error_says_if_nothing_fits(monkeypatch):
    monkeypatch.setattr(Fitting, "memory", MADE_UP)
    message, said = refusal(replace(AGENTS["ppo"], states_at_once=40_000_000), 500, monkeypatch)
    assert message.startswith(
        "training needs 8.0 GB of memory, but can use only 0.0 GB of the 0.0 GB available; fewer games "
    )
    assert len(said) == 1


@pytest.mark.slow
@pytest.mark.parametrize("name", AGENTS)
def test_suggested_settings_fit_when_compiled(name, monkeypatch):
    config = AGENTS[name]
    check_refusal(config, int(0.8 * fitted(config).memory), monkeypatch)


def test_unknown_memory_is_enough(monkeypatch):
    monkeypatch.setattr(Fitting, "memory", MADE_UP)
    monkeypatch.setattr(fitting, "available", lambda devices: None)
    assert fitted(AGENTS["ppo"]).compiled


def test_a_run_that_does_not_fit_leaves_nothing(monkeypatch, tmp_path):
    monkeypatch.setattr(Fitting, "memory", MADE_UP)
    monkeypatch.setattr(fitting, "available", lambda devices: 1000)
    with pytest.raises(NotEnoughMemoryError):
        train(tiny_graph(), AGENTS["ppo"], iterations=1, folder=tmp_path / "run")
    assert not (tmp_path / "run").exists()


@pytest.mark.slow
def test_a_run_continues_with_other_chunks(tmp_path):
    config = replace(AGENTS["ppo"], environments=4)
    train(tiny_graph(), config, iterations=1, folder=tmp_path, until_optimal=False)
    again = train(tiny_graph(), replace(config, states_at_once=8), iterations=2, folder=tmp_path, until_optimal=False)
    assert again.iterations == 2
