"""How often do the intervals cover the truth? Makes the tables of docs/intervals.md.

Draws samples from populations whose figures are known, makes each interval and counts how often it
contains the truth. Stored in docs/results/coverage.json; `python docs/sources.py` puts the tables
into the page. The constants of errcomp/metrics/intervals/_coverage.py are printed last.

    python benchmarks/coverage_table.py --resamples 199 --jobs 2
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable
from functools import cache
from multiprocessing import Pool
from typing import NamedTuple

import numpy as np
import stored
from scipy import special, stats

from errcomp.metrics import figure
from errcomp.metrics.intervals import _kinds, _smooth, direct
from errcomp.metrics.intervals._smooth import SMOOTH, deviations, smooth
from errcomp.metrics.intervals.dependence import Dependence, dependence
from errcomp.metrics.pointwise import Checked

SIZES = (3, 4, 5, 8, 10, 15, 20, 50, 100, 200)
CLUSTERS = (3, 4, 5, 6, 8, 10, 20, 40)
#: Sigma of the log error, intraclass correlation, whether a second key crosses the first.
DESIGNS = [(s, i, k) for s, i in ((0.3, 0.3), (0.6, 0.3), (0.6, 0.7)) for k in (False, True)]
METHODS = ("log-t", "bootstrap-t", "bca", "percentile")
#: How the default was made before: the wider of the last two, and log-t alone below 10 pairs.
FORMER = "before"
#: Measurements are log-normal and span a factor of 50 (95 % of them): they weigh WAPE and RMSE.
MEASURED_SIGMA = 1.0
NOMINAL, LEVEL = 0.93, 0.95


class Law(NamedTuple):
    """Distribution of ln(predicted / measured): sampler and quantile function, or a mixture."""

    parts: tuple[tuple[float, float, Callable[[np.ndarray], np.ndarray]], ...]

    def sample(self, rng: np.random.Generator, n: int) -> np.ndarray:
        """Draw n values."""
        values = np.empty(n)
        part = rng.choice(len(self.parts), size=n, p=[weight for weight, *_ in self.parts])
        u = rng.random(n)
        for i, (_, mu, quantile) in enumerate(self.parts):
            values[part == i] = mu + quantile(u[part == i])
        return values

    def mean(self, f: Callable[[np.ndarray], np.ndarray]) -> float:
        """Return the expectation of f, by a million equidistant quantiles of each part."""
        u = (np.arange(1_000_000) + 0.5) / 1_000_000
        return float(sum(w * f(mu + quantile(u)).mean() for w, mu, quantile in self.parts))


def normal(sigma: float, mu: float = 0.0, weight: float = 1.0) -> tuple:
    return weight, mu, lambda u: sigma * special.ndtri(u)


def laplace(sigma: float) -> tuple:
    return 1.0, 0.0, lambda u: stats.laplace.ppf(u, scale=sigma / np.sqrt(2))


def student(sigma: float, df: int = 5, limit: float = 6.0) -> tuple:
    """Student t, cut so that exp of it has moments, scaled to standard deviation sigma."""
    edge = special.stdtr(df, -limit)
    scale = sigma / np.sqrt(df / (df - 2)) if df > 2 else sigma / 3
    return 1.0, 0.0, lambda u: scale * special.stdtrit(df, edge + u * (1 - 2 * edge))


#: The claim "log-normal errors up to sigma = 0.6" is about these; the constants follow from them.
LOG_NORMAL = {
    "σ = 0.1": Law((normal(0.1),)),
    "σ = 0.3": Law((normal(0.3),)),
    "σ = 0.6": Law((normal(0.6),)),
    "σ = 0.6, 26 % too low": Law((normal(0.6, -0.3),)),
    "σ = 0.6, 35 % too high": Law((normal(0.6, 0.3),)),
}
OTHER = {
    "σ = 0.3, 26 % too low": Law((normal(0.3, -0.3),)),
    "σ = 0.3, 35 % too high": Law((normal(0.3, 0.3),)),
    "Laplace, σ = 0.3": Law((laplace(0.3),)),
    "Student t(5), σ = 0.3": Law((student(0.3),)),
    "Student t(5), σ = 0.6": Law((student(0.6),)),
    "85 % σ = 0.1, 15 % σ = 0.4": Law((normal(0.1, weight=0.85), normal(0.4, weight=0.15))),
}
#: Rare or very heavy errors: what few pairs do not show. The caveat of few pairs quotes them.
RARE = {
    "90 % σ = 0.1, 10 % σ = 0.5": Law((normal(0.1, weight=0.9), normal(0.5, weight=0.1))),
    "97 % σ = 0.05, 3 % σ = 0.5": Law((normal(0.05, weight=0.97), normal(0.5, weight=0.03))),
    "Student t(2), cut": Law((student(0.3, df=2, limit=30.0),)),
    "20 % fail by +40 %": Law((normal(0.05, weight=0.8), normal(0.05, np.log(1.4), weight=0.2))),
    "50 % σ = 0.01, 50 % at +30 %": Law(
        (normal(0.01, weight=0.5), normal(0.01, np.log(1.3), weight=0.5))
    ),
}
LAWS = LOG_NORMAL | OTHER | RARE


@cache
def truth(name: str, law: Law) -> float:
    """Return the figure of the population; errors and measurements are independent."""

    def off(x: np.ndarray) -> np.ndarray:
        return np.abs(np.expm1(x))

    if name in ("mape", "wape"):
        return law.mean(off)
    if name == "mae":
        return law.mean(off) * float(np.exp(MEASURED_SIGMA**2 / 2))
    if name == "smape":
        return law.mean(lambda x: 2 * np.tanh(np.abs(x) / 2))
    if name in ("bias", "total_error"):
        return law.mean(np.expm1)
    if name == "gmape":
        return float(np.exp(law.mean(lambda x: np.log(off(x)))))
    if name == "gm_ratio":
        return float(np.exp(law.mean(lambda x: x)))
    if name == "rmsle":
        return float(np.sqrt(law.mean(np.square)))
    rmspe = float(np.sqrt(law.mean(lambda x: off(x) ** 2)))
    return rmspe * float(np.exp(MEASURED_SIGMA**2)) if name == "rmse" else rmspe


class Made(NamedTuple):
    """Of one sample and method: whether an interval is given, covers, its ends over the truth."""

    given: bool
    covers: bool
    low: float
    high: float


def made(
    name: str, methods: Iterable[str], target: float, data: Checked, drawn: Dependence, rng, draws
) -> list[Made]:
    """Make the interval of one sample by each method."""
    point = figure(name).function(predicted=data.predicted, measured=data.measured)
    form = smooth(SMOOTH[name], point, data, drawn)
    resampled = [m for m in methods if m != "log-t"]
    found = deviations(form.r, form.y, resamples=draws, rng=rng) if resampled else None
    n, results = len(data.predicted), []
    for method in methods:
        if method == "log-t":
            bounds = _smooth.log_t(form, LEVEL)
        elif method == FORMER:
            bounds = former(form, found, n)
        else:
            bounds = _kinds.BOOTSTRAPS[method](form, LEVEL, found)
        wide = _smooth.too_wide(_smooth.log_t(form, LEVEL)[1], form.root)
        given = method == FORMER or not (_kinds.undecided(form, n, drawn) or wide)
        low, high = (form.value(b) for b in bounds)
        # Signed figures are compared as ratios, as they are studentised.
        ends = [(v - form.offset) / (target - form.offset) for v in (low, high)]
        results.append(Made(given, low <= target <= high, *ends))
    return results


def former(form: _smooth.Smooth, draws: _smooth.Draws, n: int) -> tuple[float, float]:
    """Return the bounds as version 1 made them for independent pairs."""
    s = form.standard_error()
    t = float(special.stdtrit(form.effective - 1, (1 + LEVEL) / 2))
    low, high = -t * s, t * s + (s * s * (t * t + 2) / 6 if form.log else 0.0)
    if n < 10:
        return low, high
    resampled = _smooth.bootstrap_t(form, LEVEL, draws)
    return min(low, resampled[0]), max(high, resampled[1])


def summary(rows: list[list[Made]]) -> list[tuple[float, ...]]:
    """Coverage of those given, share given, median width (high / low) and far end, by method."""
    found = []
    for column in zip(*rows, strict=True):
        given = [one for one in column if one.given]
        if not given:
            found.append((np.nan, 0.0, np.nan, np.nan))
            continue
        low, high = np.asarray([(one.low, one.high) for one in given]).T
        width = np.median(high / np.maximum(low, 1e-300))
        cover = np.mean([one.covers for one in given])
        found.append((cover, len(given) / len(column), width, np.quantile(high, 0.9)))
    return found


def pairs(law: Law, n: int, rng: np.random.Generator) -> Checked:
    measured = np.exp(MEASURED_SIGMA * rng.standard_normal(n))
    return Checked(measured * np.exp(law.sample(rng, n)), measured, None, np.arange(n))


def of_means(job: tuple) -> tuple:
    name, law, n, reps, draws, seed = job
    target = truth(name, LAWS[law])
    rng = np.random.default_rng([seed, n, list(LAWS).index(law)])
    methods = METHODS if law in LOG_NORMAL and name != "mape" else (*METHODS, FORMER)
    if law not in LOG_NORMAL:
        methods = ("log-t", FORMER)
    alone = Dependence()
    rows = [
        made(name, methods, target, pairs(LAWS[law], n, rng), alone, rng, draws)
        for _ in range(reps)
    ]
    return job, dict(zip(methods, summary(rows), strict=True))


def in_clusters(rng, groups: int, sigma: float, icc: float, crosses: bool) -> tuple:
    """Pairs in clusters of 1 to 20 whose errors correlate by icc; a second key may cross."""
    size = rng.integers(1, 21, size=groups)
    first = np.repeat(np.arange(groups), size)
    shared, labels = rng.standard_normal(groups)[first], {"first": first}
    if crosses:
        labels["second"] = rng.integers(0, groups, size=len(first))
        shared = (shared + rng.standard_normal(groups)[labels["second"]]) / np.sqrt(2)
    x = sigma * (np.sqrt(icc) * shared + np.sqrt(1 - icc) * rng.standard_normal(len(first)))
    measured = np.exp(MEASURED_SIGMA * rng.standard_normal(len(first)))
    data = Checked(measured * np.exp(x), measured, None, np.arange(len(x)))
    return data, dependence(labels)


def of_clusters(job: tuple) -> tuple:
    name, (sigma, icc, crosses), groups, reps, draws, seed = job
    target = truth(name, LOG_NORMAL[f"σ = {sigma}"])
    rng = np.random.default_rng([seed, groups, int(10 * sigma), int(10 * icc), crosses])
    rows = []
    while len(rows) < reps:
        data, drawn = in_clusters(rng, groups, sigma, icc, crosses)
        if drawn.names:  # not three clusters of one pair each
            rows.append(made(name, ("log-t",), target, data, drawn, rng, draws))
    return job, summary(rows)[0]


def of_counts_in_clusters(job: tuple) -> tuple:
    """Shares and quantiles in clusters: half-normal errors, a share q is at or below the target."""
    kind, (q, icc), groups, reps, _, seed = job
    target = float(special.ndtri((1 + q) / 2))
    rng = np.random.default_rng([seed, groups, int(100 * q), int(10 * icc)])
    hits, none, tried = 0, 0, 0
    for _ in range(reps):
        data, drawn = in_clusters(rng, groups, 1.0, icc, False)
        if not drawn.names:
            continue
        code = drawn.codes[0]
        tried += 1
        error = np.abs(np.log(data.predicted / data.measured))
        if kind == "quantile":
            bounds = direct.quantile_in_clusters(error, q, code, LEVEL)
            none += bounds is None
            hits += bounds is not None and bounds[0] <= target <= bounds[1]
        else:
            inside = (error <= target).astype(float)
            n_eff = direct.effective_n(np.bincount(code, inside), np.bincount(code) * 1.0, LEVEL)
            low, high = _kinds.SHARES[kind](inside.mean() * n_eff, n_eff, LEVEL)
            hits += low <= q <= high
    return job, np.asarray([hits / max(tried - none, 1)])


def exact_share(method: str, n: int) -> tuple[float, float]:
    """Lowest and mean coverage over true shares from 5 to 95 %, exactly."""
    bounds = np.asarray([_kinds.SHARES[method](k, n, LEVEL) for k in range(n + 1)])
    shares = np.linspace(0.05, 0.95, 1801)[:, None]
    inside = (bounds[:, 0] <= shares) & (shares <= bounds[:, 1])
    cover = (stats.binom.pmf(np.arange(n + 1), n, shares) * inside).sum(axis=1)
    return float(cover.min()), float(cover.mean())


def table(
    head: str, columns: Iterable, rows: Iterable[tuple[str, Iterable]], digits: str = ".3f"
) -> None:
    columns = list(columns)
    print(f"| {head} | " + " | ".join(str(c) for c in columns) + " |")
    print("|---|" + "---:|" * len(columns))
    for name, values in rows:
        print(
            f"| {name} | " + " | ".join(format(v, digits) if v == v else "–" for v in values) + " |"
        )
    print()


def lowest(found: dict, name: str, n: int, method: str, laws: Iterable[str]) -> float:
    return min(found[name, law, n][method][0] for law in laws)


def sizes_of(name: str) -> tuple[int, ...]:
    """MAE, RMSE and RMSPE are also tried on 1,000 pairs: few values decide them."""
    return (*SIZES, 1000) if name in ("mae", "rmse", "rmspe") else SIZES


def print_means(found: dict) -> None:
    print("### Lowest coverage under the log-normal laws, by figure and method\n")
    for name in SMOOTH:
        sizes = sizes_of(name)
        rows = [(m, [lowest(found, name, n, m, LOG_NORMAL) for n in sizes]) for m in METHODS]
        table(f"{name}: n =", sizes, rows)
    print("### MAPE, by law: coverage, the method before beside it\n")
    rows = []
    for law in LAWS:
        for method, head in (("log-t", law), (FORMER, f"{law}, before")):
            rows.append((head, [found["mape", law, n][method][0] for n in SIZES]))
    table("law: n =", SIZES, rows)
    for i, what in ((2, "median width (upper over lower bound)"), (3, "upper bound / truth, P90")):
        print(f"### MAPE, by law: {what}\n")
        rows = []
        for law in LAWS:
            for method, head in (("log-t", law), (FORMER, f"{law}, before")):
                rows.append((head, [found["mape", law, n][method][i] for n in SIZES]))
        table("law, n:", SIZES, rows, ".3g")


def print_clusters(found: dict) -> None:
    names = list(dict.fromkeys(name for name, *_ in found))
    print("### Clusters of 1 to 20 pairs\n")
    for name in names:
        rows = [
            (
                f"σ = {sigma}, ICC {icc}" + (", crossed" if crosses else ""),
                [found[name, (sigma, icc, crosses), g][0] for g in CLUSTERS],
            )
            for sigma, icc, crosses in DESIGNS
        ]
        table(f"{name}: clusters =", CLUSTERS, rows)


def print_counts(found: dict) -> None:
    print("### Shares: exact coverage over true shares from 5 to 95 %\n")
    rows = []
    for method in _kinds.SHARES:
        cover = [exact_share(method, n) for n in SIZES]
        rows += [(f"{method}, lowest", [c[0] for c in cover])]
        rows += [(f"{method}, mean", [c[1] for c in cover])]
    table("shares: n =", SIZES, rows)
    print("### Shares and quantiles in clusters\n")
    kinds = list(dict.fromkeys((kind, case) for kind, case, _ in found))
    rows = [
        (f"{kind}, {case[0]:g}, ICC {case[1]}", [found[kind, case, g][0] for g in CLUSTERS])
        for kind, case in kinds
    ]
    table("shares and quantiles: clusters =", CLUSTERS, rows)


def print_code(means: dict, clusters: dict, counts: dict) -> None:
    """Print the constants of errcomp/metrics/intervals/_coverage.py."""

    def row(name: str, values: Iterable[float]) -> str:
        return f'"{name}": ({", ".join(f"{v:.3f}" for v in values)}),'

    print("```python\nCOVERAGE: dict[str, dict[str, tuple[float, ...]]] = {")
    for method in METHODS:
        print(f'    "{method}": {{')
        for name in SMOOTH:
            sizes = sizes_of(name)
            found = (lowest(means, name, n, method, LOG_NORMAL) for n in sizes)
            print("        " + row(name, found))
        print("    },")
    print("}\nIN_CLUSTERS: dict[str, tuple[float, ...]] = {")
    for name in SMOOTH:
        cells = [
            {g: c for (f, d, g), c in clusters.items() if f == name and d == e} for e in DESIGNS
        ]
        print("    " + row(name, (min(c[g][0] for c in cells) for g in CLUSTERS)))
    for name, kind, shares in (
        ("share", "wilson", (0.1, 0.5, 0.9)),
        ("median_ape", "quantile", (0.5,)),
        ("p90_ape", "quantile", (0.9,)),
    ):
        cells = [(g, c[0]) for (k, (q, _), g), c in counts.items() if k == kind and q in shares]
        print("    " + row(name, (min(c for h, c in cells if h == g) for g in CLUSTERS)))
    rare = ", ".join(f"{lowest(means, 'mape', n, 'log-t', RARE):.3f}" for n in SIZES)
    print(f'}}\nRARE: dict[str, tuple[float, ...]] = {{\n    "MAPE": ({rare}),\n}}')
    wilson = ", ".join(f"{exact_share('wilson', n)[0]:.3f}" for n in SIZES)
    print(f"WILSON = ({wilson})\n```")


def run(pool, work: Callable, jobs: list[tuple]) -> dict:
    # The longest first, so that no process is left alone with one at the end.
    jobs = sorted(jobs, key=lambda job: -job[2])
    done = pool.imap_unordered(work, jobs)
    results = {job[:3]: cover for job, cover in done}
    return {job[:3]: results[job[:3]] for job in sorted(jobs, key=lambda job: job[2])}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--reps", type=int, default=1000)
    parser.add_argument("--resamples", type=int, default=999)
    parser.add_argument("--seed", type=int, default=20)
    parser.add_argument("--jobs", type=int, default=2)
    args = parser.parse_args()
    rest = (args.reps, args.resamples, args.seed)
    means = [(f, w, n, *rest) for f in SMOOTH for w in LOG_NORMAL for n in sizes_of(f)]
    means += [("mape", law, n, *rest) for law in OTHER | RARE for n in SIZES]
    groups = [(f, d, g, *rest) for f in SMOOTH for d in DESIGNS for g in CLUSTERS]
    cases = [(q, icc) for q in (0.1, 0.5, 0.9) for icc in (0.3, 0.7)]
    counts = [
        (k, c, g, *rest)
        for k, c in [(k, c) for k in _kinds.SHARES for c in cases]
        + [("quantile", c) for c in cases if c[0] >= 0.5]
        for g in CLUSTERS
    ]
    facts = {"seed": args.seed, "samples": args.reps, "resamples": args.resamples}
    with stored.printed("coverage", **facts), Pool(args.jobs) as pool:
        by_pairs = run(pool, of_means, means)
        by_clusters = run(pool, of_clusters, groups)
        by_counts = run(pool, of_counts_in_clusters, counts)
        print_means(by_pairs)
        print_clusters(by_clusters)
        print_counts(by_counts)
    print_code(by_pairs, by_clusters, by_counts)


if __name__ == "__main__":
    main()
