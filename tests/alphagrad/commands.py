"""The command line as tests call it."""

from typer.testing import CliRunner

from alphagrad.cli import app


def alphagrad(*arguments, **options):
    return CliRunner().invoke(app, [str(word) for word in arguments], prog_name="alphagrad", **options)


def answered(*arguments, **options):
    result = alphagrad(*arguments, **options)
    assert result.exit_code == 0, (result.stdout, result.stderr, result.exception)
    return result.stdout
