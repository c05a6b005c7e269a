//! The server's module API, made safe. All unsafe code of the module is in this file.
//!
//! The server hands over a table of functions when it loads the module, and calls the functions that are registered here: one
//! for each [`Command`], and those of the [`Value`] that its keys hold. Nothing that they call can unwind into the server.

#![allow(unsafe_code, reason = "the server is written in C")]

use std::{
    alloc::{GlobalAlloc, Layout, System},
    cell::Cell,
    ffi::{CStr, CString, c_char, c_int, c_long, c_longlong, c_uint, c_void},
    ops::Deref,
    panic::{AssertUnwindSafe, catch_unwind},
    ptr::{self, NonNull},
    slice,
    sync::{
        OnceLock,
        atomic::{AtomicI64, AtomicPtr, Ordering::Relaxed},
    },
};

use crate::reply::{Failure, Field, Reply};

// What pointers from the server lead to.
enum RawContext {}
enum RawKey {}
enum RawText {}
enum RawType {}
enum RawStream {}
enum RawDigest {}
enum RawDefrag {}
enum RawCommand {}

const OK: c_int = 0;
const ERROR: c_int = 1;
const API_VERSION: c_int = 1;

const READ: c_int = 1;
const READ_AND_WRITE: c_int = 3;
const EMPTY: c_int = 0;
const MODULE_TYPE: c_int = 6;

const REPLICATED: c_int = 1 << 12;
const LOADING: c_int = 1 << 13;
const RESP3: c_int = 1 << 22;

/// Errors of reading are handled here, and slots with filters may be migrated atomically.
const OPTIONS: c_int = 1 | 1 << 5;

const MEMORY_CONFIG: c_uint = 1 << 7;

type GetApi = unsafe extern "C" fn(*const c_char, *mut *mut c_void) -> c_int;
type RawCommandFunction = unsafe extern "C" fn(*mut RawContext, *mut *mut RawText, c_int) -> c_int;
type GetNumber = unsafe extern "C" fn(*const c_char, *mut c_void) -> c_longlong;
type SetNumber = unsafe extern "C" fn(*const c_char, c_longlong, *mut c_void, *mut *mut RawText) -> c_int;
type GetText = unsafe extern "C" fn(*const c_char, *mut c_void) -> *mut RawText;
type SetText = unsafe extern "C" fn(*const c_char, *mut RawText, *mut c_void, *mut *mut RawText) -> c_int;
type Apply = unsafe extern "C" fn(*mut RawContext, *mut c_void, *mut *mut RawText) -> c_int;

/// A struct of the server's functions, by their names.
macro_rules! server_functions {
    ({ $($name:ident: $type:ty,)* } optional { $($optional:ident: $optional_type:ty,)* }) => {
        #[allow(non_snake_case)]
        struct Functions {
            $($name: $type,)*
            $($optional: Option<$optional_type>,)*
        }

        impl Functions {
            /// # Safety
            /// `get` must be the function that the server provides for this.
            unsafe fn load(get: GetApi) -> Result<Self, &'static str> {
                Ok(Self {
                    $($name: {
                        // SAFETY: the server's function with this name has this type.
                        let function = unsafe { find::<Option<$type>>(get, concat!("RedisModule_", stringify!($name), "\0")) };
                        function.ok_or(stringify!($name))?
                    },)*
                    // SAFETY: as above.
                    $($optional: unsafe { find(get, concat!("RedisModule_", stringify!($optional), "\0")) },)*
                })
            }
        }
    };
}

