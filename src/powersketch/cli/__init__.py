"""The command line, and the option that all of its commands share."""

from typing import Annotated

import typer

DEBUG = "--debug"
# Of the program and of every command: :func:`powersketch.cli.main.main` looks for it among all
# arguments, because errors may come before options are understood.
Debug = Annotated[bool, typer.Option(DEBUG, help="Show where errors arise.")]
