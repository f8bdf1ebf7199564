"""Reader of the traces of JAX."""

from __future__ import annotations

import gzip
import struct
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from errcomp.errors import InputError
from errcomp.readers.core.registry import recognise
from errcomp.readers.core.source import Source
from errcomp.readers.profilers import jax
from errcomp.readers.profilers.jax import xplane

FIXTURES = Path(__file__).parents[1] / "data" / "readers" / "jax-xplane"


def varint(value: int) -> bytes:
    value %= 1 << 64
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def number(field: int, value: int) -> bytes:
    return varint(field << 3) + varint(value)


def message(field: int, content: bytes | str) -> bytes:
    data = content.encode() if isinstance(content, str) else content
    return varint(field << 3 | 2) + varint(len(data)) + data


class Plane:
    """Writes one plane: names and statistics get numbers as they come."""

    def __init__(self, name: str, stats: Mapping[str, Any] | None = None) -> None:
        self.names: dict[str, int] = {}
        self.events: dict[str, int] = {}
        self.more: dict[str, bytes] = {}
        self.lines: list[bytes] = []
        self.name = name
        self.stats = b"".join(message(6, self.stat(k, v)) for k, v in (stats or {}).items())

    def key(self, name: str) -> int:
        return self.names.setdefault(name, len(self.names) + 1)

    def stat(self, name: str, value: Any) -> bytes:
        head = number(1, self.key(name))
        if isinstance(value, float):
            return head + varint(2 << 3 | 1) + struct.pack("<d", value)
        if isinstance(value, bytes):
            return head + message(6, value)
        if isinstance(value, int):
            return head + (number(3, value) if value >= 0 else number(4, value))
        if value.startswith("="):  # text that stands among the names
            return head + number(7, self.key(value[1:]))
        return head + message(5, value)

    def line(
        self, name: str, events: Sequence[tuple[Any, ...]], *, at: int = 0, shown: str = ""
    ) -> None:
        data = [message(2, name) + number(3, at) + (message(11, shown) if shown else b"")]
        for event, start, duration, *stats in events:
            one = number(1, self.events.setdefault(event, len(self.events) + 1))
            one += number(2, start) + number(3, duration)
            for key, value in (stats[0] if stats else {}).items():
                one += number(5, value) if key == "count" else message(4, self.stat(key, value))
            data.append(message(4, one))
        self.lines.append(b"".join(data))

    def written(self) -> bytes:
        data = number(1, 3) + message(2, self.name) + b"".join(message(3, x) for x in self.lines)
        for name, key in self.events.items():
            extra = self.more.get(name, b"")
            entry = number(1, key) + message(2, name) + extra
            data += message(4, number(1, key) + message(2, entry))
        data += self.stats
        for name, key in self.names.items():
            entry = number(1, key) + message(2, name)
            data += message(5, number(1, key) + message(2, entry))
        return data


def space(*planes: Plane, after: bytes = b"") -> bytes:
    return b"".join(message(1, plane.written()) for plane in planes) + after


def gpu() -> bytes:
    """A GPU with two steps; derived lines repeat what the streams hold."""
    plane = Plane("/device:GPU:0", {"device_vendor": "Example", "clock_rate": 5, "ratio": 0.5})
    op = {"hlo_op": "=dot.1", "hlo_module": "jit_f", "name": "jit(f)/dot", "correlation_id": 1}
    plane.line(
        "Stream #1(Compute)",
        [
            ("gemm_kernel", 1000, 500, op),
            ("add_kernel", 1600, 100, {**op, "hlo_op": "add.2"}),
            ("gemm_kernel", 3000, 520, op),
            ("add_kernel", 9000, 100),
        ],
        at=100,
    )
    plane.line("Stream #2(Memcpy)", [("MemcpyH2D", 0, 70), ("MemsetD", 50, 30)], at=101)
    plane.line("Steps", [("0", 900, 900), ("1", 2900, 700)], at=100)
    plane.line("XLA Modules", [("jit_f", 900, 900), ("jit_f", 2900, 700)], at=100)
    plane.line("XLA Ops", [("dot.1", 1000, 500)], at=100)
    host = Plane("/host:CPU")
    host.line("python", [("hipLaunchKernel", 0, 9000, {"hlo_op": "dot.1"})], at=99)
    return space(Plane("/host:metadata"), plane, Plane("/device:GPU:1"), host)


