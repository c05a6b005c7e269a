//! Descriptions of the module's commands, for COMMAND DOCS, access control and clusters.

use std::{
    ffi::{CStr, c_char, c_int, c_void},
    ptr,
};

/// A description of a command. The first argument of each command is the name of its key; names of keys that it reads may follow.
#[derive(Clone, Copy)]
pub(crate) struct About {
    pub(crate) name: &'static CStr,
    /// Flags, by the server's names: "write deny-oom", "readonly fast".
    pub(crate) flags: &'static CStr,
    /// Categories for access control.
    pub(crate) categories: &'static CStr,
    /// The number of arguments including the command's name, negated if there may be more.
    pub(crate) arity: c_int,
    pub(crate) summary: &'static CStr,
    pub(crate) complexity: &'static CStr,
    /// How the command accesses its key.
    pub(crate) access: Access,
    /// The arguments after the key.
    pub(crate) arguments: &'static [Argument],
}

/// The way in which a command accesses its key.
#[derive(Clone, Copy)]
pub(crate) enum Access {
    Read,
    Insert,
    Update,
    Delete,
}

impl Access {
    /// Returns the server's flags for this access.
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

/// An argument of a command, as COMMAND DOCS describes it.
#[derive(Clone, Copy)]
pub(crate) struct Argument {
    name: &'static CStr,
    kind: Kind,
    /// The word before the argument.
    token: Option<&'static CStr>,
    flags: c_int,
    /// The index of its key specification, or −1 if it is no key.
    key_spec: c_int,
}

/// Kinds of arguments, with the server's numbers.
#[derive(Clone, Copy)]
enum Kind {
    String = 0,
    Integer = 1,
    Double = 2,
    Key = 3,
    Token = 6,
}

impl Argument {
    const OPTIONAL: c_int = 1;
    const MULTIPLE: c_int = 1 << 1;

    const fn new(name: &'static CStr, kind: Kind) -> Self {
        Self { name, kind, token: None, flags: 0, key_spec: -1 }
    }

    pub(crate) const fn string(name: &'static CStr) -> Self {
        Self::new(name, Kind::String)
    }

    /// Creates the argument for the name of the command's key.
    const fn key() -> Self {
        Self { key_spec: 0, ..Self::new(c"key", Kind::Key) }
    }

    /// Creates an argument for the name of a key that the command reads.
    pub(crate) const fn source(name: &'static CStr) -> Self {
        Self { key_spec: 1, ..Self::new(name, Kind::Key) }
    }

    pub(crate) const fn integer(name: &'static CStr) -> Self {
        Self::new(name, Kind::Integer)
    }

    pub(crate) const fn double(name: &'static CStr) -> Self {
        Self::new(name, Kind::Double)
    }

    /// Creates an argument that is a word without a value.
    pub(crate) const fn token(name: &'static CStr, token: &'static CStr) -> Self {
        Self::new(name, Kind::Token).after(token)
    }

    /// Puts a word before the argument.
    pub(crate) const fn after(self, token: &'static CStr) -> Self {
        Self { token: Some(token), ..self }
    }

    pub(crate) const fn optional(self) -> Self {
        Self { flags: self.flags | Self::OPTIONAL, ..self }
    }

    /// Allows one or more of the argument.
    pub(crate) const fn many(self) -> Self {
        Self { flags: self.flags | Self::MULTIPLE, ..self }
    }
}

/// A description in the layout that the server expects.
#[repr(C)]
pub(super) struct RawCommandInfo {
    version: *const CommandInfoVersion,
    summary: *const c_char,
    complexity: *const c_char,
    since: *const c_char,
    history: *mut c_void,
    tips: *const c_char,
    arity: c_int,
    key_specs: *const KeySpec,
    arguments: *const RawArgument,
}

#[repr(C)]
struct CommandInfoVersion {
    version: c_int,
    history_entry: usize,
    key_spec: usize,
    argument: usize,
}

/// The positions of a command's keys.
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

/// The index of the first key. The server's type is a union, whose largest member is a pointer and a number.
#[repr(C)]
#[derive(Clone, Copy)]
struct BeginSearch {
    index: c_int,
    unused: usize,
}

#[repr(C)]
struct RawArgument {
    name: *const c_char,
    kind: c_int,
    key_spec: c_int,
    token: *const c_char,
    summary: *const c_char,
    since: *const c_char,
    flags: c_int,
    deprecated_since: *const c_char,
    arguments: *const RawArgument,
    display_text: *const c_char,
}

impl RawArgument {
    /// The end of a list.
    const NONE: Self = Self {
        name: ptr::null(),
        kind: 0,
        key_spec: -1,
        token: ptr::null(),
        summary: ptr::null(),
        since: ptr::null(),
        flags: 0,
        deprecated_since: ptr::null(),
        arguments: ptr::null(),
        display_text: ptr::null(),
    };

    fn new(argument: &Argument) -> Self {
        Self {
            name: argument.name.as_ptr(),
            kind: argument.kind as c_int,
            key_spec: argument.key_spec,
            token: argument.token.map_or(ptr::null(), CStr::as_ptr),
            flags: argument.flags,
            ..Self::NONE
        }
    }
}

impl About {
    fn has_sources(&self) -> bool {
        self.arguments.iter().any(|argument| argument.key_spec > 0)
    }

    /// Returns the index of the last key, or −1 if all arguments are keys.
    pub(super) fn last_key(&self) -> c_int {
        if self.has_sources() { -1 } else { 1 }
    }

    /// Passes the description to the server with `set`, which copies it.
    pub(super) fn describe<T>(&self, set: impl FnOnce(*const RawCommandInfo) -> T) -> T {
        const KEY: Argument = Argument::key();
        const HISTORY_ENTRY_BYTES: usize = 16;
        // The server's numbers for how a specification finds keys: they begin at an index, and form a range.
        const AT_INDEX: c_int = 2;
        const IN_RANGE: c_int = 2;
        // The specification that ends a list.
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
        // The range has only the first argument.
        let first = BeginSearch { index: 1, unused: 0 };
        let spec = KeySpec {
            flags: self.access.flags(),
            begin_search: AT_INDEX,
            begin: first,
            find_keys: IN_RANGE,
            key_step: 1,
            ..none
        };
        // The sources are all arguments from the second to the last.
        let second = BeginSearch { index: 2, unused: 0 };
        let sources = KeySpec { flags: Access::Read.flags(), begin: second, last_key: -1, ..spec };
        let specs = [spec, if self.has_sources() { sources } else { none }, none];
        let arguments: Vec<_> =
            std::iter::once(&KEY).chain(self.arguments).map(RawArgument::new).chain([RawArgument::NONE]).collect();
        let version = CommandInfoVersion {
            version: 1,
            history_entry: HISTORY_ENTRY_BYTES,
            key_spec: size_of::<KeySpec>(),
            argument: size_of::<RawArgument>(),
        };
        set(&RawCommandInfo {
            version: &raw const version,
            summary: self.summary.as_ptr(),
            complexity: self.complexity.as_ptr(),
            since: c"0.1.0".as_ptr(),
            history: ptr::null_mut(),
            tips: ptr::null(),
            arity: self.arity,
            key_specs: specs.as_ptr(),
            arguments: arguments.as_ptr(),
        })
    }
}
