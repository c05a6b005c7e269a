//! Messages about batches whose items cannot be read. Each has an expression of Python, with the batch as `x`, that gives one whose
//! items can; `python/tests/test_remedies.py` evaluates all of them.

use pyo3::{exceptions::PyValueError, prelude::*};

use crate::error::type_error;

/// The library of a batch.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Library {
    /// numpy, or a library whose objects numpy converts.
    Numpy,
    /// pandas.
    Pandas,
    /// pandas, whose values are in an array of pyarrow.
    PandasArrow,
    /// polars.
    Polars,
    /// pyarrow, or a library whose objects pyarrow converts.
    Pyarrow,
}

/// Why the type of a batch is refused.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Refused {
    /// Floats, which may be equal and have different bytes.
    Float,
    /// Bools, which Python takes for integers, and Rust does not.
    Bool,
    /// Dates, times and durations: integers of this many bits, which count a unit.
    Time { bits: u32 },
    /// As `Float`, and some are missing.
    MissingFloat,
    /// As `Time`, and some are missing.
    MissingTime,
    /// Integers of 128 bits.
    LongInteger,
    /// Decimals.
    Decimal,
    /// Lists.
    List,
    /// Structs.
    Struct,
    /// Tables.
    Table,
    /// Values with the number of their repetitions.
    Runs,
    /// Values that mean something else than those they are stored as.
    Extension,
    /// Strings of numpy that are filled with zero bytes.
    Padded { is_text: bool },
    /// Records of numpy.
    Record,
    /// Objects of Python.
    Object,
    /// Any other type.
    Other,
}

/// Where the nulls of a column are, and what its values are.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Nullable {
    /// In the column.
    Plain,
    /// Perhaps in a dictionary.
    Dictionary,
    /// In the column, whose values are views, for which pyarrow lacks functions.
    TextViews,
    /// As `TextViews`.
    ByteViews,
}

/// The batch that a caller gave.
pub struct Subject<'py> {
    object: Bound<'py, PyAny>,
    library: Library,
    /// The expression for the batch as an object of the library.
    x: String,
    /// Whether `x` is the values of the batch's dictionary.
    is_decoded: bool,
}

impl<'py> Subject<'py> {
    /// Describes an object of a library.
    pub fn new(object: &Bound<'py, PyAny>, library: Library) -> Self {
        Self { object: object.clone(), library, x: "x".to_owned(), is_decoded: false }
    }

    /// Describes an object that exports Arrow arrays, of any library.
    pub fn of_arrow(object: &Bound<'py, PyAny>) -> PyResult<Self> {
        let module = object.get_type().module()?.to_string();
        Ok(match module.split('.').next() {
            Some("polars") => Self::new(object, Library::Polars),
            Some("pyarrow") => Self::new(object, Library::Pyarrow),
            _ => {
                let is_one = object.hasattr("__arrow_c_array__")?;
                let x = if is_one { "pyarrow.array(x)" } else { "pyarrow.chunked_array(x)" };
                Self { x: x.to_owned(), ..Self::new(object, Library::Pyarrow) }
            }
        })
    }

    /// Describes an object that numpy has converted to an array.
    pub fn of_numpy(array: &Bound<'py, PyAny>) -> Self {
        Self { x: "numpy.asanyarray(x)".to_owned(), ..Self::new(array, Library::Numpy) }
    }

    /// Describes the batch as an object of another library.
    pub fn in_library(self, library: Library) -> Self {
        Self { library, ..self }
    }

    /// Describes the values of a dictionary-encoded batch.
    pub fn decoded(&self) -> Self {
        let x = match self.library {
            Library::Pyarrow => format!("{x}.cast({x}.type.value_type)", x = self.x),
            _ => self.x.clone(),
        };
        Self { object: self.object.clone(), library: self.library, x, is_decoded: true }
    }

    /// Returns the library.
    pub fn library(&self) -> Library {
        self.library
    }

    /// Returns the expression that calls a method of the batch.
    pub fn method(&self, call: &str) -> String {
        format!("{}.{call}", self.x)
    }

    /// Returns the error for a type that cannot be read.
    #[cold]
    pub fn refused(&self, refused: Refused) -> PyErr {
        match self.describe(refused) {
            Ok(message) => type_error(message),
            Err(error) => error,
        }
    }

