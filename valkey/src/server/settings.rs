//! Settings of the module in the server's configuration.

use std::{
    ffi::{CStr, c_char, c_int, c_longlong, c_uint, c_void},
    ptr::{self, NonNull},
    sync::atomic::{AtomicI64, AtomicPtr, Ordering::Relaxed},
};

use super::{
    context::{NewText, Text},
    functions::{ERROR, OK, RawContext, RawText, server},
};
use crate::reply::Failure;

const MEMORY_CONFIG: c_uint = 1 << 7;

/// A number in the server's configuration.
pub(crate) struct Number {
    pub(crate) name: &'static CStr,
    pub(crate) default: i64,
    pub(crate) range: (i64, i64),
    /// Is it a number of bytes, such as 1gb?
    pub(crate) is_memory: bool,
    pub(crate) value: AtomicI64,
}

/// A text in the server's configuration.
pub(crate) struct Setting {
    pub(crate) name: &'static CStr,
    pub(crate) default: &'static CStr,
    pub(crate) get: fn() -> String,
    pub(crate) set: fn(&[u8]) -> Result<(), Failure>,
    shown: AtomicPtr<RawText>,
}

impl Setting {
    pub(crate) const fn new(
        name: &'static CStr,
        default: &'static CStr,
        get: fn() -> String,
        set: fn(&[u8]) -> Result<(), Failure>,
    ) -> Self {
        Self { name, default, get, set, shown: AtomicPtr::new(ptr::null_mut()) }
    }
}

pub(super) fn register_number(context: *mut RawContext, number: &'static Number) -> Result<(), String> {
    let (data, (least, most)) = (ptr::from_ref(number).cast_mut().cast(), number.range);
    let flags = if number.is_memory { MEMORY_CONFIG } else { 0 };
    let register = server().RegisterNumericConfig;
    // SAFETY: the number lives for ever.
    match unsafe {
        register(context, number.name.as_ptr(), number.default, flags, least, most, get_number, set_number, None, data)
    } {
        OK => Ok(()),
        _ => Err(format!("the server refuses the setting {}", number.name.to_string_lossy())),
    }
}

unsafe extern "C" fn get_number(_: *const c_char, data: *mut c_void) -> c_longlong {
    // SAFETY: it was registered with a number that lives for ever.
    unsafe { &*data.cast::<Number>() }.value.load(Relaxed)
}

unsafe extern "C" fn set_number(_: *const c_char, value: c_longlong, data: *mut c_void, _: *mut *mut RawText) -> c_int {
    // SAFETY: as above.
    unsafe { &*data.cast::<Number>() }.value.store(value, Relaxed);
    OK
}

pub(super) fn register_setting(context: *mut RawContext, setting: &'static Setting) -> Result<(), String> {
    let data = ptr::from_ref(setting).cast_mut().cast();
    let register = server().RegisterStringConfig;
    // SAFETY: the setting lives for ever.
    match unsafe { register(context, setting.name.as_ptr(), setting.default.as_ptr(), 0, get_setting, set_setting, None, data) } {
        OK => Ok(()),
        _ => Err(format!("the server refuses the setting {}", setting.name.to_string_lossy())),
    }
}

unsafe extern "C" fn get_setting(_: *const c_char, data: *mut c_void) -> *mut RawText {
    // SAFETY: it was registered with a setting that lives for ever.
    let setting = unsafe { &*data.cast::<Setting>() };
    let text = NewText::new((setting.get)().as_bytes()).into_raw();
    // The server does not free the text, and looks at it before it asks again.
    drop(NonNull::new(setting.shown.swap(text, Relaxed)).map(NewText::of_raw));
    text
}

unsafe extern "C" fn set_setting(_: *const c_char, value: *mut RawText, data: *mut c_void, error: *mut *mut RawText) -> c_int {
    let Some(value) = NonNull::new(value) else { return ERROR };
    // SAFETY: as above, and the text lives as long as the call.
    let (setting, value) = unsafe { (&*data.cast::<Setting>(), Text::new(value)) };
    match (setting.set)(value.bytes()) {
        Ok(()) => OK,
        Err(failure) => {
            // SAFETY: the server takes the text over.
            unsafe { *error = NewText::new(failure.words().to_bytes()).into_raw() };
            ERROR
        }
    }
}
