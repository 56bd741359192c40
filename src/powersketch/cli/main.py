"""The command ``powersketch``."""

from __future__ import annotations

import io
import os
import sys
import traceback
from collections.abc import Sequence
from typing import Annotated

import typer

from powersketch import __version__
from powersketch.cli.compare_command import compare_command
from powersketch.cli.options import DEBUG, Debug
from powersketch.cli.plain_signs import PLAIN_SIGNS
from powersketch.exceptions import InputError, InputTypeError

_INTERNAL_ERROR = 1
_BAD_INPUT = 2
_INTERRUPTED = 130

app = typer.Typer(
    name="powersketch",
    help="Explicit feature maps for kernels: which one is the best for your data?",
    add_completion=False,
    no_args_is_help=True,
)
app.command(name="compare")(compare_command)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"powersketch {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_show_version, is_eager=True, help="Show the version and exit."
        ),
    ] = False,
    debug: Debug = False,
) -> None:
    pass


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code.

    Parameters
    ----------
    arguments : sequence of str or None, default=None
        What follows the command's name; None takes that of the process.

    Returns
    -------
    int
        0; 2 after wrong input or for want of a file, room or memory, which is told in one line on
        standard error, or where every method failed; 1 after an error of the library itself; 130
        after an interruption. With ``--debug`` every error is told with where it arose.
    """
    given = sys.argv[1:] if arguments is None else list(arguments)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A terminal that does not know a sign of the table shall see another one.
            stream.reconfigure(errors=PLAIN_SIGNS)
    try:
        code = app(args=given, prog_name="powersketch", standalone_mode=False)
        sys.stdout.flush()
    except KeyboardInterrupt:
        return _INTERRUPTED
    except Exception as error:
        if DEBUG in given:
            traceback.print_exception(error)
        return _failed(error)
    return code if isinstance(code, int) else 0


def _failed(error: Exception) -> int:
    """Tell what went wrong, and whose fault it is, and return the exit code."""
    if isinstance(error, BrokenPipeError):
        # Nobody reads on; the rest shall not complain when Python ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    text = str(error) or type(error).__name__
    if isinstance(error, MemoryError):
        text = f"there is not enough memory: {text}"
    if hasattr(error, "format_message"):
        # Wrong options: typer takes their errors from click, or brings its own.
        text = error.format_message()
    elif not isinstance(error, InputError | InputTypeError | OSError | MemoryError):
        _write_error(f"internal error: {type(error).__name__}: {text}")
        _write_error(
            f"This is a fault of powersketch {__version__}, not of your data: please report it to "
            f"its developers, with what the same command shows with {DEBUG}."
        )
        return _INTERNAL_ERROR
    _write_error(f"error: {text}")
    return _BAD_INPUT


def _write_error(text: str) -> None:
    sys.stderr.write(f"{' '.join(text.split())}\n")
