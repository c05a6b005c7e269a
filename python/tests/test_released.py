"""Pickles that release 0.1.0 wrote, in tests/data/python: every later release loads them.

They never change (tests/golden.rs compares their digests). For another class or protocol, add another file beside them.
"""

import pickle

import koel
import pytest

from conftest import DATA

FILES = DATA / "python"
CLASSES = {kind.__name__: kind for kind in (koel.CuckooFilter, koel.ElasticFilter, koel.SharedFilter)}


def filters():
    """Returns a small filter of each class."""
    made = {name: kind(100, 0.001, seed=7) for name, kind in CLASSES.items()}
    for filter in made.values():
        filter.update([*range(50), "alice", "alice", b"bob"])
    return {**made, "FilterView": koel.FilterView(made["CuckooFilter"].to_bytes())}


@pytest.mark.parametrize("protocol", [2, 4, 5])
def test_pickles_of_release_0_1_0(protocol):
    path, made = FILES / f"filters.{protocol}.pickle", filters()
    if not path.exists():
        FILES.mkdir(exist_ok=True)
        path.write_bytes(pickle.dumps(made, protocol))
        pytest.fail(f"{path} was missing, and is written now; add it to tests/data/digests.tsv")
    read = pickle.loads(path.read_bytes())
    assert read.keys() == made.keys()
    for name, filter in read.items():
        assert type(filter) is type(made[name]) and filter == made[name]
        assert all(item in filter for item in [*range(50), "alice", b"bob"]) and filter.count("alice") >= 2
        # As long as the format has the same version, the same operations give the same bytes.
        assert filter.to_bytes() == made[name].to_bytes()
