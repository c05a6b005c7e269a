//! Keeps forks and changes of filters apart.
//!
//! A child of a fork has only the thread that forked. A lock that another thread held stays locked in the child for ever, and what that
//! thread was changing stays half changed. So a thread that locks a filter while it is detached from the interpreter holds a [`Pass`].
//! A fork waits until no other thread has a pass, and admits no others until it is over.
//!
//! An attached thread needs no pass, since no other attached thread forks meanwhile. With a GIL, that one would need the GIL. Without
//! one, Python stops attached threads ahead of a fork, at points between two calls.
//!
//! Two kinds of functions are registered. Python calls its own ahead of `os.fork`; they wait while other threads run Python code. The
//! system calls the others in each `fork`, also of programs in C that do not tell Python.

#![cfg_attr(unix, allow(unsafe_code, reason = "the system is asked to call functions"))]

use std::{
    cell::Cell,
    sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst},
    thread,
    time::{Duration, Instant},
};

use numpy::{PyArray1, PyArrayDescrMethods as _, PyArrayMethods as _};
use pyo3::{
    prelude::*,
    sync::PyOnceLock,
    types::{PyDict, PyList},
};

/// True once a call has asked for numpy.
static NEEDS_NUMPY: AtomicBool = AtomicBool::new(false);

/// The number of passes in all threads.
static PASSES: AtomicUsize = AtomicUsize::new(0);

/// The [`identity`] of the thread that forks by Python, or 0.
static FORKING: AtomicUsize = AtomicUsize::new(0);

/// The number of other threads that fork. They may be attached, so they cannot wait for a thread that forks by Python.
static OTHERS: AtomicUsize = AtomicUsize::new(0);

/// The longest wait before a look for signals.
pub const WAIT: Duration = Duration::from_millis(50);

/// The time between two looks at these numbers. A lock to wait for would itself be inherited by the child, together with a list of
/// threads that do not exist there. Forks are rare, and take longer.
const PAUSE: Duration = Duration::from_micros(100);

thread_local! {
    /// The number of passes of this thread.
    static OWN: Cell<usize> = const { Cell::new(0) };

    /// Whether this thread is one of the [`OTHERS`].
    #[cfg(unix)]
    static IS_OTHER: Cell<bool> = const { Cell::new(false) };
}

/// The permission to hold locks of filters. A thread has at most one, and is not attached until it gives it back.
pub struct Pass(());

impl Pass {
    /// Waits while another thread forks, and returns `None` if that takes longer than [`WAIT`]. The thread must be detached.
    pub fn try_get() -> Option<Self> {
        let mut began = None;
        loop {
            PASSES.fetch_add(1, SeqCst);
            // Functions that Python calls around a fork may use filters. The child has their thread, so that fork need not wait.
            if [0, identity()].contains(&FORKING.load(SeqCst)) && OTHERS.load(SeqCst) == 0 {
                OWN.set(OWN.get() + 1);
                return Some(Self(()));
            }
            PASSES.fetch_sub(1, SeqCst);
            if began.get_or_insert_with(Instant::now).elapsed() >= WAIT {
                return None;
            }
            thread::sleep(PAUSE);
        }
    }
}

impl Drop for Pass {
    fn drop(&mut self) {
        OWN.set(OWN.get() - 1);
        PASSES.fetch_sub(1, SeqCst);
    }
}

/// Returns a number that no other thread has at this time, and that stays the same in the child. It is not 0.
fn identity() -> usize {
    OWN.with(|own| (&raw const *own).addr())
}

/// Waits until no other thread has a pass. A thread that gives back its pass is waiting neither for this one nor for the interpreter.
fn drain() {
    while PASSES.load(SeqCst) > OWN.get() {
        thread::sleep(PAUSE);
    }
}

/// Admits all threads again, if this one forks by Python.
fn open() {
    _ = FORKING.compare_exchange(identity(), 0, SeqCst, SeqCst);
}

/// Begins anew in a child: other threads are not here to give back their passes, nor to finish their forks.
fn reset() {
    PASSES.store(OWN.get(), SeqCst);
    OTHERS.store(0, SeqCst);
    FORKING.store(0, SeqCst);
}

