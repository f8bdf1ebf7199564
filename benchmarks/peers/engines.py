"""Six figures by group inside Spark and Dask: by errcomp, and by hand."""

import numpy as np

PACKAGES = ("errcomp", "pyspark", "dask")


def _figures(table):
    """Return the figures in the order of the groups."""
    import bench_grouped

    ordered = table.sort_values("group")
    return ordered[list(bench_grouped.FIGURES)].to_numpy().tolist()


def _ours(frame):
    import bench_grouped

    import errcomp as ec

    def work():
        found = ec.summarize(frame, by="group", figures=bench_grouped.FIGURES, level=None)
        return _figures(found.to_frame())

    return work


def _spark(folder):
    from pyspark.sql import SparkSession

    session = (
        SparkSession.builder.master("local[*]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.memory", "8g")
        .config("spark.sql.shuffle.partitions", "8")
        .getOrCreate()
    )
    return session.read.parquet(folder)


def spark_ours(folder):
    return _ours(_spark(folder))


def spark_by_hand(folder):
    from pyspark.sql import functions as f

    frame = _spark(folder)
    p, m = f.col("predicted"), f.col("measured")
    ape, log = f.abs(p - m) / m, f.log(p / m)

    def work():
        table = frame.groupBy("group").agg(
            f.avg(ape).alias("mape"),
            f.exp(f.avg(f.log(ape))).alias("gmape"),
            f.max(ape).alias("max_ape"),
            (f.sum(f.abs(p - m)) / f.sum(m)).alias("wape"),
            f.avg((p - m) / m).alias("bias"),
            f.sqrt(f.avg(log * log)).alias("rmsle"),
        )
        return _figures(table.toPandas())

    return work


def _dask(folder):
    import dask.dataframe as dd

    return dd.read_parquet(folder)


def dask_ours(folder):
    return _ours(_dask(folder))


def dask_by_hand(folder):
    frame = _dask(folder)

    def work():
        error = (frame.predicted - frame.measured) / frame.measured
        ape, log = error.abs(), np.log(frame.predicted / frame.measured)
        terms = frame.assign(
            mape=ape,
            gmape=np.log(ape),
            max_ape=ape,
            off=(frame.predicted - frame.measured).abs(),
            bias=error,
            rmsle=log * log,
        )
        how = dict.fromkeys(("mape", "gmape", "bias", "rmsle"), "mean")
        how |= {"max_ape": "max", "off": "sum", "measured": "sum"}
        found = terms.groupby("group").agg(how).compute().reset_index()
        found["gmape"] = np.exp(found.gmape)
        found["rmsle"] = np.sqrt(found.rmsle)
        found["wape"] = found.off / found.measured
        return _figures(found)

    return work
