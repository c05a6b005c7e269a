"""Columns of numpy, pyarrow, polars and pandas. `just python-pandas` runs this with another version of pandas."""

import ctypes
import datetime
import decimal
import subprocess
import sys
import tracemalloc
import uuid

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import koel

INTEGERS = [np.dtype(f"{order}{kind}{width}") for order in "<>" for kind in "iu" for width in (1, 2, 4, 8)]


def filled(items):
    filter = koel.CuckooFilter(100, fingerprint_bits=32)
    filter.update(items)
    return filter


def lookups(filter, batch):
    """Returns the count of each item of a batch. All lookups agree with it."""
    found, counts = filter.contains_batch(batch), filter.count_batch(batch)
    assert (found == (counts > 0)).all() and filter.count_members(batch) == found.sum() and len(found) == len(batch)
    return counts.tolist()


# pandas


def arrow(values, kind):
    return pd.arrays.ArrowExtensionArray(pa.array(values, kind))


TEXTS = ["str", "string[python]", "string[pyarrow]", "object", "category"]
TEXTS += [pd.ArrowDtype(kind) for kind in (pa.string(), pa.large_string(), pa.dictionary(pa.int8(), pa.string()))]
NUMBERS = [f"{kind}{width}" for kind in ("int", "uint", "Int", "UInt") for width in (8, 16, 32, 64)] + ["object", "category"]
NUMBERS += [f"{kind}{width}[pyarrow]" for kind in ("int", "uint") for width in (8, 16, 32, 64)] + ["Sparse[int]"]


def forms(series):
    """A series, its array, and an index of it."""
    return [series, series.array, pd.Index(series)]


@pytest.mark.parametrize("dtype", TEXTS, ids=str)
def test_pandas_strings(dtype):
    items = ["a", "bc", "a", "\0", "x\0"]
    filter = filled(items)
    for batch in forms(pd.Series(items, dtype=dtype)):
        assert filled(batch) == filter and lookups(filter, batch) == [2, 1, 2, 1, 1]
        assert filled(["bc"]).contains_batch(batch).tolist() == [False, True, False, False, False]
    for batch in forms(pd.Series(["a", None, "bc"], dtype=dtype)):
        assert lookups(filter, batch) == [2, 0, 1]
        message = r"item 1, counted from 0: it is null \(nulls: 1 of 3 items\).*( x\.dropna\(\)| pandas\.NA\])"
        with pytest.raises(ValueError, match=message):
            filter.update(batch)
    for batch in forms(pd.Series([None, None], dtype=dtype)):
        assert lookups(filter, batch) == [0, 0]
    assert filled(pd.Series([], dtype=dtype)) == filled([]) and lookups(filter, pd.Series([], dtype=dtype)) == []


@pytest.mark.parametrize("dtype", NUMBERS)
def test_pandas_integers(dtype):
    items = [5, 7, 5, 0]
    filter = filled(items)
    for batch in forms(pd.Series(items, dtype=dtype)):
        assert filled(batch) == filter and lookups(filter, batch) == [2, 1, 2, 1]
    if dtype[0] in "IU" or "pyarrow" in dtype:
        for batch in forms(pd.Series([5, None, 7], dtype=dtype)):
            assert lookups(filter, batch) == [2, 0, 1] and lookups(filled([]), batch) == [0, 0, 0]
            with pytest.raises(ValueError, match="item 1, "):
                filter.update(batch)


@pytest.mark.parametrize("dtype", ["object", "category", pd.ArrowDtype(pa.binary()), pd.ArrowDtype(pa.binary(2))], ids=str)
def test_pandas_bytes(dtype):
    batch = pd.Series(pd.array([b"ab", b"c\0", None], dtype=dtype))
    assert lookups(filled([b"ab", b"c\0"]), batch) == [1, 1, 0] and filled(batch.dropna()) == filled([b"ab", b"c\0"])


