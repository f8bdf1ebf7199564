"""Six figures by group: pandas and DuckDB, as anybody would write them."""

import duckdb
import numpy as np
import pandas as pd

PACKAGES = ("duckdb", "pandas", "numpy")

SQL = """
select g, avg(abs(p - m) / m), exp(avg(ln(abs(p - m) / m))), max(abs(p - m) / m),
       sum(abs(p - m)) / sum(m), avg((p - m) / m), sqrt(avg(ln(p / m) ** 2))
from pairs group by g order by g
"""


def _table(rows, groups):
    rng = np.random.default_rng(1)
    m = np.exp(rng.standard_normal(rows))
    p = m * np.exp(0.1 * rng.standard_normal(rows))
    return pd.DataFrame({"p": p, "m": m, "g": rng.integers(0, groups, rows, dtype=np.int32)})


def of_pandas(rows, groups):
    pairs = _table(rows, groups)

    def work():
        error = (pairs.p - pairs.m) / pairs.m
        terms = pd.DataFrame({"ape": error.abs(), "signed": error, "m": pairs.m, "g": pairs.g})
        terms["log"] = np.log(terms.ape)
        terms["off"] = (pairs.p - pairs.m).abs()
        terms["square"] = np.log(pairs.p / pairs.m) ** 2
        by = terms.groupby("g")
        means, sums = by.mean(), by[["off", "m"]].sum()
        found = pd.DataFrame(
            {
                "mape": means.ape,
                "gmape": np.exp(means["log"]),
                "max_ape": by.ape.max(),
                "wape": sums.off / sums.m,
                "bias": means.signed,
                "rmsle": np.sqrt(means.square),
            }
        )
        return found.to_numpy().tolist()

    return work


def of_duckdb(rows, groups):
    connection = duckdb.connect()
    connection.register("frame", _table(rows, groups))
    connection.execute("create table pairs as select * from frame")

    def work():
        columns = connection.execute(SQL).fetchnumpy()
        return np.stack(list(columns.values())[1:], axis=1).tolist()

    return work
