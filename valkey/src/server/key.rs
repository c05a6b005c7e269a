//! Keys of the database and their values.

use std::{ffi::c_int, marker::PhantomData, ptr::NonNull};

use super::{
    Value,
    context::{Context, Text},
    functions::{RawKey, RawText, server},
    memory::boxed,
};
use crate::reply::Failure;

const READ: c_int = 1;
const READ_AND_WRITE: c_int = 3;

/// The type of a key that does not exist.
const EMPTY: c_int = 0;

/// An open key.
pub(crate) struct Key<'a, V> {
    /// Null for a key that was opened for reading and does not exist.
    raw: *mut RawKey,
    name: *mut RawText,
    is_written: bool,
    context: &'a Context,
    kind: PhantomData<V>,
}

/// The content of a key.
pub(crate) enum Found<T> {
    Nothing,
    Value(T),
    /// A value of another type.
    Other,
}

impl Context {
    /// Opens a key to read it.
    pub(crate) fn read<V: Value>(&self, name: Text<'_>) -> Key<'_, V> {
        self.open(name, READ)
    }

    /// Opens a key to change it.
    pub(crate) fn write<V: Value>(&self, name: Text<'_>) -> Key<'_, V> {
        self.open(name, READ_AND_WRITE)
    }

    fn open<V: Value>(&self, name: Text<'_>, mode: c_int) -> Key<'_, V> {
        self.open_key(name);
        // SAFETY: the context belongs to this call.
        let raw = unsafe { (server().OpenKey)(self.raw.as_ptr(), name.raw(), mode) };
        Key { raw, name: name.raw(), is_written: mode == READ_AND_WRITE, context: self, kind: PhantomData }
    }
}

impl<V: Value> Key<'_, V> {
    fn value(&self) -> Found<NonNull<V>> {
        // SAFETY: the key is open, or null, which is allowed for these functions. The type is null unless it is a module's.
        if unsafe { (server().ModuleTypeGetType)(self.raw) } == V::handle().raw() {
            // SAFETY: as above. Values of this type come from `set`, `load` or `copy`.
            let value = unsafe { (server().ModuleTypeGetValue)(self.raw) };
            return NonNull::new(value.cast()).map_or(Found::Nothing, Found::Value);
        }
        if self.is_empty() { Found::Nothing } else { Found::Other }
    }

    /// Returns true if the key does not exist.
    pub(crate) fn is_empty(&self) -> bool {
        // SAFETY: as above.
        unsafe { (server().KeyType)(self.raw) == EMPTY }
    }

    pub(crate) fn get(&self) -> Found<&V> {
        match self.value() {
            Found::Nothing => Found::Nothing,
            // SAFETY: the key is open only once, so only this `Key` refers to the value.
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

    /// Replaces the value of the key, which keeps its expiry if it has a value of this type. Returns an error if there is no memory
    /// for the value.
    pub(crate) fn set(&mut self, value: V) -> Result<(), Failure> {
        if let Found::Value(old) = self.get_mut() {
            *old = value;
            return Ok(());
        }
        let value = Box::into_raw(boxed(value)?).cast();
        // SAFETY: the key is open for writing; the server frees the old value.
        unsafe { (server().ModuleTypeSetValue)(self.raw, V::handle().raw(), value) };
        Ok(())
    }

    pub(crate) fn delete(&mut self) {
        // SAFETY: the key is open for writing.
        unsafe { (server().DeleteKey)(self.raw) };
    }
}

impl<V> Drop for Key<'_, V> {
    fn drop(&mut self) {
        self.context.close_key(self.name);
        if !self.raw.is_null() {
            // SAFETY: the key is open, and is not used afterwards.
            unsafe { (server().CloseKey)(self.raw) };
        }
        if self.is_written && self.context.is_changed.get() {
            // Notifies clients that watch the key or have cached it. SAFETY: the context and the name belong to this call.
            unsafe { (server().SignalModifiedKey)(self.context.raw.as_ptr(), self.name) };
        }
    }
}
