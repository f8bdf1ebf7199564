from __future__ import annotations

import json

import numpy as np

from errcomp.report.writing import plain


def test_json_holds_no_nan_and_no_numpy() -> None:
    document = {"a": np.float64("nan"), "c": (np.int64(1), True, None, "x"), "d": object}
    text = json.dumps(plain(document), allow_nan=False)
    assert json.loads(text)["a"] is None
    assert json.loads(text)["c"] == [1, True, None, "x"]
