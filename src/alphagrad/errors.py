"""Every error that alphagrad raises about what it was given."""


class AlphagradError(ValueError):
    """Base class of all errors raised by alphagrad itself."""


class TaskError(AlphagradError):
    """A task that does not exist, or not in this size."""
