//! Where the figures came about: without it they mean little.

use serde::{Deserialize, Serialize};
use sysinfo::{CpuRefreshKind, MemoryRefreshKind, RefreshKind, System};

/// The facts of a machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    /// The processor's name.
    pub processor: String,
    /// Cores that this program may use.
    pub cores: usize,
    /// Memory, in MiB.
    pub memory_mib: u64,
    /// The operating system.
    pub system: String,
    /// The best kernel that koel has for it.
    pub kernel: String,
    /// Was the program compiled with optimization? Without it, times mean nothing.
    pub optimized: bool,
}

impl Machine {
    /// This one.
    #[must_use]
    pub fn here() -> Self {
        let kind = RefreshKind::nothing().with_cpu(CpuRefreshKind::nothing());
        let system = System::new_with_specifics(kind.with_memory(MemoryRefreshKind::nothing().with_ram()));
        let processor = system.cpus().first().map_or("", |cpu| cpu.brand().trim());
        Self {
            processor: if processor.is_empty() { std::env::consts::ARCH } else { processor }.to_owned(),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            memory_mib: system.total_memory() >> 20,
            system: System::long_os_version().unwrap_or_else(|| std::env::consts::OS.to_owned()),
            kernel: koel::Kernel::best().to_string(),
            optimized: !cfg!(debug_assertions),
        }
    }

    /// The memory that is free for use now, in bytes; also by the limits of a container.
    pub(crate) fn available_memory() -> u64 {
        let kind = RefreshKind::nothing().with_memory(MemoryRefreshKind::nothing().with_ram());
        let system = System::new_with_specifics(kind);
        if system.total_memory() == 0 {
            // Nobody knows here.
            return u64::MAX;
        }
        let free = system.available_memory();
        // What sysinfo calls free there leaves out the files that the system keeps in memory while nobody needs it.
        system.cgroup_limits().map_or(free, |limits| free.min(limits.total_memory.saturating_sub(limits.rss)))
    }
}
