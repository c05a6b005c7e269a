//! The bytes of an item that is made of others.

use alloc::vec::Vec;

use crate::bits::wide;

/// Most items fit: a string of a hundred bytes with an integer or two.
const ON_THE_STACK: usize = 128;

/// Items that are bytes.
#[derive(Debug)]
pub struct Bytes<'a>(pub(super) &'a [u8]);

/// Bytes, appended one part after another. They move to the heap when the stack has no room for them.
#[derive(Debug)]
pub struct Parts {
    stack: [u8; ON_THE_STACK],
    len: usize,
    /// Empty, or all of the bytes.
    heap: Vec<u8>,
}

impl Parts {
    /// Calls `read` with what `write` appended.
    #[inline]
    pub(super) fn collect<R>(write: impl FnOnce(&mut Self), read: impl FnOnce(&[u8]) -> R) -> R {
        let mut parts = Self { stack: [0; ON_THE_STACK], len: 0, heap: Vec::new() };
        write(&mut parts);
        read(parts.as_slice())
    }

    #[inline]
    pub(super) fn push(&mut self, bytes: &[u8]) {
        let end = self.len + bytes.len();
        match self.stack.get_mut(self.len..end) {
            Some(room) => room.copy_from_slice(bytes),
            None => self.spill(bytes),
        }
        self.len = end;
    }

    /// The length in front of a part whose type does not determine where it ends.
    #[inline]
    pub(super) fn push_len(&mut self, len: usize) {
        self.push(&wide(len).to_le_bytes());
    }

    #[cold]
    fn spill(&mut self, bytes: &[u8]) {
        if self.heap.is_empty() {
            // As much again as on the stack, so that what follows seldom has to move everything.
            self.heap.reserve(self.len + bytes.len() + ON_THE_STACK);
            self.heap.extend_from_slice(&self.stack[..self.len]);
        }
        self.heap.extend_from_slice(bytes);
    }

    #[inline]
    fn as_slice(&self) -> &[u8] {
        self.stack.get(..self.len).unwrap_or(&self.heap)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn parts_are_what_was_pushed(pushed in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..70), 0..8)) {
            let bytes = Parts::collect(|parts| pushed.iter().for_each(|part| parts.push(part)), <[u8]>::to_vec);
            prop_assert_eq!(bytes, pushed.concat());
        }
    }

    #[test]
    fn parts_may_end_where_the_stack_does() {
        for first in [0, 1, ON_THE_STACK - 1, ON_THE_STACK, ON_THE_STACK + 1, 10 * ON_THE_STACK] {
            for second in [0, 1, 2, ON_THE_STACK, ON_THE_STACK + 1] {
                let write = |parts: &mut Parts| {
                    parts.push(&vec![1; first]);
                    parts.push(&vec![2; second]);
                    parts.push(&[]);
                    parts.push(&[3]);
                };
                let expected = [vec![1; first], vec![2; second], vec![3]].concat();
                assert_eq!(Parts::collect(write, <[u8]>::to_vec), expected, "{first} and {second}");
            }
        }
    }
}
