//! Reads the system's counters, and the time of the reference workload.

use std::{
    fs::File,
    hint::black_box,
    io::{Read as _, Seek as _},
    marker::PhantomData,
    time::{Duration, Instant},
};

/// Cumulative counters of this thread. A counter is `None` if the system does not report it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counters {
    /// The time in which the thread was ready to run, but another one ran.
    pub(super) waited: Option<Duration>,
    /// The number of times that the thread was interrupted for another one.
    pub(super) interruptions: Option<u64>,
    /// The time in which a hypervisor ran something else, summed over all processors.
    pub(super) stolen: Option<Duration>,
}

/// The counters of this system. The files exist on Linux only, and stay open. The first two have the counters of the thread that
/// opened them, so this must not be sent to another thread.
pub(super) struct System {
    schedstat: Option<File>,
    status: Option<File>,
    stat: Option<File>,
    stays: PhantomData<*const ()>,
}

impl System {
    pub(super) fn new() -> Self {
        let [schedstat, status, stat] =
            ["/proc/thread-self/schedstat", "/proc/thread-self/status", "/proc/stat"].map(|path| File::open(path).ok());
        Self { schedstat, status, stat, stays: PhantomData }
    }

    /// Reads the counters of this thread.
    pub(super) fn counters(&self) -> Counters {
        let mut buffer = [0; 4096];
        Counters {
            waited: self.schedstat.as_ref().and_then(|file| waited(text(file, &mut buffer)?)),
            interruptions: self.status.as_ref().and_then(|file| interruptions(text(file, &mut buffer)?)),
            stolen: self.stat.as_ref().and_then(|file| stolen(text(file, &mut buffer)?)),
        }
    }
}

/// Runs the reference workload, which is always the same, and returns its time: that of the fastest of three short loops, so that
/// an interruption of one of them does not look like a slow processor. The loops read no memory, so the contents of the caches
/// stay.
pub(super) fn reference() -> Duration {
    let once = |_| {
        let start = Instant::now();
        black_box(multiply());
        start.elapsed()
    };
    (0..3).map(once).min().unwrap_or_default()
}

/// Does 20,000 multiplications, in four chains that a processor can execute in parallel.
fn multiply() -> u64 {
    let mut chains = black_box([1_u64, 2, 3, 4]);
    for _ in 0..5_000 {
        for chain in &mut chains {
            *chain = (*chain ^ *chain >> 29).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        }
    }
    chains.iter().fold(0, |all, chain| all ^ chain)
}

/// Reads the beginning of a file, up to the length of the buffer.
fn text<'a>(mut file: &File, buffer: &'a mut [u8]) -> Option<&'a str> {
    file.rewind().ok()?;
    let len = file.read(buffer).ok()?;
    str::from_utf8(&buffer[..len]).ok()
}

/// Parses `schedstat`: nanoseconds on a processor, nanoseconds of waiting for one, and the number of slices.
fn waited(schedstat: &str) -> Option<Duration> {
    schedstat.split_whitespace().nth(1)?.parse().ok().map(Duration::from_nanos)
}

fn interruptions(status: &str) -> Option<u64> {
    status.lines().find_map(|line| line.strip_prefix("nonvoluntary_ctxt_switches:"))?.trim().parse().ok()
}

/// Parses the first line of `/proc/stat`: "cpu" and the sums over all processors, in hundredths of a second.
fn stolen(stat: &str) -> Option<Duration> {
    let ticks: u64 = stat.lines().next()?.strip_prefix("cpu ")?.split_whitespace().nth(7)?.parse().ok()?;
    Some(Duration::from_millis(ticks.saturating_mul(10)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn linux_files_are_parsed() {
        assert_eq!(waited("1234 10227651 17\n"), Some(Duration::from_nanos(10_227_651)));
        assert_eq!(waited(""), None);
        let status = "Name:\tkoel\nvoluntary_ctxt_switches:\t7\nnonvoluntary_ctxt_switches:\t42\n";
        assert_eq!((interruptions(status), interruptions("Name:\tkoel\n")), (Some(42), None));
        let stat = "cpu  1793212 106758 118189 776426 2609 0 5528 15271 0 0\ncpu0 1 2 3 4 5 6 7 8 9 10\n";
        assert_eq!((stolen(stat), stolen("intr 5\n")), (Some(Duration::from_millis(152_710)), None));
    }

    #[test]
    fn the_reference_takes_time() {
        assert!(reference() > Duration::ZERO);
    }
}
