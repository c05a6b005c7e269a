//! Items that are bytes of any length. As parts they have their length in front.

use alloc::{ffi::CString, string::String};
use core::ffi::CStr;
#[cfg(all(feature = "std", unix))]
use std::{
    ffi::{OsStr, OsString},
    os::unix::ffi::OsStrExt as _,
    path::{Path, PathBuf},
};

use super::Item;

macro_rules! texts {
    ($($(#[$attribute:meta])* $text:ty: |$value:ident| $bytes:expr;)+) => {$(
        $(#[$attribute])*
        impl Item for $text {
            #[inline]
            fn with_bytes<R>(&self, read: impl FnOnce(&[u8]) -> R) -> R {
                let $value = self;
                read($bytes)
            }
        }
    )+};
}
texts! {
    str: |text| text.as_bytes();
    String: |text| text.as_bytes();
    CStr: |text| text.to_bytes();
    CString: |text| text.as_bytes();
}

// Elsewhere a path is not made of bytes, and how the standard library keeps it is not specified.
#[cfg(all(feature = "std", unix))]
texts! {
    /// On Unix only.
    OsStr: |text| text.as_bytes();
    /// On Unix only.
    OsString: |text| text.as_bytes();
    /// On Unix only.
    Path: |path| path.as_os_str().as_bytes();
    /// On Unix only.
    PathBuf: |path| path.as_os_str().as_bytes();
}