server_functions!({
    SetModuleAttribs: unsafe extern "C" fn(*mut RawContext, *const c_char, c_int, c_int),
    SetModuleOptions: unsafe extern "C" fn(*mut RawContext, c_int),
    CreateCommand: unsafe extern "C" fn(*mut RawContext, *const c_char, RawCommandFunction, *const c_char, c_int, c_int, c_int) -> c_int,
    GetCommand: unsafe extern "C" fn(*mut RawContext, *const c_char) -> *mut RawCommand,
    SetCommandInfo: unsafe extern "C" fn(*mut RawCommand, *const RawCommandInfo) -> c_int,
    CreateDataType: unsafe extern "C" fn(*mut RawContext, *const c_char, c_int, *mut TypeMethods) -> *mut RawType,
    RegisterNumericConfig: unsafe extern "C" fn(
        *mut RawContext, *const c_char, c_longlong, c_uint, c_longlong, c_longlong, GetNumber, SetNumber, Option<Apply>, *mut c_void
    ) -> c_int,
    RegisterStringConfig: unsafe extern "C" fn(
        *mut RawContext, *const c_char, *const c_char, c_uint, GetText, SetText, Option<Apply>, *mut c_void
    ) -> c_int,
    LoadConfigs: unsafe extern "C" fn(*mut RawContext) -> c_int,
    Log: unsafe extern "C" fn(*mut RawContext, *const c_char, *const c_char, ...),
    WrongArity: unsafe extern "C" fn(*mut RawContext) -> c_int,
    GetContextFlags: unsafe extern "C" fn(*mut RawContext) -> c_int,
    ReplicateVerbatim: unsafe extern "C" fn(*mut RawContext) -> c_int,
    Replicate: unsafe extern "C" fn(*mut RawContext, *const c_char, *const c_char, ...) -> c_int,
    OpenKey: unsafe extern "C" fn(*mut RawContext, *mut RawText, c_int) -> *mut RawKey,
    CloseKey: unsafe extern "C" fn(*mut RawKey),
    KeyType: unsafe extern "C" fn(*mut RawKey) -> c_int,
    DeleteKey: unsafe extern "C" fn(*mut RawKey) -> c_int,
    ModuleTypeGetType: unsafe extern "C" fn(*mut RawKey) -> *mut RawType,
    ModuleTypeGetValue: unsafe extern "C" fn(*mut RawKey) -> *mut c_void,
    ModuleTypeSetValue: unsafe extern "C" fn(*mut RawKey, *mut RawType, *mut c_void) -> c_int,
    CreateString: unsafe extern "C" fn(*mut RawContext, *const c_char, usize) -> *mut RawText,
    FreeString: unsafe extern "C" fn(*mut RawContext, *mut RawText),
    StringPtrLen: unsafe extern "C" fn(*const RawText, *mut usize) -> *const c_char,
    ReplyWithError: unsafe extern "C" fn(*mut RawContext, *const c_char) -> c_int,
    ReplyWithSimpleString: unsafe extern "C" fn(*mut RawContext, *const c_char) -> c_int,
    ReplyWithStringBuffer: unsafe extern "C" fn(*mut RawContext, *const c_char, usize) -> c_int,
    ReplyWithLongLong: unsafe extern "C" fn(*mut RawContext, c_longlong) -> c_int,
    ReplyWithBool: unsafe extern "C" fn(*mut RawContext, c_int) -> c_int,
    ReplyWithDouble: unsafe extern "C" fn(*mut RawContext, f64) -> c_int,
    ReplyWithNull: unsafe extern "C" fn(*mut RawContext) -> c_int,
    ReplyWithArray: unsafe extern "C" fn(*mut RawContext, c_long) -> c_int,
    ReplyWithMap: unsafe extern "C" fn(*mut RawContext, c_long) -> c_int,
    SaveUnsigned: unsafe extern "C" fn(*mut RawStream, u64),
    LoadUnsigned: unsafe extern "C" fn(*mut RawStream) -> u64,
    SaveStringBuffer: unsafe extern "C" fn(*mut RawStream, *const c_char, usize),
    LoadStringBuffer: unsafe extern "C" fn(*mut RawStream, *mut usize) -> *mut c_char,
    IsIOError: unsafe extern "C" fn(*mut RawStream) -> c_int,
    LogIOError: unsafe extern "C" fn(*mut RawStream, *const c_char, *const c_char, ...),
    EmitAOF: unsafe extern "C" fn(*mut RawStream, *const c_char, *const c_char, ...),
    DigestAddStringBuffer: unsafe extern "C" fn(*mut RawDigest, *const c_char, usize),
    DigestEndSequence: unsafe extern "C" fn(*mut RawDigest),
    TryAlloc: unsafe extern "C" fn(usize) -> *mut c_void,
    Free: unsafe extern "C" fn(*mut c_void),
} optional {
    TryCalloc: unsafe extern "C" fn(usize, usize) -> *mut c_void,
    TryRealloc: unsafe extern "C" fn(*mut c_void, usize) -> *mut c_void,
    IsModuleNameBusy: unsafe extern "C" fn(*const c_char) -> c_int,
    AddACLCategory: unsafe extern "C" fn(*mut RawContext, *const c_char) -> c_int,
    SetCommandACLCategories: unsafe extern "C" fn(*mut RawCommand, *const c_char) -> c_int,
    DefragAlloc: unsafe extern "C" fn(*mut RawDefrag, *mut c_void) -> *mut c_void,
});

