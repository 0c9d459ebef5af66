"""The command line: all commands, and how errors are reported.

Commands import what they need when they run, so help and completion start fast.
"""

import os
import sys
from textwrap import shorten
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from graphax.version import __version__

from .bench import Bench
from .examples import FIRST_STEPS, Command, write_examples
from .options import UsageError
from .output import interrupted
from .play import play
from .search import search
from .show import report, show
from .table import table, tasks
from .train import Train

# Messages of other packages, such as JAX, are cut at this many characters.
LONGEST_MESSAGE = 600
# Packages that not all commands need, and the extras that have them.
EXTRAS = {"matplotlib": "plot"} | dict.fromkeys(("equinox", "mctx", "optax", "orbax"), "rl")
# The exit code that shells use for programs whose output pipe was closed.
BROKEN_PIPE = 141


class Commands(TyperGroup):
    """All commands. Reports expected errors in one line, and leaves everything else to typer."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        return super().parse_args(ctx, args or ["--help"])

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        write_examples(formatter, FIRST_STEPS)

    def invoke(self, ctx: Any) -> Any:
        try:
            command = super().invoke(ctx)
            if isinstance(command, Train | Bench):
                command.run()
            if sys.stdout is not None:  # stdout may be None if the shell closed it
                sys.stdout.flush()
        except KeyboardInterrupt:
            raise interrupted("nothing was written") from None
        except BrokenPipeError:
            # Drop the rest of the output. Otherwise Python would try to write it again at exit.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(BROKEN_PIPE) from None

    def main(self, *args: Any, **options: Any) -> Any:
        try:
            code = super().main(*args, **(options | {"standalone_mode": False}))
        except UsageError as error:
            where = error.ctx.command_path if error.ctx else "alphagrad"
            message = error.format_message()
            code = _refused(f"{message}{'' if message[-1:] in '.?' else '.'} See {where} --help")
        except ModuleNotFoundError as error:
            extra = EXTRAS.get(str(error.name).partition(".")[0], "search")
            code = _refused(f"this command needs {error.name}: pip install 'graphax-alphagrad[{extra}]'")
        except ImportError as error:
            code = _refused(str(error))
        except Exception as error:
            from graphax import GraphaxError

            if not isinstance(error, GraphaxError | OSError):
                raise
            code = _refused(str(error))
        sys.exit(code)


def _refused(why: str) -> int:
    typer.echo(f"alphagrad: {shorten(why, LONGEST_MESSAGE, placeholder=' …')}", err=True)
    return 2


# A command is a function, or a dataclass with a method ``run``; its parameters or fields are options.
app = typer.Typer(cls=Commands, pretty_exceptions_enable=False, rich_markup_mode=None)
for command in (tasks, search, table, show, report, play, Train, Bench):
    app.command(cls=Command)(command)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"alphagrad {__version__}")
        raise typer.Exit


@app.callback()
def alphagrad(
    version: Annotated[
        bool, typer.Option("--version", help="Show the version and exit.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """Search for elimination orders that make Jacobians in JAX cheap.

    A TARGET is a task that ships with alphagrad, generated:SEED for a generated function, or a function of your own:
    module:function, with --args for example arguments.

    Results go to stdout, with --json as one JSON document. Progress goes to stderr.

    The exit code is 0 for success, 1 if bench --check finds a broken promise, 2 for errors, and 130 after Ctrl-C.
    Ctrl-C still prints the results so far.
    """
