"""Every error of alphagrad that users can meet."""

from graphax import GraphaxError


class AlphagradError(GraphaxError, ValueError):
    """The base of all errors that alphagrad raises."""


class TaskError(AlphagradError):
    """A task that does not exist, or arguments that do not fit one."""


class SearchError(AlphagradError):
    """A search that was asked for in a way that makes no sense."""
