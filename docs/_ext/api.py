"""Directive ``public``: the public names of a module, each described once on the whole site.

A name that several modules export is described in the first of them (in the order of
``public_modules`` in conf.py); the others link to it. References in docstrings and signatures may
use the short name, the public name, or the name in the module that holds the code.
"""

from __future__ import annotations

import inspect
import re
import sys
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeVar, get_origin

import numpy.typing
from docutils import nodes
from sphinx import addnodes
from sphinx.domains.python import PyObject
from sphinx.pycode import ModuleAnalyzer
from sphinx.util.docutils import SphinxDirective
from sphinx.util.nodes import make_refnode

if TYPE_CHECKING:
    from sphinx.application import Sphinx
    from sphinx.environment import BuildEnvironment

#: Signatures show `ArrayLike` instead of its union of a dozen types. This replaces NumPy's name
#: before any module of errcomp is imported.
_ARRAY_LIKE = TypeVar("ArrayLike")
_ARRAY_LIKE.__module__ = "numpy.typing"
numpy.typing.ArrayLike = _ARRAY_LIKE

#: Ancestors whose methods are not specific to errcomp.
_FOREIGN = "BaseException, tuple, dict, str, BaseEstimator, RegressorMixin, Protocol, Generic"
#: Methods that scikit-learn adds to an estimator, for its own pipelines.
_ROUTING = "get_metadata_routing, set_fit_request, set_predict_request, set_score_request"
#: Members that write and read documents: only for those who add a result.
_CODEC = "KEYS, SCHEMA, COMMAND, from_field, json_schema, keys"
#: Kinds of object that a short name may mean; `unit` alone is a parameter, not an attribute.
_KINDS = ("class", "exception", "function", "data")
_OF_CLASSES = ("class", "exception", "method", "property", "attribute")
#: Values longer than this are not shown.
_SHORT = 90


def _key(name: str, thing: Any) -> object:
    """Return a key that identifies a public object. For plain values it includes the name."""
    plain = isinstance(thing, str | int | float) or get_origin(thing) is not None
    return (name, thing) if plain else id(thing)


@cache
def homes(modules: tuple[str, ...]) -> dict[object, str]:
    """Return, by key, the full name under which each public object is described."""
    found: dict[object, str] = {}
    for module in modules:
        for name in import_module(module).__all__:
            thing = getattr(import_module(module), name)
            if not inspect.ismodule(thing):
                found.setdefault(_key(name, thing), f"{module}.{name}")
    return found


class Public(SphinxDirective):
    """Describe every name in ``__all__`` of the given module."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Return the module's docstring, a table of its names and the description of each."""
        module = import_module(self.arguments[0])
        self.env.note_dependency(module.__file__ or "")
        known = homes(tuple(self.config.public_modules))
        things = {name: getattr(module, name) for name in sorted(module.__all__, key=str.lower)}
        things = {name: one for name, one in things.items() if not inspect.ismodule(one)}
        places = {name: known[_key(name, thing)] for name, thing in things.items()}
        elsewhere = [n for n, place in places.items() if place != f"{module.__name__}.{n}"]
        lines = [f".. automodule:: {module.__name__}", "   :no-members:", ""]
        lines += [".. list-table::", "   :widths: auto", ""]
        for name, thing in things.items():
            lines += [f"   * - :obj:`~{places[name]}`", f"     - {_summary(name, thing)}"]
        lines.append("")
        for name, thing in things.items():
            if name not in elsewhere:
                lines += _entry(places[name], thing)
        found = self.parse_text_to_nodes("\n".join(lines), allow_section_headings=True)
        return [*self._aliases(module.__name__, {n: things[n] for n in elsewhere}), *found]

    def _aliases(self, module: str, things: dict[str, Any]) -> list[nodes.Node]:
        """Return targets for names described elsewhere, so that references to them resolve."""
        domain, targets = self.env.domains.python_domain, []
        for name, thing in things.items():
            full = f"{module}.{name}"
            target = nodes.target("", "", ids=[full])
            targets.append(target)
            # autodoc has already registered a class under the module that holds its code.
            if not (inspect.isclass(thing) and full == f"{thing.__module__}.{thing.__qualname__}"):
                domain.note_object(full, "data", full, aliased=True, location=target)
        return targets


def _entry(full: str, thing: Any) -> list[str]:
    if inspect.isclass(thing):
        options = ["   :members:", f"   :inherited-members: {_FOREIGN}"]
        options.append(f"   :exclude-members: {_ROUTING}, {_CODEC}")
        if issubclass(thing, BaseException):
            options.append("   :show-inheritance:")
        return [f".. autoclass:: {full}", *options, ""]
    if inspect.isroutine(thing):
        return [f".. autofunction:: {full}", ""]
    return _data(full, thing)


