"""How often do the intervals cover the truth? Prints the tables of docs/intervals.md.

Draws samples from populations whose figures are known, makes each interval and counts how often it
contains the truth. The constants of errcomp/metrics/intervals/_coverage.py come last.

    python benchmarks/coverage_table.py --jobs 2
"""

from __future__ import annotations

import argparse
import datetime
import time
from collections.abc import Callable, Iterable
from functools import cache
from multiprocessing import Pool
from typing import NamedTuple

import numpy as np
from scipy import special, stats

from errcomp.metrics import figure
from errcomp.metrics._numeric import Checked
from errcomp.metrics.intervals import _counts, _kinds, _smooth
from errcomp.metrics.intervals._features import SMOOTH, smooth
from errcomp.metrics.intervals._resample import deviations, nest

SIZES = (3, 5, 8, 10, 15, 20, 50, 100, 200)
CLUSTERS = (5, 6, 8, 10, 20, 40)
#: Sigma of the log error, intraclass correlation, whether nested.
DESIGNS = [(s, i, k) for s, i in ((0.3, 0.3), (0.6, 0.3), (0.6, 0.7)) for k in (False, True)]
METHODS = ("default", "log-t", "bootstrap-t", "bca", "percentile")
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
    """Student t, cut at ±6 so that exp of it has moments, scaled to standard deviation sigma."""
    edge = special.stdtr(df, -limit)
    scale = sigma / np.sqrt(df / (df - 2))
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
LAWS = LOG_NORMAL | OTHER


@cache
def truth(name: str, law: Law) -> float:
    """Return the figure of the population; errors and measurements are independent."""

    def off(x: np.ndarray) -> np.ndarray:
        return np.abs(np.expm1(x))

    if name in ("mape", "wape"):
        return law.mean(off)
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


def covered(name: str, methods: Iterable[str], target: float, data: Checked, labels, rng, draws):
    """Which methods' intervals contain the truth for one sample; None where there is none."""
    point = figure(name).function(predicted=data.predicted, measured=data.measured)
    form = smooth(SMOOTH[name], point, data, labels)
    drawn = deviations(form.r, form.y, form.nesting, resamples=draws, rng=rng)
    found = []
    for method in methods:
        if method == "log-t" or (method == "default" and labels is None and form.units < 10):
            bounds = _smooth.log_t(form, LEVEL)
        else:
            bounds = _kinds.BOOTSTRAPS.get(method, _smooth.widest)(form, LEVEL, drawn)
        low, high = (form.value(b) for b in bounds)
        found.append(low <= target <= high)
    return found


def pairs(law: Law, n: int, rng: np.random.Generator) -> Checked:
    measured = np.exp(MEASURED_SIGMA * rng.standard_normal(n))
    return Checked(measured * np.exp(law.sample(rng, n)), measured, None, np.arange(n))


def of_means(job: tuple) -> tuple:
    name, law, n, reps, draws, seed = job
    target = truth(name, LAWS[law])
    rng = np.random.default_rng([seed, n, list(LAWS).index(law)])
    hits = [
        covered(name, METHODS, target, pairs(LAWS[law], n, rng), None, rng, draws)
        for _ in range(reps)
    ]
    return job, np.mean(hits, axis=0)


def in_clusters(rng, groups: int, sigma: float, icc: float, nested: bool) -> tuple:
    """Pairs in clusters of 1 to 20 whose errors correlate by icc; nested ones have 3 inner each."""
    size = rng.integers(1, 21, size=groups)
    outer = np.repeat(np.arange(groups), size)
    shared, labels = rng.standard_normal(groups)[outer], [outer]
    if nested:
        inner = rng.integers(0, 3, size=len(outer))
        shared = (shared + rng.standard_normal((groups, 3))[outer, inner]) / np.sqrt(2)
        labels.append(inner)
    noise = rng.standard_normal(len(outer))
    x = sigma * (np.sqrt(icc) * shared + np.sqrt(1 - icc) * noise)
    measured = np.exp(MEASURED_SIGMA * rng.standard_normal(len(outer)))
    return Checked(measured * np.exp(x), measured, None, np.arange(len(x))), nest(labels)


