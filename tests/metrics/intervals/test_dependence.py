"""What is drawn as a unit: which keys count, and when nothing is valid."""

from __future__ import annotations

import numpy as np
import pytest

from errcomp.errors import InputError
from errcomp.metrics.intervals.dependence import cluster_keys, copies_of, dependence


class TestKeys:
    def test_by_default_those_of_model_and_device(self):
        assert cluster_keys(None, ["device", "batch", "model"]) == ("model", "device")
        assert cluster_keys(None, ["batch"]) == ()

    def test_those_that_are_named(self):
        assert cluster_keys("gpu", ["device"]) == ("gpu",)
        assert cluster_keys(["gpu", "app"], []) == ("gpu", "app")
        assert cluster_keys("none", ["device"]) == ()

    def test_a_key_named_twice_or_too_many(self):
        with pytest.raises(InputError, match="key 'gpu' is given twice as a cluster"):
            cluster_keys(["gpu", "gpu"], ["gpu"])
        with pytest.raises(InputError, match="at most two keys, got a, b, c"):
            cluster_keys(["a", "b", "c"], [])


class TestDependence:
    def test_a_key_with_several_pairs_per_value_counts(self):
        found = dependence({"model": ["b", "b", "a", "a", "c"]})
        assert (found.names, found.units, found.words) == (("model",), 3, "3 models")
        assert found.codes[0].tolist() == [1, 1, 0, 0, 2]

    def test_a_key_that_is_different_for_every_pair_does_not(self):
        assert dependence({"model": ["a", "b", "c"]}).names == ()

    def test_a_key_with_one_value_says_nothing_of_others(self):
        labels = {"device": ["A"] * 6, "model": [1, 1, 2, 2, 3, 3]}
        assert dependence(labels).names == ("model",)
        assert dependence(labels, given=True).reason == (
            "no interval: all 6 pairs are of one device, so they say nothing about other devices"
        )

    def test_of_a_key_within_another_the_coarser_counts(self):
        model, device = [1, 1, 2, 2, 3, 3, 1, 1], [1, 1, 2, 2, 3, 3, 4, 4]
        assert dependence({"model": model, "device": device}).names == ("model",)
        assert dependence({"device": device, "model": model}).names == ("model",)

    def test_the_same_key_under_two_names_counts_once(self):
        found = dependence({"model": [1, 1, 2, 2, 3, 3], "gpu": list("aabbcc")}, given=True)
        assert found.names == ("gpu",)

    def test_keys_that_cross_both_count(self):
        found = dependence({"model": [1, 2, 3] * 3, "device": [1, 1, 1, 2, 2, 2, 3, 3, 3]})
        assert (found.names, found.words) == (("model", "device"), "3 models x 3 devices")

    def test_two_clusters_say_too_little(self):
        few = "no interval: 2 devices are too few to represent others; at least 3 are needed"
        device = {"device": ["A", "A", "A", "B", "B", "B"]}
        assert (
            dependence(device).reason
            == f"{few} (for results about only these 2, use --cluster none)"
        )
        assert dependence(device, given=True).reason == few
        crossed = {**device, "model": [1, 2, 3, 1, 2, 3]}
        assert (
            dependence(crossed).reason
            == f"{few} (for results about only these 2, use --cluster model)"
        )

    def test_missing_labels_are_told(self):
        labels = {"model": ["a", None, "b", "b", None, None, None]}
        assert dependence(labels).reason == (
            "no interval: the key model is missing in rows 2, 5, 6 (and 1 more) of these "
            "pairs. Fill it in, or name another key as cluster"
        )
        counts = np.array([5, 2, 3, 4, 1, 1, 1])
        assert "missing in 5 rows. Fill" in dependence(labels, counts=counts).reason

    def test_rows_that_stand_for_several_pairs(self):
        assert dependence({"model": ["a", "b", "c"]}, counts=np.array([4, 1, 1])).units == 3

    def test_a_name_of_several_words(self):
        assert dependence({"gpu_type": [1, 1, 2, 2, 3, 3]}).words == "3 values of gpu_type"


class TestCopies:
    def test_keys_are_read_until_all_pairs_differ(self):
        read = []

        def column(name):
            read.append(name)
            return np.array({"a": ["x", "x", "y"], "b": ["p", "q", "p"]}[name])

        same = np.array([2.0, 2.0, 2.0])
        assert copies_of([same], ["a", "b", "c"], column) is None
        assert read == ["a", "b"]
        assert copies_of([same], ["repeat", "a", "date"], column).tolist() == [0, 0, 1]
        assert read == ["a", "b", "a"]
        assert copies_of([same], ["a", "b"], column) is None

    def test_pairs_that_differ_in_a_number_or_a_key_are_different(self):
        values = [np.array([1.0, 1.0, 1.0, 2.0]), np.ones(4)]
        columns = {"device": np.array(["A", "A", "B", "A"]), "repeat": np.arange(4)}
        found = copies_of(values, list(columns), columns.__getitem__)
        assert found.tolist() == [0, 0, 1, 2]

    def test_none_where_all_are_different(self):
        def never(name):
            raise AssertionError(name)

        assert copies_of([np.arange(4.0)], ["device"], never) is None

    def test_copies_count_once(self):
        found = dependence({}, copies=np.array([0, 0, 1, 2]))
        assert (found.names, found.units, found.words) == ((), 3, "3 different pairs")