/// # Safety
/// `F` must be an optional pointer to a function of the type that the server's function with this name has; the name ends with
/// a zero.
unsafe fn find<F>(get: GetApi, name: &'static str) -> F {
    const { assert!(size_of::<F>() == size_of::<*mut c_void>()) };
    let mut function = ptr::null_mut();
    // SAFETY: the server fills in the pointer, or leaves it as it is.
    if unsafe { get(name.as_ptr().cast(), &raw mut function) } != OK {
        function = ptr::null_mut();
    }
    // SAFETY: null is `None`, and anything else is a function of that type.
    unsafe { std::mem::transmute_copy(&function) }
}

static FUNCTIONS: OnceLock<Functions> = OnceLock::new();

/// The server's functions.
fn server() -> &'static Functions {
    FUNCTIONS.get().expect("the server calls the module only after it has loaded it")
}

/// The server's memory, so that it is counted and limited there. Without a server, in unit tests, the system's.
///
/// Requests that cannot be met fail, where the server's ordinary functions would end it.
struct ServerMemory;

#[global_allocator]
static MEMORY: ServerMemory = ServerMemory;

/// What every allocation of the server is aligned to. (Where it keeps lengths in front of allocations, not to more.)
const ALIGNMENT: usize = size_of::<usize>();

/// While the server defragments a value, what it moves memory with. Only one thread allocates memory then.
static MOVING: AtomicPtr<RawDefrag> = AtomicPtr::new(ptr::null_mut());

/// New memory, moved away from pages that are nearly empty while the server defragments.
#[inline]
fn well_placed(server: &Functions, memory: *mut c_void) -> *mut c_void {
    let moving = MOVING.load(Relaxed);
    if moving.is_null() || memory.is_null() {
        return memory;
    }
    // SAFETY: the server has just allocated it. If it moves it, it frees the former memory.
    let moved = server.DefragAlloc.map_or(ptr::null_mut(), |defrag| unsafe { defrag(moving, memory) });
    if moved.is_null() { memory } else { moved }
}

/// Where the start of an allocation stands, before an aligned address in it.
fn before(aligned: *mut u8) -> *mut *mut u8 {
    #[expect(clippy::cast_ptr_alignment, reason = "it is read and written without alignment")]
    aligned.cast::<*mut u8>().wrapping_sub(1)
}

// SAFETY: memory comes from the server or from the system, and goes back to where it came from: the functions are there before
// the first allocation. What needs more alignment is found inside a larger allocation, whose start stands before it.
unsafe impl GlobalAlloc for ServerMemory {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let Some(server) = FUNCTIONS.get() else {
            // SAFETY: as the caller promises.
            return unsafe { System.alloc(layout) };
        };
        if layout.align() <= ALIGNMENT {
            // SAFETY: any length is allowed.
            let memory = unsafe { (server.TryAlloc)(layout.size()) };
            return well_placed(server, memory).cast();
        }
        let Some(whole) = layout.size().checked_add(layout.align() + ALIGNMENT) else { return ptr::null_mut() };
        // SAFETY: as above.
        let start: *mut u8 = unsafe { (server.TryAlloc)(whole) }.cast();
        if start.is_null() {
            return start;
        }
        let skipped = ALIGNMENT + start.wrapping_add(ALIGNMENT).align_offset(layout.align());
        // SAFETY: `skipped` is less than `align + ALIGNMENT`, and a pointer fits between the start and the aligned address.
        unsafe {
            let aligned = start.add(skipped);
            before(aligned).write_unaligned(start);
            aligned
        }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        let Some(server) = FUNCTIONS.get() else {
            // SAFETY: as the caller promises.
            return unsafe { System.dealloc(memory, layout) };
        };
        let start =
            // SAFETY: `alloc` has written the start there.
            if layout.align() <= ALIGNMENT { memory } else { unsafe { before(memory).read_unaligned() } };
        // SAFETY: the server allocated it.
        unsafe { (server.Free)(start.cast()) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        let is_simple = layout.align() <= ALIGNMENT && MOVING.load(Relaxed).is_null();
        if let Some(calloc) = FUNCTIONS.get().and_then(|server| server.TryCalloc).filter(|_| is_simple) {
            // SAFETY: any length is allowed.
            return unsafe { calloc(1, layout.size()) }.cast();
        }
        // SAFETY: as the caller promises.
        let memory = unsafe { self.alloc(layout) };
        if !memory.is_null() {
            // SAFETY: so many bytes were just allocated.
            unsafe { memory.write_bytes(0, layout.size()) };
        }
        memory
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if let Some(realloc) = FUNCTIONS.get().and_then(|server| server.TryRealloc).filter(|_| layout.align() <= ALIGNMENT) {
            // SAFETY: the server allocated it.
            return unsafe { realloc(memory.cast(), size) }.cast();
        }
        // SAFETY: the caller promises that this layout is possible.
        let new = unsafe { self.alloc(Layout::from_size_align_unchecked(size, layout.align())) };
        if !new.is_null() {
            // SAFETY: both have so many bytes, and the old memory is not used any more.
            unsafe {
                new.copy_from_nonoverlapping(memory, size.min(layout.size()));
                self.dealloc(memory, layout);
            }
        }
        new
    }
}

