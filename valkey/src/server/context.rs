//! The context of a command: its arguments, its reply, replication, and the server's log.

use std::{
    cell::Cell,
    ffi::{CStr, c_int, c_long, c_longlong},
    marker::PhantomData,
    ptr::{self, NonNull},
    slice,
};

use super::functions::{OK, RawContext, RawText, server};
use crate::reply::{Failure, Field, ItemResult, Reply};

/// A string of the server: a command's argument, or a key's name.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct Text<'a>(NonNull<RawText>, PhantomData<&'a ()>);

impl<'a> Text<'a> {
    /// Returns the bytes of the string.
    pub(crate) fn bytes(self) -> &'a [u8] {
        let mut len = 0;
        // SAFETY: the string lives for `'a`, and the server does not change it until then.
        unsafe {
            let start = (server().StringPtrLen)(self.0.as_ptr(), &raw mut len);
            slice::from_raw_parts(start.cast(), len)
        }
    }

    /// Wraps a pointer to a string.
    ///
    /// # Safety
    /// The string must live for `'a`, and not change.
    pub(super) unsafe fn new(raw: NonNull<RawText>) -> Self {
        Self(raw, PhantomData)
    }

    pub(super) fn raw(self) -> *mut RawText {
        self.0.as_ptr()
    }
}

/// A string that this module created, and frees.
pub(super) struct NewText(NonNull<RawText>);

impl NewText {
    pub(super) fn new(bytes: &[u8]) -> Self {
        // SAFETY: the server copies the bytes. It never returns null.
        Self(unsafe { NonNull::new_unchecked((server().CreateString)(ptr::null_mut(), bytes.as_ptr().cast(), bytes.len())) })
    }

    pub(super) fn raw(&self) -> *mut RawText {
        self.0.as_ptr()
    }

    /// Takes ownership back from `into_raw`.
    pub(super) fn from_raw(raw: NonNull<RawText>) -> Self {
        Self(raw)
    }

    pub(super) fn into_raw(self) -> *mut RawText {
        let raw = self.0.as_ptr();
        std::mem::forget(self);
        raw
    }
}

impl Drop for NewText {
    fn drop(&mut self) {
        // SAFETY: it was created without a context, and is not used afterwards.
        unsafe { (server().FreeString)(ptr::null_mut(), self.0.as_ptr()) };
    }
}

/// The most arguments of a replicated command.
const MAX_ARGUMENTS: usize = 512;

const REPLICATED: c_int = 1 << 12;
const RESP3: c_int = 1 << 22;

/// The flag of a context while the server executes the commands of an append-only file or reads values from a file. There is no
/// such flag for a client's commands, not even while a replica loads a copy of its primary in the background.
pub(super) const LOADING: c_int = 1 << 13;

/// The context of a command.
pub(crate) struct Context {
    pub(super) raw: NonNull<RawContext>,
    /// The names of the open keys. Each key is open at most once, so that its value is not borrowed twice.
    pub(super) open: Cell<[*mut RawText; MAX_OPEN]>,
    /// True if the command changed anything, which is when it is replicated.
    pub(super) is_changed: Cell<bool>,
}

/// The most keys that a command may have open at the same time.
const MAX_OPEN: usize = 2;

impl Context {
    pub(super) fn new(raw: NonNull<RawContext>) -> Self {
        Self { raw, open: Cell::new([ptr::null_mut(); MAX_OPEN]), is_changed: Cell::new(false) }
    }

    /// Records that the key with this name is open.
    pub(super) fn open_key(&self, name: Text<'_>) {
        let mut open = self.open.get();
        for raw in open.iter().filter_map(|raw| NonNull::new(*raw)) {
            // SAFETY: it is an argument of the command, which lives until the command ends.
            assert!(unsafe { Text::new(raw) }.bytes() != name.bytes(), "a command opens each key once");
        }
        let free = open.iter_mut().find(|raw| raw.is_null());
        *free.expect("a command opens at most two keys at a time") = name.raw();
        self.open.set(open);
    }

    /// Records that the key with this name is closed.
    pub(super) fn close_key(&self, name: *mut RawText) {
        self.open.set(self.open.get().map(|raw| if raw == name { ptr::null_mut() } else { raw }));
    }

    fn flags(&self) -> c_int {
        // SAFETY: the context belongs to this call.
        unsafe { (server().GetContextFlags)(self.raw.as_ptr()) }
    }

    /// Returns true if the command comes from the primary or an append-only file. It must then have the same effect as there.
    pub(crate) fn must_obey(&self) -> bool {
        self.flags() & (REPLICATED | LOADING) != 0
    }

    /// Returns true if the command comes from an append-only file.
    pub(crate) fn is_loading(&self) -> bool {
        self.flags() & LOADING != 0
    }

    /// Replicates the command unchanged, to replicas and to the append-only file.
    pub(crate) fn replicate(&self) {
        self.is_changed.set(true);
        // SAFETY: the context belongs to this call.
        unsafe { (server().ReplicateVerbatim)(self.raw.as_ptr()) };
    }

