"""Trees that predict without xgboost: equal to it, and safe against damaged files."""

from __future__ import annotations

import copy
import json
from typing import Any

import numpy as np
import pytest

from errcomp.calibration.estimators.boosted import trees as module
from errcomp.calibration.estimators.boosted.trees import Forest, TreeModel
from errcomp.calibration.estimators.shared.spread import Spread, Spreads
from errcomp.errors import InputError


def tree(
    left: list[int],
    right: list[int],
    feature: list[int],
    condition: list[float],
    default: list[int],
) -> dict[str, Any]:
    return {
        "left_children": left,
        "right_children": right,
        "split_indices": feature,
        "split_conditions": condition,
        "default_left": default,
        "split_type": [0] * len(left),
        "tree_param": {"size_leaf_vector": "1"},
    }


def booster(*trees: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """A booster as xgboost writes it, as far as it is read."""
    found: dict[str, Any] = {
        "learner": {
            "gradient_booster": {"name": "gbtree", "model": {"trees": list(trees)}},
            "learner_model_param": {
                "base_score": "[5E-1]",
                "num_class": "0",
                "num_feature": "2",
                "num_target": "1",
            },
            "objective": {"name": "reg:squarederror"},
        }
    }
    found["learner"].update(changes)
    return found


#: x0 < 1 ? -1 : (x1 < 2 ? 10 : 20), unknown x0 to the left, unknown x1 to the right.
STEPS = tree(
    [1, -1, 3, -1, -1], [2, -1, 4, -1, -1], [0, 0, 1, 0, 0], [1, -1, 2, 10, 20], [1, 0, 0, 0, 0]
)
NAN = np.nan


def grown(*trees: dict[str, Any], **options: Any) -> Forest:
    return Forest.from_booster(json.dumps(booster(*trees)), **options)


class TestForest:
    def test_walks_to_the_leaf(self):
        x = np.array([[0, 0], [1, 1.9], [1, 2], [NAN, 5], [2, NAN]])
        expected = [-0.5, 10.5, 20.5, -0.5, 20.5]
        assert grown(STEPS).predict(x).tolist() == expected

    def test_compares_in_32_bits(self):
        below = np.nextafter(1.0, 0)  # rounds to 1
        assert grown(STEPS).predict(np.array([[below, 0.0]])).tolist() == [10.5]

    def test_base_and_unit(self):
        x = np.zeros((1, 2))
        assert grown(STEPS, unit=3.0).predict(x) == 1.5 - 3
        assert grown(STEPS, base=7.0, unit=3.0).predict(x) == 7 - 3

    def test_columns_of_the_caller(self):
        found = grown(STEPS, columns=[4, 1])
        assert found.predict(np.array([[0, 9.0, 0, 0, 3.0]])).tolist() == [20.5]

    def test_trees_are_added(self):
        assert grown(STEPS, STEPS, STEPS).predict(np.zeros((1, 2))) == 0.5 - 3

    def test_base_without_brackets_is_that_of_older_versions(self):
        older = booster(STEPS)
        older["learner"]["learner_model_param"]["base_score"] = "2.5E-1"
        assert Forest.from_booster(json.dumps(older)).base == 0.25

    def test_nodes_that_cannot_be_reached_are_dropped(self):
        gone = tree([3, -1, -1, -1, -1], [4] + [-1] * 4, [0] * 5, [1, 8, 8, 2, 3], [0] * 5)
        found = grown(gone)
        assert len(found.left) == 3
        assert found.predict(np.array([[0.0, 0], [1.0, 0]])).tolist() == [2.5, 3.5]

    def test_no_trees(self):
        assert grown().predict(np.zeros((3, 2))).tolist() == [0.5] * 3
        assert Forest.flat(0.25).predict(np.zeros((2, 9))).tolist() == [0.25] * 2
        assert grown().reach() == 0.5

    def test_rows_are_walked_in_parts(self, monkeypatch):
        x = np.random.default_rng(0).normal(size=(50, 2)) * 3
        whole = grown(STEPS, STEPS).predict(x)
        monkeypatch.setattr(module, "_AT_ONCE", 7)
        assert grown(STEPS, STEPS).predict(x).tolist() == whole.tolist()

    def test_reach_bounds_predictions(self):
        assert grown(STEPS, STEPS).reach() == 40.5

    def test_round_trip(self):
        found = grown(STEPS, STEPS)
        again = Forest.from_arrays(found.base, found.to_arrays(), 2)
        x = np.random.default_rng(0).normal(size=(50, 2)) * 3
        assert again.predict(x).tolist() == found.predict(x).tolist()


class TestBoostersThatAreRefused:
    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"gradient_booster": {"name": "dart", "model": {"trees": []}}}, "boosters with dart"),
            ({"gradient_booster": {"name": "gblinear"}}, "boosters with gblinear"),
            ({"objective": {"name": "binary:logistic"}}, "boosters with binary:logistic"),
            ({"objective": {"name": "reg:gamma"}}, "boosters with reg:gamma"),
            ({"objective": {}}, "not a booster in xgboost's JSON: KeyError"),
        ],
    )
    def test_kind(self, changes, message):
        with pytest.raises(InputError, match=message):
            Forest.from_booster(json.dumps(booster(STEPS, **changes)))

    @pytest.mark.parametrize("what", ["num_target", "num_class"])
    def test_several_targets(self, what):
        several = booster(STEPS)
        several["learner"]["learner_model_param"][what] = "3"
        with pytest.raises(InputError, match="boosters with 3 targets are not supported"):
            Forest.from_booster(json.dumps(several))

    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"split_type": [1, 0, 0, 0, 0]}, "categorical splits are not supported"),
            ({"tree_param": {"size_leaf_vector": "2"}}, "several targets are not supported"),
            ({"left_children": [1, -1, 0, -1, -1]}, "form a cycle"),
            ({"left_children": [1, -1, 9, -1, -1]}, "not a booster .* IndexError"),
            ({"split_indices": [7, 0, 0, 0, 0]}, "not a booster .* IndexError"),
            ({"split_conditions": [float("nan")] * 5}, "finite thresholds"),
            ({"left_children": None}, "not a booster"),
        ],
    )
    def test_tree(self, changes, message):
        with pytest.raises(InputError, match=message):
            grown(STEPS | changes)

    @pytest.mark.parametrize("text", ["", "[]", "{}", '{"learner": 3}', "[" * 100_000, b"\xff"])
    def test_no_booster(self, text):
        with pytest.raises(InputError, match="not a booster in xgboost's JSON"):
            Forest.from_booster(text)


