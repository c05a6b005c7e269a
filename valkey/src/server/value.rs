//! Values of keys: how the server saves, loads, measures, copies, moves and frees them.

use std::{
    ffi::{CStr, c_int, c_void},
    io,
    ops::Deref,
    ptr::{self, NonNull},
    slice,
    sync::atomic::{AtomicPtr, Ordering::Relaxed},
};

use super::{
    context::{NewText, Text},
    functions::{RawContext, RawDefrag, RawDigest, RawStream, RawText, RawType, server},
    guarded,
    memory::{MOVING, boxed},
};
use crate::reply::Failure;

/// What keys of the module hold.
pub(crate) trait Value: Sized {
    /// Nine characters that tell this type from those of other modules.
    const NAME: &'static CStr;
    /// The version of what is saved.
    const VERSION: i32;

    fn handle() -> &'static Handle;
    /// Saves the value. May allocate nothing: the server saves just when memory runs out, too. After an error, the server keeps
    /// the file that it had.
    fn save(&self, stream: &mut Saving) -> io::Result<()>;
    fn load(stream: &mut Loading, version: i32) -> Result<Self, Failure>;
    /// Emits commands that make the value, as `save` saves it.
    fn rewrite(&self, commands: &mut Rewriting<'_>) -> io::Result<()>;
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

    pub(super) fn raw(&self) -> *mut RawType {
        self.0.load(Relaxed)
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
        // SAFETY: the server has written this many bytes.
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
    pub(crate) fn emit<const N: usize>(&mut self, command: &CStr, number: i64, bytes: &[u8], rest: [&[u8]; N]) {
        let rest = rest.map(NewText::new);
        let rest: [*mut RawText; N] = rest.each_ref().map(NewText::raw);
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
pub(super) struct TypeMethods {
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
    let loaded = guarded(|| V::load(&mut Loading(raw), version)).unwrap_or_else(|| Err(Failure::panicked()));
    match loaded.and_then(boxed) {
        Ok(value) => Box::into_raw(value).cast(),
        Err(failure) => {
            let message = failure.words();
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

/// Tells the server that a value was not saved whole, so that it keeps the file that it had and says so. The module API has no
/// function for that, but a command that does not exist is such an error, in files of both kinds.
fn not_saved(raw: *mut RawStream) {
    // SAFETY: the stream is the one of this call, and the format takes no arguments.
    unsafe { (server().EmitAOF)(raw, c"CF.NOT-SAVED".as_ptr(), c"".as_ptr()) };
}

unsafe extern "C" fn save<V: Value>(raw: *mut RawStream, saved: *mut c_void) {
    // SAFETY: the server calls it with values of the type.
    if !matches!(guarded(|| unsafe { value::<V>(saved) }.save(&mut Saving(raw))), Some(Ok(()))) {
        not_saved(raw);
    }
}

unsafe extern "C" fn rewrite<V: Value>(raw: *mut RawStream, key: *mut RawText, rewritten: *mut c_void) {
    let Some(key) = NonNull::new(key) else { return };
    // SAFETY: as above, and the key's name lives as long as the call.
    let result = guarded(|| unsafe { value::<V>(rewritten).rewrite(&mut Rewriting { raw, key: Text::new(key) }) });
    if !matches!(result, Some(Ok(()))) {
        not_saved(raw);
    }
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
    copy.and_then(|copy| boxed(copy).ok()).map_or(ptr::null_mut(), |copy| Box::into_raw(copy).cast())
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
