//! Vectors whose memory may be refused.

use alloc::vec::Vec;

use super::OutOfMemory;

/// An empty vector with room for so many.
pub(crate) fn reserved<T>(len: usize) -> Result<Vec<T>, OutOfMemory> {
    let mut vector = Vec::new();
    vector.try_reserve_exact(len).map_err(|_| OutOfMemory::of(len.saturating_mul(size_of::<T>())))?;
    Ok(vector)
}

/// Makes room for so many more, and no others.
pub(crate) fn reserve_exact<T>(vector: &mut Vec<T>, more: usize) -> Result<(), OutOfMemory> {
    let needed = (vector.len() + more).saturating_mul(size_of::<T>());
    vector.try_reserve_exact(more).map_err(|_| OutOfMemory::of(needed))
}

/// Frees memory beyond that for `capacity` elements, or for those that there are. `Vec::shrink_to` would abort the process if the
/// allocator refuses: here the vector stays as it is.
pub(crate) fn shrink_to<T>(vector: &mut Vec<T>, capacity: usize) {
    let capacity = vector.len().max(capacity);
    if vector.capacity() > capacity
        && let Ok(mut smaller) = reserved(capacity)
    {
        smaller.append(vector);
        *vector = smaller;
    }
}

/// Makes room for so many more.
pub(crate) fn reserve<T>(vector: &mut Vec<T>, more: usize) -> Result<(), OutOfMemory> {
    let needed = (vector.len() + more).saturating_mul(size_of::<T>());
    vector.try_reserve(more).map_err(|_| OutOfMemory::of(needed))
}