    /// Replicates another command instead: strings of this one (`first`), new words, and more strings of this one (`last`). If
    /// there are too many of the last, replicates several commands, each with some of them.
    pub(crate) fn replicate_as<'a, const N: usize>(
        &self,
        command: &CStr,
        first: &[Text<'_>],
        words: [&[u8]; N],
        last: impl Iterator<Item = Text<'a>>,
    ) {
        self.is_changed.set(true);
        let words = words.map(NewText::new);
        let mut arguments = [ptr::null_mut(); MAX_ARGUMENTS];
        let mut head = 0;
        for raw in first.iter().map(|text| text.raw()).chain(words.iter().map(NewText::raw)) {
            arguments[head] = raw;
            head += 1;
        }
        // SAFETY: "v" takes an array of strings and its length. The server copies what it needs.
        let send = |arguments: &[*mut RawText]| unsafe {
            (server().Replicate)(self.raw.as_ptr(), command.as_ptr(), c"v".as_ptr(), arguments.as_ptr(), arguments.len())
        };
        let (mut len, mut is_sent) = (head, false);
        for text in last {
            arguments[len] = text.raw();
            len += 1;
            if len == MAX_ARGUMENTS {
                send(&arguments);
                (len, is_sent) = (head, true);
            }
        }
        if len > head || !is_sent {
            send(&arguments[..len]);
        }
    }

    /// Returns the bytes that `maxmemory` leaves for a new value, or `None` if it is not set. If the server may evict keys, all
    /// memory counts as free.
    pub(crate) fn memory_left(&self) -> Option<u64> {
        let (server, raw) = (server(), self.raw.as_ptr());
        // SAFETY: the context belongs to this call. The information is freed after its last use.
        unsafe {
            let info = (server.GetServerInfo)(raw, c"memory".as_ptr());
            let number = |name: &CStr| (server.ServerInfoGetFieldUnsigned)(info, name.as_ptr(), ptr::null_mut());
            let (most, used) = (number(c"maxmemory"), number(c"used_memory"));
            let policy = (server.ServerInfoGetFieldC)(info, c"maxmemory_policy".as_ptr());
            let may_evict = !policy.is_null() && CStr::from_ptr(policy) != c"noeviction";
            (server.FreeServerInfo)(raw, info);
            (most > 0).then(|| if may_evict { most } else { most.saturating_sub(used) })
        }
    }

    pub(super) fn send(&self, reply: Reply) {
        let (server, raw) = (server(), self.raw.as_ptr());
        let length = |len: usize| c_long::try_from(len).unwrap_or(c_long::MAX);
        // SAFETY: the context belongs to this call, and the server copies its arguments.
        unsafe {
            match reply {
                Reply::Done => (server.ReplyWithSimpleString)(raw, c"OK".as_ptr()),
                Reply::WrongArity => (server.WrongArity)(raw),
                Reply::Bool(value) => (server.ReplyWithBool)(raw, value.into()),
                Reply::Integer(value) => (server.ReplyWithLongLong)(raw, value),
                Reply::Null => (server.ReplyWithNull)(raw),
                Reply::Line(line) => {
                    let line = line.as_c_str();
                    (server.ReplyWithStringBuffer)(raw, line.as_ptr(), line.count_bytes())
                }
                Reply::Bytes(bytes) => (server.ReplyWithStringBuffer)(raw, bytes.as_ptr().cast(), bytes.len()),
                Reply::Bools(values) => {
                    (server.ReplyWithArray)(raw, length(values.len()));
                    values.into_iter().for_each(|value| _ = (server.ReplyWithBool)(raw, value.into()));
                    OK
                }
                Reply::ResultBools(results) => {
                    (server.ReplyWithArray)(raw, length(results.len()));
                    let is_resp3 = self.flags() & RESP3 != 0;
                    for result in results {
                        if is_resp3 {
                            (server.ReplyWithBool)(raw, (result == ItemResult::Inserted).into());
                        } else {
                            (server.ReplyWithLongLong)(raw, result as c_longlong);
                        }
                    }
                    OK
                }
                Reply::Results(results) => {
                    (server.ReplyWithArray)(raw, length(results.len()));
                    results.into_iter().for_each(|result| _ = (server.ReplyWithLongLong)(raw, result as c_longlong));
                    OK
                }
                Reply::Chunk(iterator, bytes) => {
                    (server.ReplyWithArray)(raw, 2);
                    (server.ReplyWithLongLong)(raw, iterator);
                    self.send(bytes.map_or(Reply::Null, Reply::Bytes));
                    OK
                }
                Reply::Fields(fields) => {
                    (server.ReplyWithMap)(raw, length(fields.len()));
                    for (name, value) in fields {
                        (server.ReplyWithSimpleString)(raw, name.as_ptr());
                        match value {
                            Field::Integer(value) => (server.ReplyWithLongLong)(raw, value),
                            Field::Rate(value) => (server.ReplyWithDouble)(raw, value),
                        };
                    }
                    OK
                }
            }
        };
    }

    pub(super) fn refuse(&self, failure: &Failure) {
        // SAFETY: as above.
        unsafe { (server().ReplyWithError)(self.raw.as_ptr(), failure.message().as_ptr()) };
    }
}

/// Writes a line to the server's log, at the level "warning" or "notice".
pub(super) fn log(context: *mut RawContext, level: &CStr, message: &CStr) {
    // SAFETY: the format takes one string.
    unsafe { (server().Log)(context, level.as_ptr(), c"%s".as_ptr(), message.as_ptr()) };
}
