"""Signs for terminals that know few of them, chosen so that numbers stay what they are."""

from __future__ import annotations

import codecs

PLAIN_SIGNS = "powersketch-plain-signs"

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


def plain_text(text: str) -> str:
    """Return the text in ASCII; what has no likeness there becomes a question mark.

    Examples
    --------
    >>> from powersketch.cli.plain_signs import plain_text
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


def _replaced(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return plain_text(error.object[error.start : error.end]), error.end


codecs.register_error(PLAIN_SIGNS, _replaced)
