//! A safe interface to the server's module API. All unsafe code of the module is in this folder.
//!
//! The server provides its functions when it loads the module. It calls the functions that are registered here: one for each
//! [`Command`], and those of the [`Value`] that its keys hold. No panic unwinds into the server.

#![allow(unsafe_code, reason = "the server is written in C")]

mod about;
mod command;
mod context;
mod counted;
mod ending;
mod entry;
mod functions;
mod key;
mod memory;
mod settings;
mod value;

use std::{
    ffi::{CStr, c_int},
    panic::{AssertUnwindSafe, catch_unwind},
};

use functions::{OK, RawContext, RawInfo, server};
pub(crate) use {
    about::{About, Access, Argument},
    command::Command,
    context::{Context, Text},
    counted::{allocated_bytes, allocation_count},
    key::{Found, Key},
    memory::boxed,
    settings::{Alias, Number, Setting, Switch},
    value::{Digest, Handle, Loading, Rewriting, Saving, ServerBytes, Value},
};

use crate::{
    counts,
    reply::{Failure, Message},
};

/// Calls a function. Returns `None` if it panics, so that the panic does not reach the server.
fn catch_panic<T>(act: impl FnOnce() -> T) -> Option<T> {
    catch_unwind(AssertUnwindSafe(act)).ok()
}

/// The registration of the module with the server. The first error stops it.
pub(crate) struct Module<'a> {
    raw: *mut RawContext,
    /// The arguments after the module's path in MODULE LOAD or `loadmodule`.
    arguments: &'a [Text<'a>],
    result: Result<(), String>,
}

impl Module<'_> {
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

    /// Reads the module's arguments, pairs of name and value, and logs the effect of each.
    pub(crate) fn arguments(self, read: impl Fn(&[u8], Option<&[u8]>) -> Result<Message, Failure>) -> Self {
        let arguments = self.arguments;
        self.then(|context| {
            arguments.chunks(2).try_for_each(|pair| {
                let note = read(pair[0].bytes(), pair.get(1).map(|value| value.bytes()));
                context::log(context, c"notice", note.map_err(|failure| failure.to_string())?.as_c_str());
                Ok(())
            })
        })
    }

    pub(crate) fn number(self, number: &'static Number) -> Self {
        self.then(|context| settings::register_number(context, number))
    }

    /// Registers numbers that have no effect, only for their aliases.
    pub(crate) fn without_effect(self, numbers: &'static [Number]) -> Self {
        if settings::supports_aliases() { numbers.iter().fold(self, Self::number) } else { self }
    }

    pub(crate) fn switch(self, switch: &'static Switch) -> Self {
        self.then(|context| settings::register_switch(context, switch))
    }

    /// Registers the function that fills the module's section of INFO.
    pub(crate) fn info(self) -> Self {
        self.then(|context| {
            // SAFETY: the function has the type that the server expects.
            match unsafe { (server().RegisterInfoFunc)(context, report_info) } {
                OK => Ok(()),
                _ => Err(String::from("the server refuses a section of INFO")),
            }
        })
    }

    pub(crate) fn setting(self, setting: &'static Setting) -> Self {
        self.then(|context| settings::register_setting(context, setting))
    }
}

/// Adds the module's section to INFO. Reads only atomic numbers, because a crashing server calls it, too.
unsafe extern "C" fn report_info(info: *mut RawInfo, _is_crash: c_int) {
    let server = server();
    // SAFETY: the server copies the names, and `info` belongs to this call. `InfoAddSection` fails if the section was not
    // requested.
    unsafe {
        if (server.InfoAddSection)(info, c"".as_ptr()) == OK {
            counts::each_field(|name, count| _ = (server.InfoAddFieldULongLong)(info, name.as_ptr(), count));
        }
    }
}
