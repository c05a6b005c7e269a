//! What a command runs in: its arguments, its reply, replication, the log.

use std::{
    cell::Cell,
    ffi::{CStr, c_int, c_long, c_longlong},
    marker::PhantomData,
    ptr::{self, NonNull},
    slice,
};

use super::functions::{OK, RawContext, RawText, server};
use crate::reply::{Answer, Failure, Field, Reply};

/// A text of the server: a command's argument, or a key's name.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct Text<'a>(NonNull<RawText>, PhantomData<&'a ()>);

impl<'a> Text<'a> {
    /// Its bytes.
    pub(crate) fn bytes(self) -> &'a [u8] {
        let mut len = 0;
        // SAFETY: the text lives for `'a`, and the server does not change it meanwhile.
        unsafe {
            let start = (server().StringPtrLen)(self.0.as_ptr(), &raw mut len);
            slice::from_raw_parts(start.cast(), len)
        }
    }

    /// The text that this pointer leads to.
    ///
    /// # Safety
    /// It must live for `'a`, and not change.
    pub(super) unsafe fn new(raw: NonNull<RawText>) -> Self {
        Self(raw, PhantomData)
    }

    pub(super) fn raw(self) -> *mut RawText {
        self.0.as_ptr()
    }
}

/// A text that was made here.
pub(super) struct NewText(NonNull<RawText>);

impl NewText {
    pub(super) fn new(bytes: &[u8]) -> Self {
        // SAFETY: the server copies the bytes. It never returns null.
        Self(unsafe { NonNull::new_unchecked((server().CreateString)(ptr::null_mut(), bytes.as_ptr().cast(), bytes.len())) })
    }

    pub(super) fn raw(&self) -> *mut RawText {
        self.0.as_ptr()
    }

