"""Remedies in messages about items and batches. The tests evaluate every expression, with the refused object as `x`."""

import datetime
import decimal
import fractions
import struct
import uuid

import numpy
import pandas
import polars
import pyarrow
import pyarrow.compute
import pytest

import koel

NAMES = {
    "datetime": datetime, "numpy": numpy, "pandas": pandas, "polars": polars, "pyarrow": pyarrow, "struct": struct,
}
UUIDS = [uuid.UUID(int=number) for number in (5, 2**100)]
DATES = ["2026-11-27", "1969-01-02"]
MICROSECONDS = [int(number) for number in numpy.array(DATES, "M8[us]").astype("int64")]
NANOSECONDS = [1000 * number for number in MICROSECONDS]


class Exports:
    """An object of a library that koel does not know."""

    def __init__(self, array):
        if hasattr(array, "__arrow_c_array__"):
            self.__arrow_c_array__ = array.__arrow_c_array__
        else:
            self.__arrow_c_stream__ = array.__arrow_c_stream__


class OtherTable(Exports):
    """A table of such a library."""


class Converts:
    """An object that numpy converts."""

    def __init__(self, array):
        self.array = array

    def __array__(self, *args, **kwargs):
        return self.array


class Storage(pyarrow.ExtensionType):
    def __init__(self):
        super().__init__(pyarrow.int64(), "koel.test")

    def __arrow_ext_serialize__(self):
        return b""


class OfPolars(polars.BaseExtension):
    def __init__(self):
        super().__init__("koel.test", polars.Int64)


def filled(items):
    filter = koel.CuckooFilter(100, 1e-6)
    filter.update(items)
    return filter


def both(kind, values):
    """An array of pyarrow, and one of two chunks."""
    array = pyarrow.array(values, kind)
    return [array, pyarrow.chunked_array([array[:1], array[1:]])]


def of_arrow(kind, values):
    """A series of pandas whose values are pyarrow's."""
    return pandas.Series(pandas.arrays.ArrowExtensionArray(pyarrow.array(values, kind)))


