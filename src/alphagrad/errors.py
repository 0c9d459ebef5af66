"""All errors of alphagrad that users can encounter."""

from operator import index
from typing import Any

from graphax import GraphaxError


class AlphagradError(GraphaxError, ValueError):
    """Base class of all errors raised by alphagrad."""


class TaskError(AlphagradError):
    """A task does not exist, or its arguments do not fit."""


class SearchError(AlphagradError):
    """The arguments of a search are invalid or contradict each other."""


class NotEnoughMemoryError(AlphagradError):
    """Training needs more memory than is available."""


def whole_number(name: str, given: Any, least: int) -> int:
    """``given`` as an integer, if it is a whole number of at least ``least``; raises otherwise."""
    try:
        number = index(given)
    except TypeError:
        number = least - 1
    if number < least:
        raise SearchError(f"{name} must be a whole number, {least} or more, but is {given!r}")
    return number