def test_pandas_objects():
    cases = [["a", 7, b"\xff", ("x", 1)], [1, 2**63], [-1, 2**64 - 1], [uuid.UUID(int=5).bytes]]
    for items in cases:
        for batch in forms(pd.Series(items, dtype=object)):
            assert filled(batch) == filled(items)
    missing = pd.Series(["a", None, np.nan, pd.NA, pd.NaT, decimal.Decimal("nan")], dtype=object)
    assert lookups(filled(["a"]), missing) == [1, 0, 0, 0, 0, 0]
    pairs = pd.MultiIndex.from_tuples([("a", 1), ("b", 2)])
    assert lookups(filled([("a", 1)]), pairs) == [1, 0] and filled(pd.RangeIndex(3)) == filled(range(3))
    assert lookups(filled(["b"]), pd.Series(["a", "b", "c"])[::-2]) == [0, 0] and lookups(filled([1]), pd.Series([1, 2])[1:]) == [0]
    many = pd.Series(["a", None, 7] * 30_000, dtype=object)
    assert filled(["a"]).contains_batch(many).tolist() == [True, False, False] * 30_000
    wrong = many.copy()
    wrong[70_000] = 1.5
    with pytest.raises(TypeError, match="item 70000, "):
        filled([]).contains_batch(wrong)


def test_pandas_categories():
    batch = pd.Series(["b", None, "a"], dtype=pd.CategoricalDtype(["unused", "a", "b"]))
    assert lookups(filled(["a", "unused"]), batch) == [0, 0, 1]
    mixed = pd.Categorical.from_codes([0, 1, -1, 1], pd.Index([7, "a", 1.5], dtype=object))
    assert lookups(filled([7]), mixed) == [1, 0, 0, 0] and lookups(filled(["a"]), pd.Series(mixed)) == [0, 1, 0, 1]
    many = pd.Series(np.arange(70_000) % 1000, dtype="category")
    assert filled([7]).contains_batch(many).sum() == 70
    assert lookups(filled([0]), pd.Series([], dtype="category")) == []


@pytest.mark.parametrize("count", [0, 1, 40_000, 2**20 + 3])
@pytest.mark.parametrize(("wrong", "error"), [(1.5, TypeError), (2**64, OverflowError), ("\ud800", UnicodeEncodeError)])
def test_pandas_items_before_a_wrong_category_are_processed(wrong, error, count):
    codes = np.arange(count + 3) % 100 + 1
    codes[[count, count + 2]] = 0
    batch = pd.Categorical.from_codes(codes, pd.Index([wrong, *range(100)], dtype=object))
    for form in (batch, list(batch)):
        filter = koel.ElasticFilter(false_positive_rate=1e-7)
        for method, fate in (("insert_batch", ", now in the filter"), ("remove_batch", "; a copy of each was removed if found")):
            with pytest.raises(error, match=f"item {count}, counted from 0") as failed:
                getattr(filter, method)(form)
            notes = [f"{method} stopped after {count} item{'s' * (count != 1)}{fate}"] if count else []
            assert getattr(failed.value, "__notes__", []) == notes
            assert filter.count(0) == (count + 99) // 100 * (method == "insert_batch")
            assert len(filter) == count * (method == "insert_batch")
        with pytest.raises(error, match=f"item {count + 2}, counted from 0") as failed:
            filter.update(["a", "b"], form)
        assert len(filter) == count + 2
        for look in (filter.contains_batch, filter.count_batch, filter.count_members):
            with pytest.raises(error, match=f"item {count}, counted from 0"):
                look(form)
    # A null raises first, and nothing is changed.
    codes[-2] = -1
    with pytest.raises(ValueError, match=f"item {count + 1}, counted from 0: it is null"):
        filter.update(pd.Categorical.from_codes(codes, batch.categories))
    assert len(filter) == count + 2