/// Returns numpy, which must be had from here only. The first call imports it, and what is used of its interface for C. A fork waits until
/// that is done: in the child, nobody would finish what another thread had begun, and its own first batch would wait for ever.
pub fn numpy(py: Python<'_>) -> PyResult<&Bound<'_, PyModule>> {
    static NUMPY: PyOnceLock<Py<PyModule>> = PyOnceLock::new();
    if let Some(numpy) = NUMPY.get(py) {
        return Ok(numpy.bind(py));
    }
    // Forks that begin from here on import it themselves. One that began earlier may have looked at this already.
    NEEDS_NUMPY.store(true, SeqCst);
    while !py.detach(|| Pass::try_get().is_some()) {
        py.check_signals()?;
    }
    let imported = NUMPY.get_or_try_init(py, || {
        let numpy = py.import("numpy")?;
        // These two find the interface, its version, and the list of borrowed arrays.
        _ = numpy::dtype::<u8>(py).itemsize();
        _ = PyArray1::<u8>::zeros(py, 0, false).readonly();
        // pandas looks this up in `isna`, and some versions of numpy import it only then. Nothing else needs it, so its errors are pandas'.
        drop(numpy.getattr_opt("rec"));
        Ok::<_, PyErr>(numpy.unbind())
    });
    Ok(imported?.bind(py))
}

/// Calls the functions of PyO3 that find something only once, and imports what errors of files need. A thread gives up the interpreter
/// before it finds that: in the child of a fork that comes in between, the next call would wait for ever.
fn keep_ahead(py: Python<'_>) -> PyResult<()> {
    let list = PyList::empty(py);
    _ = list.try_iter()?.size_hint();
    list.get_type().module()?;
    py.import("errno").map(drop)
}

/// Returns a module if the program has imported it, and `None` otherwise. To import it could hang in the child of a fork.
pub fn imported<'py>(py: Python<'py>, name: &str) -> PyResult<Option<Bound<'py, PyAny>>> {
    py.import("sys")?.getattr("modules")?.cast_into::<PyDict>()?.get_item(name)
}

/// Python calls this ahead of a fork.
#[pyfunction]
fn before(py: Python<'_>) {
    let own = identity();
    // A function that Python calls ahead of a fork may itself fork.
    if FORKING.load(SeqCst) != own {
        // Other threads run Python code meanwhile.
        py.detach(|| {
            while FORKING.compare_exchange(0, own, SeqCst, SeqCst).is_err() {
                thread::sleep(PAUSE);
            }
            drain();
        });
    }
    if NEEDS_NUMPY.load(SeqCst) {
        // The thread that needs it reports an error.
        _ = numpy(py);
    }
}

/// Python calls this after a fork. On most systems, `in_parent` has run already, ahead of other functions that Python calls.
#[pyfunction]
fn after_in_parent() {
    open();
}

/// Python calls this in the child of a fork, as above.
#[pyfunction]
fn after_in_child() {
    if FORKING.load(SeqCst) == identity() {
        reset();
    }
}

/// Asks Python and the system to call these functions at each fork. Systems without forks have no function for that.
///
/// The module's init may run several times in a process. That Python then calls its functions several times at each fork does no harm.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    keep_ahead(py)?;
    let Some(register) = py.import("os")?.getattr_opt("register_at_fork")? else { return Ok(()) };
    let calls = PyDict::new(py);
    calls.set_item("before", wrap_pyfunction!(before, module)?)?;
    calls.set_item("after_in_parent", wrap_pyfunction!(after_in_parent, module)?)?;
    calls.set_item("after_in_child", wrap_pyfunction!(after_in_child, module)?)?;
    #[cfg(unix)]
    register_in_system()?;
    register.call((), Some(&calls)).map(drop)
}

/// Asks the system to call functions at each `fork`. They neither allocate nor call Python, as the child of a C program may do neither.
#[cfg(unix)]
fn register_in_system() -> std::io::Result<()> {
    /// Whether the functions are registered. Called twice at a fork, they would count its thread twice, and uncount it once.
    static IS_REGISTERED: AtomicBool = AtomicBool::new(false);

    extern "C" fn ahead() {
        if FORKING.load(SeqCst) != identity() {
            IS_OTHER.set(true);
            OTHERS.fetch_add(1, SeqCst);
            drain();
        }
    }
    extern "C" fn in_parent() {
        if IS_OTHER.replace(false) {
            OTHERS.fetch_sub(1, SeqCst);
        } else {
            open();
        }
    }
    extern "C" fn in_child() {
        IS_OTHER.set(false);
        reset();
    }
    if IS_REGISTERED.swap(true, SeqCst) {
        return Ok(());
    }
    // SAFETY: the functions have the right types, and stay where they are: Python never unloads a module.
    match unsafe { libc::pthread_atfork(Some(ahead), Some(in_parent), Some(in_child)) } {
        0 => Ok(()),
        error => {
            IS_REGISTERED.store(false, SeqCst);
            Err(std::io::Error::from_raw_os_error(error))
        }
    }
}
