//! Memory of the kind that a table has, to be read without one: from 2 MiB on it is in huge pages, where tables are.

#[cfg(all(feature = "huge-pages", target_os = "linux"))]
pub(crate) use huge::Buffer;
#[cfg(not(all(feature = "huge-pages", target_os = "linux")))]
pub(crate) use small::Buffer;

/// Not the zeros of pages that nobody has written to, which are all one and the same page.
const FILLING: u8 = 0x5a;

#[cfg(all(feature = "huge-pages", target_os = "linux"))]
mod huge {
    use super::FILLING;
    use memmap2::{Advice, MmapMut};

    const HUGE_PAGE: usize = 2 << 20;

    pub(crate) struct Buffer {
        map: MmapMut,
        start: usize,
        len: usize,
    }

    impl Buffer {
        pub(crate) fn new(len: usize) -> Self {
            let mut map = MmapMut::map_anon(len + HUGE_PAGE).expect("there is memory");
            let start = map.as_ptr().align_offset(HUGE_PAGE);
            if len >= HUGE_PAGE {
                // As with tables, the last, incomplete page stays small, and an error changes nothing.
                _ = map.advise_range(Advice::HugePage, start, len - len % HUGE_PAGE);
            }
            map[start..start + len].fill(FILLING);
            Self { map, start, len }
        }

        pub(crate) fn bytes(&self) -> &[u8] {
            &self.map[self.start..self.start + self.len]
        }
    }
}

#[cfg(not(all(feature = "huge-pages", target_os = "linux")))]
mod small {
    use super::FILLING;

    pub(crate) struct Buffer(Vec<u8>);

    impl Buffer {
        pub(crate) fn new(len: usize) -> Self {
            Self(vec![FILLING; len])
        }

        pub(crate) fn bytes(&self) -> &[u8] {
            &self.0
        }
    }
}