def tpu() -> bytes:
    """Two devices with a loop around an operation, named by the whole text of the program."""
    planes = []
    for device in range(2):
        plane = Plane(f"/device:TPU:{device}", {"device_type_string": "TPU v9"})
        body = "%fusion.7 = f32[8]{0} fusion(f32[8]{0} %p), kind=kLoop"
        plane.more[body] = message(5, plane.stat("hlo_category", "loop fusion"))
        plane.more["%while.3 = (s32[]) while(...)"] = message(4, "while.3")
        plane.line(
            "XLA Ops",
            [
                ("%while.3 = (s32[]) while(...)", 0, 1000),
                (body, 0, 400),
                (body, 400, 600),
                ("copy.1", 1000, 90),
            ],
            at=5,
        )
        plane.line("Async XLA Ops", [("copy-start", 0, 9999)], at=5)
        plane.line("Steps", [("7", 0, 1100)], at=5)
        planes.append(plane)
    other = Plane("/device:CUSTOM:Megascale Trace")
    other.line("XLA Ops", [("x", 1, 2)])
    return space(*planes, other, after=message(2, "a buffer was full"))


def cpu() -> bytes:
    """No device: operations on threads of the host, in steps."""
    host = Plane("/host:CPU")
    op = {"hlo_op": "dot.1", "hlo_module": "jit_f"}
    host.line("python", [("train", 0, 900, {"step_num": 0}), ("train", 1000, 800, {"step_num": 1})])
    host.line(
        "tf_XLAEigen/1",
        [
            ("call", 100, 500, {**op, "hlo_op": "call"}),
            ("dot.1", 110, 400, op),
            ("ThunkExecutor::Execute", 90, 600),
            ("dot.1", 1100, 300, op),
        ],
    )
    return space(host)


def written(folder: Path, content: bytes) -> Path:
    path = folder / "host.xplane.pb"
    path.write_bytes(content)
    return path


def kernels(rows: pl.DataFrame) -> pl.DataFrame:
    return rows.filter(pl.col("level") == "kernel")


def test_the_fixtures_are_what_is_written_here() -> None:
    for name, content in (("good", gpu()), ("tpu", tpu()), ("cpu", cpu())):
        assert (FIXTURES / name / "host.xplane.pb").read_bytes() == content


def test_streams_of_a_gpu() -> None:
    found = jax.read(FIXTURES / "good" / "host.xplane.pb")
    assert found.formats == ("jax-xplane",)
    rows = kernels(found.rows)
    columns = ("kernel", "measured", "unit", "start", "stream", "run")
    # The line of the host began 1 ns before the streams.
    assert rows.select(columns).rows() == [
        ("gemm_kernel", 500.0, "ps", 2000, "Stream #1(Compute)", "step 0"),
        ("add_kernel", 100.0, "ps", 2600, "Stream #1(Compute)", "step 0"),
        ("gemm_kernel", 520.0, "ps", 4000, "Stream #1(Compute)", "step 1"),
        ("add_kernel", 100.0, "ps", 10000, "Stream #1(Compute)", "outside of steps"),
        ("MemcpyH2D", 70.0, "ps", 2000, "Stream #2(Memcpy)", "step 0"),
        ("MemsetD", 30.0, "ps", 2050, "Stream #2(Memcpy)", "step 0"),
    ]
    assert rows["kernel_class"].to_list()[3:] == ["add_kernel", "memcpy", "memset"]
    assert rows.select("layer", "model", "operation").rows()[0] == ("dot.1", "jit_f", "jit(f)/dot")
    assert rows["layer"][1] == "add.2"
    assert set(rows["device"]) == {"Example"}
    assert set(rows["device_id"]) == {"GPU:0"}
    steps = found.of(level="model").rows
    assert steps.select("run", "measured", "repeat").rows() == [
        ("step 0", 900.0, 1),
        ("step 1", 700.0, 2),
    ]
    assert found.dropped == ()
    assert found.of(run="step 0").kernels.run_measured.tolist() == [900.0] * 4


def test_operations_of_a_tpu() -> None:
    found = jax.read(FIXTURES / "tpu" / "host.xplane.pb")
    rows = kernels(found.rows)
    assert rows.select("kernel", "kernel_class", "measured", "device_id", "run").rows()[:3] == [
        ("fusion.7", "loop fusion", 400.0, "TPU:0", "step 7 on TPU:0"),
        ("fusion.7", "loop fusion", 600.0, "TPU:0", "step 7 on TPU:0"),
        ("copy.1", "copy.1", 90.0, "TPU:0", "step 7 on TPU:0"),
    ]
    assert len(rows) == 6
    assert set(rows["device"]) == {"TPU v9"}
    assert found.notes == ("a buffer was full",)
    assert [(one.n, one.reason) for one in found.dropped] == [
        (2, "operations that contain other operations")
    ]


