"""The command ``alphagrad``, also ``python -m alphagrad``."""

import os
import sys
import warnings


def main() -> None:
    """Run the command line. If packages are missing, tell how to install them."""
    try:
        from .cli.app import app
        from .cli.output import INTERRUPTED
    except ModuleNotFoundError as error:
        sys.exit(_refusal(f"the command line needs {error.name}: pip install 'graphax-alphagrad[search]'"))
    warnings.formatwarning = lambda message, *_, **__: f"alphagrad: {message}\n"
    try:
        app(prog_name="alphagrad")
    except SystemExit as stop:
        if stop.code == INTERRUPTED:
            _leave(INTERRUPTED)
        raise


def _leave(code: int) -> None:
    """Exit at once: a solver that ignores interrupts may still be running, and would crash Python during shutdown."""
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()
    os._exit(code)


def _refusal(text: str) -> int:
    print(f"alphagrad: {text}", file=sys.stderr)
    return 2


if __name__ == "__main__":
    main()
