//! Memory of the kind that a table has, to be read without one: from 2 MiB on it is in huge pages, where tables are.

#[cfg(target_os = "linux")]
pub(crate) use huge::Buffer;
#[cfg(not(target_os = "linux"))]
pub(crate) use small::Buffer;

/// Not the zeros of pages that nobody has written to, which are all one and the same page.
const FILLING: u8 = 0x5a;

#[cfg(target_os = "linux")]
mod huge {
    use super::FILLING;
    use memmap2::{Advice, MmapMut};
    use std::io;

    const HUGE_PAGE: usize = 2 << 20;

    pub(crate) struct Buffer {
        map: MmapMut,
        start: usize,
        len: usize,
    }

    impl Buffer {
        /// So many bytes; in huge pages, if tables are.
        pub(crate) fn new(len: usize, huge: bool) -> io::Result<Self> {
            let mut map = MmapMut::map_anon(len + HUGE_PAGE)?;
            let start = map.as_ptr().align_offset(HUGE_PAGE);
            if huge && len >= HUGE_PAGE {
                // As with tables, the last, incomplete page stays small, and an error changes nothing.
                _ = map.advise_range(Advice::HugePage, start, len - len % HUGE_PAGE);
            }
            map[start..start + len].fill(FILLING);
            Ok(Self { map, start, len })
        }

        pub(crate) fn bytes(&self) -> &[u8] {
            &self.map[self.start..self.start + self.len]
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod small {
    use super::FILLING;
    use std::io;

    pub(crate) struct Buffer(Vec<u8>);

    impl Buffer {
        pub(crate) fn new(len: usize, _: bool) -> io::Result<Self> {
            Ok(Self(vec![FILLING; len]))
        }

        pub(crate) fn bytes(&self) -> &[u8] {
            &self.0
        }
    }
}