def types():
    """Yields batches whose types are refused, the remedy, and its items."""
    # pyarrow
    for kind in (pyarrow.float16(), pyarrow.float32(), pyarrow.float64()):
        for x in both(kind, [numpy.float16(1), numpy.float16(2)]):
            yield x, "x.cast('int64')", [1, 2]
    yield Exports(pyarrow.array([1.0])), "pyarrow.array(x).cast('int64')", [1]
    yield Exports(pyarrow.chunked_array([[1.0]])), "pyarrow.chunked_array(x).cast('int64')", [1]
    for x in both(pyarrow.bool_(), [True, False]):
        yield x, "x.cast('int64')", [1, 0]
    for unit in ("s", "ms", "us", "ns"):
        for kind in (pyarrow.timestamp(unit), pyarrow.timestamp(unit, "Europe/Berlin"), pyarrow.duration(unit)):
            for x in both(kind, [3, 4]):
                yield x, "x.cast('int64')", [3, 4]
        time = (pyarrow.time32 if "n" not in unit and "u" not in unit else pyarrow.time64)(unit)
        for x in both(time, [3, 4]):
            yield x, f"x.cast('int{time.bit_width}')", [3, 4]
    for x in both(pyarrow.date32(), [3, 4]):
        yield x, "x.cast('int32')", [3, 4]
    for x in both(pyarrow.date64(), [86_400_000]):
        yield x, "x.cast('int64')", [86_400_000]
    for kind in (pyarrow.decimal32(4, 2), pyarrow.decimal64(4, 2), pyarrow.decimal128(4, 2), pyarrow.decimal256(4, 2)):
        for x in both(kind, [decimal.Decimal("1.50")]):
            yield x, "x.cast('string')", ["1.50"]
    for kind in (pyarrow.list_(pyarrow.int8()), pyarrow.large_list(pyarrow.int8()), pyarrow.list_(pyarrow.int8(), 2)):
        for x in both(kind, [[1, 2], None, [3, 4]]):
            yield x, "[tuple(y) for y in x.to_pylist() if y is not None]", [(1, 2), (3, 4)]
    for x in both(pyarrow.struct([("a", pyarrow.int8())]), [{"a": 7}]):
        yield x, "pyarrow.compute.struct_field(x, [0])", [7]
    yield pyarrow.table({"dtype": [7]}), "x.column(0)", [7]
    yield pyarrow.record_batch({"type": [7]}), "x.column(0)", [7]
    yield pyarrow.table({"a": [7]}).to_reader(), "x.read_all().column(0)", [7]
    yield Exports(pyarrow.table({"a": [7]})), "pyarrow.compute.struct_field(pyarrow.chunked_array(x), [0])", [7]
    yield OtherTable(pyarrow.table({"a": [7]})), "pyarrow.table(x).column(0)", [7]
    ids = pyarrow.array([each.bytes for each in UUIDS], pyarrow.uuid())
    yield Exports(ids), "[str(y) for y in pyarrow.array(x).to_pylist()]", [str(each) for each in UUIDS]
    runs = pyarrow.compute.run_end_encode(pyarrow.array([7, 7, 8]))
    for x in (runs, pyarrow.chunked_array([runs])):
        yield x, "pyarrow.compute.run_end_decode(x)", [7, 7, 8]
    for x in both(pyarrow.month_day_nano_interval(), [(1, 2, 3)]):
        yield x, "[str(y) for y in x.to_pylist()]", ["MonthDayNano(months=1, days=2, nanoseconds=3)"]
    for x in both(pyarrow.uuid(), [each.bytes for each in UUIDS]):
        yield x, "x.cast(x.type.storage_type)", [each.bytes for each in UUIDS]
    for x in both(pyarrow.json_(), ["{}"]):
        yield x, "x.cast(x.type.storage_type)", ["{}"]
    for kind, storage in ((pyarrow.bool8(), pyarrow.array([1, 0], "int8")), (Storage(), pyarrow.array([1, 0]))):
        extension = pyarrow.ExtensionArray.from_storage(kind, storage)
        for x in (extension, pyarrow.chunked_array([extension])):
            yield x, "x.cast(x.type.storage_type)", [1, 0]
    floats = pyarrow.array([1.0, 2.0]).dictionary_encode()
    for x in (floats, pyarrow.chunked_array([floats])):
        yield x, "x.cast(x.type.value_type).cast('int64')", [1, 2]
    yield pyarrow.array([3], pyarrow.timestamp("s")).dictionary_encode(), "x.cast(x.type.value_type).cast('int64')", [3]
    named = pyarrow.DictionaryArray.from_arrays(pyarrow.array([0]), pyarrow.array([UUIDS[0].bytes], pyarrow.uuid()))
    yield named, "[str(y) for y in x.cast(x.type.value_type).to_pylist()]", [str(UUIDS[0])]

    # polars
    for kind in (polars.Float32, polars.Float64):
        yield polars.Series([1.0], dtype=kind), "x.cast(polars.Int64)", [1]
    yield polars.Series([True]), "x.cast(polars.Int64)", [1]
    for kind in (polars.Int128, polars.UInt128):
        yield polars.Series([5], dtype=kind), "x.cast(polars.Int64)", [5]
    days = [datetime.date.fromisoformat(date) for date in DATES]
    yield polars.Series(days), "x.to_physical()", [(day - datetime.date(1970, 1, 1)).days for day in days]
    moments = [datetime.datetime.fromisoformat(date) for date in DATES]
    yield polars.Series(moments, dtype=polars.Datetime("us")), "x.to_physical()", MICROSECONDS
    yield polars.Series(moments, dtype=polars.Datetime("us", "UTC")), "x.to_physical()", MICROSECONDS
    yield polars.Series([datetime.timedelta(microseconds=7)]), "x.to_physical()", [7]
    yield polars.Series([datetime.time(microsecond=7)]), "x.to_physical()", [7000]
    yield polars.Series([decimal.Decimal("1.50")]), "x.cast(polars.String)", ["1.50"]
    for kind in (polars.List(polars.Int8), polars.Array(polars.Int8, 2)):
        yield polars.Series([[1, 2], None], dtype=kind), "[tuple(y) for y in x.to_list() if y is not None]", [(1, 2)]
    yield polars.Series([{"a": 7}]), "x.struct.field(x.struct.fields[0])", [7]
    yield polars.DataFrame({"type": [7]}), "x.to_series(0)", [7]
    yield polars.Series([7]).ext.to(OfPolars()), "x.ext.storage()", [7]
    yield polars.Series([("a", 7)], dtype=polars.Object), "x.to_list()", [("a", 7)]

    # pandas
    for kind in ("float32", "float64", "Float32", "Float64"):
        series = pandas.Series([1.0, 2.0], dtype=kind)
        for x in (series, series.array, pandas.Index(series)):
            yield x, "x.astype('Int64')", [1, 2]
    yield pandas.Series(pandas.arrays.SparseArray([1.0, 0.0])), "x.astype('Int64')", [1, 0]
    for kind in ("bool", "boolean"):
        series = pandas.Series([True, False], dtype=kind)
        for x in (series, series.array, pandas.Index(series)):
            yield x, "x.astype('Int64')", [1, 0]
    for unit in ("s", "ms", "us", "ns"):
        for zone in (None, "UTC"):
            series = pandas.Series(pandas.to_datetime(DATES, utc=bool(zone))).dt.as_unit(unit)
            yield series, "x.dt.as_unit('ns').astype('int64')", NANOSECONDS
            for x in (series.array, pandas.Index(series)):
                yield x, "x.as_unit('ns').astype('int64')", NANOSECONDS
    series = pandas.Series(pandas.to_timedelta([3], unit="s"))
    yield series, "x.dt.as_unit('ns').astype('int64')", [3_000_000_000]
    yield series.array, "x.as_unit('ns').astype('int64')", [3_000_000_000]
    for series in (pandas.Series(pandas.to_datetime([*DATES, None])), pandas.Series(pandas.to_datetime([*DATES, None], utc=True))):
        yield series, "x.dropna().dt.as_unit('ns').astype('int64')", NANOSECONDS
        for x in (series.array, pandas.Index(series)):
            yield x, "x.dropna().as_unit('ns').astype('int64')", NANOSECONDS
    series = pandas.Series(pandas.period_range("2026-11", periods=2, freq="M"))
    for x in (series, series.array, pandas.Index(series)):
        yield x, "[str(y) for y in x]", ["2026-11", "2026-12"]
    series = pandas.Series(pandas.interval_range(0, 2))
    for x in (series, series.array, pandas.Index(series)):
        yield x, "[str(y) for y in x]", ["(0, 1]", "(1, 2]"]
    yield pandas.Series([1j]), "[str(y) for y in x]", ["1j"]
    yield pandas.DataFrame({"dtype": [7]}), "x.iloc[:, 0]", [7]
    yield of_arrow(pyarrow.float64(), [1.0]), "x.astype('int64[pyarrow]')", [1]
    yield of_arrow(pyarrow.bool_(), [True]), "x.astype('int64[pyarrow]')", [1]
    for kind, bits in (
        (pyarrow.timestamp("s"), 64), (pyarrow.timestamp("ns", "UTC"), 64), (pyarrow.duration("ms"), 64), (pyarrow.time64("us"), 64),
        (pyarrow.time32("s"), 32), (pyarrow.date32(), 32),
    ):
        yield of_arrow(kind, [3]), f"x.astype('int{bits}[pyarrow]')", [3]
    yield of_arrow(pyarrow.decimal128(4, 2), [decimal.Decimal("1.50")]), "x.astype('string[pyarrow]')", ["1.50"]
    yield of_arrow(pyarrow.list_(pyarrow.int8()), [[1, 2]]), "[tuple(y) for y in x]", [(1, 2)]
    yield of_arrow(pyarrow.struct([("a", pyarrow.int8())]), [{"a": 7}]), "x.struct.field(0)", [7]
    storage = "x.astype(pandas.ArrowDtype(x.dtype.pyarrow_dtype.storage_type))"
    yield of_arrow(pyarrow.uuid(), [UUIDS[0].bytes]), storage, [UUIDS[0].bytes]
    yield pandas.Series(pandas.arrays.ArrowExtensionArray(runs)), "[y for y in x]", [7, 7, 8]
    yield pandas.Series(pandas.arrays.ArrowExtensionArray(floats)), "[str(y) for y in x]", ["1.0", "2.0"]

    # numpy
    for convert, x in ((lambda array: array, "x"), (Converts, "numpy.asanyarray(x)")):
        for kind in ("f2", "f4", "f8", ">f8", "longdouble"):
            yield convert(numpy.array([1, 2], kind)), f"{x}.astype('int64')", [1, 2]
            yield convert(numpy.array([1, numpy.nan], kind)), f"{x}[~numpy.isnan({x})].astype('int64')", [1]
        yield convert(numpy.array([True])), f"{x}.astype('int64')", [1]
        for kind in ("M8[us]", ">M8[us]"):
            yield convert(numpy.array(DATES, kind)), f"{x}.astype('int64')", MICROSECONDS
            yield convert(numpy.array([*DATES, "NaT"], kind)), f"{x}[~numpy.isnat({x})].astype('int64')", MICROSECONDS
        yield convert(numpy.array([3], "m8[D]")), f"{x}.astype('int64')", [3]
        yield convert(numpy.array(["a", "bc"])), f"{x}.tolist()", ["a", "bc"]
        yield convert(numpy.array([b"a", b"bc"])), f"{x}.tolist()", [b"a", b"bc"]
        yield convert(numpy.array([b"ab", b"c\0"])), f"{x}.view(f'V{{{x}.itemsize}}')", [b"ab", b"c\0"]
        yield convert(numpy.array([(1, "a")], "i4,U1")), f"{x}.tolist()", [(1, "a")]
        yield convert(numpy.array([1j])), f"[str(y) for y in {x}.tolist()]", ["1j"]
        yield convert(numpy.zeros((2, 1), int)), f"{x}.ravel()", [0, 0]
        yield convert(numpy.ma.array([1, 2], mask=[0, 1])), f"{x}.compressed()", [1]
    yield numpy.matrix([1, 2]), "numpy.asarray(x).ravel()", [1, 2]
    for x in ("text", b"text", bytearray(b"text"), memoryview(b"text")):
        yield x, "[x]", ["text"]
    yield 5, "[x]", [5]