@pytest.mark.parametrize(
    "batch",
    [
        *(pd.Series([1.5, None], dtype=kind) for kind in ("float32", "float64", "Float64", "float[pyarrow]", "Sparse[float]")),
        *(pd.Series([True, False], dtype=kind) for kind in ("bool", "boolean", "bool[pyarrow]", "category", "object")),
        pd.Series([True, None], dtype="boolean"),
        pd.Series(pd.to_datetime(["2026-11-27", None])),
        pd.Series(pd.to_datetime(["2026-11-27"], utc=True)),
        pd.Series(pd.to_timedelta([1, None], unit="s")),
        pd.Series(pd.period_range("2026-11", periods=2, freq="M")),
        pd.Series(pd.interval_range(0, 2)),
        pd.cut(pd.Series([1, 2, 3]), 2),
        pd.Series(pd.period_range("2026-11", periods=2, freq="M")).astype("category"),
        pd.Series(pd.to_datetime(["2026-11-27"])).astype("category"),
        pd.Series([1.5, 2], dtype="category"),
        pd.Series([1j]),
        *(pd.Series([value], dtype=object) for value in (1.5, datetime.date(2026, 11, 27), decimal.Decimal(1), uuid.UUID(int=5))),
        *(pd.Series([value], dtype=object) for value in ([1], {"a": 1}, pd.Period("2026-11"), pd.Timestamp(0), datetime.time(1))),
        *(pd.Series(arrow([1, None], kind)) for kind in (pa.timestamp("us"), pa.timestamp("s", "UTC"), pa.duration("s"))),
        *(pd.Series(arrow([1, None], kind)) for kind in (pa.date32(), pa.time32("s"), pa.time64("us"))),
        pd.Series(arrow([decimal.Decimal(1)], pa.decimal128(5, 2))),
        pd.Series(arrow([[1]], pa.list_(pa.int8()))),
        pd.Series(arrow([{"a": 1}], pa.struct([("a", pa.int8())]))),
        pd.Series(arrow([bytes(16)], pa.uuid())),
        pd.DataFrame({"a": [1]}),
    ],
    ids=lambda batch: f"{type(batch).__name__}-{getattr(batch, 'dtype', '')}",
)
def test_pandas_types_that_are_refused(batch):
    filter = koel.CuckooFilter(100, 1e-6)
    batches = [batch] if isinstance(batch, pd.DataFrame) else forms(batch)
    for each in batches:
        for call in (filter.update, filter.contains_batch, filter.count_batch, filter.count_members):
            with pytest.raises(TypeError, match="batches are strings, binary and integers|item 0, counted from 0"):
                call(each)
    assert len(filter) == 0


WITHOUT_PYARROW = """
import sys
class Missing:
    def find_spec(name, *_):
        if name.split(".")[0] == "pyarrow":
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Missing)
import pandas as pd, koel
filter = koel.CuckooFilter(100, fingerprint_bits=32)
filter.update(["a", 7])
for dtype in ("str", "string", "object", "category"):
    assert filter.contains_batch(pd.Series(["a", None, "b"], dtype=dtype)).tolist() == [True, False, False], dtype
for dtype in ("Int8", "UInt64", "object", "category"):
    assert filter.contains_batch(pd.Series([7, None, 5], dtype=dtype)).tolist() == [True, False, False], dtype
refused = [pd.Series([1.5]), pd.Series([True], dtype="boolean"), pd.Series(pd.period_range("2026", periods=2, freq="M"))]
for series in [*refused, pd.Series(pd.to_datetime(["2026"])), pd.Series(pd.interval_range(0, 2)), pd.DataFrame({"a": [7]})]:
    try:
        filter.update(series)
    except TypeError:
        continue
    raise AssertionError(series)
"""


def test_pandas_without_pyarrow():
    subprocess.run([sys.executable, "-c", WITHOUT_PYARROW], check=True)


# pyarrow and polars


