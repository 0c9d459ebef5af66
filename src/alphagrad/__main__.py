"""The command ``alphagrad``, also ``python -m alphagrad``."""

import sys
import warnings


def main() -> None:
    """Run the command line; without the packages it needs, say how to get them."""
    try:
        from .cli import app
    except ModuleNotFoundError as error:
        sys.exit(_refusal(f"the command line needs {error.name}: pip install 'graphax-alphagrad[search]'"))
    warnings.formatwarning = lambda message, *_, **__: f"alphagrad: {message}\n"
    app(prog_name="alphagrad")


def _refusal(text: str) -> int:
    print(f"alphagrad: {text}", file=sys.stderr)
    return 2


if __name__ == "__main__":
    main()
