"""Text of users as LaTeX that compiles: no character is special, none is unknown to an engine."""

from __future__ import annotations

import unicodedata
from functools import cache

from errcomp.report.model import clean

__all__ = ["OTHERS", "escaped", "needs_others", "needs_t1"]

#: A character without a command, by its code point: set where the engine is one of Unicode and the
#: font has it, else written as ``[U+1F600]``.
_OTHER = r"\errchar"
#: What defines it.
OTHERS = (
    rf'\DeclareRobustCommand{{{_OTHER}}}[1]{{\ifdefined\Uchar\iffontchar\font"#1 '
    r'\Uchar"#1 \else[U+#1]\fi\else[U+#1]\fi}'
)

_ASCII = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "`": r"\`{}",
    "<": "$<$",
    ">": "$>$",
    "|": "$|$",
}
_SIGNS = {
    "–": "--",
    "—": "---",
    "…": r"\dots{}",
    "‘": "`",
    "’": "'",
    "“": "``",
    "”": "''",
    "†": r"\dag{}",
    "‡": r"\ddag{}",
    "§": r"\S{}",
    "¶": r"\P{}",
    "•": r"\textbullet{}",
    "©": r"\textcopyright{}",
    "®": r"\textregistered{}",
    "™": r"\texttrademark{}",
    "£": r"\pounds{}",
    "€": r"\texteuro{}",
    "¡": "!`",
    "¿": "?`",
    "ß": r"\ss{}",
    "æ": r"\ae{}",
    "Æ": r"\AE{}",
    "œ": r"\oe{}",
    "Œ": r"\OE{}",
    "ø": r"\o{}",
    "Ø": r"\O{}",
    "ł": r"\l{}",
    "Ł": r"\L{}",
    "ı": r"\i{}",
    "ȷ": r"\j{}",
}
#: Known to pdfLaTeX only with ``\usepackage[T1]{fontenc}``.
_T1 = {
    "đ": r"\dj{}",
    "Đ": r"\DJ{}",
    "ð": r"\dh{}",
    "Ð": r"\DH{}",
    "þ": r"\th{}",
    "Þ": r"\TH{}",
    "ŋ": r"\ng{}",
    "Ŋ": r"\NG{}",
    "«": r"\guillemotleft{}",
    "»": r"\guillemotright{}",
    "„": r"\quotedblbase{}",
    "‚": r"\quotesinglbase{}",
}
_OGONEK = "\N{COMBINING OGONEK}"
_MATH = {
    "−": "-", "±": r"\pm", "∓": r"\mp", "×": r"\times", "÷": r"\div", "·": r"\cdot",
    "⋅": r"\cdot", "°": r"^{\circ}", "¬": r"\neg", "≤": r"\le", "≥": r"\ge", "≠": r"\ne",
    "≈": r"\approx", "≡": r"\equiv", "∼": r"\sim", "≃": r"\simeq", "∝": r"\propto",
    "≪": r"\ll", "≫": r"\gg", "∞": r"\infty", "√": r"\surd", "∑": r"\sum", "∏": r"\prod",
    "∫": r"\int", "∂": r"\partial", "∇": r"\nabla", "∆": r"\Delta", "Ω": r"\Omega",
    "∈": r"\in", "∉": r"\notin", "⊂": r"\subset", "⊆": r"\subseteq", "∪": r"\cup",
    "∩": r"\cap", "∅": r"\emptyset", "∀": r"\forall", "∃": r"\exists", "∧": r"\wedge",
    "∨": r"\vee", "→": r"\rightarrow", "←": r"\leftarrow", "↑": r"\uparrow",
    "↓": r"\downarrow", "↔": r"\leftrightarrow", "⇒": r"\Rightarrow", "⇐": r"\Leftarrow",
    "⇔": r"\Leftrightarrow", "↗": r"\nearrow", "↘": r"\searrow", "⌈": r"\lceil",
    "⌉": r"\rceil", "⌊": r"\lfloor", "⌋": r"\rfloor", "⟨": r"\langle", "⟩": r"\rangle",
    "✓": r"\surd", "✔": r"\surd", "✗": r"\times", "✘": r"\times", "µ": r"\mu",
    "ϑ": r"\vartheta", "ϕ": r"\varphi", "ϵ": r"\varepsilon", "★": r"\star",
}  # fmt: skip
# A dot: a capital that LaTeX writes with a Latin letter, of which there is no command.
_SMALL = (
    "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi . pi rho varsigma "
    "sigma tau upsilon phi chi psi omega"
)
_CAPITAL = ". . Gamma Delta . . . Theta . . Lambda . . Xi . Pi . . Sigma . Upsilon Phi . Psi Omega"
_LATIN = dict(zip("ΑΒΕΖΗΙΚΜΝΟΡΤΧο", "ABEZHIKMNOPTXo", strict=True))
_ACCENTS = {
    "\N{COMBINING GRAVE ACCENT}": "`",
    "\N{COMBINING ACUTE ACCENT}": "'",
    "\N{COMBINING CIRCUMFLEX ACCENT}": "^",
    "\N{COMBINING TILDE}": "~",
    "\N{COMBINING DIAERESIS}": '"',
    "\N{COMBINING MACRON}": "=",
    "\N{COMBINING DOT ABOVE}": ".",
    "\N{COMBINING BREVE}": "u",
    "\N{COMBINING CARON}": "v",
    "\N{COMBINING DOUBLE ACUTE ACCENT}": "H",
    "\N{COMBINING CEDILLA}": "c",
    "\N{COMBINING DOT BELOW}": "d",
    "\N{COMBINING MACRON BELOW}": "b",
    "\N{COMBINING RING ABOVE}": "r",
    _OGONEK: "k",
}
#: How Unicode says that a character is another one, raised, lowered or a fraction.
_RAISED = {"<super>": r"\textsuperscript{{}}", "<sub>": r"$_{\mathrm{{}}}$", "<fraction>": "({})"}
#: Say only how the character before them is drawn.
_VARIANTS = "\N{VARIATION SELECTOR-15}\N{VARIATION SELECTOR-16}"
#: Two of these run together into one other sign.
_LIGATURES = "-',`!?"


