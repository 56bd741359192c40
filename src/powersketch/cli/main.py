"""The command ``powersketch``."""

from __future__ import annotations

import io
import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from powersketch import __version__
from powersketch.cli.compare_command import compare_command

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
        0, or 2 after an error, which is written to standard error in one line, or 130 after an
        interruption.
    """
    if isinstance(sys.stdout, io.TextIOWrapper):
        # A terminal that does not know a sign of the table shall see the others.
        sys.stdout.reconfigure(errors="replace")
    try:
        code = app(args=arguments, prog_name="powersketch", standalone_mode=False)
    except KeyboardInterrupt:
        return _INTERRUPTED
    except (ValueError, TypeError, OSError, MemoryError) as error:
        return _failed(str(error))
    except Exception as error:
        # Wrong options: typer takes their errors from click, or brings its own.
        if not hasattr(error, "format_message"):
            raise
        return _failed(error.format_message())
    return code if isinstance(code, int) else 0


def _failed(text: str) -> int:
    sys.stderr.write(f"error: {' '.join(text.split())}\n")
    return _BAD_INPUT
