"""How work that takes long stands: a line of the terminal that changes, or a line now and then where there is none."""

import time
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.status import Status
from rich.text import Text

# Seconds between lines where stderr is not a terminal.
EVERY = 20.0


class StatusLine:
    """A line on stderr; nothing if ``quiet``. It moves only on terminals that may be sent escape codes."""

    def __init__(self, quiet: bool = False):
        self._quiet = quiet
        self._console = console = Console(stderr=True)
        moves = console.is_terminal and not (console.is_dumb_terminal or console.no_color or quiet)
        self._status = Status("", console=console) if moves else None
        self._next = time.monotonic() + EVERY

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._status is not None:
            self._status.stop()

    def say(self, text: str) -> None:
        """Show a notice until something else is to be shown."""
        if self._status is not None:
            self._status.update(Text(text, no_wrap=True, overflow="ellipsis"))
            self._status.start()
        elif not self._quiet:
            self._console.print(Text(text), soft_wrap=True)

    def show(self, now: object) -> None:
        """Show what it says of itself, such as progress does for ``alphagrad.train(progress=...)``."""
        if self._status is not None:
            self.say(str(now))
        elif time.monotonic() >= self._next:
            self.say(str(now))
            self._next = time.monotonic() + EVERY
