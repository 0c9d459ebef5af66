"""The status of long work: one changing line on a terminal, or one line per minute elsewhere."""

import threading
import time
from typing import Self

from rich.console import Console
from rich.status import Status
from rich.text import Text

# Where stderr is not a terminal: seconds until the first line, so that short work prints none, and between lines.
FIRST, EVERY = 15.0, 60.0


class StatusLine:
    """A line on stderr, or nothing if ``quiet``. It changes in place only on terminals that support escape codes.

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
        # Without a pause, every change is printed at once.
        if self._status is None and not self._quiet and EVERY:
            threading.Thread(target=self._beat, daemon=True).start()
        return self

    def __exit__(self, *error: object) -> None:
        with self._lock:
            self._over.set()
        if self._status is not None:
            self._status.stop()

    def say(self, text: str) -> None:
        """Show a notice until another text replaces it."""
        self._tell(text, at_once=True)

    def show(self, now: object) -> None:
        """Show the text of an object, such as the progress of ``alphagrad.train(progress=...)``."""
        self._tell(now, at_once=False)

    def _tell(self, now: object, at_once: bool) -> None:
        if self._status is not None:
            self._status.update(Text(str(now), no_wrap=True, overflow="ellipsis"))
            self._status.start()
        elif not self._quiet:
            with self._lock:
                self._standing, self._since = now, time.monotonic()
                if at_once or self._since >= self._next:
                    self._print(str(now))

    def _print(self, text: str) -> None:
        self._console.print(Text(text), soft_wrap=True)
        self._next = time.monotonic() + EVERY

    def _beat(self) -> None:
        """Print the status when nothing has been printed for a while."""
        while not self._over.wait(max(self._next - time.monotonic(), 0.0)):
            with self._lock:
                if time.monotonic() >= self._next and not self._over.is_set():
                    # The age of a status is printed only if it is old enough to matter.
                    seconds = time.monotonic() - self._since
                    self._print(f"{self._standing} (for {seconds:.0f} s)" if seconds >= 1 else str(self._standing))
