//! The Python package `koel-filter`: cuckoo filters for Python, numpy and Arrow.

mod argument;
mod array;
mod arrow;
mod batch;
mod cells;
mod classes;
mod column;
mod data;
mod error;
mod filter;
mod fork;
mod item;
mod lock;
mod options;
mod pandas;
mod remedy;

use pyo3::prelude::*;

/// Cuckoo filters: approximate sets with removal, in a few bits per item.
#[pymodule(name = "koel", gil_used = false)]
mod module {
    use pyo3::prelude::*;

    #[pymodule_export]
    use crate::{
        classes::{CuckooFilter, ElasticFilter, Filter, FilterView, MutableFilter, SharedFilter},
        error::classes::{FullError, SnapshotError},
    };

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))?;
        crate::fork::register(module)?;
        let class = module.py().get_type::<MutableFilter>();
        class.setattr("insert", class.getattr("add")?)
    }
}
