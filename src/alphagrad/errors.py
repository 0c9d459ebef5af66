"""Every error of alphagrad that users can meet."""

from operator import index
from typing import Any

from graphax import GraphaxError


class AlphagradError(GraphaxError, ValueError):
    """The base of all errors that alphagrad raises."""


class TaskError(AlphagradError):
    """A task that does not exist, or arguments that do not fit one."""


class SearchError(AlphagradError):
    """A search that was asked for in a way that makes no sense."""


class NotEnoughMemoryError(AlphagradError):
    """Training needs more memory than is available."""


def whole_number(name: str, given: Any, least: int) -> int:
    """``given``, if it is a whole number of at least so much."""
    try:
        number = index(given)
    except TypeError:
        number = least - 1
    if number < least:
        raise SearchError(f"{name} is a whole number, {least} or more, but is {given!r}")
    return number
