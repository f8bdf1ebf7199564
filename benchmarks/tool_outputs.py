"""Made-up output of tools, of any size, in the formats that `bench_readers.py` reads."""

from __future__ import annotations

import contextlib
import sqlite3
import struct
from collections.abc import Callable, Iterator
from pathlib import Path

#: Kernels at a time that are written.
_BLOCK = 10_000
_NAMES = tuple(f"void kernel_{i}<float, {2**i}>(float const*, float*)" for i in range(40))


def _numbers(size: int, path: Path) -> Iterator[range]:
    """Yield blocks of kernels until the file has this size."""
    at = 0
    while path.stat().st_size < size:
        yield range(at, at + _BLOCK)
        at += _BLOCK


def nsys(path: Path, size: int) -> None:
    """Write an SQLite export with kernels and their launches."""
    kernel = (
        "start, end, deviceId, streamId, correlationId, globalPid, shortName, demangledName, "
        "gridX, gridY, gridZ, blockX, blockY, blockZ"
    )
    with contextlib.closing(sqlite3.connect(path)) as connection:
        run = connection.execute
        run("CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT)")
        run(f"CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL ({kernel})")
        run(
            "CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME "
            "(start, end, globalTid, correlationId, nameId, eventClass)"
        )
        run("CREATE TABLE TARGET_INFO_GPU (id, name, smCount)")
        run("INSERT INTO TARGET_INFO_GPU VALUES (0, 'Example GPU', 10)")
        names = [(i + 1, name) for i, name in enumerate(_NAMES)]
        connection.executemany("INSERT INTO StringIds VALUES (?, ?)", names)
        run("INSERT INTO StringIds VALUES (99, 'cudaLaunchKernel')")
        connection.commit()
        pid, shape = 1 << 24, (8, 1, 1, 64, 2, 1)
        for block in _numbers(size, path):
            connection.executemany(
                f"INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES ({', '.join('?' * 14)})",
                [
                    (1000 * i, 1000 * i + 500, 0, 7, i, pid, i % 40 + 1, i % 40 + 1, *shape)
                    for i in block
                ],
            )
            connection.executemany(
                "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (?, ?, ?, ?, ?, ?)",
                [(1000 * i - 300, 1000 * i - 200, pid + 1, i, 99, 0) for i in block],
            )
            connection.commit()


def _table(path: Path, size: int, head: str, row: Callable[[int], str]) -> None:
    with path.open("w") as file:
        file.write(head)
        file.flush()
        for block in _numbers(size, path):
            file.writelines(map(row, block))
            file.flush()


def ncu(path: Path, size: int) -> None:
    """Write the raw page of metrics as CSV, one row per kernel."""
    keys = (
        *("ID", "Process ID", "Process Name", "Host Name", "Kernel Name", "Context", "Stream"),
        *("Block Size", "Grid Size", "Device", "CC", "device__attribute_display_name"),
    )
    metrics = {
        "gpc__cycles_elapsed.avg.per_second": "Ghz",
        "gpc__cycles_elapsed.max": "cycle",
        "gpu__time_duration.sum": "usecond",
        "sm__inst_executed.sum": "inst",
    }
    head = ",".join(f'"{name}"' for name in (*keys, *metrics))
    units = ",".join(f'"{unit}"' for unit in (*[""] * len(keys), *metrics.values()))

    def row(i: int) -> str:
        return (
            f'"{i}","77","bench","127.0.0.1","{_NAMES[i % 40]}","1","7","(128, 1, 1)",'
            f'"(64, 2, 1)","0","9.0","Example GPU","1.25","{25_000 + i % 97}",'
            f'"{20 + i % 89 / 100:.2f}","1,000"\n'
        )

    _table(path, size, f"{head}\n{units}\n", row)


