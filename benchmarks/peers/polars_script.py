"""What a user would write by hand for the six figures of a table of pairs.

Run: python polars_script.py pairs.csv
"""

from __future__ import annotations

import sys

import polars as pl


def main(path: str) -> None:
    frame = pl.read_csv(path) if path.endswith(".csv") else pl.read_parquet(path)
    error = pl.col("predicted") - pl.col("measured")
    ape = (error / pl.col("measured")).abs()
    figures = frame.select(
        n=pl.len(),
        mape=ape.mean(),
        median_ape=ape.median(),
        gmape=ape.log().mean().exp(),
        wape=error.abs().sum() / pl.col("measured").sum(),
        bias=(error / pl.col("measured")).mean(),
        max_ape=ape.max(),
    )
    print(figures.row(0))


if __name__ == "__main__":
    main(sys.argv[1])