class TestArraysThatAreRefused:
    arrays = grown(STEPS, STEPS).to_arrays()

    def refuse(self, message: str, features: int = 2, base: Any = 0.0, **changes: Any) -> None:
        with pytest.raises(InputError, match=message):
            Forest.from_arrays(base, self.arrays | changes, features)

    def changed(self, name: str, at: int, value: float) -> dict[str, np.ndarray]:
        array = self.arrays[name].copy()
        array[at] = value
        return {name: array}

    @pytest.mark.parametrize("name", list(arrays))
    def test_missing_or_of_another_type(self, name):
        self.refuse(f"the array '{name}' of the trees must be", **{name: None})
        other = self.arrays[name].astype(np.int8)
        self.refuse(f"the array '{name}' of the trees must be", **{name: other})
        self.refuse("with one dimension", **{name: self.arrays[name][:, None]})

    @pytest.mark.parametrize("base", [None, "0", float("nan"), True])
    def test_base(self, base):
        self.refuse("base value of the trees must be a number", base=base)

    @pytest.mark.parametrize("name", [n for n in arrays if n != "roots"])
    def test_lengths_that_differ(self, name):
        self.refuse("arrays of equal length", **{name: self.arrays[name][:-1]})

    @pytest.mark.parametrize(
        ("roots", "message"),
        [
            ([], "begin at node 0"),
            ([1, 5], "begin at node 0"),
            (list(range(11)), "begin at node 0"),
            ([0, 0], "follow each other"),
            ([0, 5, 3], "follow each other"),
            ([0, 10], "follow each other"),
        ],
    )
    def test_roots(self, roots, message):
        self.refuse(message, roots=np.array(roots, dtype=np.int64))

    @pytest.mark.parametrize(
        ("at", "child"),
        [(0, 0), (2, 1), (2, 2), (2, -1), (2, -2), (1, -7), (4, 6), (2, 5), (0, 10**9)],
    )
    @pytest.mark.parametrize("name", ["left", "right"])
    def test_children(self, name, at, child):
        self.refuse(
            f"the children of each node after the node, in the same tree, wrong in node {at}",
            **self.changed(name, at, child),
        )

    def test_features(self):
        self.refuse("must split on columns 0 to 0 only", features=1)
        self.refuse("must split on columns 0 to 1 only", **self.changed("feature", 0, -1))

    @pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
    def test_values(self, value):
        self.refuse("finite thresholds and values", **self.changed("value", 1, value))
        self.refuse("finite thresholds and values", **self.changed("threshold", 0, value))

    def test_values_beyond_32_bits(self):
        self.refuse("fit into 32 bits", **self.changed("value", 1, -1e300))

    def test_size(self, monkeypatch):
        monkeypatch.setattr(module, "_MOST_NODES", 9)
        self.refuse("at most 9 nodes")

    def test_depth_takes_no_time(self):
        """Two children that are one node: 2⁵⁰ ways down, 50 nodes."""
        n = 100
        child = np.append(np.arange(1, n), -1)
        arrays = {
            "roots": np.zeros(1, np.int64),
            "left": child,
            "right": child.copy(),
            "feature": np.zeros(n, np.int64),
            "threshold": np.zeros(n, np.float32),
            "missing_left": np.zeros(n, bool),
            "value": np.zeros(n),
        }
        self.refuse("at most 64 levels deep", **arrays)
        short = {name: array[:50].copy() for name, array in arrays.items()}
        short["left"][-1] = short["right"][-1] = -1
        assert Forest.from_arrays(0.0, short, 1).predict(np.zeros((1, 1))) == 0