def of_clusters(job: tuple) -> tuple:
    name, (sigma, icc, nested), groups, reps, draws, seed = job
    target = truth(name, LOG_NORMAL[f"σ = {sigma}"])
    rng = np.random.default_rng([seed, groups, int(10 * sigma), int(10 * icc), nested])
    hits = []
    for _ in range(reps):
        data, labels = in_clusters(rng, groups, sigma, icc, nested)
        hits.append(covered(name, ("default",), target, data, labels, rng, draws))
    return job, np.mean(hits, axis=0)


def of_counts_in_clusters(job: tuple) -> tuple:
    """Shares and quantiles in clusters: half-normal errors, a share q is at or below the target."""
    kind, (q, icc), groups, reps, _, seed = job
    target = float(special.ndtri((1 + q) / 2))
    rng = np.random.default_rng([seed, groups, int(100 * q), int(10 * icc)])
    hits, none = 0, 0
    for _ in range(reps):
        data, (code, _) = in_clusters(rng, groups, 1.0, icc, False)
        error = np.abs(np.log(data.predicted / data.measured))
        if kind == "quantile":
            bounds = _counts.quantile_in_clusters(error, q, code, LEVEL)
            none += bounds is None
            hits += bounds is not None and bounds[0] <= target <= bounds[1]
        else:
            inside = (error <= target).astype(float)
            n_eff = _counts.effective_n(inside, code, LEVEL)
            low, high = _kinds.SHARES[kind](inside.mean() * n_eff, n_eff, LEVEL)
            hits += low <= q <= high
    return job, np.asarray([hits / max(reps - none, 1)])


def exact_share(method: str, n: int) -> tuple[float, float]:
    """Lowest and mean coverage over true shares from 5 to 95 %, exactly."""
    bounds = np.asarray([_kinds.SHARES[method](k, n, LEVEL) for k in range(n + 1)])
    shares = np.linspace(0.05, 0.95, 1801)[:, None]
    inside = (bounds[:, 0] <= shares) & (shares <= bounds[:, 1])
    cover = (stats.binom.pmf(np.arange(n + 1), n, shares) * inside).sum(axis=1)
    return float(cover.min()), float(cover.mean())


def correlations(job: tuple) -> tuple:
    """Textbook intervals of correlations: what they cover where predictions are good."""
    _, sigma, n, reps, _, seed = job
    rng = np.random.default_rng([seed, n, int(10 * sigma)])
    rho = 1 / np.sqrt(1 + sigma**2)
    spread = np.exp(MEASURED_SIGMA**2) - 1
    true = (
        spread
        * np.exp(sigma**2 / 2)
        / np.sqrt(spread * (np.exp(1 + 2 * sigma**2) - np.exp(sigma**2))),
        6 / np.pi * np.arcsin(rho / 2),
        2 / np.pi * np.arcsin(rho),
    )
    hits = np.zeros(3)
    for _ in range(reps):
        data = pairs(Law((normal(sigma),)), n, rng)
        given = {"predicted": data.predicted, "measured": data.measured}
        r = np.asarray([figure(k).function(**given) for k in ("pearson", "spearman", "kendall")])
        r = np.minimum(r, 1 - 1e-12)
        variance = np.asarray([1 / (n - 3), (1 + r[1] ** 2 / 2) / (n - 3), 0.437 / (n - 4)])
        hits += np.abs(np.arctanh(r) - np.arctanh(true)) <= 1.959964 * np.sqrt(variance)
    return job, hits / reps


def table(head: str, columns: Iterable, rows: Iterable[tuple[str, Iterable]]) -> None:
    columns = list(columns)
    print(f"| {head} | " + " | ".join(str(c) for c in columns) + " |")
    print("|---|" + "---:|" * len(columns))
    for name, values in rows:
        print(f"| {name} | " + " | ".join(f"{v:.3f}" if v == v else "–" for v in values) + " |")
    print()


def lowest(found: dict, name: str, n: int) -> np.ndarray:
    return np.min([found[name, law, n] for law in LOG_NORMAL], axis=0)


def sizes_of(name: str) -> tuple[int, ...]:
    """RMSE and RMSPE are also tried on 1,000 pairs: squares need more."""
    return (*SIZES, 1000) if name in ("rmse", "rmspe") else SIZES


def print_means(found: dict) -> None:
    print("### Lowest coverage under the log-normal laws, by figure and method\n")
    for name in SMOOTH:
        sizes = sizes_of(name)
        columns = [lowest(found, name, n) for n in sizes]
        rows = [(m, [c[i] for c in columns]) for i, m in enumerate(METHODS)]
        table(f"{name}: n =", sizes, rows)
    print("### MAPE, method default, by law\n")
    rows = [(law, [found["mape", law, n][0] for n in SIZES]) for law in LAWS]
    table("law: n =", SIZES, rows)


