//! Being told to stop.

use std::{
    fmt, process,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use anyhow::Context as _;

/// Whether to stop: set from outside, looked at by whatever takes long.
#[derive(Debug, Default)]
pub struct Interrupt(AtomicBool);

impl Interrupt {
    /// Not yet.
    #[must_use]
    pub const fn new() -> Self {
        Self(AtomicBool::new(false))
    }

    /// What a program ends with that was stopped by Ctrl-C: 128 and the signal's number.
    pub const STATUS: u8 = 130;

    /// One that Ctrl-C sets. The second time, the program ends at once, as it does by any other signal: the journal has
    /// everything that was finished.
    ///
    /// # Errors
    /// If there is a handler already, or the system has none.
    pub fn on_ctrl_c() -> anyhow::Result<Arc<Self>> {
        let interrupt = Arc::new(Self::new());
        let shared = Arc::clone(&interrupt);
        let handler = move || {
            if shared.is_set() {
                process::exit(i32::from(Self::STATUS));
            }
            shared.set();
        };
        ctrlc::set_handler(handler).context("Ctrl-C cannot be watched for")?;
        Ok(interrupt)
    }

    /// Asks everybody to stop.
    pub fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Has somebody asked?
    #[must_use]
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// For `?` in the middle of a measurement: a few times in a second is often enough.
    ///
    /// # Errors
    /// [`Interrupted`] if somebody has asked.
    pub fn check(&self) -> Result<(), Interrupted> {
        if self.is_set() { Err(Interrupted) } else { Ok(()) }
    }
}

/// A measurement was not finished, since somebody asked for it to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interrupted;

impl fmt::Display for Interrupted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("interrupted")
    }
}

impl std::error::Error for Interrupted {}
