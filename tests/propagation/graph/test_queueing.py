from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import integrate

from errcomp.errors import InputError
from errcomp.propagation.graph import Constant, Kernel, Queue, time_at
from errcomp.propagation.graph.queueing import probability_of_waiting


def erlang_c(servers: int, offered: float) -> float:
    blocked = 1.0
    for k in range(1, servers + 1):
        blocked = offered * blocked / (k + offered * blocked)
    return blocked / (1 - offered / servers * (1 - blocked))


@pytest.mark.parametrize(
    ("servers", "offered", "expected"),
    # One server: the utilisation. Two servers: a^2 / (2 + a). The others by Erlang's recursion.
    [(1, 0.7, 0.7), (2, 1.0, 1 / 3), (2, 1.6, 1.6**2 / 3.6), (10, 8.0, None), (400, 390.0, None)],
)
def test_erlang_c(servers: int, offered: float, expected: float | None) -> None:
    found = probability_of_waiting(np.array([offered / servers]), servers)[0]
    assert found == pytest.approx(erlang_c(servers, offered), rel=1e-11)
    if expected is not None:
        assert found == pytest.approx(expected, rel=1e-12)


def test_response_of_one_server() -> None:
    time = np.array([0.1, 0.5, 1.0, 1.2])
    queue = Queue(Kernel("s"), 0.8)
    np.testing.assert_allclose(queue.response(time), 1 / (1 / time - 0.8), rtol=1e-13)
    for q in (0.01, 0.5, 0.99, 0.99999):
        quantile = Queue(Kernel("s"), 0.8, quantity="quantile", quantile=q)
        expected = -math.log1p(-q) / (1 / time - 0.8)
        np.testing.assert_allclose(quantile.response(time), expected, rtol=1e-11)


def test_mean_response_of_several_servers() -> None:
    # M/M/2 with a = 1: C = 1/3, wait C s / (c - a) = 1/3.
    assert Queue(Constant(1), 1.0, 2).response(1.0) == pytest.approx(4 / 3)
    for c, rate in ((3, 2.5), (50, 48.0)):
        expected = 1 + erlang_c(c, rate) / (c - rate)
        assert Queue(Constant(1), rate, c).response(1.0) == pytest.approx(expected)


@pytest.mark.parametrize("cv2", [0.0, 0.5, 4.0])
def test_pollaczek_and_khinchine(cv2: float) -> None:
    for rate in (0.1, 0.9):
        expected = 1 + rate * (1 + cv2) / (2 * (1 - rate))
        assert Queue(Constant(1), rate, service_cv2=cv2).response(1.0) == pytest.approx(expected)


def test_kingman() -> None:
    queue = Queue(Constant(1), 0.9, service_cv2=0.5, arrival_cv2=2.5)
    assert queue.response(1.0) == pytest.approx(1 + 9 * (0.5 + 2.5) / 2)


@pytest.mark.parametrize(
    ("servers", "rate"),
    # The second and third: c (1 - rho) = 1, where both phases are equally fast.
    [(4, 3.6), (2, 1.0), (5, 4.0), (16, 2.0), (3, 2.9999)],
)
@pytest.mark.parametrize("q", [0.05, 0.5, 0.99])
def test_quantile_of_several_servers(servers: int, rate: float, q: float) -> None:
    time = float(Queue(Constant(1), rate, servers, 1.0, 1.0, "quantile", q).response(1.0))
    c = erlang_c(servers, rate)
    # P(T > t): who does not wait is served, who waits is served in the rest of the time.
    free = servers - rate
    waiting, _ = integrate.quad(
        lambda v: free * math.exp(-free * (time - v) - v), 0, min(time, 60.0), epsabs=1e-13
    )
    tail = (1 - c) * math.exp(-time) + c * (waiting + math.exp(-free * time))
    assert tail == pytest.approx(1 - q, rel=1e-7)


def test_regular_service_has_an_exact_form() -> None:
    queue = Queue(Constant(1), 0.8, 1, 0.0, 1.0, "quantile", 0.99)
    wait = 0.5 / (1 - 0.8)
    assert queue.response(1.0) == pytest.approx(1 + wait * math.log(0.8 / 0.01))
    idle = Queue(Constant(1), 0.001, 1, 0.0, 1.0, "quantile", 0.9)
    assert idle.response(1.0) == 1.0
    regular = Queue(Constant(1), 0.9, 4, 0.0, 0.0, "quantile", 0.99)
    assert regular.response(1.0) == 1.0


@pytest.mark.parametrize("q", [0.3, 0.5, 0.99])
@pytest.mark.parametrize("servers", [1, 7])
def test_quantiles_are_continuous_in_the_variation_of_service(servers: int, q: float) -> None:
    def at(cv2: float) -> float:
        node = Queue(Constant(1), 0.7 * servers, servers, cv2, 1.0, "quantile", q)
        return float(node.response(1.0))

    assert at(1 - 1e-9) == pytest.approx(at(1.0), rel=1e-4)
    assert at(1 + 1e-9) == pytest.approx(at(1.0), rel=1e-4)
    assert at(1e-17) == pytest.approx(at(1e-12), rel=1e-4)