/// Calls a function, and keeps a panic from the server.
fn guarded<T>(act: impl FnOnce() -> T) -> Option<T> {
    catch_unwind(AssertUnwindSafe(act)).ok()
}

/// A text of the server: a command's argument, or a key's name.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct Text<'a>(&'a RawText);

impl<'a> Text<'a> {
    /// Its bytes.
    pub(crate) fn bytes(self) -> &'a [u8] {
        let mut len = 0;
        // SAFETY: the text lives for `'a`, and the server does not change it meanwhile.
        unsafe {
            let start = (server().StringPtrLen)(self.0, &raw mut len);
            slice::from_raw_parts(start.cast(), len)
        }
    }

    fn raw(self) -> *mut RawText {
        ptr::from_ref(self.0).cast_mut()
    }
}

/// A text that was made here.
struct NewText(NonNull<RawText>);

impl NewText {
    fn new(bytes: &[u8]) -> Self {
        // SAFETY: the server copies the bytes. It never returns null.
        Self(unsafe { NonNull::new_unchecked((server().CreateString)(ptr::null_mut(), bytes.as_ptr().cast(), bytes.len())) })
    }

    fn into_raw(self) -> *mut RawText {
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

/// What a command runs in.
pub(crate) struct Context {
    raw: NonNull<RawContext>,
    /// At most one key is open at a time, so that nobody has the value of a key twice.
    is_key_open: Cell<bool>,
}

impl Context {
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
        // SAFETY: the context is the one of this call.
        unsafe { (server().ReplicateVerbatim)(self.raw.as_ptr()) };
    }

    /// Hands them another command.
    pub(crate) fn replicate_as(&self, command: &CStr, arguments: &[&[u8]]) {
        let texts: Vec<NewText> = arguments.iter().map(|bytes| NewText::new(bytes)).collect();
        let raw: Vec<*mut RawText> = texts.iter().map(|text| text.0.as_ptr()).collect();
        // SAFETY: "v" takes an array of texts and its length. The server takes what it needs.
        unsafe { (server().Replicate)(self.raw.as_ptr(), command.as_ptr(), c"v".as_ptr(), raw.as_ptr(), raw.len()) };
    }

    /// Opens a key to read it.
    pub(crate) fn read<V: Value>(&self, name: Text<'_>) -> Key<'_, V> {
        self.open(name, READ)
    }

    /// Opens a key to change it.
    pub(crate) fn write<V: Value>(&self, name: Text<'_>) -> Key<'_, V> {
        self.open(name, READ_AND_WRITE)
    }

    fn open<V: Value>(&self, name: Text<'_>, mode: c_int) -> Key<'_, V> {
        assert!(!self.is_key_open.replace(true), "a command has one key open at a time");
        // SAFETY: the context is the one of this call.
        let raw = unsafe { (server().OpenKey)(self.raw.as_ptr(), name.raw(), mode) };
        Key { raw, context: self, kind: std::marker::PhantomData }
    }

    /// Writes a line to the server's log.
    pub(crate) fn warn(&self, message: &str) {
        log(self.raw.as_ptr(), message);
    }

    fn send(&self, reply: Reply) {
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
                Reply::Bytes(bytes) => (server.ReplyWithStringBuffer)(raw, bytes.as_ptr().cast(), bytes.len()),
                Reply::Bools(values) => {
                    (server.ReplyWithArray)(raw, length(values.len()));
                    values.into_iter().for_each(|value| _ = (server.ReplyWithBool)(raw, value.into()));
                    OK
                }
                Reply::Integers(values) => {
                    (server.ReplyWithArray)(raw, length(values.len()));
                    values.into_iter().for_each(|value| _ = (server.ReplyWithLongLong)(raw, value));
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

    fn refuse(&self, message: &str) {
        let message = c_text(message);
        // SAFETY: as above.
        unsafe { (server().ReplyWithError)(self.raw.as_ptr(), message.as_ptr()) };
    }
}

/// A line of text for C: without zeros, and without ends of lines, which would end an error.
fn c_text(text: &str) -> CString {
    let bytes: Vec<u8> = text.bytes().map(|byte| if byte < b' ' { b' ' } else { byte }).collect();
    CString::new(bytes).unwrap_or_default()
}

fn log(context: *mut RawContext, message: &str) {
    let message = c_text(message);
    // SAFETY: the format takes one text.
    unsafe { (server().Log)(context, c"warning".as_ptr(), c"%s".as_ptr(), message.as_ptr()) };
}

/// A key that is open.
pub(crate) struct Key<'a, V> {
    /// Null for a key that is read and does not exist.
    raw: *mut RawKey,
    context: &'a Context,
    kind: std::marker::PhantomData<V>,
}

/// What a key holds.
pub(crate) enum Found<T> {
    Nothing,
    Value(T),
    /// A value of another type.
    Other,
}

impl<V: Value> Key<'_, V> {
    fn value(&self) -> Found<NonNull<V>> {
        // SAFETY: the key is open, or null, which is allowed for these two functions.
        let kind = unsafe { (server().KeyType)(self.raw) };
        if kind == EMPTY {
            return Found::Nothing;
        }
        // SAFETY: as above.
        if kind != MODULE_TYPE || unsafe { (server().ModuleTypeGetType)(self.raw) } != V::handle().0.load(Relaxed) {
            return Found::Other;
        }
        // SAFETY: as above. Keys of this type hold what `set` or `load` have made.
        NonNull::new(unsafe { (server().ModuleTypeGetValue)(self.raw) }.cast()).map_or(Found::Nothing, Found::Value)
    }

    pub(crate) fn get(&self) -> Found<&V> {
        match self.value() {
            Found::Nothing => Found::Nothing,
            // SAFETY: the key is open only once, so only this key leads to the value.
            Found::Value(value) => Found::Value(unsafe { value.as_ref() }),
            Found::Other => Found::Other,
        }
    }

    pub(crate) fn get_mut(&mut self) -> Found<&mut V> {
        match self.value() {
            Found::Nothing => Found::Nothing,
            // SAFETY: as above.
            Found::Value(mut value) => Found::Value(unsafe { value.as_mut() }),
            Found::Other => Found::Other,
        }
    }

    /// Replaces what the key holds.
    pub(crate) fn set(&mut self, value: V) {
        let value = Box::into_raw(Box::new(value)).cast();
        // SAFETY: the key is open for writing; the server frees the former value.
        unsafe { (server().ModuleTypeSetValue)(self.raw, V::handle().0.load(Relaxed), value) };
    }

    pub(crate) fn delete(&mut self) {
        // SAFETY: the key is open for writing.
        unsafe { (server().DeleteKey)(self.raw) };
    }
}

impl<V> Drop for Key<'_, V> {
    fn drop(&mut self) {
        self.context.is_key_open.set(false);
        if !self.raw.is_null() {
            // SAFETY: the key is open, and is not used afterwards.
            unsafe { (server().CloseKey)(self.raw) };
        }
    }
}

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
struct RawCommandInfo {
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
fn register<C: Command>(context: *mut RawContext) -> Result<(), String> {
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

/// What keys of the module hold.
pub(crate) trait Value: Sized {
    /// Nine characters that tell this type from those of other modules.
    const NAME: &'static CStr;
    /// The version of what is saved.
    const VERSION: i32;

    fn handle() -> &'static Handle;
    fn save(&self, stream: &mut Saving);
    fn load(stream: &mut Loading, version: i32) -> Result<Self, String>;
    /// Emits commands that make the value.
    fn rewrite(&self, commands: &mut Rewriting<'_>);
    /// Bytes of memory, with those of the struct.
    fn size_in_bytes(&self) -> usize;
    fn digest(&self, digest: &mut Digest);
    /// The number of allocations, or so: many are given back by a thread of their own.
    fn free_effort(&self) -> usize;
    fn copy(&self) -> Option<Self>;
    /// Allocates anew what is small: some of it may be in pages that are nearly empty, and goes to fuller ones.
    fn move_memory(&mut self);
}

/// What the server knows a type of values as.
pub(crate) struct Handle(AtomicPtr<RawType>);

impl Handle {
    pub(crate) const fn new() -> Self {
        Self(AtomicPtr::new(ptr::null_mut()))
    }
}

/// Takes what is saved of a value.
pub(crate) struct Saving(*mut RawStream);

impl Saving {
    pub(crate) fn number(&mut self, number: u64) {
        // SAFETY: the stream is the one of this call.
        unsafe { (server().SaveUnsigned)(self.0, number) };
    }

    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        // SAFETY: as above, and the server copies the bytes.
        unsafe { (server().SaveStringBuffer)(self.0, bytes.as_ptr().cast(), bytes.len()) };
    }
}

/// Gives what was saved.
pub(crate) struct Loading(*mut RawStream);

impl Loading {
    /// `None` if there is no number.
    pub(crate) fn number(&mut self) -> Option<u64> {
        // SAFETY: the stream is the one of this call.
        let number = unsafe { (server().LoadUnsigned)(self.0) };
        self.is_well().then_some(number)
    }

    /// `None` if there are no bytes.
    pub(crate) fn bytes(&mut self) -> Option<ServerBytes> {
        let mut len = 0;
        // SAFETY: as above. What is returned belongs to the caller.
        let start = unsafe { (server().LoadStringBuffer)(self.0, &raw mut len) };
        let bytes = NonNull::new(start.cast()).map(|start| ServerBytes { start, len });
        bytes.filter(|_| self.is_well())
    }

    fn is_well(&self) -> bool {
        // SAFETY: as above.
        unsafe { (server().IsIOError)(self.0) == 0 }
    }
}

/// Bytes that the server has allocated.
pub(crate) struct ServerBytes {
    start: NonNull<u8>,
    len: usize,
}

impl Deref for ServerBytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: the server has written so many bytes.
        unsafe { slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }
}

impl Drop for ServerBytes {
    fn drop(&mut self) {
        // SAFETY: they are not used afterwards.
        unsafe { (server().Free)(self.start.as_ptr().cast()) };
    }
}

/// Takes the commands that make a value.
pub(crate) struct Rewriting<'a> {
    raw: *mut RawStream,
    key: Text<'a>,
}

impl Rewriting<'_> {
    /// `command key number bytes`, and what follows.
    pub(crate) fn emit(&mut self, command: &CStr, number: i64, bytes: &[u8], rest: &[String]) {
        let rest: Vec<NewText> = rest.iter().map(|text| NewText::new(text.as_bytes())).collect();
        let rest: Vec<*mut RawText> = rest.iter().map(|text| text.0.as_ptr()).collect();
        let (start, len) = (bytes.as_ptr(), bytes.len());
        // SAFETY: the format takes a text, a number, bytes with their length, and an array of texts with its length.
        unsafe {
            let emit = server().EmitAOF;
            emit(self.raw, command.as_ptr(), c"slbv".as_ptr(), self.key.raw(), number, start, len, rest.as_ptr(), rest.len());
        }
    }
}

/// Takes what two values that are equal have in common.
pub(crate) struct Digest(*mut RawDigest);

impl Digest {
    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        // SAFETY: the digest is the one of this call.
        unsafe { (server().DigestAddStringBuffer)(self.0, bytes.as_ptr().cast(), bytes.len()) };
    }
}

#[repr(C)]
struct TypeMethods {
    version: u64,
    load: unsafe extern "C" fn(*mut RawStream, c_int) -> *mut c_void,
    save: unsafe extern "C" fn(*mut RawStream, *mut c_void),
    rewrite: unsafe extern "C" fn(*mut RawStream, *mut RawText, *mut c_void),
    memory: unsafe extern "C" fn(*const c_void) -> usize,
    digest: unsafe extern "C" fn(*mut RawDigest, *mut c_void),
    free: unsafe extern "C" fn(*mut c_void),
    aux_load: *const c_void,
    aux_save: *const c_void,
    aux_save_triggers: c_int,
    free_effort: unsafe extern "C" fn(*mut RawText, *const c_void) -> usize,
    unlink: *const c_void,
    copy: unsafe extern "C" fn(*mut RawText, *mut RawText, *const c_void) -> *mut c_void,
    defrag: unsafe extern "C" fn(*mut RawDefrag, *mut RawText, *mut *mut c_void) -> c_int,
}

/// Tells the server of a type.
fn register_type<V: Value>(context: *mut RawContext) -> Result<(), String> {
    let mut methods = TypeMethods {
        version: 3,
        load: load::<V>,
        save: save::<V>,
        rewrite: rewrite::<V>,
        memory: memory::<V>,
        digest: digest::<V>,
        free: free::<V>,
        aux_load: ptr::null(),
        aux_save: ptr::null(),
        aux_save_triggers: 0,
        free_effort: free_effort::<V>,
        unlink: ptr::null(),
        copy: copy::<V>,
        defrag: defrag::<V>,
    };
    // SAFETY: the struct has the layout of its version, and the server copies it.
    let handle = unsafe { (server().CreateDataType)(context, V::NAME.as_ptr(), V::VERSION, &raw mut methods) };
    if handle.is_null() {
        return Err(format!("the server refuses the type {}", V::NAME.to_string_lossy()));
    }
    V::handle().0.store(handle, Relaxed);
    Ok(())
}

unsafe extern "C" fn load<V: Value>(raw: *mut RawStream, version: c_int) -> *mut c_void {
    match guarded(|| V::load(&mut Loading(raw), version)).unwrap_or_else(|| Err(String::from("koel panicked"))) {
        Ok(value) => Box::into_raw(Box::new(value)).cast(),
        Err(message) => {
            let message = c_text(&message);
            // SAFETY: the stream is the one of this call, and the format takes one text.
            unsafe {
                (server().LogIOError)(raw, c"warning".as_ptr(), c"a cuckoo filter cannot be read: %s".as_ptr(), message.as_ptr());
            };
            ptr::null_mut()
        }
    }
}

/// The value that the server calls one of the type's functions with.
///
/// # Safety
/// It must be one that `Key::set`, `load` or `copy` has made of the same type.
unsafe fn value<'a, V>(raw: *const c_void) -> &'a V {
    // SAFETY: as the caller promises; the server frees it after this call at the earliest.
    unsafe { &*raw.cast() }
}

unsafe extern "C" fn save<V: Value>(raw: *mut RawStream, saved: *mut c_void) {
    // SAFETY: the server calls it with values of the type.
    guarded(|| unsafe { value::<V>(saved) }.save(&mut Saving(raw)));
}

unsafe extern "C" fn rewrite<V: Value>(raw: *mut RawStream, key: *mut RawText, rewritten: *mut c_void) {
    // SAFETY: as above, and the key's name lives as long as the call.
    guarded(|| unsafe { value::<V>(rewritten).rewrite(&mut Rewriting { raw, key: Text(&*key) }) });
}

unsafe extern "C" fn memory<V: Value>(measured: *const c_void) -> usize {
    // SAFETY: as above.
    guarded(|| unsafe { value::<V>(measured) }.size_in_bytes()).unwrap_or(0)
}

unsafe extern "C" fn digest<V: Value>(raw: *mut RawDigest, digested: *mut c_void) {
    // SAFETY: as above.
    guarded(|| unsafe { value::<V>(digested) }.digest(&mut Digest(raw)));
    // SAFETY: the digest is the one of this call.
    unsafe { (server().DigestEndSequence)(raw) };
}

unsafe extern "C" fn free<V: Value>(freed: *mut c_void) {
    // SAFETY: as above, and the server does not use it afterwards.
    guarded(|| drop(unsafe { Box::<V>::from_raw(freed.cast()) }));
}

unsafe extern "C" fn free_effort<V: Value>(_: *mut RawText, freed: *const c_void) -> usize {
    // SAFETY: as above.
    guarded(|| unsafe { value::<V>(freed) }.free_effort()).unwrap_or(1)
}

unsafe extern "C" fn copy<V: Value>(_: *mut RawText, _: *mut RawText, copied: *const c_void) -> *mut c_void {
    // SAFETY: as above.
    let copy = guarded(|| unsafe { value::<V>(copied) }.copy()).flatten();
    copy.map_or(ptr::null_mut(), |copy| Box::into_raw(Box::new(copy)).cast())
}

unsafe extern "C" fn defrag<V: Value>(raw: *mut RawDefrag, _: *mut RawText, moved: *mut *mut c_void) -> c_int {
    let Some(defrag) = server().DefragAlloc else { return 0 };
    // SAFETY: the value was allocated by the server. If it moves it, it has copied it and freed the former memory.
    let new = unsafe { defrag(raw, *moved) };
    if !new.is_null() {
        // SAFETY: the server keeps the new address.
        unsafe { *moved = new };
    }
    MOVING.store(raw, Relaxed);
    // SAFETY: nobody else has the value now.
    guarded(|| unsafe { (*(*moved).cast::<V>()).move_memory() });
    MOVING.store(ptr::null_mut(), Relaxed);
    0
}

/// A number in the server's configuration.
pub(crate) struct Number {
    pub(crate) name: &'static CStr,
    pub(crate) default: i64,
    pub(crate) range: (i64, i64),
    /// Is it a number of bytes, such as 1gb?
    pub(crate) is_memory: bool,
    pub(crate) value: AtomicI64,
}

/// A text in the server's configuration.
pub(crate) struct Setting {
    pub(crate) name: &'static CStr,
    pub(crate) default: &'static CStr,
    pub(crate) get: fn() -> String,
    pub(crate) set: fn(&[u8]) -> Result<(), String>,
    shown: AtomicPtr<RawText>,
}

impl Setting {
    pub(crate) const fn new(
        name: &'static CStr,
        default: &'static CStr,
        get: fn() -> String,
        set: fn(&[u8]) -> Result<(), String>,
    ) -> Self {
        Self { name, default, get, set, shown: AtomicPtr::new(ptr::null_mut()) }
    }
}

fn register_number(context: *mut RawContext, number: &'static Number) -> Result<(), String> {
    let (data, (least, most)) = (ptr::from_ref(number).cast_mut().cast(), number.range);
    let flags = if number.is_memory { MEMORY_CONFIG } else { 0 };
    let register = server().RegisterNumericConfig;
    // SAFETY: the number lives for ever.
    match unsafe {
        register(context, number.name.as_ptr(), number.default, flags, least, most, get_number, set_number, None, data)
    } {
        OK => Ok(()),
        _ => Err(format!("the server refuses the setting {}", number.name.to_string_lossy())),
    }
}

unsafe extern "C" fn get_number(_: *const c_char, data: *mut c_void) -> c_longlong {
    // SAFETY: it was registered with a number that lives for ever.
    unsafe { &*data.cast::<Number>() }.value.load(Relaxed)
}

unsafe extern "C" fn set_number(_: *const c_char, value: c_longlong, data: *mut c_void, _: *mut *mut RawText) -> c_int {
    // SAFETY: as above.
    unsafe { &*data.cast::<Number>() }.value.store(value, Relaxed);
    OK
}

fn register_setting(context: *mut RawContext, setting: &'static Setting) -> Result<(), String> {
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
    drop(NonNull::new(setting.shown.swap(text, Relaxed)).map(NewText));
    text
}

unsafe extern "C" fn set_setting(_: *const c_char, value: *mut RawText, data: *mut c_void, error: *mut *mut RawText) -> c_int {
    // SAFETY: as above, and the text lives as long as the call.
    let (setting, value) = unsafe { (&*data.cast::<Setting>(), Text(&*value)) };
    match (setting.set)(value.bytes()) {
        Ok(()) => OK,
        Err(message) => {
            // SAFETY: the server takes the text over.
            unsafe { *error = NewText::new(message.as_bytes()).into_raw() };
            ERROR
        }
    }
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
        self.then(register::<C>)
    }

    pub(crate) fn values<V: Value>(self) -> Self {
        self.then(register_type::<V>)
    }

    pub(crate) fn number(self, number: &'static Number) -> Self {
        self.then(|context| register_number(context, number))
    }

    pub(crate) fn setting(self, setting: &'static Setting) -> Self {
        self.then(|context| register_setting(context, setting))
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
            log(raw, &message);
            ERROR
        }
    }
}
