//! Stops a run on request.

use std::{
    fmt, process,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicI32, Ordering},
    },
};

use anyhow::{Context as _, ensure};

/// The number of the last signal that this process received, for its exit status; 0 if there was none.
static RECEIVED: AtomicI32 = AtomicI32::new(0);

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

    /// Returns whether this process ignores the signal, as it does Ctrl-C if a shell without job control has started it in the
    /// background.
    #[must_use]
    pub fn is_ignored(self) -> bool {
        #[cfg(unix)]
        return unix::is_ignored(self.0);
        #[cfg(not(unix))]
        false
    }

    /// Returns the last signal that [`on_termination`] or [`Interrupt::on_ctrl_c`] caught.
    fn received() -> Self {
        match RECEIVED.load(Ordering::Relaxed) {
            0 => Self::INTERRUPT,
            number => Self(number),
        }
    }

    /// Ends the process as the signal does by default. So a shell stops the loop or script that runs this program; an exit status
    /// would not stop it.
    pub fn end(self) -> ! {
        #[cfg(unix)]
        unix::raise(self.0);
        process::exit(i32::from(self.status()))
    }
}

/// A flag that requests a stop. Measurements check it regularly.
#[derive(Debug, Default)]
pub struct Interrupt(AtomicBool);

impl Interrupt {
    /// Returns an interrupt that is not set.
    #[must_use]
    pub const fn new() -> Self {
        Self(AtomicBool::new(false))
    }

    /// The exit status of a program that a signal stopped: 128 plus the number of the signal, such as 130 after Ctrl-C.
    #[must_use]
    pub fn status() -> u8 {
        Signal::received().status()
    }

    /// Returns an interrupt that Ctrl-C, a request to terminate or a hang-up sets. A second one ends the program immediately. See
    /// [`on_termination`].
    ///
    /// # Errors
    /// If a handler is already installed, or the system does not support one.
    pub fn on_ctrl_c() -> anyhow::Result<Arc<Self>> {
        let interrupt = Arc::new(Self::new());
        let shared = Arc::clone(&interrupt);
        on_termination(move |_| shared.set())?;
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

/// Calls `handler`, in a thread of its own, after Ctrl-C, a request to terminate or a hang-up. A second one ends the process, even
/// while `handler` runs. If the process ignores hang-ups, as under `nohup`, it continues to. On Unix, call this before other
/// threads start: a thread that exists already would still be ended by the first signal.
///
/// # Errors
/// If a handler is already installed, or the system does not support one.
pub fn on_termination(handler: impl FnOnce(Signal) + Send + 'static) -> anyhow::Result<()> {
    static IS_INSTALLED: AtomicBool = AtomicBool::new(false);
    ensure!(!IS_INSTALLED.swap(true, Ordering::Relaxed), "a handler for Ctrl-C is already installed");
    let handler = |number| {
        RECEIVED.store(number, Ordering::Relaxed);
        handler(Signal(number));
    };
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

/// Waiting for signals in a thread, which may lock and write as any other; a signal handler may do neither.
#[cfg(unix)]
#[allow(unsafe_code, reason = "no safe function blocks a signal or waits for one")]
mod unix {
    use std::{io, mem, ptr, thread};

    /// Blocks the signals in this thread and in those that it starts, and starts one that waits for the first signal and calls
    /// `handler`. In that thread they are then no longer blocked, so the next one ends the process.
    pub(super) fn wait_in_thread(handler: impl FnOnce(i32) + Send + 'static) -> io::Result<()> {
        let mut signals = vec![libc::SIGINT, libc::SIGTERM];
        if !is_ignored(libc::SIGHUP) {
            signals.push(libc::SIGHUP);
        }
        let set = set_of(&signals);
        change(libc::SIG_BLOCK, &set)?;
        // An ignored signal is not delivered on every system, and would not end the process. Shells start background commands with
        // an ignored SIGINT.
        signals.iter().for_each(|&signal| restore_default(signal));
        let wait = move || {
            let mut number = 0;
            // SAFETY: both pointers are to local variables.
            while unsafe { libc::sigwait(&raw const set, &raw mut number) } != 0 {}
            // Only an invalid set of signals is an error.
            change(libc::SIG_UNBLOCK, &set).ok();
            handler(number);
        };
        let started = thread::Builder::new().name(String::from("signals")).spawn(wait).map(drop);
        if started.is_err() {
            // Nothing waits for the signals, so they end the process as before.
            change(libc::SIG_UNBLOCK, &set).ok();
        }
        started
    }

    /// Sends a signal to this thread, which ends the process if the signal does so by default.
    pub(super) fn raise(signal: i32) {
        restore_default(signal);
        change(libc::SIG_UNBLOCK, &set_of(&[signal])).ok();
        // SAFETY: no code of this program runs when the signal arrives.
        unsafe { libc::raise(signal) };
    }

    fn restore_default(signal: i32) {
        // SAFETY: the default action runs no code of this program.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }

    pub(super) fn is_ignored(signal: i32) -> bool {
        // SAFETY: a zeroed action is valid, and is overwritten; without a new action, nothing changes.
        unsafe {
            let mut action: libc::sigaction = mem::zeroed();
            libc::sigaction(signal, ptr::null(), &raw mut action) == 0 && action.sa_sigaction == libc::SIG_IGN
        }
    }

    fn set_of(signals: &[i32]) -> libc::sigset_t {
        // SAFETY: a zeroed set is a valid variable to be made empty.
        unsafe {
            let mut set = mem::zeroed();
            libc::sigemptyset(&raw mut set);
            for &signal in signals {
                libc::sigaddset(&raw mut set, signal);
            }
            set
        }
    }

    /// Blocks or unblocks signals in this thread.
    fn change(how: i32, set: &libc::sigset_t) -> io::Result<()> {
        // SAFETY: the set is initialized, and the previous one is not asked for.
        match unsafe { libc::pthread_sigmask(how, set, ptr::null_mut()) } {
            0 => Ok(()),
            error => Err(io::Error::from_raw_os_error(error)),
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