class TestTreeModel:
    spreads = Spreads({"A": 0.1}, Spread(0.02, 4.0), Spread(0.05, 3.0))
    model = TreeModel(
        grown(STEPS, base=0.0, unit=0.01),
        grown(STEPS, base=0.0, unit=0.1),
        offset=1,
        features=2,
        spreads=spreads,
    )

    def test_adds_offset_trees_and_effect(self):
        x, device = np.array([[0, 0.5], [1, 0.5]]), np.array(["A", "new"], dtype=object)
        found = self.model.predict_quantiles(x, [0.5], device=device)
        np.testing.assert_allclose(found[:, 0], [0.5 - 0.01 + 0.1, 0.5 + 0.1])

    def test_spread_of_each_run(self):
        found = self.model.predict_quantiles(np.array([[0, 0.5], [1, 0.5]]), [0.1, 0.9])
        widths = np.diff(found)[:, 0]
        assert widths[1] / widths[0] == pytest.approx(np.exp(1.0 + 0.1))

    def test_offset_must_be_known_and_other_features_need_not(self):
        assert np.isfinite(self.model.predict_quantiles(np.array([[NAN, 0.5]]), [0.5])).all()
        with pytest.raises(InputError, match=r"offset \(column 1\) must be known, .* row 1"):
            self.model.predict_quantiles(np.array([[0, 0], [0, NAN]]), [0.5])

    def test_features_beyond_32_bits(self):
        with pytest.raises(InputError, match="fit into 32 bits .* in row 1"):
            self.model.predict_quantiles(np.array([[0, 0], [-1e39, 0]]), [0.5])

    def test_as_many_features(self):
        with pytest.raises(InputError, match="X has 3 features, but the model was fitted with 2"):
            self.model.predict_quantiles(np.zeros((1, 3)), [0.5])

    def test_round_trip(self):
        meta, arrays = self.model.to_arrays()
        again = TreeModel.from_arrays(json.loads(json.dumps(meta)), arrays)
        x, q = np.random.default_rng(0).normal(size=(20, 2)) * 3, [0.1, 0.7]
        device = np.array(["A", "B"] * 10, dtype=object)
        expected = self.model.predict_quantiles(x, q, device=device)
        assert again.predict_quantiles(x, q, device=device).tolist() == expected.tolist()
        assert again.KIND == "trees"

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"features": 0}, "must have 1 to 100,000 features, got 0"),
            ({"features": "2"}, "must have 1 to 100,000 features"),
            ({"features": 10**6}, "must have 1 to 100,000 features"),
            ({"offset": 2}, "an offset among 2 columns, got 2"),
            ({"offset": True}, "an offset among 2 columns"),
            ({"bases": None}, "base values and spreads"),
            ({"spreads": None}, "base values and spreads"),
            ({"bases": {"location": 0.0}}, "base value of the trees"),
            (
                {"bases": {"location": 0.0, "log_scale": 99.0}},
                "logarithms of spreads of at most 100",
            ),
        ],
    )
    def test_damaged_meta_is_refused(self, change, message):
        meta, arrays = self.model.to_arrays()
        with pytest.raises(InputError, match=message):
            TreeModel.from_arrays(copy.deepcopy(meta) | change, arrays)

    def test_missing_arrays_are_refused(self):
        meta, arrays = self.model.to_arrays()
        del arrays["log_scale.roots"]
        with pytest.raises(InputError, match="array 'roots'"):
            TreeModel.from_arrays(meta, arrays)