def name(value):
    kind = getattr(value, "dtype", getattr(value, "type", ""))
    return None if isinstance(value, list) else value if isinstance(value, str) else f"{type(value).__name__}-{kind}"


@pytest.mark.parametrize(("x", "remedy", "items"), list(types()), ids=name)
def test_remedies_for_types(x, remedy, items):
    filter = koel.SharedFilter(false_positive_rate=0.01)
    calls = [filter.contains_batch, filter.count_batch, filter.remove_batch, filter.insert_unique_batch, filter.count_members]
    for call in (filter.update, *calls):
        with pytest.raises((TypeError, ValueError)) as refused:
            call(x)
        assert remedy in str(refused.value), refused.value
    assert len(filter) == 0
    assert filled(eval(remedy, {"x": x, **NAMES})) == filled(items)


def test_filters_are_no_batches():
    filter = koel.CuckooFilter(10, 0.01)
    with pytest.raises(TypeError, match="CuckooFilter is not a batch, .* combined by merge, union and intersection"):
        filter.update(koel.CuckooFilter(10, 0.01))
    with pytest.raises(TypeError, match="NoneType is not a batch, .* give \\[x\\]"):
        filter.update(None)


def test_arrays_of_these_types_keep_zero_bytes():
    texts, refused = ["abc", "abc\0", "\0"], []
    for array in (numpy.array(texts), numpy.array([text.encode() for text in texts])):
        with pytest.raises(TypeError) as error:
            filled(array)
        refused.append(str(error.value))
    assert all("dtype=object" in message for message in refused) and "dtype=numpy.dtypes.StringDType()" in refused[0]
    for dtype in (object, numpy.dtypes.StringDType()):
        filter = filled(numpy.array(texts, dtype=dtype))
        assert filter == filled(texts) and [text in filter for text in texts] == [True] * 3 and len(filter) == 3


