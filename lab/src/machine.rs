//! The machine that measured: part of every result.

use serde::{Deserialize, Serialize};
use sysinfo::{CpuRefreshKind, MemoryRefreshKind, RefreshKind, System};

/// A description of a machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    /// The name of the processor.
    pub processor: String,
    /// How many cores this program may use.
    pub cores: usize,
    /// Memory, in MiB.
    pub memory_mib: u64,
    /// The operating system.
    pub system: String,
    /// The version of its kernel, if that is known.
    #[serde(default)]
    pub system_kernel: Option<String>,
    /// The fastest kernel of koel that it can run.
    pub kernel: String,
    /// Whether the program was compiled with optimization. Without it, times mean nothing.
    pub optimized: bool,
}

impl Machine {
    /// This machine.
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
            system_kernel: System::kernel_version(),
            kernel: koel::Kernel::best().to_string(),
            optimized: !cfg!(debug_assertions),
        }
    }

    /// The memory available now, in bytes, within the limits of a container.
    pub(crate) fn available_memory() -> u64 {
        let kind = RefreshKind::nothing().with_memory(MemoryRefreshKind::nothing().with_ram());
        let system = System::new_with_specifics(kind);
        if system.total_memory() == 0 {
            // Unknown on this system.
            return u64::MAX;
        }
        let free = system.available_memory();
        // The free memory that sysinfo reports for a container does not include the page cache, which can be reclaimed.
        system.cgroup_limits().map_or(free, |limits| free.min(limits.total_memory.saturating_sub(limits.rss)))
    }
}
