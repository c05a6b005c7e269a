"""Operations, compared with a multiset; parameters; threads."""

import doctest
import sys
import threading
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

import koel

CLASSES = [koel.CuckooFilter, koel.ElasticFilter, koel.SharedFilter]
ITEMS = st.one_of(st.integers(-5, 40), st.sampled_from(["", "a", "b", ("a", 1), (("a",), b"x")]))
BATCHES = st.lists(ITEMS, max_size=30)


class Model(RuleBasedStateMachine):
    """The rate is so low that no two items collide."""

    def __init__(self):
        super().__init__()
        growing = [kind(200, 1e-7, max_capacity=1000, seed=5) for kind in CLASSES[1:]]
        self.filters = [koel.CuckooFilter(200, 1e-7, seed=5), *growing]
        self.model = Counter()

    def each(self, call, expected):
        for filter in self.filters:
            result = call(filter)
            assert (result.tolist() if isinstance(result, np.ndarray) else result) == expected

    @rule(item=ITEMS)
    def add(self, item):
        self.each(lambda filter: filter.add(item), None)
        self.model[item] += 1

    @rule(item=ITEMS)
    def insert_unique(self, item):
        self.each(lambda filter: filter.insert_unique(item), not self.model[item])
        self.model[item] = max(self.model[item], 1)

    @rule(items=BATCHES)
    def update(self, items):
        self.each(lambda filter: filter.update(items, iter(items)), None)
        self.model.update(items + items)

    @rule(items=BATCHES)
    def insert_unique_batch(self, items):
        new = [not self.model[item] and items.index(item) == place for place, item in enumerate(items)]
        self.each(lambda filter: filter.insert_unique_batch(items), new)
        self.model.update(item for item, is_new in zip(items, new) if is_new)

    @rule(item=ITEMS)
    def discard(self, item):
        self.each(lambda filter: filter.discard(item), self.model[item] > 0)
        self.model[item] = max(self.model[item] - 1, 0)

    @rule(item=ITEMS)
    def remove(self, item):
        for filter in self.filters:
            if self.model[item]:
                filter.remove(item)
            else:
                with pytest.raises(KeyError) as refused:
                    filter.remove(item)
                assert refused.value.args == (item,)
        self.model[item] = max(self.model[item] - 1, 0)

    @rule(items=BATCHES)
    def remove_batch(self, items):
        found = []
        for item in items:
            found.append(self.model[item] > 0)
            self.model[item] = max(self.model[item] - 1, 0)
        self.each(lambda filter: filter.remove_batch(items), found)

    @rule(items=BATCHES, is_union=st.booleans())
    def combine(self, items, is_union):
        for filter in self.filters:
            other = filter.copy()
            other.clear()
            other.update(items)
            before = filter.to_bytes()
            united = filter.union(other) if is_union else filter | other
            assert filter.to_bytes() == before
            if is_union:
                filter |= other
                assert filter == united and filter.to_bytes() == united.to_bytes()
            else:
                filter.merge(other)
        self.model = self.model | Counter(items) if is_union else self.model + Counter(items)

    @rule(items=BATCHES)
    def intersect(self, items):
        for filter in self.filters:
            other = filter.copy()
            other.clear()
            other.update(items)
            before = filter.to_bytes()
            common = filter.intersection(other, other)
            assert filter & other == common == other & filter and filter.to_bytes() == before
            filter &= other
            assert filter.to_bytes() == common.to_bytes()
            filter &= filter
        self.model &= Counter(items)

    @precondition(lambda self: sum(self.model.values()) < 1000)
    @rule()
    def with_itself(self):
        for filter in self.filters:
            filter |= filter
            filter.merge(filter)
        self.model += self.model

    @rule(place=st.integers(0, 2))
    def replace(self, place):
        self.filters[place] = type(self.filters[place]).from_bytes(self.filters[place].to_bytes())

    @rule()
    def clear(self):
        self.each(lambda filter: filter.clear(), None)
        self.model.clear()

    @invariant()
    def agree(self):
        items = [*range(-5, 41), "", "a", "b", ("a", 1), (("a",), b"x")]
        counts = [self.model[item] for item in items]
        self.each(len, sum(counts))
        self.each(lambda filter: filter.count_batch(items), counts)
        self.each(lambda filter: filter.contains_batch(items), [count > 0 for count in counts])
        self.each(lambda filter: [item in filter for item in items], [count > 0 for count in counts])
        self.each(lambda filter: filter.count_members(items), sum(count > 0 for count in counts))
        self.each(lambda filter: filter.distinct(), sum(count > 0 for count in counts))


TestModel = Model.TestCase
TestModel.settings = settings(max_examples=25, stateful_step_count=30, deadline=None, derandomize=True, database=None)


