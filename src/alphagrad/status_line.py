"""How work that takes long stands: a line of the terminal that changes, or a line now and then where there is none."""

import time
from types import TracebackType

from rich.console import Console
from rich.status import Status
from rich.text import Text

# Seconds between lines where stderr is not a terminal.
EVERY = 20.0


class StatusLine:
    """A line on stderr; nothing if ``quiet``."""

    def __init__(self, quiet: bool = False):
        self._quiet = quiet
        self._console = Console(stderr=True)
        self._status = Status("", console=self._console) if self._console.is_terminal and not quiet else None
        self._next = time.monotonic() + EVERY

    def __enter__(self) -> "StatusLine":
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._status is not None:
            self._status.stop()

    def say(self, text: str) -> None:
        """Show a notice, on terminals only."""
        if self._status is not None:
            self._status.update(Text(text, no_wrap=True, overflow="ellipsis"))
            self._status.start()

    def show(self, now: object) -> None:
        """Show what it says of itself, such as progress does for ``alphagrad.train(progress=...)``."""
        self.say(str(now))
        if self._status is None and not self._quiet and time.monotonic() >= self._next:
            self._console.print(Text(str(now)), soft_wrap=True)
            self._next = time.monotonic() + EVERY
