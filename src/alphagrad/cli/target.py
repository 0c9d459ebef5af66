"""The target of a command: a task, or a user's function with example arguments."""

import importlib
import inspect
import json
import os
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from graphax import ComputationGraph, Order

from .. import tasks
from ..errors import SearchError
from ..finders.search import graph_of
from ..tasks.task import Task
from .remembered import graph_of_task

# The prefix of generated functions, before their seed.
GENERATED = "generated:"


@dataclass(frozen=True)
class Target:
    """A function to search an order for.

    Attributes:
        module, name: where the function is, as Python imports it.
        function: the function itself.
        args: example arguments.
        argnums: the arguments to differentiate with respect to, as in `graphax.jacve`.
        batch_axes: the arguments that differ between points of a batch, as in `jax.vmap`, if known.
        task: the task, if it is differentiated with respect to its own arguments.
    """

    module: str
    name: str
    function: Callable
    args: tuple[Any, ...]
    argnums: int | tuple[int, ...]
    batch_axes: tuple[int | None, ...] | None = None
    task: Task | None = None

    def graph_to_search(self, simplify: bool) -> ComputationGraph:
        """Like `graph`, but vertices may not know their source lines, which a search does not need."""
        return self.graph(simplify) if self.task is None else graph_of_task(self.task, simplify)

    def graph(self, simplify: bool) -> ComputationGraph:
        return graph_of(self.function, self.args, self.argnums, has_aux=False, simplify=simplify)

    def usage(self, order: Order, saved: str | None = None) -> list[str]:
        """The lines of Python that use an order; ``saved`` is the file it is in."""
        if saved is not None:
            written = json.dumps(saved, ensure_ascii=False)
        elif order.simplified or order.bodies:
            written = _written(order)
        else:
            written = str(list(order.vertices))
        return [
            "import graphax",
            f"from {self.module} import {re.split(r'[.(]', self.name)[0]}",
            f"graphax.jacve({self.name}, order={written}, argnums={self.argnums})",
        ]


def _written(order: Order) -> str:
    """An order, with the orders of its bodies, as Python."""
    simplified = ", simplified=True" if order.simplified else ""
    bodies = ", ".join(f"{vertex}: {_written(body)}" for vertex, body in order.bodies)
    held = f", bodies={{{bodies}}}" if bodies else ""
    known = f', form="{order.form}"' if order.form else ""
    return f'graphax.Order({order.vertices}, fingerprint="{order.fingerprint}"{simplified}{held}{known})'


def find(text: str, args: str | None = None, argnums: str | None = None) -> Target:
    """Read a target as users write it.

    Args:
        text: the name of a task, ``generated:seed`` for a generated function, or ``module:function``.
        args: ``module:name`` of the tuple of example arguments, or of a function that makes it.
        argnums: numbers of arguments, separated by commas. The default is the task's own, or all float arguments.
    """
    if ":" not in text or text.startswith(GENERATED):
        if args is not None:
            called = text if ":" in text else f"the task {text}"
            raise SearchError(f"{called} has its own arguments; --args is only for module:function")
        return _of_generated(text, argnums) if ":" in text else _of_task(tasks.get(text), argnums)
    function = _imported(text, "the target")
    task = _task_of(function)
    if args is None and task is not None:
        return _of_task(task, argnums)
    if not callable(function):
        raise SearchError(f"{text} is {type(function).__name__}, not a function; name a function, as module:function")
    if args is None:
        raise SearchError(
            f"{text} needs example arguments: give --args module:make_args, a function without arguments that returns "
            f"them as a tuple"
        )
    module, _, name = text.partition(":")
    values = _example_arguments(args)
    return Target(module, name, function, values, _numbers(argnums) if argnums else _differentiable(values))


def _of_task(task: Task, argnums: str | None) -> Target:
    numbers = _numbers(argnums) if argnums else task.argnums
    module, name = task.place
    own = None if argnums else task
    return Target(module, name, task.function, task.arguments(), numbers, task.batch_axes, own)


def _of_generated(text: str, argnums: str | None) -> Target:
    seed = text.removeprefix(GENERATED)
    if not seed.isdecimal():
        raise SearchError(f"{text!r} is not of the form {GENERATED}seed, such as {GENERATED}7")
    function = tasks.random_function(int(seed))
    numbers = _numbers(argnums) if argnums else tuple(range(len(function.args)))
    return Target("alphagrad.tasks", f"random_function({int(seed)})", function, function.args, numbers)


def _task_of(found: Any) -> Task | None:
    """The task that a `Task`, or the function of a task, refers to."""
    if isinstance(found, Task):
        return found
    return next(
        (task for task in (tasks.TASKS | tasks.UNSEEN).values() if inspect.unwrap(task.function) is found), None
    )


def _imported(text: str, role: str) -> Any:
    """The object that ``module:name`` names. Modules are also looked up in the current folder."""
    module, _, name = text.partition(":")
    if not module or not name:
        raise SearchError(f"{role} {text!r} is not of the form module:name")
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        found = importlib.import_module(module)
    except (Exception, SystemExit) as error:
        raise SearchError(f"cannot import {module}: {type(error).__name__}: {error}{_hint(module, error)}") from error
    for part in name.split("."):
        try:
            found = getattr(found, part)
        except AttributeError:
            named = [known for known in vars(found) if not known.startswith("_")] if hasattr(found, "__dict__") else []
            raise SearchError(f"{module} has no {name}; it contains: {', '.join(named) or 'nothing'}") from None
    return found


def _hint(module: str, error: BaseException) -> str:
    if module.endswith(".py"):
        return f"; write {module[:-3].replace('/', '.')}"
    absent = isinstance(error, ModuleNotFoundError) and error.name == module.partition(".")[0]
    return "; run alphagrad in the folder of the module, or install it" if absent else ""


def _example_arguments(text: str) -> tuple[Any, ...]:
    values = _imported(text, "--args")
    if callable(values):
        try:
            values = values()
        except Exception as error:
            raise SearchError(
                f"--args {text} cannot be called without arguments: {type(error).__name__}: {error}"
            ) from error
    if not isinstance(values, tuple | list):
        raise SearchError(
            f"--args {text} returns {type(values).__name__}; it must return a tuple of arguments, such as (x,)"
        )
    return tuple(values)


def _numbers(text: str) -> int | tuple[int, ...]:
    try:
        numbers = tuple(int(part) for part in text.split(","))
    except ValueError:
        raise SearchError(f"cannot read --argnums {text!r}; give numbers separated by commas, such as 0,2") from None
    return numbers[0] if len(numbers) == 1 else numbers


def _differentiable(args: tuple[Any, ...]) -> int | tuple[int, ...]:
    """All arguments that consist of real floating-point numbers."""
    numbers = tuple(number for number, argument in enumerate(args) if _is_real(argument))
    if not numbers:
        raise SearchError(
            "none of the example arguments consists of floats, so nothing can be differentiated; write 1.0 instead of 1"
        )
    return numbers[0] if len(numbers) == 1 else numbers


def _is_real(argument: Any) -> bool:
    import jax

    kinds = [getattr(leaf, "dtype", type(leaf)) for leaf in jax.tree.leaves(argument)]
    return bool(kinds) and all(kind is float or jax.dtypes.issubdtype(kind, np.floating) for kind in kinds)