    fn describe(&self, refused: Refused) -> PyResult<String> {
        let class = self.object.get_type().name()?.to_string();
        let is_table = refused == Refused::Table
            || refused == Refused::Struct && ["Table", "RecordBatch", "DataFrame"].iter().any(|name| class.contains(name));
        let refused = if is_table { Refused::Table } else { refused };
        // The columns of a table may have any name.
        let of_type = |name| if is_table { None } else { self.object.getattr(name).ok() };
        let name = ["dtype", "type"].into_iter().find_map(of_type).map_or(class, |of| of.to_string());
        let subject = if self.library == Library::Numpy { "an array of" } else { "the column has the type" };
        // Neither casts a dictionary of these.
        let is_opaque = self.is_decoded && (self.library == Library::PandasArrow || refused == Refused::Extension);
        let refused = if is_opaque { Refused::Other } else { refused };
        Ok(match refused {
            Refused::Padded { .. } => format!(
                "{subject} {name} is not a batch: numpy strips the zero bytes at the end of its items, so that different items \
                 become equal; {}",
                self.remedy(refused)
            ),
            _ if self.library == Library::Numpy => {
                format!("{subject} {name} is not a batch, which has integers or strings; {}", self.remedy(refused))
            }
            _ => format!("{subject} {name}, but batches are strings, binary and integers; {}", self.remedy(refused)),
        })
    }

    /// Returns what to give instead.
    fn remedy(&self, refused: Refused) -> String {
        let x = &*self.x;
        let list = self.list(x);
        match refused {
            Refused::Float => format!("give {} if all its values are integers", self.integers(x, 64)),
            Refused::MissingFloat => {
                format!("give {x}[~numpy.isnan({x})].astype('int64') if all values that are not missing are integers")
            }
            Refused::Bool => {
                format!("give {}; its 0 and 1 are other items than the bools of a Rust program", self.integers(x, 64))
            }
            Refused::LongInteger => format!("give {} if its values have no more than 64 bits", self.integers(x, 64)),
            Refused::Time { .. } | Refused::MissingTime => self.time(refused),
            Refused::Decimal => format!("give {}", self.strings(x)),
            Refused::List => {
                let condition = if matches!(self.library, Library::Pyarrow | Library::Polars) { " if y is not None" } else { "" };
                format!("give [tuple(y) for y in {list}{condition}], with an item for each list")
            }
            Refused::Struct => format!("give one of its fields, such as {}", self.field(x)),
            Refused::Table => match self.library {
                Library::Pandas | Library::PandasArrow => format!("give one of its columns, such as {x}.iloc[:, 0]"),
                Library::Polars => format!("give one of its columns, such as {x}.to_series(0)"),
                // A reader has no columns.
                _ if self.object.hasattr("read_all").unwrap_or(false) => {
                    "give one of its columns, such as x.read_all().column(0)".to_owned()
                }
                _ if x == "x" => format!("give one of its columns, such as {x}.column(0)"),
                _ => "give one of its columns, such as pyarrow.table(x).column(0)".to_owned(),
            },
            Refused::Runs => format!("give {}", self.without_runs(x)),
            Refused::Extension => match self.library {
                Library::Polars => format!("give {x}.ext.storage() for what it is stored as"),
                Library::Pyarrow if x == "x" => "give x.cast(x.type.storage_type) for what it is stored as".to_owned(),
                Library::PandasArrow => {
                    "give x.astype(pandas.ArrowDtype(x.dtype.pyarrow_dtype.storage_type)) for what it is stored as".to_owned()
                }
                _ => format!("give [str(y) for y in {list}]"),
            },
            Refused::Padded { is_text: true } => format!(
                "if no item ends with a zero byte, give {list}; otherwise, make the array with dtype=object or \
                 dtype=numpy.dtypes.StringDType()"
            ),
            Refused::Padded { is_text: false } => format!(
                "if no item ends with a zero byte, give {list}; if all have the same length, give {x}.view(f'V{{{x}.itemsize}}'); \
                 otherwise, make the array with dtype=object"
            ),
            Refused::Record => format!("give {list}, whose items are tuples"),
            Refused::Object => format!("give {list}"),
            Refused::Other => format!("give a list of its items, such as [str(y) for y in {list}]"),
        }
    }

