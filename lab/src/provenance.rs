//! Describes the program and the machine that measured. Every result includes this.

use std::{env, fmt, fs, io, sync::OnceLock};

use serde::{Deserialize, Serialize};
use sysinfo::{CpuRefreshKind, MemoryRefreshKind, RefreshKind, System};
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// A build of the program that measures. A field is `None` if its value is unknown.
///
/// Two builds are the same if their [`program`](Self::program) is the same. It identifies the whole executable: the library,
/// the laboratory, the experiment, every dependency, and the result of compiling them. A hash of koel's sources would not
/// reflect a change of a dependency, of a flag, or of an experiment that is defined elsewhere.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Build {
    /// The commit of koel's repository from which it was built; `None` outside of a checkout.
    pub commit: Option<String>,
    /// True if sources of koel or of the laboratory differed from that commit.
    pub modified: Option<bool>,
    /// The XXH3 hash of the executable, as 16 hexadecimal digits.
    pub program: Option<String>,
    /// The compiler's name, version and commit.
    pub compiler: Option<String>,
    /// The target triple.
    pub target: Option<String>,
    /// The optimization level, the profile's settings from environment variables, and `RUSTFLAGS`.
    pub flags: Option<String>,
}

impl Build {
    /// Returns the build of the running program. The first call reads the executable.
    #[must_use]
    pub fn current() -> &'static Self {
        static CURRENT: OnceLock<Build> = OnceLock::new();
        CURRENT.get_or_init(|| {
            let known = |text: Option<&str>| text.filter(|text| !text.is_empty()).map(String::from);
            Self {
                commit: known(option_env!("LAB_COMMIT")),
                modified: option_env!("LAB_MODIFIED").map(|modified| modified == "yes"),
                program: executable().ok().map(|bytes| format!("{:016x}", xxh3_64_with_seed(&bytes, 0))),
                compiler: known(option_env!("LAB_COMPILER")),
                target: known(option_env!("LAB_TARGET")),
                flags: known(option_env!("LAB_FLAGS")),
            }
        })
    }

    /// Returns true if both builds are known to be the same program.
    #[must_use]
    pub fn is(&self, other: &Self) -> bool {
        self.program.is_some() && self.program == other.program
    }

    /// Returns a text with the first ten characters of the commit, and whether the sources differed from it.
    #[must_use]
    pub fn source(&self) -> String {
        let Some(commit) = &self.commit else { return String::from("commit unknown") };
        let short = commit.get(..10).unwrap_or(commit);
        let changes = if self.modified == Some(true) { " with changes" } else { "" };
        format!("commit {short}{changes}")
    }
}

impl fmt::Display for Build {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, program {}", self.source(), self.program.as_deref().unwrap_or("unknown"))
    }
}

/// Reads the running executable, even if its file has been replaced or deleted since the start (on Linux only).
fn executable() -> io::Result<Vec<u8>> {
    fs::read("/proc/self/exe").or_else(|_| fs::read(env::current_exe()?))
}

/// A description of a machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    /// The name of the processor.
    pub processor: String,
    /// The number of cores that this program may use.
    pub cores: usize,
    /// The total memory, in MiB.
    pub memory_mib: u64,
    /// The operating system.
    pub system: String,
    /// The version of the operating system's kernel, if known.
    pub system_kernel: Option<String>,
    /// The fastest kernel of koel that the machine can run.
    pub kernel: String,
    /// True if the program was compiled with optimization. Without it, times mean nothing.
    pub optimized: bool,
}

impl Machine {
    /// Describes this machine.
    #[must_use]
    pub fn current() -> Self {
        let kind = RefreshKind::nothing().with_cpu(CpuRefreshKind::nothing());
        let system = System::new_with_specifics(kind.with_memory(MemoryRefreshKind::nothing().with_ram()));
        let processor = system.cpus().first().map_or("", |cpu| cpu.brand().trim());
        Self {
            processor: if processor.is_empty() { std::env::consts::ARCH } else { processor }.to_owned(),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            memory_mib: system.total_memory() >> 20,
            system: System::long_os_version().unwrap_or_else(|| std::env::consts::OS.to_owned()),
            system_kernel: System::kernel_version(),
            kernel: koel::Kernel::best().to_string(),
            optimized: !cfg!(debug_assertions),
        }
    }

    /// Returns the memory that is available now, in bytes, within the limits of a container.
    pub(crate) fn available_memory() -> u64 {
        let kind = RefreshKind::nothing().with_memory(MemoryRefreshKind::nothing().with_ram());
        let system = System::new_with_specifics(kind);
        if system.total_memory() == 0 {
            // The system does not report its memory.
            return u64::MAX;
        }
        let free = system.available_memory();
        // The free memory that sysinfo reports for a container does not include the page cache, which can be reclaimed.
        system.cgroup_limits().map_or(free, |limits| free.min(limits.total_memory.saturating_sub(limits.rss)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_build_of_this_program_is_known() {
        let current = Build::current();
        assert!(current.is(&current.clone()));
        assert!(current.program.as_ref().is_some_and(|hash| hash.len() == 16), "{current:?}");
        assert!(current.compiler.as_ref().is_some_and(|compiler| compiler.starts_with("rustc 1.")), "{current:?}");
        assert!(current.flags.as_ref().is_some_and(|flags| flags.starts_with("opt-level=")), "{current:?}");
        // An unknown build equals no other, and another program from the same commit is a different build.
        assert!(!Build::default().is(&Build::default()));
        assert!(!current.is(&Build { program: Some(String::from("another")), ..current.clone() }));
    }
}
