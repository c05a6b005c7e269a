"""What type checkers see: `just python` checks this file by mypy, too."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import koel


class Numbers:
    """An object that is no iterable, and which numpy converts to an array."""

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[np.int64]:
        return np.arange(3)


@pytest.mark.parametrize("kind", [koel.CuckooFilter, koel.ElasticFilter, koel.SharedFilter])
def test_batches_by_array(kind: type[koel.CuckooFilter | koel.ElasticFilter]) -> None:
    filter = kind(1000, 0.001)
    filter.update(Numbers(), np.arange(3), ["a", b"b", ("c", 1)])
    filter.insert_batch(Numbers())
    found: NDArray[np.bool_] = filter.contains_batch(Numbers())
    counts: NDArray[np.uint32] = filter.count_batch(Numbers())
    assert found.all() and (counts == 3).all() and filter.count_members(Numbers()) == 3
    assert not filter.insert_unique_batch(Numbers()).any() and filter.remove_batch(Numbers()).all()
