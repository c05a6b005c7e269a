//! Stops a run on request.

use std::{
    fmt, process,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use anyhow::Context as _;

/// A flag that requests a stop. Measurements check it regularly.
#[derive(Debug, Default)]
pub struct Interrupt(AtomicBool);

impl Interrupt {
    /// Returns an interrupt that is not set.
    #[must_use]
    pub const fn new() -> Self {
        Self(AtomicBool::new(false))
    }

    /// The exit status of a program that Ctrl-C stopped: 128 plus the number of the signal.
    pub const STATUS: u8 = 130;

    /// Returns an interrupt that Ctrl-C, or a request to terminate, sets. A second one ends the program immediately.
    ///
    /// # Errors
    /// If a handler is already installed, or the system does not support one.
    pub fn on_ctrl_c() -> anyhow::Result<Arc<Self>> {
        let interrupt = Arc::new(Self::new());
        let shared = Arc::clone(&interrupt);
        let handler = move || {
            if shared.is_set() {
                process::exit(i32::from(Self::STATUS));
            }
            shared.set();
        };
        on_termination(handler)?;
        Ok(interrupt)
    }

    /// Requests a stop.
    pub fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Returns true if a stop was requested.
    #[must_use]
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Returns an error if a stop was requested. Measurements call this with `?`, a few times per second.
    ///
    /// # Errors
    /// [`Interrupted`] if a stop was requested.
    pub fn check(&self) -> Result<(), Interrupted> {
        if self.is_set() { Err(Interrupted) } else { Ok(()) }
    }
}

/// Calls `handler`, in its own thread, after Ctrl-C, a request to terminate or a hang-up. If the process ignores hang-ups, as under
/// `nohup`, it continues to.
///
/// # Errors
/// If a handler is already installed, or the system does not support one.
#[allow(unsafe_code, reason = "no safe function ignores a signal")]
pub fn on_termination(handler: impl FnMut() + Send + 'static) -> anyhow::Result<()> {
    // SAFETY: ignoring a signal runs no code when it arrives.
    #[cfg(unix)]
    let was_ignored = unsafe { libc::signal(libc::SIGHUP, libc::SIG_IGN) } == libc::SIG_IGN;
    ctrlc::set_handler(handler).context("the handler for Ctrl-C could not be installed")?;
    #[cfg(unix)]
    if was_ignored {
        // SAFETY: as above. The handler above replaced the ignored signal.
        unsafe { libc::signal(libc::SIGHUP, libc::SIG_IGN) };
    }
    Ok(())
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