def _data(full: str, thing: Any) -> list[str]:
    """Describe a constant by the `#:` comment at its definition, maybe in another module."""
    module, _, name = full.rpartition(".")
    lines = [f".. py:data:: {name}", f"   :module: {module}"]
    if len(value := repr(thing).replace("typing.", "")) <= _SHORT:
        lines.append(f"   :value: {value}")
    return [*lines, "", *(f"   {line}" for line in _comment(name, thing)), ""]


def _summary(name: str, thing: Any) -> str:
    """Return the first sentence. In docstrings of this project it is one line."""
    if inspect.isclass(thing) or inspect.isroutine(thing):
        return (inspect.getdoc(thing) or "").partition("\n\n")[0].replace("\n", " ")
    return re.split(r"(?<=[a-z`)]\.)\s", " ".join(_comment(name, thing)))[0]


def _comment(name: str, thing: Any) -> list[str]:
    for module in [m for key, m in sys.modules.items() if key.split(".")[0] == "errcomp"]:
        if vars(module).get(name) is thing:
            analyzer = ModuleAnalyzer.for_module(module.__name__)
            analyzer.analyze()
            if found := analyzer.attr_docs.get(("", name)):
                return found
    return []


def resolve(
    app: Sphinx, env: BuildEnvironment, node: addnodes.pending_xref, contnode: nodes.Element
) -> nodes.reference | None:
    """Resolve a reference that is not a full public name: by its object, or as a short name."""
    if node.get("refdomain") != "py":
        return None
    target, objects = node["reftarget"], env.domains.python_domain.objects
    found = _by_object(target, tuple(app.config.public_modules))
    if found is None:
        package = (node.get("py:module") or "").split(".")[:2]
        kinds = _KINDS[:2] if node["reftype"] == "class" else _KINDS
        kinds = _OF_CLASSES if "." in target else kinds
        ends = [
            name
            for name, one in objects.items()
            if name.endswith(f".{target}") and not one.aliased and one.objtype in kinds
        ]
        near = [name for name in ends if name.split(".")[:2] == package]
        found = next((one[0] for one in (near, ends) if len(one) == 1), None)
    if found is None or found not in objects:
        return None
    there = objects[found]
    return make_refnode(app.builder, node["refdoc"], there.docname, there.node_id, contnode, found)


def _shown(node: nodes.Element) -> str:
    """Return the text of a node. Of the short and the full name of a type, keep the short one."""
    for full in list(node.findall(addnodes.pending_xref_condition)):
        if full["condition"] == "*":
            full.parent.remove(full)
    return node.astext()


def _unbounded(text: str) -> str:
    """Return a type without its bounds: ``float`` of ``Annotated[float, …]``."""
    while (start := text.find("Annotated[")) >= 0:
        depth, comma, at = 0, 0, start + len("Annotated[")
        first = at
        while depth or text[at] != "]":
            depth += (text[at] in "[(") - (text[at] in "])")
            comma = comma or (at if text[at] == "," and not depth else 0)
            at += 1
        text = text[:start] + text[first:comma] + text[at + 1 :]
    return text


def plain_words(app: Sphinx, doctree: nodes.document) -> None:
    """Show the words of types ("array_like, shape (n,)") as text, and ``--`` as a dash."""
    for text_node in list(doctree.findall(nodes.Text)):
        if text_node.startswith(" -- "):  # Sphinx leaves this dash to smartquotes, which are off
            text_node.parent.replace(text_node, nodes.Text(f" – {text_node[4:]}"))
    for kind in (addnodes.desc_annotation, addnodes.desc_parameter):
        for typed in list(doctree.findall(kind)):
            if "Annotated[" in typed.astext():  # bounds matter for documents only
                typed.children = [nodes.Text(_unbounded(_shown(typed)))]
    for node in list(doctree.findall(addnodes.pending_xref)):
        if node["reftype"] != "class" or "refspecific" not in node:
            continue
        if not node["reftarget"].rpartition(".")[2][:1].isupper():
            text = node[0].astext()  # a second child is the same in another form
            node.replace_self(nodes.emphasis("", text) if node["refspecific"] else nodes.Text(text))
        else:
            del node["refspecific"]  # Sphinx would match any name with this ending


def _by_object(target: str, modules: tuple[str, ...]) -> str | None:
    """Return where `package.module.name` or `package.module.Class.method` is described."""
    if not target.startswith("errcomp."):
        return None
    parts = target.split(".")
    for cut in range(len(parts) - 1, 0, -1):
        try:
            thing = getattr(import_module(".".join(parts[:cut])), parts[cut])
        except (ImportError, AttributeError):
            continue
        home = homes(modules).get(_key(parts[cut], thing))
        return None if home is None else ".".join([home, *parts[cut + 1 :]])
    return None


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the directive, the resolver and the heading of attributes."""
    for field in PyObject.doc_field_types:
        if field.name == "variable":
            field.label = "Attributes"
    app.add_config_value("public_modules", (), "env")
    app.add_directive("public", Public)
    app.connect("doctree-read", plain_words)
    app.connect("missing-reference", resolve)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