def test_nulls_are_found_nowhere_and_inserted_nowhere():
    for items in (["a", "twelve bytes", "thirteen byte"], [7, 8, 9], [b"\xff", b"", b"\0"]):
        filter = filled(items)
        kinds = {
            str: [pa.string(), pa.large_string(), pa.string_view(), pa.binary(), pa.dictionary(pa.int32(), pa.string())],
            int: [pa.int8(), pa.uint16(), pa.int32(), pa.int64(), pa.uint64(), pa.dictionary(pa.uint8(), pa.int64())],
            bytes: [pa.binary(), pa.large_binary(), pa.binary_view(), pa.dictionary(pa.int64(), pa.binary())],
        }[type(items[0])]
        many = ([None, items[0], items[1], None, None, items[2]] * 20_000)[1:]
        expected = ([0, 1, 1, 0, 0, 1] * 20_000)[1:]
        for kind in kinds:
            array = pa.array(many, kind)
            assert lookups(filter, array) == expected and filter.count_members(array) == 60_000
            for start in (1, 7, 32_769):
                assert lookups(filter, array[start:]) == expected[start:]
            assert lookups(filter, pa.chunked_array([array[5:40_000], array[40_001:40_001], array[40_001:]])) == [
                *expected[5:40_000], *expected[40_001:],
            ]
            with pytest.raises(ValueError, match="item 2, counted from 0: it is null"):
                filter.update(array)
            with pytest.raises(ValueError, match=r"item 3, counted from 0: it is null \(nulls: 2 of 5 items\)"):
                filter.remove_batch(pa.chunked_array([array[:2], array[1:2], array[4:6][1:], array[2:3]]))
        for series in (pl.Series(many), *([pl.Series(many, dtype=pl.Categorical)] if isinstance(many[0], str) else [])):
            assert lookups(filter, series) == expected
    for nothing in (pa.nulls(3), pl.Series([None] * 3), pa.array([None] * 3, pa.string()), pa.chunked_array([pa.nulls(1), pa.nulls(2)])):
        assert lookups(filter, nothing) == [0, 0, 0]
    assert filter == filled(items)


def test_a_null_changes_nothing_of_its_batch():
    filter = filled([])
    for batches, count in (([["a"], pa.array(["b", None])], 1), ([["a", "c"], pa.nulls(1), ["d"]], 2), ([pa.array([1, None]), ["e"]], 0)):
        with pytest.raises(ValueError, match="it is null"):
            filter.update(*batches)
        assert len(filter) == count
        filter.clear()


WITHOUT_MEMORY = """
import koel, pyarrow
filter = koel.CuckooFilter(1000, 0.01)
nulls = pyarrow.Array.from_buffers(pyarrow.null(), 10**15, [None])
for nulls in (nulls, pyarrow.chunked_array([nulls, nulls])):
    try:
        filter.update(nulls)
    except ValueError as error:
        print(error)
"""


