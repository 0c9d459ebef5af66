"""Checks that training fits into memory, by compiling it, and finds settings that fit if it does not."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import jax

from ..errors import NotEnoughMemoryError
from ..game import Sizes, common_sizes
from .agent import Agent
from .alphazero import AlphaZero, AlphaZeroConfig
from .groups import Group, Share
from .iteration import Iteration
from .memory import available, needed
from .networks import GraphNetworkConfig
from .ppo import PPO, PPOConfig

AgentConfig = AlphaZeroConfig | PPOConfig
# The share of the available memory that an iteration may use. The compiler counts neither the code itself nor what
# libraries allocate while they run.
SHARE = 0.9


def make_agent(config: AgentConfig, sizes: Sizes, parts: int | None = None) -> Agent:
    """The agent for games of these sizes, which learns from ``parts`` minibatches per iteration."""
    return AlphaZero(config, sizes, parts) if isinstance(config, AlphaZeroConfig) else PPO(config, sizes)


def plays_any_size(config: AgentConfig) -> bool:
    """Whether the agent has networks that play games of all sizes."""
    if isinstance(config, AlphaZeroConfig):
        return isinstance(config.network, GraphNetworkConfig)
    return all(isinstance(network, GraphNetworkConfig) for network in (config.policy_network, config.value_network))


@dataclass(frozen=True)
class Fitting:
    """The iteration of an agent, and the settings to change if it needs too much memory.

    Attributes:
        config: the configuration of the agent.
        groups: the games that the agent plays.
        devices: the devices that share the games.
        announce: is called with a description of each phase.
    """

    config: AgentConfig
    groups: tuple[Group, ...]
    devices: tuple[jax.Device, ...]
    announce: Callable[[str], None]

    @property
    def sizes(self) -> Sizes:
        """The smallest sizes that hold all games."""
        return common_sizes([group.games.sizes for group in self.groups])

    @cached_property
    def shares(self) -> tuple[Share, ...]:
        kind = AlphaZero if isinstance(self.config, AlphaZeroConfig) else PPO
        return Share.of(self.groups, kind, self.config, len(self.devices))

    @cached_property
    def agent(self) -> Agent:
        return make_agent(self.config, self.sizes, sum(share.minibatches for share in self.shares))

    @cached_property
    def iteration(self) -> Iteration:
        return Iteration(self.agent, self.shares, self.devices)

    @cached_property
    def compiled(self) -> Iteration:
        """The compiled iteration; raises `NotEnoughMemoryError` if it needs more memory than it can use."""
        self.announce("compiling an iteration (a minute for large graphs)…")
        size, all_there_is = self.memory, available(self.devices)
        if size is None or all_there_is is None or size <= SHARE * all_there_is:
            return self.iteration
        room = SHARE * all_there_is
        raise NotEnoughMemoryError(
            f"training needs {_gigabytes(size)} of memory, but can use only {_gigabytes(room)} of the "
            f"{_gigabytes(all_there_is)} available; {self._advice(size, room)}"
        )

    @property
    def memory(self) -> int | None:
        """The number of bytes that the iteration needs; None if unknown."""
        sizes = [needed(program, self.devices) for program in self.iteration.compiled]
        return None if None in sizes else max(size for size in sizes if size is not None)

    def _advice(self, size: float, room: float) -> str:
        for config in self._smaller():
            # Halving a setting at best halves the memory, so settings that cannot fit are not compiled.
            size /= 2
            if size > room:
                continue
            settings = _settings(config, self.config)
            self.announce(f"training needs too much memory; compiling it with {settings}…")
            size = replace(self, config=config).memory or 0
            if size <= room:
                same = ", and learns the same" if config.environments == self.config.environments else ""
                return f"with {settings} it needs {_gigabytes(size)}{same}"
        return "fewer games do not help, so use smaller networks, such as ones with fewer channels"

    def _smaller(self) -> Iterator[AgentConfig]:
        """Yield configurations that need less memory: fewer states at once, then fewer games as well."""
        games, moves = self._most_games, self.sizes.intermediates
        config = replace(self.config, states_at_once=min(self.config.states_at_once, games * moves))
        while config.states_at_once > games:
            config = replace(config, states_at_once=max(config.states_at_once // 2, games))
            yield config
        while config.environments > 1:
            fewer = replace(self, config=replace(config, environments=config.environments // 2))
            config = replace(fewer.config, states_at_once=fewer._most_games)
            if all(share.is_equal(len(self.devices)) for share in fewer.shares):
                yield config

    @property
    def _most_games(self) -> int:
        """The largest number of games of a minibatch per device. A chunk has at least one move of each."""
        return max(max(share.games // (len(self.devices) * share.minibatches), 1) for share in self.shares)


def _settings(config: AgentConfig, usual: AgentConfig) -> str:
    names = [name for name in ("environments", "states_at_once") if getattr(config, name) != getattr(usual, name)]
    return " ".join(f"--set {name}={getattr(config, name)}" for name in names)


def _gigabytes(size: float) -> str:
    return f"{size / 1e9:.1f} GB"