def test_operations_on_the_host() -> None:
    found = jax.read(FIXTURES / "cpu" / "host.xplane.pb")
    assert kernels(found.rows).select("kernel", "measured", "stream", "run").rows() == [
        ("dot.1", 400.0, "tf_XLAEigen/1", "train 0"),
        ("dot.1", 300.0, "tf_XLAEigen/1", "train 1"),
    ]
    assert found.of(level="model").rows["measured"].to_list() == [900.0, 800.0]
    assert found.notes == (
        "The operations ran on the CPU: several threads may share an operation.",
    )
    assert found.dropped[0].n == 1


def test_modules_are_runs_where_no_steps_are_marked(tmp_path: Path) -> None:
    plane = Plane("/device:GPU:0")
    plane.line("Stream #1", [("k", 10, 5), ("k", 110, 5)])
    plane.line("", [("jit_f", 5, 50), ("jit_f", 105, 50)], shown="XLA Modules")
    found = jax.read(written(tmp_path, space(plane)))
    assert kernels(found.rows)["run"].to_list() == ["jit_f #1", "jit_f #2"]


def test_events_that_sum_up_others(tmp_path: Path) -> None:
    plane = Plane("/device:GPU:0")
    plane.line("Stream #1", [("k", 10, 60, {"count": 4})])
    rows = jax.read(written(tmp_path, space(plane))).rows
    assert rows.select("measured", "count").rows() == [(15.0, 4)]


def test_an_event_alone_sums_up_others_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for together in ("columns", "spans"):
        monkeypatch.setattr(xplane._wire, together, lambda *given: None)
    test_events_that_sum_up_others(tmp_path)


def test_statistics_of_all_kinds_and_none(tmp_path: Path) -> None:
    plane = Plane("/device:GPU:0", {"blob": b"\xff", "minus": -4, "half": 0.5})
    plane.line("Stream #1", [("k", 10, 60, {"hlo_op": 7, "name": -1, "tf_op": "x"}), ("", 80, 1)])
    rows = jax.read(written(tmp_path, space(plane))).rows
    assert rows.select("kernel", "layer", "operation").rows() == [
        ("k", "7", "-1"),
        ("kernel without a name", None, None),
    ]


def test_events_without_a_name_or_of_wrong_kinds(tmp_path: Path) -> None:
    line = message(2, "Stream #1") + message(4, number(1, 9) + number(3, 5) + message(8, b"x"))
    line += number(2, 5) + message(77, b"later versions") + number(78, 5)
    stat = message(6, message(1, b"") + number(2, 3))
    name = message(4, number(1, 4) + message(2, number(2, 4) + message(9, b"x")))
    data = message(2, "/device:GPU:0") + message(3, line) + stat + name + number(9, 1)
    data += message(5, number(1, 1) + message(2, message(1, b"x")) + message(3, b"x"))
    rows = jax.read(written(tmp_path, message(1, data) + number(2, 5) + message(4, "host"))).rows
    assert rows.select("kernel", "measured").rows() == [("event 9", 5.0)]


@pytest.mark.parametrize(
    ("content", "message_"),
    [
        (space(Plane("/host:CPU")), "no operations on a device or in XLA.*block_until_ready"),
        (gpu()[:-5], r"not a trace of XLA \(byte .* are left\).*incomplete"),
    ],
)
def test_damaged_traces_are_refused(content: bytes, message_: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=message_):
        jax.read(written(tmp_path, content))


@pytest.mark.parametrize("event", [("k", 1 << 63, 5), ("k", 5, -1), ("k", 1, 1, {"count": 0})])
def test_impossible_times_are_refused(event: tuple[Any, ...], tmp_path: Path) -> None:
    plane = Plane("/device:GPU:0")
    plane.line("Stream #1", [event])
    with pytest.raises(InputError, match=r"not a trace of XLA \(invalid event: start"):
        jax.read(written(tmp_path, space(plane)))


def test_only_traces_are_recognised(tmp_path: Path) -> None:
    for content in (b"", b"\n", b"\n\x05hello", b"/device:GPU:0", b"\n" + b"\xff" * 99):
        assert recognise(Source(written(tmp_path, content)), jax.FORMATS) == []
    packed = written(tmp_path, gzip.compress(gpu()))
    assert [one.name for one in recognise(Source(packed))] == ["jax-xplane"]
    assert len(jax.read(packed).rows) == 8