def rocprof(path: Path, size: int) -> None:
    """Write a kernel trace as CSV, beside the table of agents that names the GPU."""
    path.with_name(path.name.replace("kernel_trace", "agent_info")).write_text(
        '"Node_Id","Logical_Node_Id","Agent_Type","Cpu_Cores_Count","Simd_Count","Cu_Count",'
        '"Name","Vendor_Name","Product_Name","Model_Name"\n'
        '4,4,"GPU",0,912,228,"gfx000","AMD","Example Instinct",""\n'
    )
    head = ",".join(
        f'"{name}"'
        for name in (
            *("Kind", "Agent_Id", "Queue_Id", "Stream_Id", "Thread_Id", "Dispatch_Id"),
            *("Kernel_Id", "Kernel_Name", "Correlation_Id", "Start_Timestamp", "End_Timestamp"),
            *("LDS_Block_Size", "Scratch_Size", "VGPR_Count", "Workgroup_Size_X"),
            *("Workgroup_Size_Y", "Workgroup_Size_Z", "Grid_Size_X", "Grid_Size_Y", "Grid_Size_Z"),
        )
    )

    def row(i: int) -> str:
        start = 9_007_199_254_740_993_000 + 1000 * i
        return (
            f'"KERNEL_DISPATCH","Agent 4",1,2,900,{i},{i % 40},"{_NAMES[i % 40]}",{i},{start},'
            f"{start + 400 + i % 97},0,0,8,64,2,1,512,4,1\n"
        )

    _table(path, size, f"{head}\n", row)


def varint(value: int) -> bytes:
    """Return a whole number as Protocol Buffers write it."""
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def number(field: int, value: int) -> bytes:
    """Return a field that holds a whole number."""
    return varint(field << 3) + varint(value)


def inner(field: int, content: bytes) -> bytes:
    """Return a field that holds text or a message."""
    return varint(field << 3 | 2) + varint(len(content)) + content


def chakra(path: Path, size: int) -> None:
    """Write an execution trace: messages after their lengths, one per node."""
    with path.open("wb") as file:
        head = inner(1, b"0.0.4")
        file.write(varint(len(head)) + head)
        file.flush()
        device = inner(10, inner(1, b"is_cpu_op") + number(27, 0))
        for block in _numbers(size, path):
            for i in block:
                one = number(1, i) + inner(2, _NAMES[i % 40].encode()) + number(3, 4)
                if i:
                    one += inner(5, varint(i - 1))
                one += number(6, 2 * i) + number(7, i % 90 + 1) + device
                file.write(varint(len(one)) + one)
            file.flush()


def xplane(path: Path, size: int) -> None:
    """Write a profile of JAX: one GPU, one stream, names and statistics by number."""
    stat = inner(4, number(1, 1) + number(3, 7)) + inner(
        4, number(1, 2) + varint(2 << 3 | 1) + struct.pack("<d", 0.5)
    )
    events, at = bytearray(), 0
    while len(events) < size:
        for i in range(at, at + _BLOCK):
            one = number(1, i % 40 + 1) + number(2, 1000 * i) + number(3, 500 + i % 97) + stat
            events += inner(4, one)
        at += _BLOCK
    line = inner(2, b"Stream #1(Compute)") + number(3, 100) + bytes(events)
    plane = number(1, 3) + inner(2, b"/device:GPU:0") + inner(3, line)
    for i, name in enumerate(_NAMES, start=1):
        plane += inner(4, number(1, i) + inner(2, number(1, i) + inner(2, name.encode())))
    for i, name in enumerate((b"correlation_id", b"occupancy_pct"), start=1):
        plane += inner(5, number(1, i) + inner(2, number(1, i) + inner(2, name)))
    path.write_bytes(inner(1, plane))


#: Writer and name of a file of each format.
FORMATS = {
    "nsys, SQLite": (nsys, "report.sqlite"),
    "ncu, CSV": (ncu, "raw.csv"),
    "rocprof, CSV": (rocprof, "9_kernel_trace.csv"),
    "Chakra": (chakra, "trace.0.et"),
    "JAX, xplane": (xplane, "host.xplane.pb"),
}
