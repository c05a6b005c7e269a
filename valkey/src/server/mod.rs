//! The server's module API, made safe. All unsafe code of the module is in this folder.
//!
//! The server hands over a table of functions when it loads the module, and calls the functions that are registered here: one
//! for each [`Command`], and those of the [`Value`] that its keys hold. Nothing that they call can unwind into the server.

#![allow(unsafe_code, reason = "the server is written in C")]

mod about;
mod command;
mod context;
mod functions;
mod key;
mod memory;
mod settings;
mod value;

use std::{
    ffi::{CStr, c_int, c_void},
    panic::{AssertUnwindSafe, catch_unwind},
};

use functions::{ERROR, FUNCTIONS, Functions, GetApi, OK, RawContext, server};
pub(crate) use {
    about::{About, Access, Argument},
    command::Command,
    context::{Context, Text},
    key::{Found, Key},
    memory::boxed,
    settings::{Number, Setting},
    value::{Digest, Handle, Loading, Rewriting, Saving, ServerBytes, Value},
};

use crate::reply::Failure;

const API_VERSION: c_int = 1;

/// Errors of reading are handled here, and slots with filters may be migrated atomically.
const OPTIONS: c_int = 1 | 1 << 5;

/// Calls a function, and keeps a panic from the server.
fn guarded<T>(act: impl FnOnce() -> T) -> Option<T> {
    catch_unwind(AssertUnwindSafe(act)).ok()
}

/// What is registered when the module is loaded.
pub(crate) struct Module {
    raw: *mut RawContext,
    result: Result<(), String>,
}

impl Module {
    fn then(mut self, register: impl FnOnce(*mut RawContext) -> Result<(), String>) -> Self {
        let raw = self.raw;
        self.result = self.result.and_then(|()| register(raw));
        self
    }

    pub(crate) fn category(self, name: &CStr) -> Self {
        self.then(|context| match server().AddACLCategory {
            // SAFETY: the server copies the name.
            Some(add) if unsafe { add(context, name.as_ptr()) } != OK => {
                Err(format!("the server refuses the category {}", name.to_string_lossy()))
            }
            _ => Ok(()),
        })
    }

    pub(crate) fn command<C: Command>(self) -> Self {
        self.then(command::register::<C>)
    }

    pub(crate) fn values<V: Value>(self) -> Self {
        self.then(value::register::<V>)
    }

    pub(crate) fn number(self, number: &'static Number) -> Self {
        self.then(|context| settings::register_number(context, number))
    }

    pub(crate) fn setting(self, setting: &'static Setting) -> Self {
        self.then(|context| settings::register_setting(context, setting))
    }
}

/// What the server calls when it loads the module.
///
/// # Safety
/// Only the server may call it, once, with a context and so many arguments.
#[unsafe(no_mangle)]
unsafe extern "C" fn RedisModule_OnLoad(context: *mut c_void, _arguments: *mut *mut c_void, len: c_int) -> c_int {
    let raw: *mut RawContext = context.cast();
    // SAFETY: a context begins with the function that finds all others.
    let functions = unsafe { Functions::load(*context.cast::<GetApi>()) };
    let Ok(functions) = functions else {
        // Without functions there is no log.
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
    let start = match len {
        0 => Ok(()),
        _ => Err(String::from(
            "koel takes no arguments; put its settings, such as koel.error-rate, into the server's configuration",
        )),
    };
    let registered = guarded(|| crate::register(Module { raw, result: start }).result);
    match registered.unwrap_or_else(|| Err(String::from("koel panicked"))) {
        // SAFETY: all settings have been registered.
        Ok(()) => unsafe { (server.LoadConfigs)(raw) },
        Err(message) => {
            context::log(raw, Failure::new(message).words());
            ERROR
        }
    }
}
