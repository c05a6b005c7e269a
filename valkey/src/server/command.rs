//! Commands: what the module says of them, and how the server calls them.

use std::{
    cell::Cell,
    ffi::{CStr, c_char, c_int, c_void},
    ptr::{self, NonNull},
    slice,
};

use super::{
    context::{Context, Text},
    functions::{ERROR, OK, RawContext, RawText, server},
    guarded,
};
use crate::reply::{Failure, Reply};

/// A command of the module. Its first argument is the name of its key.
pub(crate) trait Command {
    const NAME: &'static CStr;
    /// Flags, as the server names them: "write deny-oom", "readonly fast".
    const FLAGS: &'static CStr;
    /// Categories for access control.
    const CATEGORIES: &'static CStr;
    /// The number of arguments with the command's name, negated if there may be more.
    const ARITY: i32;
    const SUMMARY: &'static CStr;
    const COMPLEXITY: &'static CStr;
    /// What happens to the key.
    const ACCESS: Access;

    fn run(context: &Context, arguments: &[Text<'_>]) -> Result<Reply, Failure>;
}

/// What a command does with its key.
#[derive(Clone, Copy)]
pub(crate) enum Access {
    Read,
    Insert,
    Update,
    Delete,
}

impl Access {
    /// The server's flags for it.
    fn flags(self) -> u64 {
        const READ_ONLY: u64 = 1;
        const READ_WRITE: u64 = 1 << 1;
        const ACCESS: u64 = 1 << 4;
        const UPDATE: u64 = 1 << 5;
        const INSERT: u64 = 1 << 6;
        const DELETE: u64 = 1 << 7;
        match self {
            Self::Read => READ_ONLY | ACCESS,
            Self::Insert => READ_WRITE | INSERT,
            Self::Update => READ_WRITE | ACCESS | UPDATE,
            Self::Delete => READ_WRITE | DELETE,
        }
    }
}

unsafe extern "C" fn run<C: Command>(raw: *mut RawContext, arguments: *mut *mut RawText, len: c_int) -> c_int {
    let Some(raw) = NonNull::new(raw) else { return ERROR };
    let context = Context { raw, is_key_open: Cell::new(false) };
    // SAFETY: the server gives so many texts, none of them null, and keeps them for the time of the call. `Text` has the layout
    // of a pointer.
    let arguments = unsafe { slice::from_raw_parts(arguments.cast::<Text<'_>>(), usize::try_from(len).unwrap_or(0)) };
    let is_allowed = if C::ARITY < 0 { len >= -C::ARITY } else { len == C::ARITY };
    let result = if is_allowed { guarded(|| C::run(&context, arguments)) } else { Some(Ok(Reply::WrongArity)) };
    match result {
        Some(Ok(reply)) => context.send(reply),
        Some(Err(failure)) => context.refuse(&failure.to_string()),
        None => {
            context.warn("a command of koel panicked; please report what led to it");
            context.refuse("ERR internal error in koel, which the server's log describes; please report it");
        }
    }
    OK
}

#[repr(C)]
pub(super) struct RawCommandInfo {
    version: *const CommandInfoVersion,
    summary: *const c_char,
    complexity: *const c_char,
    since: *const c_char,
    history: *mut c_void,
    tips: *const c_char,
    arity: c_int,
    key_specs: *mut KeySpec,
    arguments: *mut c_void,
}

#[repr(C)]
struct CommandInfoVersion {
    version: c_int,
    history_entry: usize,
    key_spec: usize,
    argument: usize,
}

/// Where a command's keys are.
#[repr(C)]
#[derive(Clone, Copy)]
struct KeySpec {
    notes: *const c_char,
    flags: u64,
    begin_search: c_int,
    begin: BeginSearch,
    find_keys: c_int,
    last_key: c_int,
    key_step: c_int,
    limit: c_int,
}

/// An index, in a union that has room for a pointer and a number.
#[repr(C)]
#[derive(Clone, Copy)]
struct BeginSearch {
    index: c_int,
    unused: usize,
}

/// Registers a command.
pub(super) fn register<C: Command>(context: *mut RawContext) -> Result<(), String> {
    let server = server();
    let failed = |what: &str| format!("{} cannot be registered: {what}", C::NAME.to_string_lossy());
    // SAFETY: the server copies all texts and structs, which have the layout that it expects.
    unsafe {
        if (server.CreateCommand)(context, C::NAME.as_ptr(), run::<C>, C::FLAGS.as_ptr(), 1, 1, 1) != OK {
            return Err(failed("the server has a command of this name; load the module without the other one that has it"));
        }
        let command = (server.GetCommand)(context, C::NAME.as_ptr());
        let version = CommandInfoVersion { version: 1, history_entry: 16, key_spec: size_of::<KeySpec>(), argument: 72 };
        let none = KeySpec {
            notes: ptr::null(),
            flags: 0,
            begin_search: 0,
            begin: BeginSearch { index: 0, unused: 0 },
            find_keys: 0,
            last_key: 0,
            key_step: 0,
            limit: 0,
        };
        // A key at an index, and a range of keys of this one alone.
        let first = BeginSearch { index: 1, unused: 0 };
        let spec = KeySpec { flags: C::ACCESS.flags(), begin_search: 2, begin: first, find_keys: 2, key_step: 1, ..none };
        let mut specs = [spec, none];
        let info = RawCommandInfo {
            version: &raw const version,
            summary: C::SUMMARY.as_ptr(),
            complexity: C::COMPLEXITY.as_ptr(),
            since: c"0.1.0".as_ptr(),
            history: ptr::null_mut(),
            tips: ptr::null(),
            arity: C::ARITY,
            key_specs: specs.as_mut_ptr(),
            arguments: ptr::null_mut(),
        };
        if (server.SetCommandInfo)(command, &raw const info) != OK {
            return Err(failed("the server refuses its description"));
        }
        if let Some(set_categories) = server.SetCommandACLCategories
            && set_categories(command, C::CATEGORIES.as_ptr()) != OK
        {
            return Err(failed("the server refuses its categories"));
        }
    }
    Ok(())
}
