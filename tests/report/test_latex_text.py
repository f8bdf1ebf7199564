"""Text of users in LaTeX: it comes out again, and nothing in it is special."""

from __future__ import annotations

import re

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from errcomp.report.latex import escaped, needs_t1
from errcomp.report.model import clean

#: What the commands for characters of ASCII print, written down from the LaTeX manual.
PRINTED = {
    r"\textbackslash{}": "\\", r"\&": "&", r"\%": "%", r"\$": "$", r"\#": "#", r"\_": "_",
    r"\{": "{", r"\}": "}", r"\textasciitilde{}": "~", r"\textasciicircum{}": "^", r"\`{}": "`",
    "$<$": "<", "$>$": ">", "$|$": "|", "$-$": "-", r"\,": " ", "``": '"', "''": '"', "{}": "",
    "{[}": "[", "{*}": "*",
}  # fmt: skip
COMMAND = re.compile("|".join(map(re.escape, sorted(PRINTED, key=len, reverse=True))))


def unescaped(text: str) -> str:
    """Return the text with commands and mathematics taken out."""
    return re.sub(r"\$[^$]*\$", "", re.sub(r"\\(?:[a-zA-Z]+|.)", "", text))


def balanced(text: str) -> bool:
    depth = 0
    for sign in re.sub(r"\\.", "", text):
        depth += {"{": 1, "}": -1}.get(sign, 0)
        if depth < 0:
            return False
    return depth == 0


ASCII = st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=30)


@settings(max_examples=200, deadline=None)
@given(ASCII)
@example("a -- b --- c \"quoted\" it's '' `` `x` <<a>> ?` !` ,, -3 5 % [x] *")
@example("\\&%$#_{}~^`<>|\"'-")
@example("''")
def test_characters_of_ascii_come_out_as_they_went_in(text: str) -> None:
    assert COMMAND.sub(lambda found: PRINTED[found[0]], escaped(text)) == text


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=30))
@example("é ü ñ ß ø Ł ą đ Ō ẑ ế İ")
@example("αβγ Ω Σ ς ά µ — – … “x” ‘y’ «z» „q‚")
@example("→ ← ↔ ⇒ † ‡ − × ≤ ≥ ≠ ≈ ∞ ± · ° ✓ ² ½ ﬁ №")
@example("😀 👩‍🔬 中文 кир עברית \u0301 \ufe0f \u200b\n\x1b[31m")
def test_any_text_is_ascii_and_nothing_in_it_is_special(text: str) -> None:
    made = escaped(text)
    assert made.isascii()
    assert made.isprintable()
    assert balanced(made)
    assert made.count("$") - made.count(r"\$") in range(0, len(made) + 1, 2)
    assert not set(unescaped(made)) & set("&%$#_~^\\")
    assert not re.search(r"--(?!-)|<<|,,|\?`", unescaped(made)) or "–" in clean(text) or (
        "¿" in text
    )  # fmt: skip


@pytest.mark.parametrize(
    ("text", "made"),
    [
        ("8.74 % of 5%", r"8.74\,\% of 5\%"),
        ("-3.5 (-2) a-3 2024-01-02", r"$-$3.5 ($-$2) a-3 2024-01-02"),
        ("--where a---b", "-{}-where a-{}-{}-b"),
        ('say "a" and ("b")', "say ``a'' and (``b'')"),
        ("[1] x [2]", "{[}1] x [2]"),
        ("*a", "{*}a"),
        ("café Łódź", r"caf\'{e} \L{}\'{o}d\'{z}"),
        ("cafe\u0301", r"caf\'{e}"),
        ("ế", r"\'{\^{e}}"),
        ("µs αΑάΣς", r"$\mu$s $\alpha$A$\alpha$$\Sigma$$\varsigma$"),
        ("a → b − c", r"a $\rightarrow$ b $-$ c"),
        ("† ‡ — … ×", r"\dag{} \ddag{} --- \dots{} $\times$"),
        ("m² H₂ 1½", r"m\textsuperscript{2} H$_{\mathrm{2}}$ 1(1/2)"),
        ("ﬁne", "fine"),
        ("😀中", r"\errchar{1F600}\errchar{4E2D}"),
        ("✔\ufe0f", r"$\surd$"),
        ("a\nb", r"a\textbackslash{}nb"),
    ],
)
def test_characters_become_what_a_typesetter_would_set(text: str, made: str) -> None:
    assert escaped(text) == made


@pytest.mark.parametrize(("text", "needed"), [("Dąb", True), ("Đ «a»", True), ("Müller–ß", False)])
def test_letters_that_need_another_encoding_are_known(text: str, needed: bool) -> None:
    assert needs_t1(escaped(text)) is needed