    fn list(&self, x: &str) -> String {
        match self.library {
            Library::Numpy => format!("{x}.tolist()"),
            Library::Pandas | Library::PandasArrow => x.to_owned(),
            Library::Polars => format!("{x}.to_list()"),
            Library::Pyarrow => format!("{x}.to_pylist()"),
        }
    }

    fn integers(&self, x: &str, bits: u32) -> String {
        match self.library {
            Library::Numpy => format!("{x}.astype('int64')"),
            // Unlike numpy's, this type has missing values.
            Library::Pandas => format!("{x}.astype('Int64')"),
            Library::PandasArrow => format!("{x}.astype('int{bits}[pyarrow]')"),
            Library::Polars => format!("{x}.cast(polars.Int64)"),
            Library::Pyarrow => format!("{x}.cast('int{bits}')"),
        }
    }

    fn strings(&self, x: &str) -> String {
        match self.library {
            Library::Polars => format!("{x}.cast(polars.String)"),
            Library::Pyarrow => format!("{x}.cast('string')"),
            Library::PandasArrow => format!("{x}.astype('string[pyarrow]')"),
            Library::Numpy | Library::Pandas => format!("[str(y) for y in {}]", self.list(x)),
        }
    }

    fn time(&self, refused: Refused) -> String {
        let x = &*self.x;
        match (self.library, refused) {
            (Library::Numpy, Refused::MissingTime) => {
                format!("give {x}[~numpy.isnat({x})].astype('int64'), which counts the unit of the type")
            }
            (Library::Pandas, _) => {
                let present = if refused == Refused::MissingTime { ".dropna()" } else { "" };
                let accessor = if self.object.hasattr("dt").unwrap_or(false) { ".dt" } else { "" };
                format!("give {x}{present}{accessor}.as_unit('ns').astype('int64'), which counts nanoseconds")
            }
            (Library::Polars, _) => format!("give {x}.to_physical(), which counts the unit of the type"),
            (_, Refused::Time { bits }) => format!("give {}, which counts the unit of the type", self.integers(x, bits)),
            _ => format!("give {}, which counts the unit of the type", self.integers(x, 64)),
        }
    }

    fn field(&self, x: &str) -> String {
        match self.library {
            Library::Polars => format!("{x}.struct.field({x}.struct.fields[0])"),
            Library::PandasArrow => format!("{x}.struct.field(0)"),
            _ => format!("pyarrow.compute.struct_field({x}, [0])"),
        }
    }

    fn without_runs(&self, x: &str) -> String {
        match self.library {
            Library::Pyarrow => format!("pyarrow.compute.run_end_decode({x})"),
            _ => format!("[y for y in {}]", self.list(x)),
        }
    }

    /// Returns the error for a null in a batch whose items are inserted or removed.
    #[cold]
    pub fn null(&self, position: usize, count: usize, len: usize, nullable: Nullable) -> PyErr {
        let x = &*self.x;
        let remedy = match (self.library, nullable) {
            (Library::Pyarrow, Nullable::Plain) => format!("{x}.drop_null()"),
            (Library::Pyarrow, Nullable::TextViews) => format!("{x}.cast('large_string').drop_null()"),
            (Library::Pyarrow, Nullable::ByteViews) => format!("{x}.cast('large_binary').drop_null()"),
            (Library::Polars, _) => format!("{x}.drop_nulls()"),
            (Library::PandasArrow, Nullable::Plain) | (Library::Pandas, _) => format!("{x}.dropna()"),
            (Library::PandasArrow, _) => format!("[y for y in {x} if y is not pandas.NA]"),
            // Older versions of pyarrow keep nulls among a dictionary's values, whatever else drops nulls.
            (Library::Pyarrow, Nullable::Dictionary) | (Library::Numpy, _) => {
                format!("[y for y in {} if y is not None]", self.list(x))
            }
        };
        PyValueError::new_err(format!(
            "item {position}, counted from 0: it is null (nulls: {count} of {len} items), and a filter stores no nulls; give {remedy}, \
             or replace them"
        ))
    }
}
