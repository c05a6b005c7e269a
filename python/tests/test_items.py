"""Items and batches."""

import _thread
import builtins
import functools
import itertools
import pickle
import struct

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import koel

INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
TEXTS = ["", "a", "twelve bytes", "thirteen byte", "ü" * 40]


def filled(items):
    filter = koel.CuckooFilter(1000, 1e-6)
    filter.update(items)
    return filter


def word(number):
    return struct.pack("<q" if number < 0 else "<Q", number)


def part(data):
    return struct.pack("<Q", len(data)) + data


@pytest.mark.parametrize(
    ("item", "data"),
    [
        ("über", "über".encode()),
        (b"x\0", b"x\0"),
        (bytearray(b"ab"), b"ab"),
        (memoryview(b"abcd")[::2], b"ac"),
        (0, bytes(8)),
        (-1, b"\xff" * 8),
        (2**64 - 1, b"\xff" * 8),
        (-(2**63), word(-(2**63))),
        (np.int8(-3), word(-3)),
        (np.uint32(7), word(7)),
        (np.str_("a"), b"a"),
        (np.bytes_(b"b"), b"b"),
        ((), b"\0"),
        (("ab", 513), part(b"ab") + word(513)),
        ((("a", b""), (), np.int16(2)), part(b"a") + part(b"") + b"\0" + word(2)),
    ],
)
def test_items_have_the_bytes_of_rust(item, data):
    for filter in (filled([item]), filled([data])):
        assert item in filter and data in filter and filter.contains_batch([item, data]).all() and b"other" not in filter


class Other:
    pass


@pytest.mark.parametrize(
    ("item", "error", "remedy"),
    [
        (True, TypeError, "int"),
        (np.bool_(True), TypeError, "int"),
        (1.5, TypeError, "hex"),
        (np.float32(1), TypeError, "hex"),
        (None, TypeError, "leave"),
        ([1], TypeError, "tuple"),
        ({1}, TypeError, "sorted"),
        (np.array([1]), TypeError, "tobytes"),
        (Other(), TypeError, "fields"),
        (("a", [1]), TypeError, "tuple"),
        (2**64, OverflowError, "str"),
        (-(2**63) - 1, OverflowError, "str"),
        ("\ud800", UnicodeEncodeError, "surrogates"),
    ],
)
def test_other_objects_are_refused(item, error, remedy):
    filter = koel.ElasticFilter(false_positive_rate=0.01)
    for call in (filter.add, filter.discard, filter.count, filter.__contains__, lambda item: filter.update([item])):
        with pytest.raises(error, match=remedy):
            call(item)
    nested = ()
    for _ in range(100):
        nested = (nested,)
    with pytest.raises(TypeError, match="nested"):
        filter.add(nested)
    assert len(filter) == 0


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integers_of_all_widths_are_of_64_bits(dtype):
    limits = np.iinfo(dtype)
    numbers = np.array([limits.min, 0, 1, 7, limits.max, limits.max - 1], dtype)
    filter, absent = filled([int(number) for number in numbers]), filled([])
    arrays = [numbers, numbers[::-1], np.repeat(numbers, 2)[::2], numbers.astype(numbers.dtype.newbyteorder())]
    arrays += [pa.array(numbers), pa.array(numbers)[2:], pa.chunked_array([numbers[:2], numbers[2:]]), pl.Series(numbers)]
    arrays += [pd.Series(numbers), numbers.tolist(), list(numbers), iter(numbers)]
    for array in arrays:
        size = len(array) if hasattr(array, "__len__") else 6
        assert filter.contains_batch(array).sum() == size
    assert not absent.contains_batch(arrays[0]).any() and not absent.contains_batch(arrays[4]).any()
    for array in (numbers, pa.array(numbers)):
        assert filled(array).to_bytes() == filter.to_bytes()


@pytest.mark.parametrize("kind", [pa.utf8(), pa.large_utf8(), pa.string_view(), pa.binary(), pa.large_binary(), pa.binary_view()])
def test_strings_of_arrow(kind):
    array = pa.array([text.encode() for text in TEXTS] * 20_000, pa.binary()).cast(kind)
    filter, expected = filled(TEXTS), np.array([True, False, True, False, True] * 20_000)
    assert filter.contains_batch(array).all() and filter.count_members(array) == 100_000
    filter.remove_batch(["a", TEXTS[3]])
    for batch, first in ((array, 0), (array[3:], 3), (array[50_000:50_007], 50_000), (pa.chunked_array([array[:7], array[7:]]), 0)):
        found = filter.contains_batch(batch)
        assert (found == expected[first:][: len(found)]).all() and len(found) == len(batch)
        assert (filter.count_batch(batch) == found).all()
    assert len(filter.contains_batch(array[:0])) == 0 == len(filter.contains_batch(pa.chunked_array([], kind)))