def nulls():
    """Yields batches with a null after an item, the remedy, and the items that are left."""
    columns = [([7, None], [pyarrow.int8(), pyarrow.uint64()]), ([b"a", None], [pyarrow.binary(1)])]
    columns += [(["a", None], [pyarrow.string(), pyarrow.large_string(), pyarrow.binary(), pyarrow.large_binary()])]
    for values, kinds in columns:
        for x in [x for kind in kinds for x in both(kind, values)]:
            yield x, "x.drop_null()", values[:1]
    yield Exports(pyarrow.array(["a", None])), "pyarrow.array(x).drop_null()", ["a"]
    yield Exports(pyarrow.chunked_array([["a", None]])), "pyarrow.chunked_array(x).drop_null()", ["a"]
    for x in both(pyarrow.string_view(), ["a", None]):
        yield x, "x.cast('large_string').drop_null()", ["a"]
    for x in both(pyarrow.binary_view(), [b"\xff", None]):
        yield x, "x.cast('large_binary').drop_null()", [b"\xff"]
    for kind in (pyarrow.string(), pyarrow.string_view()):
        values = pyarrow.array(["a", None], kind)
        for indices in ([0, None], [0, 1]):
            x = pyarrow.DictionaryArray.from_arrays(pyarrow.array(indices, "int8"), values)
            for x in (x, pyarrow.chunked_array([x[:1], x[1:]])):
                yield x, "[y for y in x.to_pylist() if y is not None]", ["a"]
                if kind == pyarrow.string():
                    yield pandas.Series(pandas.arrays.ArrowExtensionArray(x)), "[y for y in x if y is not pandas.NA]", ["a"]
    for kind in (polars.String, polars.Categorical, polars.Enum(["a"])):
        yield polars.Series(["a", None], dtype=kind), "x.drop_nulls()", ["a"]
    yield polars.Series([b"a", None]), "x.drop_nulls()", ["a"]
    yield polars.Series([7, None]), "x.drop_nulls()", [7]
    for kind in ("str", "string[python]", "string[pyarrow]", "object", "category"):
        series = pandas.Series(["a", None], dtype=kind)
        for x in (series, series.array, pandas.Index(series)):
            yield x, "x.dropna()", ["a"]
    for kind in ("Int8", "UInt64", "int16[pyarrow]"):
        yield pandas.Series([7, None], dtype=kind), "x.dropna()", [7]
    for kind in (pyarrow.string_view(), pyarrow.binary_view()):
        yield of_arrow(kind, ["a", None]), "[y for y in x if y is not pandas.NA]", ["a"]


