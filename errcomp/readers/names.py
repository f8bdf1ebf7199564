"""Names of kernels made comparable: what compilers and profilers add to them left out."""

from __future__ import annotations

import re

__all__ = ["normalised"]

_NESTED = re.compile(r"_Z(?:N[KVO]*)?(?=\d|St)")
_SUFFIX = re.compile(r"(?:\.kd|\.intern|\.clone|\.isra|\.constprop|\.part|\.cold)(?:\.\d+)*$")
_NUMBER = re.compile(r"(?:[._]\d+)+$")
_WORDS = ("void ", "static ", "inline ", "const ")


def normalised(name: str) -> str:
    r"""Return a name without what differs between a profiler, a trace and a prediction.

    Mangled C++ names lose all but their identifiers, demangled ones the type they return, template
    arguments and parameters; of a path of ranges the last part stays; ``.kd`` (AMD), numbers at
    the end (``_12`` of the twelfth copy) and upper case go.

    Misleads where two kernels differ by a template argument only: they get one name, and a join by
    name calls them ambiguous.

    Parameters
    ----------
    name : str

    Returns
    -------
    str

    Examples
    --------
    >>> normalised("_ZN2at6native13reduce_kernelILi512ELi1EEEvT_"), normalised(
    ...     "void at::native::reduce_kernel<512, 1>(Args)")
    ('at::native::reduce_kernel', 'at::native::reduce_kernel')
    >>> normalised("Cijk_Ailk_MT64.kd"), normalised("layer1/fused_add_relu_12")
    ('cijk_ailk_mt64', 'fused_add_relu')
    """
    text = name.strip()
    if mangled := _NESTED.match(text):
        text = _identifiers(text[mangled.end() :]) or text
    text = _without_brackets(text)
    for word in _WORDS:
        text = text.removeprefix(word)
    text = text.rsplit("/", 1)[-1].strip()
    text = _SUFFIX.sub("", text)
    # A name that is nothing else keeps its number.
    return (_NUMBER.sub("", text) or text).lower()


def _identifiers(rest: str) -> str:
    """Return the identifiers at the start of a mangled name, which each have their length first."""
    found: list[str] = []
    while True:
        rest = rest.removeprefix("St").removeprefix("L")
        digits = re.match(r"[0-9]{1,4}", rest)
        if digits is None:
            return "::".join(found)
        length, rest = int(digits.group()), rest[digits.end() :]
        if length > len(rest):  # it is no mangled name after all
            return ""
        part, rest = rest[:length], rest[length:]
        if not part.startswith("_GLOBAL__N"):
            found.append(part)


def _without_brackets(text: str) -> str:
    """Leave out everything in angle, round and curly brackets, and the type before the name."""
    text = text.replace("(anonymous namespace)::", "")
    found: list[str] = []
    depth = 0
    for letter in text:
        if letter in "<({[":
            depth += 1
        elif letter in ">)}]":
            depth = max(depth - 1, 0)
        elif not depth:
            found.append(letter)
    plain = "".join(found).strip()
    # "void f" and "float2 f": what stands before the last blank is a type, unless brackets were
    # all there is.
    return plain.rsplit(" ", 1)[-1] if plain and "::" in plain else plain or text