@pytest.mark.parametrize("quantity", ["mean", "quantile"])
@pytest.mark.parametrize("cv2", [0.0, 0.3, 1.0, 3.0])
def test_saturation_is_infinite_and_never_an_error(quantity: str, cv2: float) -> None:
    queue = Queue(Kernel("s"), 2.0, 2, cv2, 1.0, quantity)
    time = np.array([-1.0, 0.0, 1e-300, 0.5, 1 - 1e-12, 1.0, 1.5, np.inf])
    np.testing.assert_array_equal(np.isinf(queue.response(time)), time >= 1)
    np.testing.assert_array_equal(queue.response(time)[:2], 0.0)
    np.testing.assert_array_equal(queue.utilisation(time) >= 1, time >= 1)
    assert np.isinf(time_at(queue, {"s": 1.0}))


@pytest.mark.parametrize("quantity", ["mean", "quantile"])
@pytest.mark.parametrize(("servers", "cv2", "ca2"), [(1, 1, 1), (4, 0, 1), (3, 0.2, 0), (8, 5, 3)])
def test_response_increases_with_the_service_time(quantity, servers, cv2, ca2) -> None:
    queue = Queue(Kernel("s"), float(servers), servers, cv2, ca2, quantity)
    time = np.linspace(0.001, 1 - 1e-9, 2001)
    response = queue.response(time)
    assert (np.diff(response) > 0).all()
    assert (response >= (time if quantity == "mean" else 0)).all()


def test_small_loads_wait_for_nothing() -> None:
    assert Queue(Constant(1), 1e-9, 3).response(1.0) == pytest.approx(1.0)
    quantile = Queue(Constant(1), 1e-9, 3, quantity="quantile", quantile=0.9)
    assert quantile.response(1.0) == pytest.approx(-math.log(0.1))


def test_units_cancel() -> None:
    seconds = Queue(Kernel("s"), 30.0, 4, 0.5, 1.0, "quantile").response(0.1)
    milliseconds = Queue(Kernel("s"), 0.03, 4, 0.5, 1.0, "quantile").response(100.0)
    assert milliseconds == pytest.approx(1e3 * seconds, rel=1e-10)


def test_many_servers_and_many_draws() -> None:
    time = np.random.default_rng(0).lognormal(sigma=0.2, size=100_000)
    queue = Queue(Kernel("s"), 900.0, 1000, 2.0, 1.0, "quantile")
    response = queue.response(time)
    assert np.isfinite(response[time < 1]).all()
    assert not np.isnan(response).any()


def test_a_graph_through_the_queue(draws) -> None:
    engine = draws({"s": (1.0, 0.1)}, 20_000)
    x = Queue(Kernel("s"), 0.8).evaluate(engine)
    # ln s is normal: saturated where s >= 1.25.
    expected = 0.5 * math.erfc(math.log(1.25) / 0.1 / math.sqrt(2))
    assert np.isinf(x).mean() == pytest.approx(expected, abs=4 * math.sqrt(expected / 20_000))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0.0,), "Queue.arrival_rate: must be a finite number greater than 0, got 0.0"),
        ((-1.0,), "Queue.arrival_rate: must be"),
        ((float("inf"),), "Queue.arrival_rate: must be"),
        ((1.0, 0), "Queue.servers: must be a whole number of at least 1, got 0"),
        ((1.0, 1.5), "Queue.servers: must be a whole number"),
        ((1.0, 1, -1.0), "Queue.service_cv2: must be a finite number of at least 0"),
        ((1.0, 1, 1.0, -1.0), "Queue.arrival_cv2: must be"),
        ((1.0, 1, 1.0, 1.0, "p99"), "Queue.quantity: must be one of mean, quantile, got 'p99'"),
        ((1.0, 1, 1.0, 1.0, "quantile", 1.0), "Queue.quantile: must be a number between 0 and 1"),
        ((1.0, 1, 1.0, 1.0, "quantile", 99), "Queue.quantile: must be a number between 0 and 1"),
    ],
)
def test_what_is_wrong_is_named(arguments, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Queue(Kernel("s"), *arguments)


def simulated(servers, load, service_cv2, arrival_cv2, seed, *, stations=3000, warm=1000, n=1000):
    """Responses of customers in many stations at once; gamma-distributed times."""
    rng = np.random.default_rng(seed)

    def gamma(cv2: float) -> np.ndarray:
        return rng.gamma(1 / cv2, cv2, stations) if cv2 else np.ones(stations)

    work = np.zeros((stations, servers))  # Kiefer and Wolfowitz: until each server is free
    found = []
    for k in range(warm + n):
        service = gamma(service_cv2)
        if k >= warm and k % 5 == 0:
            found.append(work[:, 0] + service)
        work[:, 0] += service
        work -= (gamma(arrival_cv2) / (load * servers))[:, None]
        np.maximum(work, 0, out=work)
        work.sort(axis=1)
    return np.concatenate(found)


@pytest.mark.slow
@pytest.mark.parametrize("arrival_cv2", [0.0, 1.0, 2.0])
@pytest.mark.parametrize("servers", [1, 4])
def test_stated_errors_of_the_approximations(servers: int, arrival_cv2: float) -> None:
    for service_cv2 in (0.0, 0.25, 1.0, 4.0):
        for load in (0.3, 0.8):
            x = simulated(servers, load, service_cv2, arrival_cv2, seed=1)
            arguments = (Constant(1), load * servers, servers, service_cv2, arrival_cv2)
            mean = float(Queue(*arguments).response(1.0)) / x.mean() - 1
            tail = float(Queue(*arguments, "quantile").response(1.0)) / np.quantile(x, 0.99) - 1
            if arrival_cv2 == 1:
                assert abs(mean) < 0.035
            assert -0.14 < mean < 0.23
            assert abs(tail) < (0.15 if load == 0.8 else 0.22)
            if (service_cv2, arrival_cv2) == (1.0, 1.0):
                assert abs(tail) < 0.02
