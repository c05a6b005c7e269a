"""Messages: each names the argument or the item, what was given, and a remedy that works in Python."""

import pathlib
import pickle
import re

import numpy as np
import pytest

import koel

RATE = {"false_positive_rate": 0.1}
SIZED = {"capacity": 10, "false_positive_rate": 0.1}
BITS = {"capacity": 10, "fingerprint_bits": 8}
KINDS = [koel.CuckooFilter, koel.ElasticFilter, koel.SharedFilter]
# Words of the library that Python does not have.
RUST = re.compile(r"::|max bytes|false-positive rate:|fingerprint bits|bucket size|maximum capacity|hasher|builder|_with\b|\bunwrap")


@pytest.mark.parametrize(
    ("kind", "options", "error", "message"),
    [
        (koel.ElasticFilter, {"capacity": 0.001}, TypeError, "capacity: 0.001 given; .* false_positive_rate=0.001"),
        (koel.CuckooFilter, {**SIZED, "capacity": 2.5}, TypeError, "capacity: 2.5 given; give an int"),
        (koel.CuckooFilter, {**SIZED, "capacity": "10"}, TypeError, "capacity: str given; give an int"),
        (koel.CuckooFilter, {**SIZED, "capacity": -1}, ValueError, "capacity: -1 given; give a number from 0"),
        (koel.CuckooFilter, {**SIZED, "capacity": 2**64}, ValueError, "capacity: 18446744073709551616 given"),
        (koel.CuckooFilter, {**SIZED, "capacity": 2**63}, ValueError, "capacity: 9223372036854775808 given, .* at most [0-9]+"),
        (koel.CuckooFilter, {"capacity": 10**12, "false_positive_rate": 0.1}, MemoryError, "smaller capacity"),
        (koel.CuckooFilter, {**SIZED, "false_positive_rate": "0.1"}, TypeError, "false_positive_rate: str given; give a float"),
        (koel.CuckooFilter, {**SIZED, "false_positive_rate": 1.5}, ValueError, "false_positive_rate: 1.5 given, .* below 1"),
        (koel.CuckooFilter, {"capacity": 10, "false_positive_rate": 0}, ValueError, "false_positive_rate: 0 given"),
        (koel.CuckooFilter, {**SIZED, "false_positive_rate": 10**400}, ValueError, "false_positive_rate: int too large .*; give one"),
        (koel.CuckooFilter, {}, ValueError, "neither capacity nor buckets given"),
        (koel.CuckooFilter, {**SIZED, "buckets": 2}, ValueError, "both capacity and buckets given"),
        (koel.CuckooFilter, {"capacity": 10}, ValueError, "neither false_positive_rate nor fingerprint_bits given"),
        (koel.CuckooFilter, {**SIZED, "fingerprint_bits": 8}, ValueError, "both false_positive_rate and fingerprint_bits given"),
        (koel.CuckooFilter, {"buckets": 11, "fingerprint_bits": 8}, ValueError, "buckets: 11 given, .* even"),
        (koel.CuckooFilter, {"buckets": "2", "fingerprint_bits": 8}, TypeError, "buckets: str given"),
        (koel.CuckooFilter, {**BITS, "fingerprint_bits": 1}, ValueError, "fingerprint_bits: 1 given, .* 2 to 32"),
        (koel.CuckooFilter, {**BITS, "fingerprint_bits": 2**40}, ValueError, "fingerprint_bits: 1099511627776 given; .* 32"),
        (koel.CuckooFilter, {**SIZED, "bucket_size": 17}, ValueError, "bucket_size: 17 given, .* 16"),
        (koel.CuckooFilter, {**SIZED, "bucket_size": 2**32}, ValueError, "bucket_size: 4294967296 given; .* 16"),
        (koel.CuckooFilter, {**SIZED, "table": 5}, TypeError, "table: .*packed.*, not int"),
        (koel.CuckooFilter, {**SIZED, "table": "round"}, ValueError, 'table: .*packed.*, not "round"'),
        (koel.CuckooFilter, {**SIZED, "addressing": b"x"}, TypeError, "addressing: .*any-size.*, not bytes"),
        (koel.CuckooFilter, {**SIZED, "kernel": 1}, TypeError, "kernel: .*portable.*, not int"),
        (koel.CuckooFilter, {**SIZED, "seed": 1.0}, TypeError, "seed: 1.0 given; give an int"),
        (koel.ElasticFilter, {}, ValueError, "false_positive_rate: none given"),
        (koel.ElasticFilter, {**RATE, "table": "packed"}, TypeError, ".*unexpected keyword argument 'table'"),
        (koel.ElasticFilter, {**RATE, "bucket_size": 4}, TypeError, ".*unexpected keyword argument 'bucket_size'"),
        (koel.ElasticFilter, {**RATE, "partitions": 3}, ValueError, "partitions: 3 given"),
        (koel.ElasticFilter, {**RATE, "max_bytes": 5}, ValueError, "max_bytes: 5 given, .* [0-9]+; give more"),
        (koel.ElasticFilter, {**RATE, "max_capacity": 2**63}, ValueError, "max_capacity: 9223372036854775808 given"),
        (koel.ElasticFilter, {**RATE, "max_capacity": 10, "capacity": 100}, ValueError, "capacity: 100 given, .* at most 10 works"),
        (koel.SharedFilter, {**RATE, "max_bytes": "1"}, TypeError, "max_bytes: str given"),
        (koel.CuckooFilter, {**SIZED, "capacity": 10**5000}, ValueError, "capacity: an int of 16610 bits given; give a number from 0"),
    ],
)
def test_options(kind, options, error, message):
    with pytest.raises(error, match=f"^{message}" if error is not MemoryError else message) as refused:
        kind(**options)
    assert not RUST.search(str(refused.value))


