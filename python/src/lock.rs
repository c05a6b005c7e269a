//! The lock of a filter. No child of a fork inherits it locked by another thread ([`crate::fork`]), Ctrl-C ends the wait for it, and no
//! Python code runs while it is held.

use std::{
    sync::atomic::{AtomicUsize, Ordering::SeqCst},
    thread,
};

use parking_lot::RwLock;
use pyo3::prelude::*;

use crate::fork::{Pass, WAIT};

/// A filter behind a lock.
pub struct Lock<F>(RwLock<F>, Calls);

impl<F: Send + Sync> Lock<F> {
    /// Puts a filter behind a lock.
    pub fn new(filter: F) -> Self {
        Self(RwLock::new(filter), Calls::default())
    }

    /// Returns the filter, to which nobody else has a reference.
    pub fn get_mut(&mut self) -> &mut F {
        self.0.get_mut()
    }

    /// Calls `act` with the filter. If a thread that is attached gives `py`, this takes no pass unless it must wait, so `act` must be
    /// short. Without `py`, the thread must be detached.
    pub fn read<R: Send>(&self, py: Option<Python<'_>>, act: impl FnOnce(&F) -> R + Send) -> PyResult<R> {
        match py {
            None => wait(|| self.0.try_read_for(WAIT), |filter| act(filter)),
            Some(py) => match self.0.try_read() {
                Some(filter) => Ok(act(&filter)),
                None => py.detach(|| self.read(None, act)),
            },
        }
    }

    /// Calls `act` with a filter that locks parts of itself, as `read` does. An attached thread never waits for such a part in a long
    /// call of another thread: it is detached first.
    pub fn share<R: Send>(&self, py: Option<Python<'_>>, act: impl FnOnce(&F) -> R + Send) -> PyResult<R> {
        let Some(py) = py else {
            return self.read(None, |filter| {
                let _call = self.1.begin_detached();
                act(filter)
            });
        };
        // The call ends before the lock is released, so that no child of a fork inherits its count.
        match self.0.try_read().and_then(|filter| self.1.try_begin_attached().map(|call| (filter, call))) {
            Some((filter, _call)) => Ok(act(&filter)),
            // This call is as short as an attached one, so others need not detach because of it.
            None => py.detach(|| self.read(None, act)),
        }
    }

    /// Calls `act` with the filter to change, as `read` does.
    pub fn write<R: Send>(&self, py: Option<Python<'_>>, act: impl FnOnce(&mut F) -> R + Send) -> PyResult<R> {
        match py {
            None => wait(|| self.0.try_write_for(WAIT), |filter| act(filter)),
            Some(py) => match self.0.try_write() {
                Some(mut filter) => Ok(act(&mut filter)),
                None => py.detach(|| self.write(None, act)),
            },
        }
    }

    /// Calls `act` with two filters, one of them to change; `None` instead of the second one if it is the first one. The thread must
    /// be detached.
    pub fn write_with<R>(&self, other: &Self, act: impl FnOnce(&mut F, Option<&F>) -> R) -> PyResult<R> {
        let (ours, theirs) = (&self.0, &other.0);
        let act = |ours: &mut F, theirs: Option<&F>| {
            let _call = theirs.map(|_| other.1.begin_detached());
            act(ours, theirs)
        };
        match self.is_before(other) {
            None => wait(|| ours.try_write_for(WAIT), |filter| act(filter, None)),
            Some(true) => wait(
                || ours.try_write_for(WAIT).and_then(|ours| Some((ours, theirs.try_read_for(WAIT)?))),
                |(ours, theirs)| act(ours, Some(theirs)),
            ),
            Some(false) => wait(
                || theirs.try_read_for(WAIT).and_then(|theirs| Some((ours.try_write_for(WAIT)?, theirs))),
                |(ours, theirs)| act(ours, Some(theirs)),
            ),
        }
    }

    /// Calls `act` with two filters that may be the same one. The thread must be detached.
    pub fn read_with<G, R>(&self, other: &Lock<G>, act: impl FnOnce(&F, &G) -> R) -> PyResult<R> {
        let (ours, theirs) = (&self.0, &other.0);
        let act = |ours: &F, theirs: &G| {
            let _calls = (self.1.begin_detached(), other.1.begin_detached());
            act(ours, theirs)
        };
        // A filter that is compared with itself is locked twice, ahead of threads that wait to change it.
        if self.is_before(other) == Some(false) {
            let lock = || theirs.try_read_for(WAIT).and_then(|theirs| Some((ours.try_read_for(WAIT)?, theirs)));
            wait(lock, |(ours, theirs)| act(ours, theirs))
        } else {
            let lock = || ours.try_read_for(WAIT).and_then(|ours| Some((ours, theirs.try_read_recursive_for(WAIT)?)));
            wait(lock, |(ours, theirs)| act(ours, theirs))
        }
    }

    /// Returns whether the lock is taken ahead of another one; `None` if both are the same. With one order in all threads, two that
    /// lock the same two filters do not wait for each other.
    fn is_before<G>(&self, other: &Lock<G>) -> Option<bool> {
        let (ours, theirs) = ((&raw const *self).addr(), (&raw const *other).addr());
        (ours != theirs).then_some(ours < theirs)
    }
}

/// The calls that share a filter: they may wait for its parts, but only in the library, where they cannot detach. So attached ones, which
/// are short, begin only while no long one is at work detached, and a long one waits for the attached ones to end.
#[derive(Default)]
struct Calls {
    attached: AtomicUsize,
    detached: AtomicUsize,
}

impl Calls {
    /// Begins a short call of an attached thread; `None` if a long one is at work.
    fn try_begin_attached(&self) -> Option<Call<'_>> {
        let call = Call::begin(&self.attached);
        (self.detached.load(SeqCst) == 0).then_some(call)
    }

    /// Begins a long call. The thread must be detached.
    fn begin_detached(&self) -> Call<'_> {
        let call = Call::begin(&self.detached);
        while self.attached.load(SeqCst) > 0 {
            thread::yield_now();
        }
        call
    }
}

/// A call, which is counted until it ends.
struct Call<'a>(&'a AtomicUsize);

impl<'a> Call<'a> {
    fn begin(calls: &'a AtomicUsize) -> Self {
        calls.fetch_add(1, SeqCst);
        Self(calls)
    }
}

impl Drop for Call<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, SeqCst);
    }
}

/// Calls `act` with what `lock` returns, as soon as no other thread forks and it returns something, unless a signal handler raises an
/// exception meanwhile.
fn wait<G, R>(mut lock: impl FnMut() -> Option<G>, act: impl FnOnce(&mut G) -> R) -> PyResult<R> {
    loop {
        if let Some(_pass) = Pass::try_get()
            && let Some(mut locked) = lock()
        {
            return Ok(act(&mut locked));
        }
        check_signals()?;
    }
}

/// Calls the handlers of signals that have arrived, and returns the exception of one. The thread must be detached.
pub fn check_signals() -> PyResult<()> {
    #[allow(clippy::redundant_closure_for_method_calls, reason = "the method is not generic over the lifetime")]
    Python::attach(|py| py.check_signals())
}