@pytest.mark.extras
class TestEqualToXgboost:
    @pytest.mark.parametrize(
        "parameters",
        [
            {"objective": "reg:squarederror", "max_depth": 6},
            {"objective": "reg:absoluteerror", "max_depth": 3, "tree_method": "exact"},
            {"objective": "reg:pseudohubererror", "gamma": 0.5, "tree_method": "exact"},
            {"objective": "reg:quantileerror", "quantile_alpha": 0.9, "num_parallel_tree": 3},
            {"objective": "reg:squarederror", "grow_policy": "lossguide", "max_leaves": 20},
            {"objective": "reg:squarederror", "max_depth": 3, "base_score": 0.7},
        ],
    )
    def test_on_random_rows_split_points_and_unknown_values(self, parameters):
        xgboost = pytest.importorskip("xgboost")
        rng = np.random.default_rng(0)
        x = rng.normal(size=(300, 4))
        x[:, 2] = rng.integers(5, size=300)
        x[rng.random(x.shape) < 0.1] = NAN
        y = np.nan_to_num(x[:, 0]) + np.nan_to_num(x[:, 2]) ** 2 + rng.standard_t(3, size=300)
        y *= 0.1  # the size of log-ratios: xgboost adds in 32 bits
        trained = xgboost.train(
            {"verbosity": 0, "nthread": 1, "subsample": 0.8} | parameters, xgboost.DMatrix(x, y), 40
        )
        found = Forest.from_booster(trained.save_raw("json"))
        new = rng.normal(size=(500, 4)) * 2
        new[rng.random(new.shape) < 0.2] = NAN
        inner = found.left >= 0
        points = np.full((inner.sum(), 4), 0.1)
        points[np.arange(len(points)), found.feature[inner]] = found.threshold[inner]
        beside = [np.nextafter(points, side) for side in (-np.inf, np.inf)]
        for rows in (x, new, points, *beside):
            expected = trained.predict(xgboost.DMatrix(rows))
            np.testing.assert_allclose(found.predict(rows), expected, rtol=1e-6, atol=1e-6)

    @pytest.mark.parametrize(
        ("parameters", "message"),
        [
            ({"booster": "dart"}, "boosters with dart"),
            ({"booster": "gblinear"}, "boosters with gblinear"),
            ({"objective": "reg:logistic"}, "boosters with reg:logistic"),
            (
                {"objective": "reg:quantileerror", "quantile_alpha": [0.1, 0.9]},
                "boosters with 2 targets",
            ),
        ],
    )
    def test_other_boosters_are_refused(self, parameters, message):
        xgboost = pytest.importorskip("xgboost")
        x = np.random.default_rng(0).random((30, 2))
        data = xgboost.DMatrix(x, x[:, 0])
        trained = xgboost.train({"verbosity": 0, "nthread": 1} | parameters, data, 2)
        with pytest.raises(InputError, match=message):
            Forest.from_booster(trained.save_raw("json"))

    def test_categorical_splits_are_refused(self):
        xgboost = pytest.importorskip("xgboost")
        x = np.repeat(np.arange(4.0), 10)[:, None]
        data = xgboost.DMatrix(x, x[:, 0] % 2, feature_types=["c"], enable_categorical=True)
        trained = xgboost.train({"verbosity": 0, "nthread": 1}, data, 2)
        with pytest.raises(InputError, match="categorical splits"):
            Forest.from_booster(trained.save_raw("json"))