@pytest.mark.parametrize("size", [100, 50_000])
def test_equality_is_by_content(size):
    """The order of items makes no difference, nor does the class, as long as both have a fixed size, or both grow."""
    numbers = list(range(size)) + [7, 7]
    fixed, growing = koel.CuckooFilter(size, 0.001), koel.SharedFilter(false_positive_rate=0.001)
    groups = []
    for filter in (fixed, growing):
        group = []
        for items in (numbers, numbers[::-1]):
            one = filter.copy()
            one.update(items)
            group += [one, koel.FilterView(one.to_bytes())]
            group.append(group[-1].to_filter())
        assert group[0].to_bytes() != group[3].to_bytes() or size == 100
        groups.append(group)
    assert {type(one) for one in groups[1]} == {koel.SharedFilter, koel.ElasticFilter, koel.FilterView}
    for group, others in (groups, groups[::-1]):
        for one in group:
            assert all(one == other and not one != other for other in group)
            assert not any(one == other for other in others)
    for group in groups:
        for change in ({"remove": 7}, {"add": 5}, {"add": -1, "remove": 5}):
            changed = group[0].copy()
            for method, item in change.items():
                getattr(changed, method)(item)
            assert not any(changed == other or other == changed for other in group)


@pytest.mark.parametrize(
    ("kind", "options", "message"),
    [
        (koel.CuckooFilter, {}, "neither"),
        (koel.CuckooFilter, {"capacity": 10}, "rate"),
        (koel.CuckooFilter, {"capacity": -1, "false_positive_rate": 0.1}, "-1 given"),
        (koel.CuckooFilter, {"capacity": 2**64 - 1, "false_positive_rate": 0.1}, "at most"),
        (koel.CuckooFilter, {"capacity": 10, "false_positive_rate": 2.0}, "from"),
        (koel.CuckooFilter, {"capacity": 10, "false_positive_rate": float("nan")}, "NaN"),
        (koel.CuckooFilter, {"capacity": 10, "buckets": 10, "fingerprint_bits": 8}, "both"),
        (koel.CuckooFilter, {"capacity": 10, "fingerprint_bits": 2**40}, "bits"),
        (koel.CuckooFilter, {"capacity": 10, "false_positive_rate": 0.1, "table": "round"}, "packed.*round"),
        (koel.CuckooFilter, {"capacity": 10, "false_positive_rate": 0.1, "addressing": "x"}, "any-size"),
        (koel.CuckooFilter, {"capacity": 10, "false_positive_rate": 0.1, "kernel": "x"}, "portable"),
        (koel.ElasticFilter, {}, "0.001"),
        (koel.ElasticFilter, {"false_positive_rate": 0.1, "partitions": 3}, "power of two"),
        (koel.SharedFilter, {"false_positive_rate": 0.1, "max_bytes": 5}, "empty filter"),
    ],
)
def test_parameters_out_of_range(kind, options, message):
    with pytest.raises(ValueError, match=message):
        kind(**options)
    with pytest.raises(TypeError):
        kind("10", 0.1)


def test_a_full_filter_says_so():
    filter = koel.CuckooFilter(100, 0.001)
    with pytest.raises(koel.FullError, match="item [0-9]+, .* the filter is full") as refused:
        filter.update(range(10_000))
    assert 100 <= len(filter) == refused.value.position
    before = filter.to_bytes()
    with pytest.raises(koel.FullError) as refused:
        for number in range(10_000, 20_000):
            filter.add(number)
    assert refused.value.position == 0 and len(filter) < 140 and "item" not in str(refused.value).split(":")[0]
    filter = koel.ElasticFilter(false_positive_rate=0.01, max_bytes=400_000)
    generator = (f"item {number}" for number in range(10**6))
    with pytest.raises(koel.FullError, match="limit is 400000") as refused:
        filter.update(generator)
    assert refused.value.position == len(filter) > 32768 and f"item {len(filter)}," in str(refused.value)
    assert filter.charged_bytes <= 400_000 and before
    filter.set_max_bytes(None)
    filter.update(range(1000))
    filter = koel.CuckooFilter(100, 0.001)
    with pytest.raises(koel.FullError) as refused:
        filter.update(["a", "b"], range(10_000))
    assert refused.value.position == len(filter)


def test_properties():
    for kind in CLASSES:
        filter = kind(1000, 0.01, seed=9)
        filter.update(range(1000))
        view = koel.FilterView(filter.to_bytes())
        for reader in (filter, view):
            assert reader.params["seed"] == reader.seed == 9 and reader.params.get("false_positive_rate", 0.01) <= 0.01
            again = kind(**reader.params)
            again.merge(filter)
            assert again.params == reader.params and len(again) == 1000
            assert 0 < reader.false_positive_rate < 0.011 and 0 < reader.load_factor <= 1 and reader.slots >= 1000
            assert reader.capacity >= 1000 and reader.size_in_bytes > 1000 and 8 < reader.bits_per_item < 300
            assert abs(reader.measure_false_positive_rate(20_000) - reader.false_positive_rate) < 0.005
            assert repr(reader).startswith(f"<koel.{type(reader).__name__}: 1000 items, load ") and "1000 " in str(reader)
            assert sys.getsizeof(reader) >= reader.size_in_bytes
            assert reader.kernel and reader.distinct() <= 1000
            with pytest.raises(TypeError):
                hash(reader)
            with pytest.raises(TypeError, match="not supported between"):
                reader < filter
        assert isinstance(filter, koel.MutableFilter) and not hasattr(view, "add") and filter != 1 and filter != "x"
    for base in (koel.Filter, koel.MutableFilter):
        with pytest.raises(TypeError):
            base()


