"""The command ``powersketch``."""

from __future__ import annotations

import codecs
import inspect
import io
import os
import sys
import traceback
from collections.abc import Callable, Sequence
from typing import Annotated, Any

import typer

from powersketch import __version__
from powersketch.cli.certify_command import certify_command
from powersketch.cli.compare_command import compare_command
from powersketch.cli.demo_command import demo_command
from powersketch.cli.fit_command import fit_command
from powersketch.cli.info_command import info_command
from powersketch.cli.option_groups import with_single_options
from powersketch.cli.options import DEBUG, Debug
from powersketch.cli.predict_command import predict_command
from powersketch.cli.solve_command import solve_command
from powersketch.cli.transform_command import transform_command
from powersketch.exceptions import ClusterError, InputError, InputTypeError

_FAILED = 1
_BAD_INPUT = 2
_INTERRUPTED = 130

_PLAIN_SIGNS = "powersketch-plain-signs"
# For terminals that know few signs, chosen so that numbers stay what they are.
_SIGNS = {
    "±": "+/-",
    "×": "x",
    "·": "*",
    "−": "-",
    "–": "-",
    "…": "...",
    "µ": "u",
    "∞": "inf",
    "’": "'",
    "\u00a0": " ",
}
_SUPERSCRIPTS = dict(zip("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789", strict=True))


def _paragraphs(command: Callable[..., Any]) -> str:
    """Return what a command says of itself; where lines break, the terminal decides."""
    said = inspect.getdoc(command) or ""
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in said.split("\n\n"))


app = typer.Typer(
    name="powersketch",
    help="Explicit feature maps for kernels, and the models and solvers that use them.",
    no_args_is_help=True,
)
for _name, _command in (
    ("demo", demo_command),
    ("fit", fit_command),
    ("predict", predict_command),
    ("transform", transform_command),
    ("compare", compare_command),
    ("certify", certify_command),
    ("solve", solve_command),
    ("info", info_command),
):
    app.command(name=_name, help=_paragraphs(_command))(with_single_options(_command))


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
    pass  # both are dealt with before: the version by its callback, --debug by `main`


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code.

    Parameters
    ----------
    arguments : sequence of str or None, default=None
        What follows the command's name; None takes the arguments of the process.

    Returns
    -------
    int
        0; 2 after wrong usage or input that cannot be used; 1 if a run failed: for lack of disk
        space or memory, without a result, or by an error of the library itself; 130 after an
        interruption. Every error is one line on standard error, with ``--debug`` after its
        traceback.
    """
    given = sys.argv[1:] if arguments is None else list(arguments)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A terminal that cannot show a sign of the table gets another one.
            stream.reconfigure(errors=_PLAIN_SIGNS)
    try:
        code = app(args=given, prog_name="powersketch", standalone_mode=False)
        sys.stdout.flush()
    except KeyboardInterrupt:
        return _INTERRUPTED
    # Nothing comes after this: what is not foreseen is told as a fault of ours.
    except Exception as error:
        if DEBUG in given:
            traceback.print_exception(error)
        return _failed(error)
    return code if isinstance(code, int) else 0


def _failed(error: Exception) -> int:
    """Report what went wrong and whose fault it is, and return the exit code."""
    if isinstance(error, BrokenPipeError):
        # Nobody reads on; without this, Python would complain when it flushes the rest.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    text = str(error) or type(error).__name__
    code = _BAD_INPUT
    if isinstance(error, MemoryError):
        text, code = f"there is not enough memory: {text}", _FAILED
    if isinstance(error, OSError | ClusterError):
        code = _FAILED
    if hasattr(error, "format_message"):
        # Wrong options: typer takes their errors from click, or brings its own.
        text = error.format_message()
    elif not isinstance(error, InputError | InputTypeError | OSError | ClusterError | MemoryError):
        _write_error(f"internal error: {type(error).__name__}: {text}")
        _write_error(
            f"This is a fault of powersketch {__version__}, not of your data: please report it to "
            f"its developers, with what the same command shows with {DEBUG}."
        )
        return _FAILED
    _write_error(f"error: {text}")
    return code


def _write_error(text: str) -> None:
    sys.stderr.write(f"{' '.join(text.split())}\n")


def plain_text(text: str) -> str:
    """Return the text in ASCII; signs without an equivalent become question marks.

    Examples
    --------
    >>> from powersketch.cli.main import plain_text
    >>> plain_text("1.5 × 10⁻⁷ ± 2 × 10⁻⁸")
    '1.5 x 10^-7 +/- 2 x 10^-8'
    """
    parts = []
    for before, sign in zip(" " + text, text, strict=False):
        if sign in _SUPERSCRIPTS:
            parts.append("^" * (before not in _SUPERSCRIPTS) + _SUPERSCRIPTS[sign])
        else:
            parts.append(sign if sign.isascii() else _SIGNS.get(sign, "?"))
    return "".join(parts)


def _replace_signs(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return plain_text(error.object[error.start : error.end]), error.end


codecs.register_error(_PLAIN_SIGNS, _replace_signs)