@pytest.mark.parametrize(("x", "remedy", "items"), list(nulls()), ids=name)
def test_remedies_for_nulls(x, remedy, items):
    filter = koel.SharedFilter(false_positive_rate=0.01)
    for call in (filter.update, filter.remove_batch, filter.insert_unique_batch):
        with pytest.raises(ValueError, match="item 1, counted from 0: it is null .nulls: 1 of 2 items") as refused:
            call(x)
        assert remedy in str(refused.value), refused.value
    with pytest.raises(ValueError, match="item 3, "):
        filter.update([], [1, 2], x)
    assert filled(eval(remedy, {"x": x, **NAMES})) == filled(items)


class Fields:
    def __init__(self):
        self.name, self.number = "a", 7

    def __str__(self):
        return "a-7"


@pytest.mark.parametrize(
    ("x", "remedies"),
    [
        (True, ["int(x)", "bytes([int(x)])"]),
        (numpy.bool_(True), ["int(x)", "bytes([int(x)])"]),
        (1.5, ["float(x).hex()", "struct.pack('<d', x)"]),
        (numpy.float32(1.5), ["float(x).hex()", "struct.pack('<d', x)"]),
        (numpy.array([1, 2]), ["x.tobytes()"]),
        (numpy.void(b"ab"), ["x.tobytes()"]),
        (UUIDS[0], ["x.bytes", "str(x)"]),
        (pyarrow.scalar("a"), ["x.as_py()"]),
        (pyarrow.scalar(b"a"), ["x.as_py()"]),
        (numpy.array(["a", 5], dtype=object), ["tuple(x.tolist())"]),
        ({2, 1}, ["tuple(sorted(x))"]),
        (2**64, ["str(n)"]),
        (decimal.Decimal("1.5"), ["str(x)"]),
        (fractions.Fraction(1, 3), ["str(x)"]),
        (datetime.date(2026, 11, 27), ["str(x)"]),
        (datetime.datetime(2026, 11, 27), ["str(x)"]),
        (numpy.datetime64("2026-11-27"), ["str(x)"]),
        (pandas.Timestamp("2026-11-27"), ["str(x)"]),
        (pandas.Period("2026-11"), ["str(x)"]),
        (pandas.Interval(0, 1), ["str(x)"]),
        (Fields(), ["str(x)"]),
    ],
    ids=name,
)
def test_remedies_for_items(x, remedies):
    batches = [["a", x], ("a", x), iter(["a", x]), pandas.Series(["a", x], dtype=object)]
    if not isinstance(x, (numpy.ndarray, numpy.void, set)):
        batches.append(pandas.Series(pandas.Categorical.from_codes([1, 0], categories=pandas.Index([x, "a"], dtype=object))))
    for batch in batches:
        with pytest.raises((TypeError, OverflowError), match="^item 1, counted from 0: ") as refused:
            filled(batch)
    for remedy in remedies:
        assert remedy in str(refused.value), refused.value
        item = eval(remedy, {"x": x, "n": x, **NAMES})
        assert item in filled([item])


def test_the_place_of_an_item_with_another_error():
    class Broken:
        def __index__(self):
            raise LookupError("no number")

    with pytest.raises(UnicodeEncodeError, match="surrogates not allowed; item 1, counted from 0") as refused:
        filled(["a", "\ud800"])
    assert refused.value.object == "\ud800"
    with pytest.raises(LookupError, match="no number") as refused:
        filled([1, 2, Broken()])
    place, note = refused.value.__notes__
    assert place == "item 2, counted from 0" and note.startswith("update stopped after 2 items")
