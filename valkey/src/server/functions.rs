//! The table of the server's functions.

use std::{
    ffi::{c_char, c_int, c_long, c_longlong, c_uint, c_ulonglong, c_void},
    mem, ptr,
    sync::OnceLock,
};

use super::about::RawCommandInfo;

/// Types that the server's pointers refer to.
macro_rules! opaque {
    ($($name:ident)*) => {
        $(
            #[repr(C)]
            pub(super) struct $name([u8; 0]);
        )*
    };
}

opaque!(RawContext RawKey RawText RawType RawStream RawDigest RawDefrag RawCommand RawInfo);

pub(super) const OK: c_int = 0;
pub(super) const ERROR: c_int = 1;

pub(super) type GetApi = unsafe extern "C" fn(*const c_char, *mut *mut c_void) -> c_int;
pub(super) type RawCommandFunction = unsafe extern "C" fn(*mut RawContext, *mut *mut RawText, c_int) -> c_int;
pub(super) type GetNumber = unsafe extern "C" fn(*const c_char, *mut c_void) -> c_longlong;
pub(super) type SetNumber = unsafe extern "C" fn(*const c_char, c_longlong, *mut c_void, *mut *mut RawText) -> c_int;
pub(super) type GetBool = unsafe extern "C" fn(*const c_char, *mut c_void) -> c_int;
pub(super) type SetBool = unsafe extern "C" fn(*const c_char, c_int, *mut c_void, *mut *mut RawText) -> c_int;
pub(super) type GetText = unsafe extern "C" fn(*const c_char, *mut c_void) -> *mut RawText;
pub(super) type SetText = unsafe extern "C" fn(*const c_char, *mut RawText, *mut c_void, *mut *mut RawText) -> c_int;
pub(super) type InfoFunction = unsafe extern "C" fn(*mut RawInfo, c_int);
pub(super) type Apply = unsafe extern "C" fn(*mut RawContext, *mut c_void, *mut *mut RawText) -> c_int;

/// The functions of a type of values.
#[repr(C)]
pub(super) struct TypeMethods {
    pub(super) version: u64,
    pub(super) load: unsafe extern "C" fn(*mut RawStream, c_int) -> *mut c_void,
    pub(super) save: unsafe extern "C" fn(*mut RawStream, *mut c_void),
    pub(super) rewrite: unsafe extern "C" fn(*mut RawStream, *mut RawText, *mut c_void),
    pub(super) memory: unsafe extern "C" fn(*const c_void) -> usize,
    pub(super) digest: unsafe extern "C" fn(*mut RawDigest, *mut c_void),
    pub(super) free: unsafe extern "C" fn(*mut c_void),
    pub(super) aux_load: *const c_void,
    pub(super) aux_save: *const c_void,
    pub(super) aux_save_triggers: c_int,
    pub(super) free_effort: unsafe extern "C" fn(*mut RawText, *const c_void) -> usize,
    pub(super) unlink: *const c_void,
    pub(super) copy: unsafe extern "C" fn(*mut RawText, *mut RawText, *const c_void) -> *mut c_void,
    pub(super) defrag: unsafe extern "C" fn(*mut RawDefrag, *mut RawText, *mut *mut c_void) -> c_int,
}

/// Defines a struct of the server's functions, by their names.
macro_rules! server_functions {
    ({ $($name:ident: $type:ty,)* } optional { $($optional:ident: $optional_type:ty,)* }) => {
        #[allow(non_snake_case)]
        pub(super) struct Functions {
            $(pub(super) $name: $type,)*
            $(pub(super) $optional: Option<$optional_type>,)*
        }

        impl Functions {
            /// # Safety
            /// `get` must be the function that the server provides for this.
            pub(super) unsafe fn load(get: GetApi) -> Result<Self, &'static str> {
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
    RegisterBoolConfig: unsafe extern "C" fn(
        *mut RawContext, *const c_char, c_int, c_uint, GetBool, SetBool, Option<Apply>, *mut c_void
    ) -> c_int,
    LoadConfigs: unsafe extern "C" fn(*mut RawContext) -> c_int,
    Log: unsafe extern "C" fn(*mut RawContext, *const c_char, *const c_char, ...),
    WrongArity: unsafe extern "C" fn(*mut RawContext) -> c_int,
    GetContextFlags: unsafe extern "C" fn(*mut RawContext) -> c_int,
    ReplicateVerbatim: unsafe extern "C" fn(*mut RawContext) -> c_int,
    Replicate: unsafe extern "C" fn(*mut RawContext, *const c_char, *const c_char, ...) -> c_int,
    GetServerInfo: unsafe extern "C" fn(*mut RawContext, *const c_char) -> *mut RawInfo,
    ServerInfoGetFieldSigned: unsafe extern "C" fn(*mut RawInfo, *const c_char, *mut c_int) -> c_longlong,
    ServerInfoGetFieldUnsigned: unsafe extern "C" fn(*mut RawInfo, *const c_char, *mut c_int) -> c_ulonglong,
    ServerInfoGetFieldC: unsafe extern "C" fn(*mut RawInfo, *const c_char) -> *const c_char,
    FreeServerInfo: unsafe extern "C" fn(*mut RawContext, *mut RawInfo),
    OpenKey: unsafe extern "C" fn(*mut RawContext, *mut RawText, c_int) -> *mut RawKey,
    CloseKey: unsafe extern "C" fn(*mut RawKey),
    SignalModifiedKey: unsafe extern "C" fn(*mut RawContext, *mut RawText) -> c_int,
    RegisterInfoFunc: unsafe extern "C" fn(*mut RawContext, InfoFunction) -> c_int,
    InfoAddSection: unsafe extern "C" fn(*mut RawInfo, *const c_char) -> c_int,
    InfoAddFieldULongLong: unsafe extern "C" fn(*mut RawInfo, *const c_char, c_ulonglong) -> c_int,
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
    GetKeyNameFromIO: unsafe extern "C" fn(*mut RawStream) -> *mut RawText,
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
    RegisterDefragFunc2: unsafe extern "C" fn(*mut RawContext, *const c_void) -> c_int,
    DefragAlloc: unsafe extern "C" fn(*mut RawDefrag, *mut c_void) -> *mut c_void,
});

/// # Safety
/// `F` must be an optional pointer to a function of the same type as the server's function with this name. The name ends with a
/// zero.
unsafe fn find<F>(get: GetApi, name: &'static str) -> F {
    const { assert!(size_of::<F>() == size_of::<*mut c_void>()) };
    let mut function = ptr::null_mut();
    // SAFETY: the server writes the pointer, or leaves it unchanged.
    if unsafe { get(name.as_ptr().cast(), &raw mut function) } != OK {
        function = ptr::null_mut();
    }
    // SAFETY: null is `None`, and any other pointer is a function of that type.
    unsafe { mem::transmute_copy(&function) }
}

pub(super) static FUNCTIONS: OnceLock<Functions> = OnceLock::new();

/// Returns the server's functions.
pub(super) fn server() -> &'static Functions {
    FUNCTIONS.get().expect("the server calls the module only after loading it")
}
