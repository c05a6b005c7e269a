//! The entry point: the function that the server calls when it loads the module.

use std::{
    ffi::{c_int, c_void},
    slice,
};

use super::{
    Module, catch_panic,
    context::{Text, log},
    functions::{ERROR, FUNCTIONS, Functions, GetApi, RawContext, server},
};
use crate::reply::Failure;

const API_VERSION: c_int = 1;

/// Option bits: the module handles read errors, it signals changed keys itself, and atomic slot migration may move its keys.
const OPTIONS: c_int = 1 | 1 << 1 | 1 << 5;

/// Registers the module with the server.
///
/// # Safety
/// Only the server may call it, once, with a context and this many arguments.
#[unsafe(no_mangle)]
unsafe extern "C" fn RedisModule_OnLoad(context: *mut c_void, arguments: *mut *mut c_void, len: c_int) -> c_int {
    let raw: *mut RawContext = context.cast();
    // SAFETY: a context begins with the function that looks up all others.
    let functions = unsafe { Functions::load(*context.cast::<GetApi>()) };
    let Ok(functions) = functions else {
        // Without the server's functions, its log is not available.
        eprintln!("koel: this server lacks a function of the module API that koel needs; use Valkey, or Redis 7.0 or later");
        return ERROR;
    };
    if FUNCTIONS.set(functions).is_err() {
        return ERROR;
    }
    let server = server();
    // SAFETY: the server copies the name.
    unsafe {
        if server.IsModuleNameBusy.is_some_and(|is_busy| is_busy(crate::NAME.as_ptr()) != 0) {
            return ERROR;
        }
        (server.SetModuleAttribs)(raw, crate::NAME.as_ptr(), crate::VERSION, API_VERSION);
        (server.SetModuleOptions)(raw, OPTIONS);
    }
    let arguments = match usize::try_from(len) {
        // SAFETY: the server passes this many strings, none of them null, and keeps them until the call ends.
        Ok(len @ 1..) => unsafe { slice::from_raw_parts(arguments.cast::<Text<'_>>(), len) },
        _ => &[],
    };
    let registered = catch_panic(|| crate::register(Module { raw, arguments, result: Ok(()) }).result);
    match registered.unwrap_or_else(|| Err(String::from("koel panicked"))) {
        // SAFETY: all settings have been registered.
        Ok(()) => unsafe { (server.LoadConfigs)(raw) },
        Err(message) => {
            log(raw, c"warning", Failure::new(message).message());
            ERROR
        }
    }
}
