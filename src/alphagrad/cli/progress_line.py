"""The progress of a search, on one line of the terminal."""

import threading

from ..finders.budget import Budget, Progress
from ..finders.portfolio import warm_up
from .status_line import StatusLine

# Seconds after which a notice is shown.
NOTICE_AFTER = 1.0


class ProgressLine(StatusLine):
    """The progress line of consecutive searches with the same budget."""

    def __init__(self, budget: Budget, quiet: bool = False):
        super().__init__(quiet)
        self._title, self._budget = "", budget

    def prepare(self, method: str) -> None:
        """Compile the search, with a notice if that takes a while."""
        notice = threading.Timer(NOTICE_AFTER, self.say, ["preparing the search (compiled once per installation)…"])
        notice.daemon = True
        notice.start()
        try:
            warm_up(method)
        finally:
            notice.cancel()

    def entitle(self, title: str) -> None:
        """Name the target of the next search."""
        self._title = f"{title}: "

    def show(self, now: object) -> None:
        """The callback for ``alphagrad.search(progress=...)``."""
        super().show(self._described(now) if isinstance(now, Progress) else now)

    def _described(self, now: Progress) -> str:
        limit = f" of {self._budget.seconds:g}" if self._budget.seconds else ""
        return (
            f"{self._title}best {now.best:g}, at least {now.bound:g}, gap {now.gap:.1%}, {now.rate:,.0f} orders/s, "
            f"{now.seconds:.1f}{limit} s"
        )
