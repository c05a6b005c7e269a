//! The module's settings in the server's configuration.

use std::{
    ffi::{CStr, c_char, c_int, c_longlong, c_uint, c_void},
    ptr::{self, NonNull},
    sync::atomic::{AtomicBool, AtomicI64, AtomicPtr, Ordering::Relaxed},
};

use super::{
    context::{NewText, Text, log},
    functions::{ERROR, OK, RawContext, RawText, server},
};
use crate::reply::Failure;

const MEMORY_CONFIG: c_uint = 1 << 7;
const UNPREFIXED_CONFIG: c_uint = 1 << 9;

/// Returns true if settings can have names without the module's prefix, as in Redis 8. A function that only Redis 8 has tells it
/// apart from Valkey 8, which reports version 8, too.
pub(super) fn supports_aliases() -> bool {
    server().RegisterDefragFunc2.is_some()
}

/// A number in the server's configuration.
pub(crate) struct Number {
    pub(crate) name: &'static CStr,
    pub(crate) alias: Option<Alias>,
    pub(crate) range: (i64, i64),
    /// True if the number is in bytes, such as 1gb.
    pub(crate) is_memory: bool,
    /// The current value. At registration, the default.
    pub(crate) value: AtomicI64,
}

/// RedisBloom's name of a setting, for servers that allow names without the module's prefix (Redis 8).
pub(crate) struct Alias {
    /// `koel.name|alias`, or the alias alone if koel has no such setting.
    pub(crate) names: &'static CStr,
    /// The log message when the alias is set.
    pub(crate) note: &'static CStr,
}

/// A boolean in the server's configuration.
pub(crate) struct Switch {
    pub(crate) name: &'static CStr,
    /// The current value. At registration, the default.
    pub(crate) value: AtomicBool,
}

/// A string in the server's configuration.
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
    let alias = number.alias.as_ref().filter(|_| supports_aliases());
    let name = alias.map_or(number.name, |alias| alias.names);
    let flags = if number.is_memory { MEMORY_CONFIG } else { 0 } | if alias.is_some() { UNPREFIXED_CONFIG } else { 0 };
    let (register, value) = (server().RegisterNumericConfig, number.value.load(Relaxed));
    // SAFETY: the number is static.
    let result = unsafe { register(context, name.as_ptr(), value, flags, least, most, get_number, set_number, None, data) };
    accepted(result, name)
}

/// Returns an error if the server refused a setting.
fn accepted(result: c_int, name: &CStr) -> Result<(), String> {
    if result == OK { Ok(()) } else { Err(format!("the server refuses the setting {}", name.to_string_lossy())) }
}

pub(super) fn register_switch(context: *mut RawContext, switch: &'static Switch) -> Result<(), String> {
    let (data, default) = (ptr::from_ref(switch).cast_mut().cast(), switch.value.load(Relaxed).into());
    let register = server().RegisterBoolConfig;
    // SAFETY: the switch is static.
    accepted(unsafe { register(context, switch.name.as_ptr(), default, 0, get_switch, set_switch, None, data) }, switch.name)
}

unsafe extern "C" fn get_switch(_: *const c_char, data: *mut c_void) -> c_int {
    // SAFETY: it was registered with a static switch.
    unsafe { &*data.cast::<Switch>() }.value.load(Relaxed).into()
}

unsafe extern "C" fn set_switch(_: *const c_char, value: c_int, data: *mut c_void, _: *mut *mut RawText) -> c_int {
    // SAFETY: as above.
    unsafe { &*data.cast::<Switch>() }.value.store(value != 0, Relaxed);
    OK
}

unsafe extern "C" fn get_number(_: *const c_char, data: *mut c_void) -> c_longlong {
    // SAFETY: it was registered with a static number.
    unsafe { &*data.cast::<Number>() }.value.load(Relaxed)
}

unsafe extern "C" fn set_number(_: *const c_char, value: c_longlong, data: *mut c_void, _: *mut *mut RawText) -> c_int {
    // SAFETY: as above.
    let number = unsafe { &*data.cast::<Number>() };
    if number.value.swap(value, Relaxed) != value
        && let Some(alias) = number.alias.as_ref().filter(|_| supports_aliases())
    {
        log(ptr::null_mut(), c"notice", alias.note);
    }
    OK
}

pub(super) fn register_setting(context: *mut RawContext, setting: &'static Setting) -> Result<(), String> {
    let data = ptr::from_ref(setting).cast_mut().cast();
    let Setting { name, default, .. } = setting;
    let register = server().RegisterStringConfig;
    // SAFETY: the setting is static.
    accepted(unsafe { register(context, name.as_ptr(), default.as_ptr(), 0, get_setting, set_setting, None, data) }, name)
}

unsafe extern "C" fn get_setting(_: *const c_char, data: *mut c_void) -> *mut RawText {
    // SAFETY: it was registered with a static setting.
    let setting = unsafe { &*data.cast::<Setting>() };
    let text = NewText::new((setting.get)().as_bytes()).into_raw();
    // The server does not free the string, and reads it before it calls this function again.
    drop(NonNull::new(setting.shown.swap(text, Relaxed)).map(NewText::from_raw));
    text
}

unsafe extern "C" fn set_setting(_: *const c_char, value: *mut RawText, data: *mut c_void, error: *mut *mut RawText) -> c_int {
    let Some(value) = NonNull::new(value) else { return ERROR };
    // SAFETY: as above, and the string lives until the call ends.
    let (setting, value) = unsafe { (&*data.cast::<Setting>(), Text::new(value)) };
    match (setting.set)(value.bytes()) {
        Ok(()) => OK,
        Err(failure) => {
            // SAFETY: the server takes ownership of the string.
            unsafe { *error = NewText::new(failure.message().to_bytes()).into_raw() };
            ERROR
        }
    }
}