def test_strings_of_polars_pandas_and_numpy():
    filter = filled(TEXTS[1:3])
    arrays = [np.array(TEXTS, kind) for kind in (object, np.dtypes.StringDType())]
    for batch in (pl.Series(TEXTS), pd.Series(TEXTS), *arrays):
        assert filter.contains_batch(batch).tolist() == [False, True, True, False, False]


class WithoutPyarrow:
    """Like a series of pandas where pyarrow is missing."""

    def __init__(self, values):
        self.values = values

    def __arrow_c_stream__(self):
        raise ImportError("Import pyarrow failed")

    def __array__(self, *args, **kwargs):
        return np.asanyarray(self.values)


@pytest.mark.parametrize(
    ("batch", "error", "message"),
    [
        (pd.DataFrame({"type": [1], "dtype": [2]}), TypeError, "type DataFrame, .*column"),
        (pa.array([1.5]), TypeError, "type double.*cast"),
        (pd.Series([1, None]), TypeError, "type float64.*astype"),
        (pa.array([1], pa.timestamp("s")), TypeError, "unit"),
        (pa.table({"a": [1]}), TypeError, "column"),
        (np.array([1.5]), TypeError, "astype"),
        (np.array([True]), TypeError, "astype"),
        (np.array(["2020"], "M8[D]"), TypeError, "datetime64.D.*unit"),
        (np.array([(1, 2)], "i4,i4"), TypeError, "list"),
        (np.zeros((2, 2), int), ValueError, "ravel"),
        (np.ma.array([1, 2], mask=[0, 1]), TypeError, "compressed"),
        (WithoutPyarrow(np.ma.array([1, 2], mask=[0, 1])), TypeError, "compressed"),
        ("text", TypeError, "one item"),
        (b"text", TypeError, "one item"),
        (memoryview(b"text"), TypeError, "one item"),
        (5, TypeError, "iterable"),
    ],
)
def test_other_batches_are_refused(batch, error, message):
    filter = koel.SharedFilter(false_positive_rate=0.01)
    for call in (filter.update, filter.contains_batch, filter.count_batch, filter.remove_batch, filter.insert_unique_batch):
        with pytest.raises(error, match=message):
            call(batch)
    assert len(filter) == 0
    assert pa.array([1, None])[:1].null_count == 0 and filter.contains_batch(pa.array([1, None])[:1]).tolist() == [False]


@pytest.mark.parametrize(
    ("bad", "error", "message"),
    [(None, TypeError, "item 40000, .* leave"), (2**64, OverflowError, "item 40000, .*18446744073709551616")],
)
def test_items_before_a_bad_one_are_processed(bad, error, message):
    filter, items = koel.SharedFilter(false_positive_rate=0.01), [*range(40_000), bad, 50_000]
    for call, left in ((filter.update, 40_000), (filter.remove_batch, 0), (filter.insert_unique_batch, 40_000)):
        with pytest.raises(error, match=message):
            call(items)
        assert left * 0.98 <= len(filter) <= left and filter.count(50_000) <= filter.count(50_001)
    for call in (filter.contains_batch, filter.count_batch, filter.count_members):
        with pytest.raises(error, match=message):
            call(items)


@pytest.mark.parametrize(
    ("batch", "message"),
    [
        (pa.array(["a", None, None]), "item 1, .* 2 of 3 .*drop_null"),
        (pa.array([1, None])[1:], "item 0, .* 1 of 1"),
        (pl.Series(["a", None]), "item 1, .* 1 of 2"),
        (pa.nulls(2), "item 0, .* 2 of 2"),
    ],
)
def test_nulls_are_not_inserted(batch, message):
    filter = koel.SharedFilter(false_positive_rate=0.01)
    for call in (filter.update, filter.insert_batch, filter.remove_batch, filter.insert_unique_batch):
        with pytest.raises(ValueError, match=message):
            call(batch)
    assert len(filter) == 0 and not filter.contains_batch(batch).any() and not filter.count_batch(batch).any()


def test_empty_columns_have_no_items():
    filter = koel.SharedFilter(false_positive_rate=0.01)
    empty = [[], np.array([]), pa.array([]), pa.chunked_array([], pa.null()), pl.Series([]), pl.Series([None]).drop_nulls()]
    for batch in (*empty, pd.Series([], dtype=object)):
        filter.update(batch)
        assert filter.contains_batch(batch).tolist() == [] and len(filter) == 0


