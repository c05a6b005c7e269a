"""Helpers of several tests."""

import json
import struct
from pathlib import Path

import pytest

DATA = Path(__file__).resolve().parents[2] / "tests/data"
ITEMS = {
    "text": lambda kind, n: f"{kind}-{n}",
    "long": lambda kind, n: f"{kind}-{n}" * (n % 40 + 1),
    # As Rust's u32, and not as Python's int.
    "u32": lambda kind, n: struct.pack("<I", n + (1_000_000 if kind == "probe" else 0)),
}


def goldens():
    """Yields the path and the entry of every golden snapshot."""
    for name in ("goldens.json", "growing/growing.json"):
        listed = DATA / name
        for entry in json.loads(listed.read_text())["files"]:
            yield listed.parent / entry["file"], entry


def item(entry, kind, number):
    return ITEMS[entry["items"]](kind, number)


readable = [(path, entry) for path, entry in goldens() if entry.get("hasher", "xxh3") == "xxh3"]


@pytest.fixture(params=readable, ids=lambda golden: golden[0].stem)
def golden(request):
    return request.param