@pytest.mark.filterwarnings("error")
def test_integers_with_too_many_digits_for_a_message():
    """Python refuses to convert them, so a message does not propose it either."""
    filter, long = koel.CuckooFilter(**SIZED), 10**5000
    for item in (long, -long):
        with pytest.raises(OverflowError, match=r"^int: an int of 16610 bits given, .* pass n\.to_bytes\(…\) instead$"):
            filter.add(item)
    with pytest.raises(OverflowError, match=r"^item 1, counted from 0: int: an int of 16610 bits given"):
        filter.update([1, long])
    with pytest.raises(ValueError, match="^samples: an int of 16610 bits given"):
        filter.measure_false_positive_rate(long)


@pytest.mark.parametrize("kind", [koel.Filter, koel.MutableFilter, *KINDS, koel.FilterView])
def test_classes_have_no_subclasses(kind):
    """A copy or a union would not be of such a class."""
    with pytest.raises(TypeError):

        class Named(kind):
            pass

    if kind in (koel.Filter, koel.MutableFilter, koel.ElasticFilter):
        with pytest.raises(TypeError, match=f"^Named: koel.{kind.__name__} cannot be subclassed; keep a filter in an attribute"):
            type("Named", (kind,), {})


def test_other_arguments(tmp_path):
    filter, growing, view = koel.CuckooFilter(**SIZED), koel.ElasticFilter(**RATE), koel.FilterView(koel.CuckooFilter(**SIZED).to_bytes())
    data, path = filter.to_bytes(), tmp_path / "a.koel"
    is_content = "content of a snapshot; to open a file, give its path as a str or a PathLike$"

    class Bytes:
        def __fspath__(self):
            return bytes(path)

    for act, error, message in (
        (lambda: koel.FilterView(bytes(path)), koel.SnapshotError, is_content),
        (lambda: koel.FilterView(bytearray(bytes(path))), koel.SnapshotError, is_content),
        (lambda: koel.FilterView(Bytes()), TypeError, "^path: Bytes given; give a str or a PathLike: os.fsdecode"),
        (lambda: koel.FilterView(7), TypeError, "^int given; give a path, .*bytes-like"),
        (lambda: koel.CuckooFilter.from_bytes(bytes(path)), koel.SnapshotError, "whole content of a snapshot; load reads a file$"),
        (lambda: koel.CuckooFilter.from_bytes(str(path)), TypeError, "^str given; give a bytes-like object .*; load reads a file$"),
        (lambda: koel.CuckooFilter.load(bytes(path)), TypeError, "^path: bytes given; .*os.fsdecode"),
        (lambda: koel.CuckooFilter.load(data), TypeError, "^path: bytes given"),
        (lambda: koel.CuckooFilter.load(3), TypeError, "^path: int given; give a str or a PathLike$"),
        (lambda: filter.save(bytes(path)), TypeError, "^path: bytes given; .*os.fsdecode"),
        (lambda: filter.save(None), TypeError, "^path: NoneType given"),
        (lambda: koel.ElasticFilter.from_bytes(data), koel.SnapshotError, "fixed size; open it as a FilterView"),
        (lambda: growing.set_max_bytes(-1), ValueError, "^bytes: -1 given"),
        (lambda: growing.set_max_bytes(1e6), TypeError, "^bytes: 1000000.0 given; give an int"),
        (lambda: view.measure_false_positive_rate(1e6), TypeError, "^samples: 1000000.0 given"),
        (lambda: view.measure_false_positive_rate(-1), ValueError, "^samples: -1 given"),
    ):
        with pytest.raises(error, match=message) as refused:
            act()
        assert not RUST.search(str(refused.value))
    # The remedies work.
    filter.save(pathlib.Path(str(path)))
    assert koel.FilterView(str(path)) == koel.CuckooFilter.load(path) == filter
    growing.set_max_bytes(None)


