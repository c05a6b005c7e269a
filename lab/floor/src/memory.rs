//! Memory like that of a table: from 2 MiB on in huge pages, where tables are.

use std::io;

#[cfg(target_os = "linux")]
pub(crate) use huge::Memory;
#[cfg(not(target_os = "linux"))]
pub(crate) use small::Memory;

/// Not zero: the system maps all pages that were never written to one page of zeros, which stays in the cache.
const FILLING: u8 = 0x5a;

fn out_of_memory(len: usize) -> io::Error {
    io::Error::new(io::ErrorKind::OutOfMemory, format!("{len} bytes could not be allocated"))
}

#[cfg(target_os = "linux")]
mod huge {
    use super::{FILLING, out_of_memory};
    use memmap2::{Advice, MmapMut};
    use std::io;

    const HUGE_PAGE: usize = 2 << 20;

    pub(crate) struct Memory {
        map: MmapMut,
        start: usize,
        len: usize,
    }

    impl Memory {
        /// Allocates `len` bytes, aligned to a huge page.
        pub(crate) fn new(len: usize, huge_pages: bool) -> io::Result<Self> {
            // Only a map that is a huge page longer is sure to contain an aligned one.
            let mut map = MmapMut::map_anon(len.checked_add(HUGE_PAGE).ok_or_else(|| out_of_memory(len))?)?;
            let start = map.as_ptr().align_offset(HUGE_PAGE);
            if huge_pages && len >= HUGE_PAGE {
                // As in a table, the incomplete last page stays small. A system that refuses leaves all pages small.
                _ = map.advise_range(Advice::HugePage, start, len - len % HUGE_PAGE);
            }
            map[start..start + len].fill(FILLING);
            Ok(Self { map, start, len })
        }

        #[inline]
        pub(crate) fn bytes(&self) -> &[u8] {
            &self.map[self.start..self.start + self.len]
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod small {
    use super::{FILLING, out_of_memory};
    use std::io;

    pub(crate) struct Memory(Vec<u8>);

    impl Memory {
        /// Allocates `len` bytes. Only on Linux are there huge pages.
        pub(crate) fn new(len: usize, _huge_pages: bool) -> io::Result<Self> {
            let mut bytes = Vec::new();
            bytes.try_reserve_exact(len).map_err(|_| out_of_memory(len))?;
            bytes.resize(len, FILLING);
            Ok(Self(bytes))
        }

        #[inline]
        pub(crate) fn bytes(&self) -> &[u8] {
            &self.0
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_of_the_memory_has_been_written_to() {
        for (len, huge_pages) in [(0, true), (1, false), (4097, true), (5 << 20, true), (5 << 20, false)] {
            let memory = Memory::new(len, huge_pages).expect("there is memory");
            assert_eq!(memory.bytes().len(), len);
            assert!(memory.bytes().iter().all(|&byte| byte == FILLING), "{len}");
            // The address is the same for an empty slice, too.
            #[cfg(target_os = "linux")]
            assert_eq!(memory.bytes().as_ptr().addr() % (2 << 20), 0, "{len}");
        }
    }

    #[test]
    fn too_much_memory_is_an_error() {
        for len in [usize::MAX, usize::MAX / 2] {
            assert!(Memory::new(len, true).is_err(), "{len}");
        }
    }
}
