//! The names of files in a folder of `koel uniq --forget`, which no other command changes.

use std::{
    fmt::Display,
    fs,
    path::Path,
    time::{Duration, UNIX_EPOCH},
};

use anyhow::bail;

/// The last second of a year with four digits.
pub(crate) const LAST_SECOND: u64 = 253_402_300_799;

pub(crate) fn format_time(second: u64) -> impl Display {
    humantime::format_rfc3339_seconds(UNIX_EPOCH + Duration::from_secs(second.min(LAST_SECOND)))
}

/// The kinds of files that a slice has.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    Filter,
    Journal,
}

impl Part {
    const fn ending(self) -> &'static str {
        match self {
            Self::Filter => "s.koel",
            Self::Journal => "s.hashes",
        }
    }

    /// Returns the name of a file of the slice that begins at the second `start`, with the length `slice`.
    pub(crate) fn name(self, start: u64, slice: u64) -> String {
        format!("{}-{slice}{}", format_time(start).to_string().replace(['-', ':'], ""), self.ending())
    }

    /// Returns the part, the begin and the length that a file's name has.
    pub(crate) fn parse(name: &str) -> Option<(Self, u64, u64)> {
        let (time, rest) = name.split_once('-')?;
        let find = |part: Self| Some((part, rest.strip_suffix(part.ending())?.parse().ok()?));
        let (part, slice) = find(Self::Filter).or_else(|| find(Self::Journal))?;
        let digits = |from: usize, to: usize| time.get(from..to);
        let (date, clock) = ([digits(0, 4)?, digits(4, 6)?, digits(6, 8)?], [digits(9, 11)?, digits(11, 13)?, digits(13, 15)?]);
        let time = humantime::parse_rfc3339(&format!("{}T{}Z", date.join("-"), clock.join(":"))).ok()?;
        let start = time.duration_since(UNIX_EPOCH).ok()?.as_secs();
        // Any other spelling is not a name of ours.
        (slice > 0 && part.name(start, slice) == name).then_some((part, start, slice))
    }
}

/// Returns whether a path leads to a folder with filters of `koel uniq --forget`.
pub(crate) fn is_window(path: &Path) -> bool {
    let is_part = |entry: fs::DirEntry| Part::parse(&entry.file_name().to_string_lossy()).is_some();
    fs::read_dir(path).is_ok_and(|mut entries| entries.any(|entry| entry.is_ok_and(is_part)))
}

/// Fails if a path that another command would write to leads to a folder of `koel uniq --forget`, or to a file in it. The next run would
/// undo a change of it, and refuse a folder with other files.
pub(crate) fn refuse_window(path: &Path) -> anyhow::Result<()> {
    let name = path.display();
    if is_window(path) {
        bail!("{name}: is a folder of `koel uniq --forget`, which no other command changes; give the name of another filter");
    }
    let target = super::target(path);
    for path in [path, &target] {
        if is_window(super::folder(path)) {
            bail!(
                "{name}: is in a folder of `koel uniq --forget`, which no other command changes; give a name in another folder"
            );
        }
        if Part::parse(&path.file_name().unwrap_or_default().to_string_lossy()).is_some() {
            bail!(
                "{name}: has the name of a file that only `koel uniq --forget` changes; give another name, such as that of a copy"
            );
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_slices_have_their_times() {
        let name = Part::Filter.name(1_795_869_600, 300);
        assert_eq!(name, "20261128T124000Z-300s.koel");
        assert!(Part::parse(&name) == Some((Part::Filter, 1_795_869_600, 300)));
        assert!(Part::parse("20261128T124000Z-300s.hashes") == Some((Part::Journal, 1_795_869_600, 300)));
        for other in [
            "",
            "lock",
            "20261128T124000Z-0s.koel",
            "20261128T124000Z-0300s.koel",
            "20261328T124000Z-300s.koel",
            "2026-300s.koel",
        ] {
            assert!(Part::parse(other).is_none(), "{other}");
        }
    }
}
