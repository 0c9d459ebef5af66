"""How a search stands, on one line of the terminal that changes while it runs."""

import threading
from types import TracebackType

from rich.console import Console
from rich.status import Status
from rich.text import Text

from .budget import Budget, Progress
from .finders.portfolio import warm_up

# A notice is worth reading only for what takes longer than this.
NOTICE_AFTER = 1.0


class ProgressLine:
    """A line on stderr: nothing if ``quiet``, only notices where stderr is not a terminal."""

    def __init__(self, budget: Budget, quiet: bool = False):
        self._title = ""
        self._budget, self._quiet = budget, quiet
        self._console = Console(stderr=True)
        self._status = Status("", console=self._console) if self._console.is_terminal and not quiet else None

    def __enter__(self) -> "ProgressLine":
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._status is not None:
            self._status.stop()

    def prepare(self, method: str) -> None:
        """Have the search compiled, saying so if that takes a while."""
        notice = threading.Timer(NOTICE_AFTER, self.say, ["preparing the search (compiled once per installation)…"])
        notice.daemon = True
        notice.start()
        try:
            warm_up(method)
        finally:
            notice.cancel()

    def say(self, text: str) -> None:
        """Show a notice until something else is to be shown."""
        if self._status is not None:
            self._status.update(Text(text))
            self._status.start()
        elif not self._quiet:
            self._console.print(Text(text))

    def entitle(self, title: str) -> None:
        """Say what the search that comes next is for."""
        self._title = f"{title}: "

    def show(self, now: Progress) -> None:
        """The callback for ``alphagrad.search(progress=...)``."""
        if self._status is not None:
            self._status.update(Text(self._described(now), no_wrap=True, overflow="ellipsis"))
            self._status.start()

    def _described(self, now: Progress) -> str:
        limit = f" of {self._budget.seconds:g}" if self._budget.seconds else ""
        return (
            f"{self._title}best {now.best:g}, at least {now.bound:g}, gap {now.gap:.1%}, {now.rate:,.0f} orders/s, "
            f"{now.seconds:.1f}{limit} s"
        )
