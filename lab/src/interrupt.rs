//! Stops a run on request.

use std::{
    fmt, process,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicI32, Ordering},
    },
};

use anyhow::{Context as _, ensure};

/// A request to end: Ctrl-C, a request to terminate, or a hang-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Signal(i32);

impl Signal {
    /// The signal of Ctrl-C, `SIGINT`.
    pub const INTERRUPT: Self = Self(2);

    /// Returns the exit status that shells report for a program that this signal ended: 128 plus its number.
    #[must_use]
    pub fn status(self) -> u8 {
        u8::try_from(self.0).map_or(u8::MAX, |number| number.saturating_add(128))
    }

    /// Ends the process as the signal does by default. So a shell stops the loop or script that runs this program; an exit status
    /// would not stop it.
    pub fn end(self) -> ! {
        // If this fails, the status says the same.
        #[cfg(unix)]
        signal_hook::low_level::emulate_default_handler(self.0).ok();
        process::exit(i32::from(self.status()))
    }
}

/// A flag that requests a stop: the number of a signal, or 0. Measurements check it regularly.
#[derive(Debug, Default)]
pub struct Interrupt(AtomicI32);

impl Interrupt {
    /// Returns an interrupt that is not set.
    #[must_use]
    pub const fn new() -> Self {
        Self(AtomicI32::new(0))
    }

    /// Returns an interrupt that Ctrl-C, a request to terminate or a hang-up sets. A second one ends the program immediately. See
    /// [`on_termination`].
    ///
    /// # Errors
    /// If a handler is already installed, or the system does not support one.
    pub fn on_ctrl_c() -> anyhow::Result<Arc<Self>> {
        let interrupt = Arc::new(Self::new());
        let shared = Arc::clone(&interrupt);
        on_termination(move |Signal(number)| shared.0.store(number, Ordering::Relaxed))?;
        Ok(interrupt)
    }

    /// Requests a stop, as Ctrl-C does.
    pub fn set(&self) {
        self.0.store(Signal::INTERRUPT.0, Ordering::Relaxed);
    }

    /// Returns the signal that requested a stop, if one did.
    #[must_use]
    pub fn signal(&self) -> Option<Signal> {
        Some(Signal(self.0.load(Ordering::Relaxed))).filter(|signal| signal.0 != 0)
    }

    /// Returns an error if a stop was requested. Measurements call this with `?`, a few times per second.
    ///
    /// # Errors
    /// [`Interrupted`] if a stop was requested.
    pub fn check(&self) -> Result<(), Interrupted> {
        if self.signal().is_some() { Err(Interrupted) } else { Ok(()) }
    }
}

/// Calls `handler`, in a thread of its own, after Ctrl-C, a request to terminate or a hang-up. A second one ends the process, even
/// while `handler` runs. Signals that the process ignores, it continues to ignore: hang-ups under `nohup`, and Ctrl-C if a shell without
/// job control has started it in the background.
///
/// # Errors
/// If a handler is already installed, or the system does not support one.
pub fn on_termination(handler: impl FnOnce(Signal) + Send + 'static) -> anyhow::Result<()> {
    static IS_INSTALLED: AtomicBool = AtomicBool::new(false);
    ensure!(!IS_INSTALLED.swap(true, Ordering::Relaxed), "a handler for Ctrl-C is already installed");
    let handler = |number| handler(Signal(number));
    #[cfg(unix)]
    let installed = unix::wait_in_thread(handler);
    #[cfg(not(unix))]
    let installed = {
        let mut handler = Some(handler);
        ctrlc::set_handler(move || match handler.take() {
            Some(handler) => handler(Signal::INTERRUPT.0),
            None => Signal::INTERRUPT.end(),
        })
    };
    installed.context("the handler for Ctrl-C could not be installed")
}

#[cfg(unix)]
mod unix {
    use std::{
        io,
        sync::{
            Arc,
            atomic::{AtomicBool, Ordering},
        },
        thread,
    };

    use signal_hook::{
        consts::{SIGHUP, SIGINT, SIGTERM},
        flag,
        iterator::Signals,
    };

    /// Starts a thread that waits for the first signal and calls `handler`, which may lock and write as any other code; a signal
    /// handler may do neither.
    pub(super) fn wait_in_thread(handler: impl FnOnce(i32) + Send + 'static) -> io::Result<()> {
        let signals: Vec<_> = [SIGINT, SIGTERM, SIGHUP].into_iter().filter(|&signal| !is_ignored(signal)).collect();
        let mut caught = Signals::new(&signals)?;
        let ends = Arc::new(AtomicBool::new(false));
        for signal in signals {
            // The first signal makes each further one end the process.
            flag::register_conditional_default(signal, Arc::clone(&ends))?;
            flag::register(signal, Arc::clone(&ends))?;
        }
        let wait = move || {
            if let Some(number) = caught.forever().next() {
                handler(number);
            }
        };
        let started = thread::Builder::new().name(String::from("signals")).spawn(wait).map(drop);
        // Nothing waits for the signals without the thread, so they end the process as before.
        started.inspect_err(|_| ends.store(true, Ordering::Relaxed))
    }

    #[allow(unsafe_code, reason = "no safe function tells whether a signal is ignored")]
    fn is_ignored(signal: i32) -> bool {
        // SAFETY: a zeroed action is valid, and is overwritten; without a new action, nothing changes.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            libc::sigaction(signal, std::ptr::null(), &raw mut action) == 0 && action.sa_sigaction == libc::SIG_IGN
        }
    }
}

/// The error of a measurement that was stopped on request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interrupted;

impl fmt::Display for Interrupted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("interrupted")
    }
}

impl std::error::Error for Interrupted {}