def print_clusters(found: dict) -> None:
    names = list(dict.fromkeys(name for name, *_ in found))
    print("### Clusters, method default\n")
    for name in names:
        rows = [
            (
                f"σ = {sigma}, ICC {icc}" + (", nested" if nested else ""),
                [found[name, (sigma, icc, nested), g][0] for g in CLUSTERS],
            )
            for sigma, icc, nested in DESIGNS
        ]
        table(f"{name}: clusters =", CLUSTERS, rows)


def print_counts(found: dict, wrong: dict) -> None:
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
    print("### Correlations: why none is offered\n")
    rows = [
        (f"{name}, σ = {sigma}", [wrong["correlation", sigma, n][i] for n in SIZES[3:]])
        for i, name in enumerate(
            ("Pearson, Fisher z", "Spearman, Bonett-Wright", "Kendall, Fieller")
        )
        for sigma in (0.1, 0.3, 0.6)
    ]
    table("correlations: n =", SIZES[3:], rows)


def print_code(means: dict, clusters: dict, counts: dict) -> None:
    """Print the constants of errcomp/metrics/intervals/_coverage.py."""

    def row(name: str, values: Iterable[float]) -> str:
        return f'"{name}": ({", ".join(f"{v:.3f}" for v in values)}),'

    print("```python\nCOVERAGE: dict[str, dict[str, tuple[float, ...]]] = {")
    for i, method in enumerate(METHODS):
        print(f'    "{method}": {{')
        for name in SMOOTH:
            print("        " + row(name, (lowest(means, name, n)[i] for n in sizes_of(name))))
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
    wilson = ", ".join(f"{exact_share('wilson', n)[0]:.3f}" for n in SIZES)
    print(f"}}\nWILSON = ({wilson})\n```")


def run(pool, work: Callable, jobs: list[tuple]) -> dict:
    # The longest first, so that no process is left alone with one at the end.
    jobs = sorted(jobs, key=lambda job: -job[2])
    done = pool.imap_unordered(work, jobs)
    results = {job[:3]: cover for job, cover in done}
    return {job[:3]: results[job[:3]] for job in sorted(jobs, key=lambda job: job[2])}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--reps", type=int, default=2000)
    parser.add_argument("--resamples", type=int, default=999)
    parser.add_argument("--seed", type=int, default=20)
    parser.add_argument("--jobs", type=int, default=2)
    args = parser.parse_args()
    rest = (args.reps, args.resamples, args.seed)
    start = time.perf_counter()
    means = [(f, w, n, *rest) for f in SMOOTH for w in LOG_NORMAL for n in sizes_of(f)]
    means += [("mape", law, n, *rest) for law in OTHER for n in SIZES]
    groups = [(f, d, g, *rest) for f in SMOOTH for d in DESIGNS for g in CLUSTERS]
    cases = [(q, icc) for q in (0.1, 0.5, 0.9) for icc in (0.3, 0.7)]
    counts = [
        (k, c, g, *rest)
        for k, c in [(k, c) for k in _kinds.SHARES for c in cases]
        + [("quantile", c) for c in cases if c[0] >= 0.5]
        for g in CLUSTERS
    ]
    wrong = [("correlation", s, n, *rest) for s in (0.1, 0.3, 0.6) for n in SIZES[3:]]
    with Pool(args.jobs) as pool:
        by_pairs = run(pool, of_means, means)
        by_clusters = run(pool, of_clusters, groups)
        by_counts = run(pool, of_counts_in_clusters, counts)
        by_rank = run(pool, correlations, wrong)
    print(
        f"Nominal {LEVEL:.0%}, {args.reps:,} samples per number (standard error "
        f"{np.sqrt(LEVEL * (1 - LEVEL) / args.reps):.4f}), "
        f"{args.resamples:,} resamples each, "
        f"seed {args.seed}, {datetime.date.today().isoformat()}, "
        f"{time.perf_counter() - start:.0f} s on {args.jobs} processes.\n"
    )
    print_means(by_pairs)
    print_clusters(by_clusters)
    print_counts(by_counts, by_rank)
    print_code(by_pairs, by_clusters, by_counts)


if __name__ == "__main__":
    main()
