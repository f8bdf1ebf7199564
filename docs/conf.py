"""How the site is built: `make docs`. Nothing is fetched, neither here nor by the pages."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

from sphinx.application import Sphinx

from errcomp.claims import entries
from errcomp.documents import CLASSES, ROWS_ONLY, json_schema

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "_ext"))

project = "errcomp"
author = "the errcomp developers"
copyright = "the errcomp developers"  # noqa: A001  # Sphinx's name for it
extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "api",
    "cli",
    "figures",
    "mathml",
]
exclude_patterns = ["_ext", "**.ipynb_checkpoints"]
nitpicky = True
# Notebooks run at every build, and an error ends it: they show what the code does now.
nb_execution_mode = "force"
nb_execution_raise_on_error = True
nb_execution_timeout = 120
# Typographic quotes would turn `--option` in a sentence into a dash.
smartquotes = False

# Markdown as it also reads on a code host; headings can be linked to three levels deep.
myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3

# What is described, in the order in which users meet it: a name of two belongs to the first.
public_modules = (
    "errcomp",
    "errcomp.summary",
    "errcomp.tables",
    "errcomp.tables.guessing",
    "errcomp.results",
    "errcomp.errors",
    "errcomp.metrics",
    "errcomp.metrics.bands",
    "errcomp.metrics.intervals",
    "errcomp.tables.engine.pairs",
    "errcomp.tables.engine.history",
    "errcomp.tables.engine.kernels",
    "errcomp.tables.engine.scanning",
    "errcomp.claims",
    "errcomp.claims.auditing",
    "errcomp.claims.registry",
    "errcomp.claims.entries",
    "errcomp.claims.verdict",
    "errcomp.claims.search",
    "errcomp.claims.forensics",
    "errcomp.claims.board",
    "errcomp.claims.extract",
    "errcomp.claims.replicate",
    "errcomp.caveats",
    "errcomp.drivers",
    "errcomp.measurements",
    "errcomp.measurements.leaking",
    "errcomp.measurements.results",
    "errcomp.decisions",
    "errcomp.decisions.results",
    "errcomp.decisions.comparing",
    "errcomp.decisions.alternatives",
    "errcomp.decisions.kinds",
    "errcomp.propagation",
    "errcomp.propagation.wrapping",
    "errcomp.propagation.sums",
    "errcomp.propagation.bounds",
    "errcomp.propagation.graph.maxima",
    "errcomp.propagation.graph.canonical",
    "errcomp.propagation.montecarlo",
    "errcomp.propagation.errors.components",
    "errcomp.propagation.errors.tails",
    "errcomp.propagation.distribution",
    "errcomp.propagation.validation",
    "errcomp.propagation.errors.reference_chain",
    "errcomp.propagation.terms",
    "errcomp.propagation.graph",
    "errcomp.calibration",
    "errcomp.calibration.plausibility",
    "errcomp.calibration.transfer.adaptation",
    "errcomp.calibration.transfer.choosing",
    "errcomp.planning",
    "errcomp.planning.claim",
    "errcomp.calibration.predictions",
    "errcomp.calibration.estimators",
    "errcomp.calibration.evaluation",
    "errcomp.calibration.bands.conformal",
    "errcomp.calibration.evaluation.scoring",
    "errcomp.calibration.evaluation.splits",
    "errcomp.calibration.estimators.bayesian.residual",
    "errcomp.calibration.bands.exchangeability",
    "errcomp.calibration.design",
    "errcomp.calibration.estimators.linear.baselines",
    "errcomp.calibration.estimators.bayesian.hierarchical",
    "errcomp.calibration.estimators.shared.spread",
    "errcomp.calibration.modelfile",
    "errcomp.halflife.fitting",
    "errcomp.halflife.results",
    "errcomp.halflife.forecast",
    "errcomp.halflife.gate.checking",
    "errcomp.halflife.gate",
    "errcomp.halflife.gate.dry_run",
    "errcomp.halflife.gate.planning",
    "errcomp.halflife.gate.replay",
    "errcomp.halflife.store",
    "errcomp.halflife.panel",
    "errcomp.halflife.threshold",
    "errcomp.halflife.estimators.survival",
    "errcomp.halflife.estimators.turnbull",
    "errcomp.halflife.estimators.parametric",
    "errcomp.halflife.estimators.pooled",
    "errcomp.halflife.estimators.decay",
    "errcomp.halflife.drift.trajectory",
    "errcomp.halflife.drift.variogram",
    "errcomp.halflife.steps",
    "errcomp.halflife.steps.blame",
    "errcomp.halflife.steps.environment",
    "errcomp.halflife.steps.stability",
    "errcomp.halflife.noise",
    "errcomp.halflife.drift.age",
    "errcomp.halflife.forecast.probabilities",
    "errcomp.halflife.estimators.by_steps",
    "errcomp.halflife.estimators.expiry",
    "errcomp.halflife.carried_over",
    "errcomp.readers",
    "errcomp.readers.plain",
    "errcomp.readers.core.output",
    "errcomp.readers.core.ingest",
    "errcomp.readers.joining",
    "errcomp.readers.core.registry",
    "errcomp.readers.core.source",
    "errcomp.system.limits",
    "errcomp.datasets",
    "errcomp.datasets.inputs",
    "errcomp.propagation.view.figures",
    "errcomp.claims.view.figures",
    "errcomp.calibration.view.figures",
    "errcomp.halflife.view.figures",
    "errcomp.report.shown",
    "errcomp.report.model",
    "errcomp.documents",
)

# Names in single backquotes are code, and links where the site has what they name.
default_role = "py:obj"
add_module_names = False
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 80
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
napoleon_google_docstring = False
napoleon_use_ivar = True
napoleon_use_rtype = False

nitpick_ignore_regex = [
    # Types of Python and of other libraries, whose pages are not on this site, and the words of
    # numpydoc ("array_like, shape (n,)"). A name of errcomp that leads nowhere is still an error.
    ("py:class", r"(?!errcomp\.).*"),
    # Names in single backquotes: a parameter or attribute is code, not a link.
    ("py:obj", r"(?!errcomp\.).*"),
    # Type variables, and types that only the package itself hands around.
    ("py:class", r"errcomp\..*\.[RT]"),
    ("py:class", r"errcomp\.(.*\.)?_.*"),
    ("py:class", r"errcomp\.codec\..*"),
    ("py:class", r"errcomp\.calibration\.estimators\.bayesian\.hierarchical\.Columns"),
    ("py:class", r"errcomp\.readers\.core\.(sheet\.Sheet|source\.Lines|registry\.Reads)"),
    (
        "py:class",
        r"errcomp\.halflife\.(drift\.Fit|estimators\.expiry\.Fitted|gate\.results\.Law)",
    ),
    ("py:class", r"errcomp\.propagation\.(sums\.laws\.Mixture|errors\.residuals\.Residuals)"),
    ("py:class", r"errcomp\.(tables\.sums\.(Histogram|Sum|Totals))"),
    ("py:class", r"errcomp\.tables\.(engine\.groups\.EngineRows|table\.(Backend|Behind|Keyed))"),
]

html_theme = "furo"
html_title = "errcomp"
html_math_renderer = "mathml"
html_static_path = ["_static"]
html_css_files = ["errcomp.css"]
html_show_sphinx = False
html_copy_source = False
html_show_sourcelink = False
html_last_updated_fmt = None
pygments_style = "default"
pygments_dark_style = "github-dark"
html_theme_options = {
    # Okabe and Ito (2008), as in the figures.
    "light_css_variables": {
        "color-brand-primary": "#0072B2",
        "color-brand-content": "#0072B2",
        "color-brand-visited": "#0072B2",
    },
    "dark_css_variables": {
        "color-brand-primary": "#56B4E9",
        "color-brand-content": "#56B4E9",
        "color-brand-visited": "#56B4E9",
    },
}


def to_pages(app: Sphinx, docname: str, source: list[str]) -> None:
    """Lead links to descriptions that lie outside this folder to the pages that include them."""
    outside = r"\]\((?:\.\./)+(datasets|examples)/([\w-]+)/README\.md\)"
    source[0] = re.sub(outside, r"](/reference/\1/\2.md)", source[0])


def publish_schemas(app: Sphinx, failed: Exception | None) -> None:
    """Write the JSON Schema of every document beside the pages."""
    if failed is None and app.builder.format == "html":
        folder = Path(app.outdir, "schemas")
        folder.mkdir(exist_ok=True)
        for name in (*CLASSES, *ROWS_ONLY):
            text = json.dumps(json_schema(name), indent=2, ensure_ascii=False)
            (folder / f"{name}-1.json").write_text(text + "\n", encoding="utf-8")
        text = json.dumps(entries.json_schema(), indent=2, ensure_ascii=False)
        (folder / "claims-of-a-tool-2.json").write_text(text + "\n", encoding="utf-8")


def setup(app: Sphinx) -> None:
    """Connect what happens to a page before it is read, and after the last one is written."""
    app.connect("source-read", to_pages)
    app.connect("build-finished", publish_schemas)