def test_filters_of_other_kinds_do_not_mix():
    fixed, growing = koel.CuckooFilter(10, 0.1), koel.ElasticFilter(10, 0.1)
    assert fixed != growing and fixed == koel.FilterView(fixed.to_bytes())
    fixed.add(1)
    shared = koel.SharedFilter(10, 0.1, partitions=1)
    for filter, other, error, message in (
        (fixed, growing, TypeError, "same class"),
        (fixed, koel.CuckooFilter(9000, 0.1), ValueError, "parameters"),
        (growing, koel.ElasticFilter(10, 0.2), ValueError, "same false_positive_rate .* has 0.1, and the other 0.2;"),
        (growing, koel.ElasticFilter(20, 0.1), ValueError, "same capacity .* has 10, and the other 20;"),
        (growing, shared, TypeError, "load the file"),
        (fixed, shared, TypeError, "parameters$"),
        (fixed, koel.FilterView(fixed.to_bytes()), TypeError, "to_filter"),
        (fixed, {1}, TypeError, "to add items, call update|build a filter of the items first"),
    ):
        before = filter.to_bytes()
        for combine in (filter.merge, filter.union, filter.intersection, filter.__ior__, filter.__iand__):
            with pytest.raises(error, match=message):
                combine(other)
        with pytest.raises(error):
            filter | other
        with pytest.raises(error):
            filter & other
        assert filter.to_bytes() == before
    # The remedy of the message works.
    shared.add(1)
    growing.merge(koel.ElasticFilter.from_bytes(shared.to_bytes()))
    fixed.merge(koel.FilterView(fixed.to_bytes()).to_filter())
    assert 1 in growing and fixed.count(1) == 2


def run(threads):
    started = [threading.Thread(target=target, args=args) for target, *args in threads]
    for thread in started:
        thread.start()
    for thread in started:
        thread.join()


def test_eight_threads_fill_a_shared_filter():
    filter = koel.SharedFilter(false_positive_rate=0.001)
    parts = np.arange(400_000).reshape(8, -1)
    run([(filter.update, part) for part in parts])
    assert len(filter) == 400_000 and filter.contains_batch(parts.ravel()).all()
    new = [None] * 8
    items = np.arange(400_000, 410_000)
    run([(lambda number: new.__setitem__(number, filter.insert_unique_batch(items)), number) for number in range(8)])
    assert 9900 < sum(found.sum() for found in new) <= 10_000


@pytest.mark.parametrize("kind", CLASSES)
def test_threads_change_one_filter(kind):
    """Every change is exclusive, and two filters that merge into each other do not wait for ever."""
    filter, other = kind(100_000, 0.001), kind(100_000, 0.001)
    errors = []

    def work(number):
        try:
            mine = np.arange(number * 1000, number * 1000 + 1000)
            for _ in range(5):
                filter.update(mine)
                assert filter.contains_batch(mine).all() and number * 1000 in filter and len(filter) >= 1000
                filter.update(f"text {n}" for n in mine[:100])
                assert filter.remove_batch([f"text {n}" for n in mine[:100]]).all()
                assert filter.remove_batch(mine).all()
                filter.add((number, "kept"))
                first, second = (filter, other) if number % 2 else (other, filter)
                first |= second
                assert first == first
                filter.to_bytes(), repr(filter)
        except BaseException as error:
            errors.append(error)

    run([(work, number) for number in range(6)])
    assert not errors and all((number, "kept") in filter for number in range(6))


def test_documentation():
    results = doctest.testmod(koel, extraglobs={"koel": koel, "numpy": np})
    assert results.failed == 0 and results.attempted > 20
    readme = doctest.testfile(str(Path(__file__).parents[1] / "README.md"), module_relative=False)
    assert readme.failed == 0 and readme.attempted > 20


def test_false_positives_are_as_expected(tmp_path):
    namespace = {"__name__": "example"}
    program = Path(__file__).parents[1] / "examples/false_positives.py"
    exec(compile(program.read_text(), str(program), "exec"), namespace)
    for row in namespace["main"](["--items", "20000", "--out", str(tmp_path / "rates.svg")]):
        deviation = row.expected**0.5
        assert abs(row.measured - row.expected) < 6 * deviation + 0.05 * row.expected
    assert "<svg" in (tmp_path / "rates.svg").read_text()
