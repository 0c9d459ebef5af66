"""Whether training fits into memory, found out by compiling it; and if it does not, the settings with which it does."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import jax

from .alphazero import AlphaZero, AlphaZeroConfig
from .errors import NotEnoughMemoryError
from .game import Sizes
from .games import Boards
from .iteration import Agent, Iteration, shared_equally
from .memory import available, needed
from .ppo import PPO, PPOConfig

AgentConfig = AlphaZeroConfig | PPOConfig
# How much of the memory that there is an iteration may take. The rest is for what compilers do not count, such as the
# code, and what libraries work with.
SHARE = 0.9


def make_agent(config: AgentConfig, sizes: Sizes) -> Agent:
    return AlphaZero(config, sizes) if isinstance(config, AlphaZeroConfig) else PPO(config, sizes)


@dataclass(frozen=True)
class Fitting:
    """An agent's iteration, and what to change if it takes too much memory.

    Attributes:
        config: of the agent.
        boards: the games it plays.
        seed: of all random choices.
        devices: that share the games.
        announce: is told what is being done.
    """

    config: AgentConfig
    boards: Boards
    seed: int
    devices: tuple[jax.Device, ...]
    announce: Callable[[str], None]

    @cached_property
    def agent(self) -> Agent:
        return make_agent(self.config, self.boards.sizes)

    @cached_property
    def iteration(self) -> Iteration:
        return Iteration(self.agent, self.boards, self.seed, self.devices)

    @cached_property
    def compiled(self) -> Iteration:
        """The iteration, compiled; an error if it takes more memory than there is."""
        self.announce("compiling an iteration (a minute for large graphs)…")
        size, room = self.memory, available(self.devices)
        if size is not None and room is not None and size > SHARE * room:
            raise NotEnoughMemoryError(
                f"an iteration takes {_gigabytes(size)} of memory, and there are {_gigabytes(room)}; "
                f"{self._advice(size, SHARE * room)}"
            )
        return self.iteration

    @property
    def memory(self) -> int | None:
        return needed(self.iteration.compiled, self.devices)

    def _advice(self, size: float, room: float) -> str:
        for config in self._smaller():
            # Half of something takes no less than half the memory, so that need not be compiled to be known.
            size /= 2
            if size > room:
                continue
            settings = _settings(config, self.config)
            self.announce(f"an iteration takes too much memory; compiling it with {settings}…")
            size = replace(self, config=config).memory or 0
            if size <= room:
                same = ", and learns the same" if config.environments == self.config.environments else ""
                return f"with {settings} it takes {_gigabytes(size)}{same}"
        return "fewer games do not help, so take smaller networks, such as ones with fewer channels"

    def _smaller(self) -> Iterator[AgentConfig]:
        """Configurations that take less memory: fewer states at once, then fewer games as well."""
        games, moves = self._games(self.config), self.boards.sizes.intermediates
        config = replace(self.config, states_at_once=min(self.config.states_at_once, games * moves))
        while config.states_at_once > games:
            config = replace(config, states_at_once=max(config.states_at_once // 2, games))
            yield config
        while config.environments > 1:
            config = replace(config, environments=config.environments // 2)
            config = replace(config, states_at_once=self._games(config))
            if shared_equally(make_agent(config, self.boards.sizes), len(self.devices)):
                yield config

    def _games(self, config: AgentConfig) -> int:
        """Those of a minibatch on one device; a move of each is the least that a gradient is taken of."""
        minibatches = make_agent(config, self.boards.sizes).minibatches
        return max(config.environments // (len(self.devices) * minibatches), 1)


def _settings(config: AgentConfig, usual: AgentConfig) -> str:
    names = [name for name in ("environments", "states_at_once") if getattr(config, name) != getattr(usual, name)]
    return " ".join(f"--set {name}={getattr(config, name)}" for name in names)


def _gigabytes(size: float) -> str:
    return f"{size / 1e9:.1f} GB"
