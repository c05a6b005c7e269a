//! Commands, their registration, and the function that the server calls.

use std::{ffi::c_int, ptr::NonNull, slice};

use super::{
    about::About,
    catch_panic,
    context::{Context, Text, log},
    ending::{Name, end_start},
    functions::{ERROR, OK, RawContext, RawText, server},
};
use crate::reply::{Failure, Reply};

/// A command of the module.
pub(crate) trait Command {
    const ABOUT: About;

    fn run(context: &Context, arguments: &[Text<'_>]) -> Result<Reply, Failure>;
}

unsafe extern "C" fn run<C: Command>(raw: *mut RawContext, arguments: *mut *mut RawText, len: c_int) -> c_int {
    let Some(raw) = NonNull::new(raw) else { return ERROR };
    let context = Context::new(raw);
    // SAFETY: the server passes this many strings, none of them null, and keeps them until the call ends. `Text` has the layout of
    // a pointer.
    let arguments = unsafe { slice::from_raw_parts(arguments.cast::<Text<'_>>(), usize::try_from(len).unwrap_or(0)) };
    let is_allowed = if C::ABOUT.arity < 0 { len >= -C::ABOUT.arity } else { len == C::ABOUT.arity };
    let result = if is_allowed { catch_panic(|| C::run(&context, arguments)) } else { Some(Ok(Reply::WrongArity)) };
    let result = result.unwrap_or_else(|| {
        log(raw.as_ptr(), c"warning", c"a command of koel panicked; please report what led to it");
        Err(Failure::panicked())
    });
    match result {
        Ok(Reply::WrongArity) if context.is_loading() => end::<C>(arguments, &Failure::new("wrong number of arguments")),
        Ok(reply) => context.send(reply),
        Err(failure) if context.is_loading() => end::<C>(arguments, &failure),
        Err(failure) => context.refuse(&failure),
    }
    OK
}

/// Ends the server, since a command of an append-only file failed.
fn end<C: Command>(arguments: &[Text<'_>], failure: &Failure) -> ! {
    let name = C::ABOUT.name.to_bytes().escape_ascii();
    end_start(format_args!("{name} of {} failed", Name(arguments.get(1).copied())), failure)
}

/// Registers a command.
pub(super) fn register<C: Command>(context: *mut RawContext) -> Result<(), String> {
    let (server, About { name, flags, categories, .. }) = (server(), C::ABOUT);
    let failed = |what: &str| format!("{} cannot be registered: {what}", name.to_string_lossy());
    // SAFETY: the server copies all strings.
    let command = unsafe {
        if (server.CreateCommand)(context, name.as_ptr(), run::<C>, flags.as_ptr(), 1, C::ABOUT.last_key(), 1) != OK {
            return Err(failed("the server has a command of this name; load the module without the other one that has it"));
        }
        (server.GetCommand)(context, name.as_ptr())
    };
    // SAFETY: the command exists, and the description has the layout that the server expects, and copies.
    if C::ABOUT.describe(|about| unsafe { (server.SetCommandInfo)(command, about) }) != OK {
        return Err(failed("the server refuses its description"));
    }
    // SAFETY: the command exists, and the server copies the string.
    if server.SetCommandACLCategories.is_some_and(|set| unsafe { set(command, categories.as_ptr()) } != OK) {
        return Err(failed("the server refuses its categories"));
    }
    Ok(())
}
