"""The content of files by the library of their format: sqlite3, csv and Protocol Buffers.

Each goes through all records. The messages of Chakra and of XLA's profiles are described here with
the fields that a trace of kernels has; fields without a description are kept as they are.
"""

import csv
import sqlite3
from pathlib import Path

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

PACKAGES = ("protobuf",)
_TYPES = {"int": 3, "uint": 4, "double": 1, "text": 9, "bytes": 12, "bool": 8}

#: Fields of messages: name, number, type (or message), whether repeated.
CHAKRA = {
    "Attribute": [("name", 1, "text", False), ("bool_val", 27, "bool", False)],
    "Node": [
        ("id", 1, "uint", False),
        ("name", 2, "text", False),
        ("type", 3, "int", False),
        ("data_deps", 5, "uint", True),
        ("start", 6, "uint", False),
        ("duration", 7, "uint", False),
        ("attr", 10, "Attribute", True),
    ],
}
XPLANE = {
    "Stat": [
        ("metadata_id", 1, "int", False),
        ("double_value", 2, "double", False),
        ("uint64_value", 3, "uint", False),
    ],
    "Event": [
        ("metadata_id", 1, "int", False),
        ("offset_ps", 2, "int", False),
        ("duration_ps", 3, "int", False),
        ("stats", 4, "Stat", True),
    ],
    "Line": [("name", 2, "text", False), ("at", 3, "int", False), ("events", 4, "Event", True)],
    "Plane": [
        ("id", 1, "int", False),
        ("name", 2, "text", False),
        ("lines", 3, "Line", True),
        ("event_metadata", 4, "bytes", True),
        ("stat_metadata", 5, "bytes", True),
    ],
    "Space": [("planes", 1, "Plane", True)],
}


def _message(messages, name):
    """Return the class of a message that is described by a table."""
    file = descriptor_pb2.FileDescriptorProto(name=f"{name}.proto", package="made", syntax="proto3")
    for of, fields in messages.items():
        one = file.message_type.add(name=of)
        for field, at, kind, repeated in fields:
            given = one.field.add(name=field, number=at, label=3 if repeated else 1)
            given.type = _TYPES.get(kind, 11)
            if kind not in _TYPES:
                given.type_name = f".made.{kind}"
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(f"made.{name}"))


def sqlite(path):
    def work():
        connection = sqlite3.connect(path)
        n = 0
        for table in ("CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_RUNTIME"):
            for _ in connection.execute(f"SELECT * FROM {table}"):
                n += 1
        connection.close()
        return n

    return work


def table(path):
    def work():
        with Path(path).open(newline="") as file:
            return sum(1 for _ in csv.reader(file))

    return work


def chakra(path):
    node = _message(CHAKRA, "Node")

    def work():
        data = memoryview(Path(path).read_bytes())
        at = n = 0
        while at < len(data):
            size = shift = 0
            while True:
                byte = data[at]
                at += 1
                size |= (byte & 0x7F) << shift
                shift += 7
                if byte < 0x80:
                    break
            found = node.FromString(data[at : at + size]) if n else None
            at += size
            n += 1
            if found is not None:
                last = found.id, found.name, found.duration
        return [n, *last]

    return work


def xplane(path):
    space = _message(XPLANE, "Space")

    def work():
        n = 0
        for plane in space.FromString(Path(path).read_bytes()).planes:
            for line in plane.lines:
                for event in line.events:
                    last = event.metadata_id, event.offset_ps, event.duration_ps
                    n += 1
        return [n, *last]

    return work
