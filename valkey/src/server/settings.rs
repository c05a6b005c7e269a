//! Settings of the module in the server's configuration.

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

/// True on servers on which a setting can have a name without the module's before it: Redis 8, which is told from others by a function
/// that came with that. (Valkey 8 says that it is version 8, too.)
pub(super) fn takes_aliases() -> bool {
    server().RegisterDefragFunc2.is_some()
}

/// A number in the server's configuration.
pub(crate) struct Number {
    pub(crate) name: &'static CStr,
    pub(crate) alias: Option<Alias>,
    pub(crate) range: (i64, i64),
    /// Is it a number of bytes, such as 1gb?
    pub(crate) is_memory: bool,
    /// When it is registered, the default.
    pub(crate) value: AtomicI64,
}

/// RedisBloom's name of a number, for servers that let modules have settings without their own name before them: Redis 8.
pub(crate) struct Alias {
    /// `koel.name|alias`, or the alias alone if nothing here corresponds to it.
    pub(crate) names: &'static CStr,
    /// What the log says when it is set.
    pub(crate) note: &'static CStr,
}

/// A yes or a no in the server's configuration.
pub(crate) struct Switch {
    pub(crate) name: &'static CStr,
    /// When it is registered, the default.
    pub(crate) value: AtomicBool,
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
    let alias = number.alias.as_ref().filter(|_| takes_aliases());
    let name = alias.map_or(number.name, |alias| alias.names);
    let flags = if number.is_memory { MEMORY_CONFIG } else { 0 } | if alias.is_some() { UNPREFIXED_CONFIG } else { 0 };
    let register = server().RegisterNumericConfig;
    // SAFETY: the number lives for ever.
    match unsafe {
        register(context, name.as_ptr(), number.value.load(Relaxed), flags, least, most, get_number, set_number, None, data)
    } {
        OK => Ok(()),
        _ => Err(format!("the server refuses the setting {}", name.to_string_lossy())),
    }
}

pub(super) fn register_switch(context: *mut RawContext, switch: &'static Switch) -> Result<(), String> {
    let (data, default) = (ptr::from_ref(switch).cast_mut().cast(), switch.value.load(Relaxed).into());
    let register = server().RegisterBoolConfig;
    // SAFETY: the switch lives for ever.
    match unsafe { register(context, switch.name.as_ptr(), default, 0, get_switch, set_switch, None, data) } {
        OK => Ok(()),
        _ => Err(format!("the server refuses the setting {}", switch.name.to_string_lossy())),
    }
}

unsafe extern "C" fn get_switch(_: *const c_char, data: *mut c_void) -> c_int {
    // SAFETY: it was registered with a switch that lives for ever.
    unsafe { &*data.cast::<Switch>() }.value.load(Relaxed).into()
}

unsafe extern "C" fn set_switch(_: *const c_char, value: c_int, data: *mut c_void, _: *mut *mut RawText) -> c_int {
    // SAFETY: as above.
    unsafe { &*data.cast::<Switch>() }.value.store(value != 0, Relaxed);
    OK
}

unsafe extern "C" fn get_number(_: *const c_char, data: *mut c_void) -> c_longlong {
    // SAFETY: it was registered with a number that lives for ever.
    unsafe { &*data.cast::<Number>() }.value.load(Relaxed)
}

unsafe extern "C" fn set_number(_: *const c_char, value: c_longlong, data: *mut c_void, _: *mut *mut RawText) -> c_int {
    // SAFETY: as above.
    let number = unsafe { &*data.cast::<Number>() };
    if number.value.swap(value, Relaxed) != value
        && let Some(alias) = number.alias.as_ref().filter(|_| takes_aliases())
    {
        log(ptr::null_mut(), c"notice", alias.note);
    }
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
