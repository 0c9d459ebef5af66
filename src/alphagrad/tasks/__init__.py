"""The functions that elimination orders are measured on."""

from difflib import get_close_matches
from typing import TYPE_CHECKING

from graphax.modules import lazily

from ..errors import TaskError
from .benchmark import TASKS
from .middle import MIDDLE
from .scientific import SCIENTIFIC
from .task import PaperResult, Task
from .unseen import UNSEEN

if TYPE_CHECKING:
    from .random_functions import RandomFunction, random_function

__all__ = [
    "MIDDLE",
    "SCIENTIFIC",
    "TASKS",
    "UNSEEN",
    "PaperResult",
    "RandomFunction",
    "Task",
    "TaskError",
    "get",
    "random_function",
]

# Random functions import JAX.
__getattr__ = lazily(__name__, {"random_functions": ("RandomFunction", "random_function")})

_ALL = TASKS | UNSEEN | MIDDLE | SCIENTIFIC


def get(name: str) -> Task:
    """The task with this name, in upper or lower case.

    Raises:
        TaskError: if there is none. The message lists similar names.
    """
    if not isinstance(name, str):
        raise TaskError(f"a task is named by a string, such as 'RoeFlux_1d', but got {name!r}")
    by_lowered = {known.lower(): task for known, task in _ALL.items()}
    if name.lower() in by_lowered:
        return by_lowered[name.lower()]
    near = [by_lowered[match].name for match in get_close_matches(name.lower(), by_lowered)]
    hint = f"did you mean {' or '.join(near)}?" if near else f"the tasks are: {', '.join(_ALL)}"
    raise TaskError(f"no task is called {name!r}; {hint}")
