//! Values of keys, and how the server saves, loads, measures, copies, moves and frees them.

use std::{
    ffi::{CStr, c_int, c_void},
    io,
    ops::Deref,
    ptr::{self, NonNull},
    slice,
    sync::atomic::{AtomicPtr, Ordering::Relaxed},
};

use super::{
    catch_panic,
    context::{NewText, Text},
    ending::{Line, Name, end_start, is_loading, is_reading_connection},
    functions::{RawContext, RawDefrag, RawDigest, RawStream, RawText, RawType, TypeMethods, server},
    memory::{DEFRAG, boxed},
};
use crate::reply::Failure;

/// A value of the module's keys.
pub(crate) trait Value: Sized {
    /// The name of the type: nine characters, different from the types of other modules.
    const NAME: &'static CStr;
    /// The version of the saved format.
    const VERSION: i32;

    fn handle() -> &'static Handle;
    /// Saves the value. Must not allocate, because the server may save when memory is exhausted. After an error, the server keeps
    /// its previous file.
    fn save(&self, stream: &mut Saving) -> io::Result<()>;
    fn load(stream: &mut Loading, version: i32) -> Result<Self, Failure>;
    /// Emits commands that create the value. The rules of `save` apply.
    fn rewrite(&self, commands: &mut Rewriting<'_>) -> io::Result<()>;
    /// Returns the memory in bytes, including the struct.
    fn size_in_bytes(&self) -> usize;
    fn digest(&self, digest: &mut Digest);
    /// Returns about the number of allocations. Above a limit, the server frees the value in another thread.
    fn free_effort(&self) -> usize;
    fn copy(&self) -> Option<Self>;
    /// Reallocates small parts, so that they move from nearly empty pages to fuller ones.
    fn defragment(&mut self);
}

/// The server's handle of a type of values.
pub(crate) struct Handle(AtomicPtr<RawType>);

impl Handle {
    pub(crate) const fn new() -> Self {
        Self(AtomicPtr::new(ptr::null_mut()))
    }

    pub(super) fn raw(&self) -> *mut RawType {
        self.0.load(Relaxed)
    }
}

/// The output stream of a value that is saved.
pub(crate) struct Saving(*mut RawStream);

impl Saving {
    pub(crate) fn number(&mut self, number: u64) {
        // SAFETY: the stream belongs to this call.
        unsafe { (server().SaveUnsigned)(self.0, number) };
    }

    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        // SAFETY: as above, and the server copies the bytes.
        unsafe { (server().SaveStringBuffer)(self.0, bytes.as_ptr().cast(), bytes.len()) };
    }
}

/// The input stream of a value that is loaded.
pub(crate) struct Loading(*mut RawStream);

impl Loading {
    /// Reads a number. Returns `None` if there is none.
    pub(crate) fn number(&mut self) -> Option<u64> {
        // SAFETY: the stream belongs to this call.
        let number = unsafe { (server().LoadUnsigned)(self.0) };
        self.has_no_error().then_some(number)
    }

    /// Reads bytes. Returns `None` if there are none.
    pub(crate) fn bytes(&mut self) -> Option<ServerBytes> {
        let mut len = 0;
        // SAFETY: as above. The caller owns the result.
        let start = unsafe { (server().LoadStringBuffer)(self.0, &raw mut len) };
        let bytes = NonNull::new(start.cast()).map(|start| ServerBytes { start, len });
        bytes.filter(|_| self.has_no_error())
    }

    fn has_no_error(&self) -> bool {
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
        // SAFETY: the server has written this many bytes.
        unsafe { slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }
}

impl Drop for ServerBytes {
    fn drop(&mut self) {
        // SAFETY: the bytes are not used afterwards.
        unsafe { (server().Free)(self.start.as_ptr().cast()) };
    }
}

/// The output of commands that create a value.
pub(crate) struct Rewriting<'a> {
    raw: *mut RawStream,
    key: Text<'a>,
}

impl Rewriting<'_> {
    /// Emits the command `command key number bytes`, followed by `rest`.
    pub(crate) fn emit<const N: usize>(&mut self, command: &CStr, number: i64, bytes: &[u8], rest: [&[u8]; N]) {
        let rest = rest.map(NewText::new);
        let rest: [*mut RawText; N] = rest.each_ref().map(NewText::raw);
        let (start, len) = (bytes.as_ptr(), bytes.len());
        // SAFETY: the format takes a string, a number, bytes with their length, and an array of strings with its length.
        unsafe {
            let emit = server().EmitAOF;
            emit(self.raw, command.as_ptr(), c"slbv".as_ptr(), self.key.raw(), number, start, len, rest.as_ptr(), rest.len());
        }
    }
}

/// The digest of a value. Equal values must add equal bytes.
pub(crate) struct Digest(*mut RawDigest);

impl Digest {
    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        // SAFETY: the digest belongs to this call.
        unsafe { (server().DigestAddStringBuffer)(self.0, bytes.as_ptr().cast(), bytes.len()) };
    }
}

