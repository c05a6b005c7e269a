//! References, and what owns an item: they are what they lead to.

use alloc::{
    borrow::{Cow, ToOwned},
    boxed::Box,
    rc::Rc,
};

use super::{Item, Parts};

macro_rules! owners {
    ($($owner:ty $(where T: $bound:path)?;)+) => {$(
        impl<T: Item + ?Sized $(+ $bound)?> Item for $owner {
            #[inline]
            fn with_bytes<R>(&self, read: impl FnOnce(&[u8]) -> R) -> R {
                T::with_bytes(self, read)
            }

            #[inline]
            fn write_part(&self, parts: &mut Parts) {
                T::write_part(self, parts);
            }
        }
    )+};
}
owners! {
    &T;
    &mut T;
    Box<T>;
    Rc<T>;
    Cow<'_, T> where T: ToOwned;
}
// Some of the smallest processors have no atomic pointers.
#[cfg(target_has_atomic = "ptr")]
owners!(alloc::sync::Arc<T>;);