@pytest.mark.shared
def test_a_real_trace(shared_data: Path) -> None:
    path = shared_data / "tools" / "jax" / "934987a2fc2f.xplane.pb"
    assert [one.name for one in recognise(Source(path))] == ["jax-xplane"]
    found = jax.read(path)
    rows = found.rows
    assert len(rows) == 150
    assert set(rows["level"]) == {"kernel"}
    assert rows.select("kernel", "measured", "layer", "model").row(0) == (
        "wrapped_convert.kd",
        2960000.0,
        "wrapped_convert",
        "jit_loss_fn",
    )
    assert set(rows["device_id"]) == {"GPU:0"}
    assert rows["kernel"].n_unique() == 19
    assert rows["start"].is_sorted()
    assert set(rows["stream"]) == {"Stream #2"}


@pytest.mark.parametrize("block", [1, 3, 1 << 18])
@pytest.mark.parametrize("make", [gpu, tpu, cpu])
def test_events_decoded_together_are_those_decoded_one_by_one(
    make: Callable[[], bytes], block: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = written(tmp_path, make())
    monkeypatch.setattr(xplane, "_BLOCK", block)
    together = jax.read(path)
    monkeypatch.setattr(xplane._wire, "columns", lambda *given: None)
    monkeypatch.setattr(xplane._wire, "spans", lambda *given: None)
    alone = jax.read(path)
    assert together.rows.equals(alone.rows)
    assert together.rows.schema == alone.rows.schema
    assert (together.notes, together.dropped) == (alone.notes, alone.dropped)


def test_events_with_several_statistics_of_a_name(tmp_path: Path) -> None:
    plane = Plane("/device:GPU:0")
    twice = {"hlo_op": "=a", "correlation_id": 5, "hlo_module": "m"}
    plane.line(
        "Stream #1",
        [
            ("k", 0, 1, {"hlo_op": "=a"}),
            ("k", 1, 1, twice),
            ("k", 2, 1, {"correlation_id": 6}),
            ("k", 3, 1),
            ("other", 4, 1, twice),
            ("k", 5, 1, {"hlo_module": "m", "hlo_op": "=a"}),
        ],
    )
    rows = kernels(jax.read(written(tmp_path, space(plane))).rows)
    assert rows.select("kernel", "layer", "model").rows() == [
        ("k", "a", None),
        ("k", "a", "m"),
        ("k", None, None),
        ("k", None, None),
        ("other", "a", "m"),
        ("k", "a", "m"),
    ]


def test_statistics_with_the_largest_numbers(tmp_path: Path) -> None:
    plane = Plane("/device:GPU:0")
    plane.names["hlo_op"] = 2**64 - 1
    plane.line("Stream #1", [("k", 0, 1, {"hlo_op": "a"}), ("k", 1, 1, {"hlo_op": "b"})])
    rows = kernels(jax.read(written(tmp_path, space(plane))).rows)
    assert rows["layer"].to_list() == ["a", "b"]


@pytest.mark.parametrize("n", [32, 33])
def test_events_with_many_statistics(n: int, tmp_path: Path, monkeypatch) -> None:
    plane = Plane("/device:GPU:0")
    plane.line("Stream #1", [("k", 0, 1, {"hlo_op": "=a"})])
    event = number(1, 1) + b"".join(message(4, plane.stat("hlo_op", f"v{i}")) for i in range(n))
    plane.lines.append(message(2, "Stream #2") + message(4, event))
    rows = kernels(jax.read(written(tmp_path, space(plane))).rows)
    assert rows["layer"].to_list() == ["a", f"v{n - 1}"]


@pytest.mark.parametrize("at", [2**61, -(2**61), 2**62, 2**63 - 1, -(2**63)])
def test_starts_that_do_not_fit_are_refused_without_overflow(at: int, tmp_path: Path) -> None:
    plane = Plane("/device:GPU:0")
    plane.line("Stream #1", [("k", 0, 1)], at=5)
    plane.line("Stream #2", [("k", at, 1)], at=2**62)
    with pytest.raises(InputError, match=r"not a trace of XLA \(invalid event: start"):
        jax.read(written(tmp_path, space(plane)))


def test_statistics_of_an_unusual_form_are_read_one_by_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = jax.read(written(tmp_path, gpu()))
    together, asked = xplane._wire.columns, []

    def unusual(data: Any, begin: Any, end: Any, numbers: dict[int, int], *parts: Any) -> Any:
        asked.append(numbers)
        return None if numbers == {1: 0} else together(data, begin, end, numbers, *parts)

    monkeypatch.setattr(xplane._wire, "columns", unusual)
    found = jax.read(written(tmp_path, gpu()))
    assert {1: 0} in asked
    assert found.rows.equals(whole.rows)
    assert found.notes == whole.notes
