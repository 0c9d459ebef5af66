"""How work that takes long stands: a line of the terminal that changes, or a line a minute where there is none."""

import threading
import time
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.status import Status
from rich.text import Text

# Where stderr is not a terminal: seconds until the first line, so that short work prints none, and between lines.
FIRST, EVERY = 15.0, 60.0


class StatusLine:
    """A line on stderr; nothing if ``quiet``. It moves only on terminals that may be sent escape codes.

    Elsewhere a thread prints the latest status once a minute, also while something is compiled or solved.
    """

    def __init__(self, quiet: bool = False):
        self._quiet = quiet
        self._console = console = Console(stderr=True)
        moves = console.is_terminal and not (console.is_dumb_terminal or console.no_color or quiet)
        self._status = Status("", console=console) if moves else None
        self._lock, self._over = threading.RLock(), threading.Event()
        self._standing: object = "working…"
        self._since = time.monotonic()
        self._next = self._since + min(FIRST, EVERY)

    def __enter__(self) -> Self:
        # Without a pause every change is a line, and there is nothing to add.
        if self._status is None and not self._quiet and EVERY:
            threading.Thread(target=self._beat, daemon=True).start()
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        with self._lock:
            self._over.set()
        if self._status is not None:
            self._status.stop()

    def say(self, text: str) -> None:
        """Show a notice until something else is to be shown."""
        if self._status is not None:
            self._status.update(Text(text, no_wrap=True, overflow="ellipsis"))
            self._status.start()
        elif not self._quiet:
            with self._lock:
                self._stand(text)
                self._print(text)

    def show(self, now: object) -> None:
        """Show what it says of itself, such as progress does for ``alphagrad.train(progress=...)``."""
        if self._status is not None:
            self.say(str(now))
        elif not self._quiet:
            with self._lock:
                self._stand(now)
                if time.monotonic() >= self._next:
                    self._print(str(now))

    def _stand(self, now: object) -> None:
        self._standing, self._since = now, time.monotonic()

    def _print(self, text: str) -> None:
        self._console.print(Text(text), soft_wrap=True)
        self._next = time.monotonic() + EVERY

    def _beat(self) -> None:
        """Print how it stands whenever nothing has been printed for long."""
        while not self._over.wait(max(self._next - time.monotonic(), 0.0)):
            with self._lock:
                if time.monotonic() >= self._next and not self._over.is_set():
                    self._print(self._lasting())

    def _lasting(self) -> str:
        """How it stands, and for how long it has if that is worth telling."""
        seconds = time.monotonic() - self._since
        return f"{self._standing} (for {seconds:.0f} s)" if seconds >= 1 else str(self._standing)