def escaped(text: str) -> str:
    r"""Write text as LaTeX that gives the same text with pdfLaTeX and with LuaLaTeX.

    Special characters are escaped; double hyphens stay two; letters with accents, Greek, arrows
    and mathematical signs become commands that every installation has. What has none, such as an
    emoji or a Chinese character, becomes a command of its own (`OTHERS`). A hyphen before a
    figure is a minus, straight quotes become quotes, and a percent sign stays with its figure.

    Examples
    --------
    >>> print(escaped("a_b & 50 % of {x}"), escaped("--by µs"), escaped("-3.5 → café"))
    a\_b \& 50\,\% of \{x\} -{}-by $\mu$s $-$3.5 $\rightarrow$ caf\'{e}
    """
    kept = unicodedata.normalize("NFC", clean(text))
    out: list[str] = []
    for i, sign in enumerate(kept):
        piece = _piece(sign, kept[i - 1] if i else "", kept[i + 1 : i + 2])
        if out and piece and out[-1][-1] in _LIGATURES and piece[0] in _LIGATURES:
            out.append("{}")
        if piece:
            out.append(piece)
    # After the end of a row either of these would be an argument of it.
    if kept[:1] in ("[", "*"):
        out[0] = f"{{{out[0]}}}"
    return "".join(out)


def needs_others(text: str) -> bool:
    r"""Say whether text that was escaped needs `OTHERS`.

    Examples
    --------
    >>> print(escaped("中"), needs_others(escaped("中")), needs_others(escaped("é")))
    \errchar{4E2D} True False
    """
    return f"{_OTHER}{{" in text


def needs_t1(text: str) -> bool:
    r"""Say whether pdfLaTeX needs ``\usepackage[T1]{fontenc}`` for text that was escaped.

    Examples
    --------
    >>> needs_t1(escaped("Dąbrowska")), needs_t1(escaped("Müller"))
    (True, False)
    """
    return "\\k{" in text or any(command in text for command in _T1.values())


def _piece(sign: str, before: str, after: str) -> str:
    """Write one character, given those beside it."""
    if sign == '"':
        return "``" if before in ("", " ", "(", "[", "{", "/", "=") else "''"
    if sign == "-" and "0" <= after <= "9" and not (before.isalnum() or before in ("-", "_", ".")):
        return "$-$"
    if sign == " " and after == "%" and "0" <= before <= "9":
        return r"\,"
    return _command(sign)


@cache
def _command(sign: str) -> str:
    known = _known(sign)
    if known is not None:
        return known
    # Ligatures, full-width letters, raised digits, fractions and the like, written out.
    parts = [_known(part) for part in unicodedata.normalize("NFKC", sign)]
    if None in parts:
        return f"{_OTHER}{{{ord(sign):04X}}}"
    written = "".join(filter(None, parts))
    kind = unicodedata.decomposition(sign).partition(" ")[0]
    return _RAISED.get(kind, "{}").replace("{}", written)


def _known(sign: str) -> str | None:
    if sign in _VARIANTS:
        return ""
    if sign in _ASCII:
        return _ASCII[sign]
    if " " <= sign <= "~":
        return sign
    if sign in _SIGNS or sign in _T1:
        return _SIGNS.get(sign) or _T1[sign]
    if sign in _MATH:
        return f"${_MATH[sign]}$"
    if sign in "⁄∕":
        return "/"
    return _greek(sign) or _accented(sign)


def _greek(sign: str) -> str:
    # Without its accent, which mathematical Greek has not.
    base = unicodedata.normalize("NFD", sign)[0]
    if base in _LATIN:
        return _LATIN[base]
    for first, names in (("α", _SMALL.split()), ("Α", _CAPITAL.split())):
        at = ord(base) - ord(first)
        if 0 <= at < len(names) and names[at] != ".":
            return f"$\\{names[at]}$"
    return ""


def _accented(sign: str) -> str | None:
    parts = unicodedata.normalize("NFD", sign)
    base, marks = parts[0], parts[1:]
    if not marks or not base.isascii() or not base.isalpha() or not set(marks) <= set(_ACCENTS):
        return None
    for mark in marks:
        base = f"\\{_ACCENTS[mark]}{{{base}}}"
    return base
