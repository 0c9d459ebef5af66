"""Ctrl-C on the command line."""

import typer

# As the shell has it for interrupted programs.
INTERRUPTED = 130


def interrupted(kept: str) -> typer.Exit:
    """To be raised once everything there is has been printed; says what is kept of it."""
    typer.echo(f"alphagrad: interrupted; {kept}", err=True)
    return typer.Exit(INTERRUPTED)