@pytest.mark.parametrize("kind", KINDS[1:])
def test_remedies_of_a_limit(kind):
    filter, items = kind(false_positive_rate=0.01, max_bytes=400_000), np.arange(1_000_000)
    other = kind(false_positive_rate=0.01)
    other.update(items)
    for act in (lambda: filter.update(items), lambda: [filter.add(int(item)) for item in items], lambda: filter.merge(other)):
        with pytest.raises(koel.FullError, match="the limit is 400000; remove items, or raise the limit with set_max_bytes") as refused:
            act()
        assert not RUST.search(str(refused.value))
    filter.remove_batch(items[: refused.value.position or 50_000])
    filter.add("there is room again")
    filter.set_max_bytes(10**9)
    filter.update(items)


class Broken(Exception):
    pass


def failing(items, error):
    yield from items
    raise error


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("method", ["update", "insert_batch", "insert_unique_batch"])
@pytest.mark.parametrize("count", [1, 40_000])
def test_a_failed_call_says_how_many_items_are_in_the_filter(kind, method, count):
    """Items fail in every possible way. The rate is so low that no item is found by mistake."""
    text = f"^{method} stopped after {count} items?, now in the filter$"
    broken, interrupt = Broken("no more"), KeyboardInterrupt()
    for items, error in (
        ([*range(count), None], TypeError),
        ([*range(count), 2**64], OverflowError),
        ([*range(count), "\ud800"], UnicodeEncodeError),
        (failing(range(count), broken), Broken),
        (failing(range(count), interrupt), KeyboardInterrupt),
    ):
        filter = kind(100_000, 1e-7)
        with pytest.raises(error) as failed:
            getattr(filter, method)(items)
        assert len(filter) == count and filter.contains_batch(range(count)).all()
        assert len(failed.value.__notes__) == 1 and re.match(text, failed.value.__notes__[0])
        filter.clear()
        with pytest.raises(error) as failed:
            getattr(filter, method)(failing([], error("nothing")) if error in (Broken, KeyboardInterrupt) else items[count:])
        assert len(filter) == 0 and not getattr(failed.value, "__notes__", None)


@pytest.mark.parametrize("method", ["update", "insert_batch", "insert_unique_batch"])
@pytest.mark.parametrize("convert", [list, np.array, iter])
def test_a_full_filter_says_how_many_items_are_in_it(method, convert):
    filter = koel.CuckooFilter(1000, 1e-7)
    with pytest.raises(koel.FullError) as refused:
        getattr(filter, method)(convert(range(3000)))
    position = refused.value.position
    assert position == len(filter) >= 1000 and f"item {position}, counted from 0, was refused: " in str(refused.value)
    assert refused.value.__notes__ == [f"{method} stopped after {position} items, now in the filter"]
    again = pickle.loads(pickle.dumps(refused.value))
    assert str(again) == str(refused.value) and again.position == position


def test_items_of_several_batches_are_counted_together():
    filter = koel.CuckooFilter(1000, 1e-7)
    with pytest.raises(TypeError, match="item 12, counted from 0: ") as failed:
        filter.update(range(10), ["a", "b", None])
    assert failed.value.__notes__ == ["update stopped after 12 items, now in the filter"] and len(filter) == 12
    filter.clear()
    with pytest.raises(TypeError, match="one item") as failed:
        filter.update(range(10), "text")
    assert failed.value.__notes__ == ["update stopped after 10 items, now in the filter"] and len(filter) == 10


def test_a_shared_filter_may_have_some_more():
    filter, items = koel.SharedFilter(false_positive_rate=1e-6, max_bytes=2_000_000), np.arange(1_000_000)
    with pytest.raises(koel.FullError) as refused:
        filter.update(items)
    position = refused.value.position
    assert filter.contains_batch(items[:position]).all() and len(filter) >= position > 0
    assert refused.value.__notes__ == [
        f"update stopped after {position} items, now in the filter; some of those after the refused one may be, too"
    ]


def test_a_failed_removal_says_what_it_did():
    filter = koel.CuckooFilter(1000, 1e-7)
    filter.update(range(10))
    with pytest.raises(TypeError) as failed:
        filter.remove_batch([0, 1, 5, None])
    assert failed.value.__notes__ == ["remove_batch stopped after 3 items; a copy of each was removed if found"]
    assert len(filter) == 7