def test_arrays_of_other_libraries_become_those_of_numpy():
    for mixed in ([1, "a"], [1, 2**63]):
        assert filled(pd.Series(mixed, dtype=object)) == filled(mixed)
    filter = filled(WithoutPyarrow([1, 2**62]))
    assert [1 in filter, 2**62 in filter, len(filter)] == [True, True, 2]
    assert filter.contains_batch(WithoutPyarrow([2, 1])).tolist() == [False, True]
    with pytest.raises(TypeError, match="array of float64 .*isnan"):
        filter.update(WithoutPyarrow([1, None, float("nan")][::2]))


@pytest.mark.parametrize("dtype", ["int64", "int32"])
@pytest.mark.parametrize("convert", [np.asarray, pa.array])
def test_long_arrays_are_taken_in_stretches(dtype, convert):
    numbers = convert(np.arange(2_200_000, dtype=dtype))
    filter = koel.CuckooFilter(1_100_000, 0.01)
    with pytest.raises(koel.FullError) as refused:
        filter.update(numbers)
    assert refused.value.position == len(filter) > 2**20
    found = filter.contains_batch(numbers)
    assert found[: len(filter)].all() and found[len(filter) :].mean() < 0.02
    assert filter.count_members(numbers) == found.sum()


class Exported:
    """Arrays that were changed after they were exported."""

    def __init__(self, array, change):
        self.schema, self.array = array.__arrow_c_array__()
        import ctypes

        pointer = ctypes.pythonapi.PyCapsule_GetPointer
        pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
        fields = ctypes.cast(pointer(self.array, b"arrow_array"), ctypes.POINTER(ctypes.c_int64))
        change(fields, lambda buffer: ctypes.cast(fields[5], ctypes.POINTER(ctypes.POINTER(ctypes.c_int32)))[buffer])

    def __arrow_c_array__(self):
        return self.schema, self.array


def test_invalid_arrow_arrays_are_refused():
    def field(place, value):
        return lambda fields, buffer: fields.__setitem__(place, value)

    def number(buffer, place, value):
        return lambda fields, buffers: buffers(buffer).__setitem__(place, value)

    texts, views = pa.array(["abc", "def"]), pa.array(["a string that is long", "another that is long"], pa.string_view())
    changes = [field(0, -1), field(2, -1), field(0, 2**62), field(3, 1), field(5, 0)]
    cases = [(array, change) for array in (texts, views, pa.array([1, 2])) for change in changes]
    cases += [(texts, number(1, 1, 7)), (texts, number(1, 0, -1))]
    cases += [(views, number(1, 2, 9)), (views, number(1, 3, 1000)), (views, number(1, 0, -5))]
    for array, change in cases:
        copied = pa.array(array.to_pylist(), array.type)
        exported = Exported(copied, change)
        with pytest.raises(ValueError, match="invalid"):
            filled([]).contains_batch(exported)
    exported = Exported(texts, lambda *_: None)
    assert filled(["abc"]).contains_batch(exported).tolist() == [True, False]
    with pytest.raises(ValueError, match="consumed"):
        filled([]).contains_batch(exported)


def test_errors_of_iterators_and_exceptions_travel():
    def broken():
        yield 1
        raise RuntimeError("no more")

    filter = koel.ElasticFilter(false_positive_rate=0.01)
    with pytest.raises(RuntimeError, match="no more"):
        filter.update(broken())
    assert len(filter) == 1
    with pytest.raises(TypeError, match="leave"):
        filter.update(itertools.chain(range(40_000), [None]))
    assert len(filter) == 40_001
    filter.clear()
    # No Python code runs between these items, where the interpreter would see the signal.
    interrupt = builtins.filter(None, itertools.starmap(_thread.interrupt_main, [()]))
    with pytest.raises(KeyboardInterrupt):
        filter.update(itertools.chain(interrupt, range(100_000)))
    assert len(filter) == 32_768
    filter.clear()
    exported = pa.array(np.arange(3_000_000)).__arrow_c_array__()
    interrupt = builtins.filter(None, itertools.chain(itertools.starmap(_thread.interrupt_main, [()]), [exported]))

    class Interrupting:
        __arrow_c_array__ = functools.partial(next, interrupt)

    with pytest.raises(KeyboardInterrupt):
        filter.update(Interrupting())
    assert len(filter) == 2**20
    error = pickle.loads(pickle.dumps(koel.FullError("full")))
    assert str(error) == "full"