/// Registers a type of values.
pub(super) fn register<V: Value>(context: *mut RawContext) -> Result<(), String> {
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
    let loaded = catch_panic(|| V::load(&mut Loading(raw), version)).unwrap_or_else(|| Err(Failure::panicked()));
    match loaded.and_then(boxed) {
        Ok(value) => Box::into_raw(value).cast(),
        Err(failure) => {
            // SAFETY: the stream belongs to this call, and so does the name, which may be missing.
            let key = Name(unsafe { NonNull::new((server().GetKeyNameFromIO)(raw)).map(|name| Text::new(name)) });
            // After a broken connection, the server keeps running, and synchronizes again.
            let is_broken = !Loading(raw).has_no_error() && is_reading_connection();
            if is_loading() && !is_broken {
                end_start(format_args!("the cuckoo filter of {key} cannot be read"), &failure);
            }
            let mut line = Line::new();
            line.add(format_args!("the cuckoo filter of {key} cannot be read: {failure}"));
            // SAFETY: as above, and the format takes one string.
            unsafe { (server().LogIOError)(raw, c"warning".as_ptr(), c"%s".as_ptr(), line.text().as_ptr()) };
            ptr::null_mut()
        }
    }
}

/// Returns the value that the server passed to one of the type's functions.
///
/// # Safety
/// The value must have this type, and come from `Key::set`, `load` or `copy`.
unsafe fn value<'a, V>(raw: *const c_void) -> &'a V {
    // SAFETY: as the caller promises; the server does not free it during this call.
    unsafe { &*raw.cast() }
}

/// Tells the server that a value was not saved completely, so that it keeps its previous file and reports the error. The module API
/// has no function for that. Emitting a command that does not exist is such an error, in RDB and AOF files.
fn report_failed_save(raw: *mut RawStream) {
    // SAFETY: the stream belongs to this call, and the format takes no arguments.
    unsafe { (server().EmitAOF)(raw, c"CF.NOT-SAVED".as_ptr(), c"".as_ptr()) };
}

unsafe extern "C" fn save<V: Value>(raw: *mut RawStream, saved: *mut c_void) {
    // SAFETY: the server passes a value of the type.
    if !matches!(catch_panic(|| unsafe { value::<V>(saved) }.save(&mut Saving(raw))), Some(Ok(()))) {
        report_failed_save(raw);
    }
}

unsafe extern "C" fn rewrite<V: Value>(raw: *mut RawStream, key: *mut RawText, rewritten: *mut c_void) {
    let Some(key) = NonNull::new(key) else { return };
    // SAFETY: as above, and the key's name lives until the call ends.
    let result = catch_panic(|| unsafe { value::<V>(rewritten).rewrite(&mut Rewriting { raw, key: Text::new(key) }) });
    if !matches!(result, Some(Ok(()))) {
        report_failed_save(raw);
    }
}

unsafe extern "C" fn memory<V: Value>(measured: *const c_void) -> usize {
    // SAFETY: as above.
    catch_panic(|| unsafe { value::<V>(measured) }.size_in_bytes()).unwrap_or(0)
}

unsafe extern "C" fn digest<V: Value>(raw: *mut RawDigest, digested: *mut c_void) {
    // SAFETY: as above.
    catch_panic(|| unsafe { value::<V>(digested) }.digest(&mut Digest(raw)));
    // SAFETY: the digest belongs to this call.
    unsafe { (server().DigestEndSequence)(raw) };
}

unsafe extern "C" fn free<V: Value>(freed: *mut c_void) {
    // SAFETY: as above, and the server does not use it afterwards.
    catch_panic(|| drop(unsafe { Box::<V>::from_raw(freed.cast()) }));
}

unsafe extern "C" fn free_effort<V: Value>(_: *mut RawText, freed: *const c_void) -> usize {
    // SAFETY: as above.
    catch_panic(|| unsafe { value::<V>(freed) }.free_effort()).unwrap_or(1)
}

unsafe extern "C" fn copy<V: Value>(from: *mut RawText, _: *mut RawText, copied: *const c_void) -> *mut c_void {
    // SAFETY: as above.
    let copy = catch_panic(|| unsafe { value::<V>(copied) }.copy()).flatten();
    if let Some(copy) = copy.and_then(|copy| boxed(copy).ok()) {
        return Box::into_raw(copy).cast();
    }
    if is_loading() {
        // SAFETY: the name lives until the call ends.
        let key = Name(NonNull::new(from).map(|name| unsafe { Text::new(name) }));
        end_start(format_args!("the cuckoo filter of {key} cannot be copied"), &Failure::out_of_memory());
    }
    ptr::null_mut()
}

unsafe extern "C" fn defrag<V: Value>(raw: *mut RawDefrag, _: *mut RawText, moved: *mut *mut c_void) -> c_int {
    let Some(defrag) = server().DefragAlloc else { return 0 };
    // SAFETY: the value was allocated by the server. If it moves the value, it copies it and frees the old memory.
    let new = unsafe { defrag(raw, *moved) };
    if !new.is_null() {
        // SAFETY: the server reads the new address from there.
        unsafe { *moved = new };
    }
    DEFRAG.store(raw, Relaxed);
    // SAFETY: nothing else refers to the value now.
    catch_panic(|| unsafe { (*(*moved).cast::<V>()).defragment() });
    DEFRAG.store(ptr::null_mut(), Relaxed);
    0
}