def test_nulls_that_take_no_memory_are_not_counted_one_by_one():
    """Counting each would take days, so the time limit ends the process."""
    done = subprocess.run([sys.executable, "-c", WITHOUT_MEMORY], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and [line.split(";")[0] for line in done.stdout.splitlines()] == [
        f"item 0, counted from 0: it is null (nulls: {count} of {count} items), and a filter stores no nulls" for count in (10**15, 2 * 10**15)
    ]


def test_dictionaries_are_read_by_their_values():
    words = [f"word-{number}" * (number % 3) for number in range(100)]
    filter = filled(words[:50])
    numbers = [7, 99, 0, 50, 49, 3]
    widths = [pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()]
    expected = lookups(filter, [words[number] for number in numbers])
    for width in widths:
        for kind in (pa.string(), pa.large_string(), pa.string_view(), pa.binary(), pa.binary_view()):
            values = pa.array([word.encode() for word in words], pa.binary()).cast(kind)
            batch = pa.DictionaryArray.from_arrays(pa.array(numbers, width), values)
            assert lookups(filter, batch) == expected and lookups(filter, batch[2:4]) == expected[2:4]
            # More indices than values, and values that do not begin where their buffers do.
            many = pa.DictionaryArray.from_arrays(pa.array(numbers * 20_000, width), values)
            assert lookups(filter, many) == expected * 20_000
            shifted = pa.DictionaryArray.from_arrays(pa.array([number - 3 for number in numbers if number > 2], width), values[3:])
            assert lookups(filter, shifted) == lookups(filter, [words[number] for number in numbers if number > 2])
            null = pa.DictionaryArray.from_arrays(pa.array([None, 7, None, 99], width), values)
            assert lookups(filter, null) == [0, expected[0], 0, expected[1]]
    # Chunks with different dictionaries, and a null within one.
    chunks = pa.chunked_array([pa.array(["word-1", "x"]).dictionary_encode(), pa.array(["x", None, "word-1"]).dictionary_encode()])
    inner = pa.DictionaryArray.from_arrays(pa.array([0, 1, 0, None] * 3), pa.array(["word-1", None]))
    assert lookups(filter, chunks) == [1, 0, 0, 0, 1] and lookups(filter, inner) == [1, 0, 1, 0] * 3
    with pytest.raises(ValueError, match=r"item 1, counted from 0: it is null \(nulls: 6 of 12 items\)"):
        filter.update(inner)
    integers = pa.array([5, -1, 5, 2**62]).dictionary_encode()
    assert filled(integers) == filled([5, -1, 5, 2**62]) and lookups(filled([-1]), integers) == [0, 1, 0, 0]
    fixed = pa.array([b"ab", b"c\0"], pa.binary(2)).dictionary_encode()
    assert filled(fixed) == filled([b"ab", b"c\0"])
    assert lookups(filter, pa.DictionaryArray.from_arrays(pa.array([0, None]), pa.nulls(1))) == [0, 0]
    assert lookups(filter, pa.DictionaryArray.from_arrays(pa.array([None, None], "int8"), pa.array([], "string"))) == [0, 0]
    for kind in (pl.Categorical, pl.Enum(words[1:3] + ["x"])):
        series = pl.Series(["word-1", None, "x", "word-1"], dtype=kind)
        assert lookups(filter, series) == [1, 0, 0, 1] and filled(series.drop_nulls()) == filled(["word-1", "x", "word-1"])
    # As many distinct values as are not hashed beforehand.
    large = pa.array([f"{number}" for number in range(2**20 + 5)]).dictionary_encode()
    assert filled(["7", f"{2**20 + 4}"]).contains_batch(large).nonzero()[0].tolist() == [7, 2**20 + 4]


def test_byte_strings_of_a_fixed_length():
    ids = [uuid.UUID(int=number).bytes for number in (5, 2**100, 0)]
    filter = filled(ids)
    array = pa.array([*ids, None, b"x" * 16], pa.binary(16))
    assert lookups(filter, array) == [1, 1, 1, 0, 0] and lookups(filter, array[1:3]) == [1, 1] and filled(array[:3]) == filter
    assert lookups(filter, pa.chunked_array([array[:2], array[2:]])) == [1, 1, 1, 0, 0]
    assert lookups(filled([b"", b"x"]), pa.array([b"", None, b""], pa.binary(0))) == [1, 0, 1]
    void = np.array(ids, "S16").view("V16")
    assert lookups(filter, void) == [1, 1, 1] and lookups(filter, void[::-2]) == [1, 1] and filled(void) == filter
    assert lookups(filled([b"a\0"]), np.array([b"a\0", b"a"], "V2")) == [1, 1]
    with pytest.raises(TypeError, match="arrow.uuid.*storage_type"):
        filter.contains_batch(pa.array(ids, pa.uuid()))


def test_numpy_strings_that_end_with_zero_bytes_are_not_lost():
    for array in (np.array(["abc", "abc\0"]), np.array([b"abc", b"abc\0"]), np.char.array(["a"]), np.array([b"ab"])):
        for call in (filled, filled([]).contains_batch, filled([]).remove_batch):
            with pytest.raises(TypeError, match="numpy strips the zero bytes at the end"):
                call(array)
    assert b"a\0" in filled([np.bytes_(b"a\0")]) and "a\0" in filled([np.str_("a\0")]) and b"a" not in filled([np.str_("a\0")])
    many = np.array(["abc\0", "abc"] * 40_000, np.dtypes.StringDType())
    assert filled(["abc\0"]).contains_batch(many).tolist() == [True, False] * 40_000


# Integers of all widths


def unaligned(numbers):
    packed = np.zeros(len(numbers), [("pad", "u1"), ("number", numbers.dtype)])
    packed["number"] = numbers
    return packed["number"]


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_integers_of_all_layouts(dtype):
    limits = np.iinfo(dtype)
    numbers = np.array([limits.min, 0, 1, 7, limits.max, limits.max - 1] * 9_000, dtype)
    filter = filled([limits.min, 7, limits.max - 1])
    expected = filter.contains_batch([int(number) for number in numbers[:6]]).tolist() * 9_000
    assert sum(expected) >= 27_000
    backwards, wide = numbers[::-1], np.repeat(numbers, 3)[1::3]
    for array, found in ((numbers, expected), (backwards, expected[::-1]), (wide, expected), (unaligned(numbers), expected)):
        assert filter.contains_batch(array).tolist() == found
    table = np.zeros((len(numbers), 2), dtype)
    table[:, 1] = numbers
    assert filter.contains_batch(table[:, 1]).tolist() == expected
    assert filter.contains_batch(np.broadcast_to(numbers[3:4], 5)).tolist() == [True] * 5


@pytest.mark.parametrize("dtype", [dtype for dtype in INTEGERS if dtype.itemsize < 8 or dtype.byteorder == ">"], ids=str)
def test_integers_take_no_memory_of_their_own(dtype):
    filter, numbers = koel.CuckooFilter(1000, 0.01), np.arange(2_000_000, dtype=dtype)
    for array in (numbers, numbers[::-2], unaligned(numbers)):
        tracemalloc.start()
        assert filter.count_members(array) == 0
        filter.clear()
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < 100_000


MEMORY = """
import sys, numpy as np, koel
def peak():
    # Unlike that of getrusage, this peak is not that of the parent.
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM"))
kind = sys.argv[1]
batch = np.full(8_000_000, "text", object) if kind == "object" else np.arange(20_000_000, dtype="int32")
if kind == "arrow":
    import pyarrow
    batch = pyarrow.array(batch)
filter = koel.CuckooFilter(1000, 0.01)
filter.count_members(batch[:100_000])
before = peak()
filter.count_members(batch)
print(peak() - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not say a process's own peak")
@pytest.mark.parametrize("kind", ["numpy", "arrow", "object"])
def test_the_process_takes_no_more_memory(kind):
    # As integers of 64 bits, these arrays would take 152 MiB, and as a list 61 MiB.
    output = subprocess.run([sys.executable, "-c", MEMORY, kind], stdout=subprocess.PIPE, check=True, text=True).stdout
    assert int(output) < 8 << 10


# Producers with defects


class Exported:
    """An array that is changed after it was exported."""

    def __init__(self, array, change):
        self.schema, self.array = array.__arrow_c_array__()
        pointer = ctypes.pythonapi.PyCapsule_GetPointer
        pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
        words = ctypes.POINTER(ctypes.c_int64)
        schema = ctypes.cast(pointer(self.schema, b"arrow_schema"), words)
        array = ctypes.cast(pointer(self.array, b"arrow_array"), words)
        self.kept = change(schema, array)

    def __arrow_c_array__(self):
        return self.schema, self.array


# The fields of the interface's structs.
LENGTH, NULLS, OFFSET, NUMBER, _, BUFFERS, _, DICTIONARY = range(8)
FORMAT, _, METADATA, _, _, _, VALUES, RELEASE = range(8)


def at(address, kind=ctypes.c_int64):
    return ctypes.cast(address, ctypes.POINTER(kind))


def of_array(place, value):
    return lambda schema, array: array.__setitem__(place, value)


def of_values(place, value):
    return lambda schema, array: at(array[DICTIONARY]).__setitem__(place, value)


def of_buffer(buffer, place, value, kind=ctypes.c_int32, is_dictionary=False):
    def change(schema, array):
        array = at(array[DICTIONARY]) if is_dictionary else array
        at(at(array[BUFFERS])[buffer], kind)[place] = value

    return change


def no_buffer(buffer, is_dictionary=False):
    def change(schema, array):
        array = at(array[DICTIONARY]) if is_dictionary else array
        at(array[BUFFERS])[buffer] = 0

    return change


def copied(array):
    """A copy whose buffers nothing else uses."""
    if isinstance(array, pa.DictionaryArray):
        return pa.DictionaryArray.from_arrays(copied(array.indices), copied(array.dictionary))
    return pa.array(array.to_pylist(), array.type)


TEXT = pa.array(["abc", "def", "abc", None]).dictionary_encode()
VIEW = pa.DictionaryArray.from_arrays(pa.array([0, 1, 0, 0]), pa.array(["a string that is long", "another one"], pa.string_view()))
FIXED = pa.array([b"ab", b"cd", None], pa.binary(2))


@pytest.mark.parametrize(
    ("array", "change"),
    [
        (TEXT, of_buffer(1, 0, 2)),
        (TEXT, of_buffer(1, 2, 2**31 - 1)),
        (TEXT, of_buffer(1, 1, -1)),
        (TEXT, of_array(DICTIONARY, 0)),
        (TEXT, of_array(NUMBER, 1)),
        (TEXT, of_array(BUFFERS, 0)),
        (TEXT, no_buffer(0)),
        (TEXT, no_buffer(1)),
        (TEXT, of_values(LENGTH, 1)),
        (TEXT, of_values(LENGTH, 0)),
        (TEXT, of_values(LENGTH, -1)),
        (TEXT, of_values(LENGTH, 2**62)),
        (TEXT, of_values(OFFSET, -1)),
        (TEXT, of_values(OFFSET, 2**62)),
        (TEXT, of_values(NUMBER, 2)),
        (TEXT, of_values(NUMBER, -3)),
        (TEXT, of_values(BUFFERS, 0)),
        (TEXT, of_values(NULLS, 1)),
        (TEXT, no_buffer(1, True)),
        (TEXT, no_buffer(2, True)),
        (TEXT, of_buffer(1, 1, 7, is_dictionary=True)),
        (TEXT, of_buffer(1, 1, -7, is_dictionary=True)),
        (TEXT, of_buffer(1, 0, -1, is_dictionary=True)),
        # With more values than indices, those that are referred to are checked.
        (TEXT[:1], of_buffer(1, 1, 7, is_dictionary=True)),
        (TEXT[1:2], of_buffer(1, 1, 7, is_dictionary=True)),
        (TEXT[:1], of_buffer(1, 0, -1, is_dictionary=True)),
        (VIEW, of_buffer(1, 2, 9, is_dictionary=True)),
        (VIEW, of_buffer(1, 3, 1000, is_dictionary=True)),
        (VIEW, of_buffer(1, 0, -5, is_dictionary=True)),
        (VIEW[:1], of_buffer(1, 2, 9, is_dictionary=True)),
        (VIEW, of_buffer(1, 1, 2**62, ctypes.c_int64)),
        (VIEW, of_buffer(1, 1, -(2**63), ctypes.c_int64)),
        (FIXED, of_array(LENGTH, -1)),
        (FIXED, of_array(LENGTH, 2**57)),
        (FIXED, of_array(OFFSET, -1)),
        (FIXED, of_array(OFFSET, 2**57)),
        (FIXED, of_array(NUMBER, 1)),
        (FIXED, of_array(NUMBER, 3)),
        (FIXED, of_array(BUFFERS, 0)),
        (FIXED, no_buffer(0)),
        (FIXED, no_buffer(1)),
    ],
)
def test_invalid_arrays_are_refused(array, change):
    exported, filter = Exported(copied(array), change), filled([])
    with pytest.raises(ValueError, match="invalid"):
        filter.contains_batch(exported)
    assert filter.contains_batch(Exported(copied(array), lambda *_: None)).tolist() == [False] * len(array)


@pytest.mark.parametrize("array", [TEXT, FIXED, pa.array([1, None])])
def test_arrays_with_an_unknown_number_of_nulls(array):
    for copy in (copied(array), copied(array)[1:]):
        filter, exported = filled(copy.drop_null()), Exported(copy, of_array(NULLS, -1))
        assert (filter.contains_batch(exported) == copy.is_valid().to_numpy(False)).all()


def format_of(text, metadata=None, of_values=False):
    """Changes the schema: its format, its metadata, and that of its dictionary."""

    def change(schema, array):
        kept = []
        if text is not None:
            kept.append(ctypes.create_string_buffer(text))
            schema[FORMAT] = ctypes.addressof(kept[0])
        if metadata is not None:
            kept.append(ctypes.create_string_buffer(metadata, len(metadata)))
            (at(schema[VALUES]) if of_values else schema)[METADATA] = ctypes.addressof(kept[-1])
        return kept

    return change


def metadata(*pairs):
    number = lambda number: number.to_bytes(4, sys.byteorder, signed=True)
    return number(len(pairs)) + b"".join(number(len(text)) + text for pair in pairs for text in pair)


NAME = (b"ARROW:extension:name", b"koel.test")


@pytest.mark.parametrize(
    "change",
    [
        *(format_of(text) for text in (b"w:", b"w:x", b"w:-1", b"w:99999999999", b"", b"?", b"w:\xff", b"+w:2", b"ww", b"_pli128")),
        format_of(None, metadata(NAME)),
        format_of(None, metadata((b"a", b"b"), (b"", b""), NAME)),
        format_of(b"w:2", metadata(NAME, (b"ARROW:extension:metadata", b""))),
    ],
)
def test_schemas_that_are_refused(change):
    with pytest.raises(TypeError, match="batches are strings, binary and integers"):
        filled([]).contains_batch(Exported(copied(FIXED), change))


def test_metadata_without_an_extension_is_ignored():
    filter = filled([b"ab"])
    for data in (metadata(), metadata((b"a", b"b")), (-1).to_bytes(4, sys.byteorder, signed=True), metadata((b"a", b""))[:4] + b"\xff" * 4):
        assert filter.contains_batch(Exported(copied(FIXED), format_of(None, data))).tolist() == [True, False, False]
    with pytest.raises(TypeError, match="batches are"):
        filter.contains_batch(Exported(copied(TEXT), format_of(None, metadata(NAME), of_values=True)))


def test_dictionaries_within_dictionaries_are_refused():
    def change(schema, array):
        # A schema that contains itself is as deep as can be. Nobody releases this copy.
        deep = (ctypes.c_int64 * 9)(*at(schema[VALUES])[:9])
        deep[RELEASE], deep[VALUES] = 0, ctypes.addressof(deep)
        at(schema[VALUES])[VALUES] = ctypes.addressof(deep)
        return deep

    with pytest.raises(TypeError, match="batches are strings, binary and integers"):
        filled([]).contains_batch(Exported(copied(TEXT), change))