    /// Takes back what was handed over.
    pub(super) fn of_raw(raw: NonNull<RawText>) -> Self {
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

/// The most arguments of a command that is handed to replicas.
const MOST_ARGUMENTS: usize = 512;

const REPLICATED: c_int = 1 << 12;
const LOADING: c_int = 1 << 13;
const RESP3: c_int = 1 << 22;

/// What a command runs in.
pub(crate) struct Context {
    pub(super) raw: NonNull<RawContext>,
    /// Keys that are open, each of them once, so that nobody has the value of a key twice.
    pub(super) open: Cell<[*mut RawText; MOST_OPEN]>,
    /// Has the command changed anything? What is replicated is what has changed.
    pub(super) is_changed: Cell<bool>,
}

/// The most keys that a command has open at a time.
const MOST_OPEN: usize = 2;

impl Context {
    pub(super) fn new(raw: NonNull<RawContext>) -> Self {
        Self { raw, open: Cell::new([ptr::null_mut(); MOST_OPEN]), is_changed: Cell::new(false) }
    }

    /// Notes that the key of this name is open.
    pub(super) fn open_key(&self, name: Text<'_>) {
        let mut open = self.open.get();
        for raw in open.iter().filter_map(|raw| NonNull::new(*raw)) {
            // SAFETY: it is an argument of the command, which lives as long as the command runs.
            assert!(unsafe { Text::new(raw) }.bytes() != name.bytes(), "a command has a key open once");
        }
        let free = open.iter_mut().find(|raw| raw.is_null());
        *free.expect("a command has two keys open at most") = name.raw();
        self.open.set(open);
    }

    /// Notes that it is not any more.
    pub(super) fn close_key(&self, name: *mut RawText) {
        self.open.set(self.open.get().map(|raw| if raw == name { ptr::null_mut() } else { raw }));
    }

    fn flags(&self) -> c_int {
        // SAFETY: the context is the one of this call.
        unsafe { (server().GetContextFlags)(self.raw.as_ptr()) }
    }

    /// True for a command of the primary, or of an append-only file: what was done there must be done here.
    pub(crate) fn must_obey(&self) -> bool {
        self.flags() & (REPLICATED | LOADING) != 0
    }

    pub(crate) fn speaks_resp3(&self) -> bool {
        self.flags() & RESP3 != 0
    }

    /// Hands the command, as it is, to replicas and to the append-only file.
    pub(crate) fn replicate(&self) {
        self.is_changed.set(true);
        // SAFETY: the context is the one of this call.
        unsafe { (server().ReplicateVerbatim)(self.raw.as_ptr()) };
    }

    /// Hands them another command: texts of this one, words, and again texts of this one. If there are many of those, several
    /// commands, each with some of them.
    pub(crate) fn replicate_as<'a, const N: usize>(
        &self,
        command: &CStr,
        first: &[Text<'_>],
        words: [&[u8]; N],
        last: impl Iterator<Item = Text<'a>>,
    ) {
        self.is_changed.set(true);
        let words = words.map(NewText::new);
        let mut arguments = [ptr::null_mut(); MOST_ARGUMENTS];
        let mut head = 0;
        for raw in first.iter().map(|text| text.raw()).chain(words.iter().map(NewText::raw)) {
            arguments[head] = raw;
            head += 1;
        }
        // SAFETY: "v" takes an array of texts and its length. The server takes what it needs.
        let send = |arguments: &[*mut RawText]| unsafe {
            (server().Replicate)(self.raw.as_ptr(), command.as_ptr(), c"v".as_ptr(), arguments.as_ptr(), arguments.len())
        };
        let (mut len, mut is_sent) = (head, false);
        for text in last {
            arguments[len] = text.raw();
            len += 1;
            if len == MOST_ARGUMENTS {
                send(&arguments);
                (len, is_sent) = (head, true);
            }
        }
        if len > head || !is_sent {
            send(&arguments[..len]);
        }
    }

    /// The bytes that `maxmemory` leaves for a new value, if it is set. Keys that the server may evict count as free.
    pub(crate) fn memory_left(&self) -> Option<u64> {
        let (server, raw) = (server(), self.raw.as_ptr());
        // SAFETY: the context is the one of this call. What the server tells is freed after its last use.
        unsafe {
            let told = (server.GetServerInfo)(raw, c"memory".as_ptr());
            let number = |name: &CStr| (server.ServerInfoGetFieldUnsigned)(told, name.as_ptr(), ptr::null_mut());
            let (most, used) = (number(c"maxmemory"), number(c"used_memory"));
            let policy = (server.ServerInfoGetFieldC)(told, c"maxmemory_policy".as_ptr());
            let may_evict = !policy.is_null() && CStr::from_ptr(policy) != c"noeviction";
            (server.FreeServerInfo)(raw, told);
            (most > 0).then(|| if may_evict { most } else { most.saturating_sub(used) })
        }
    }

    /// Writes a line to the server's log.
    pub(crate) fn warn(&self, message: &CStr) {
        log(self.raw.as_ptr(), c"warning", message);
    }

    pub(super) fn send(&self, reply: Reply) {
        let (server, raw) = (server(), self.raw.as_ptr());
        let length = |len: usize| c_long::try_from(len).unwrap_or(c_long::MAX);
        // SAFETY: the context is the one of this call, and the server copies what it is given.
        unsafe {
            match reply {
                Reply::Done => (server.ReplyWithSimpleString)(raw, c"OK".as_ptr()),
                Reply::WrongArity => (server.WrongArity)(raw),
                Reply::Bool(value) => (server.ReplyWithBool)(raw, value.into()),
                Reply::Integer(value) => (server.ReplyWithLongLong)(raw, value),
                Reply::Null => (server.ReplyWithNull)(raw),
                Reply::Line(words) => (server.ReplyWithSimpleString)(raw, words.as_c_str().as_ptr()),
                Reply::Bytes(bytes) => (server.ReplyWithStringBuffer)(raw, bytes.as_ptr().cast(), bytes.len()),
                Reply::Bools(values) => {
                    (server.ReplyWithArray)(raw, length(values.len()));
                    values.into_iter().for_each(|value| _ = (server.ReplyWithBool)(raw, value.into()));
                    OK
                }
                Reply::Acceptances(answers) => {
                    (server.ReplyWithArray)(raw, length(answers.len()));
                    let is_in_protocol_3 = self.speaks_resp3();
                    for answer in answers {
                        if is_in_protocol_3 {
                            (server.ReplyWithBool)(raw, (answer == Answer::Inserted).into());
                        } else {
                            (server.ReplyWithLongLong)(raw, answer as c_longlong);
                        }
                    }
                    OK
                }
                Reply::Answers(answers) => {
                    (server.ReplyWithArray)(raw, length(answers.len()));
                    answers.into_iter().for_each(|answer| _ = (server.ReplyWithLongLong)(raw, answer as c_longlong));
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
                        (server.ReplyWithStringBuffer)(raw, name.as_ptr().cast(), name.len());
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
        unsafe { (server().ReplyWithError)(self.raw.as_ptr(), failure.words().as_ptr()) };
    }
}

/// Writes a line to the server's log: a warning, or a notice.
pub(super) fn log(context: *mut RawContext, level: &CStr, message: &CStr) {
    // SAFETY: the format takes one text.
    unsafe { (server().Log)(context, level.as_ptr(), c"%s".as_ptr(), message.as_ptr()) };
}
