//! Tuples, options and addresses: the parts of what they are made of. As parts they are the same bytes, which say
//! themselves where they end.

use core::net::{IpAddr, SocketAddr, SocketAddrV4, SocketAddrV6};

use super::{Item, Parts};

macro_rules! composites {
    ($([$($generic:ident)*] $composite:ty: |$value:ident, $parts:ident| $write:expr;)+) => {$(
        impl<$($generic: Item),*> Item for $composite {
            #[inline]
            fn with_bytes<R>(&self, read: impl FnOnce(&[u8]) -> R) -> R {
                Parts::collect(|parts| self.write_part(parts), read)
            }

            #[inline]
            fn write_part(&self, $parts: &mut Parts) {
                let $value = self;
                $write
            }
        }
    )+};
}

composites! {
    [T] Option<T>: |option, parts| match option {
        None => parts.push(&[0]),
        Some(item) => {
            parts.push(&[1]);
            item.write_part(parts);
        }
    };
    // One byte, as with an empty part `[(); 1]` and `[(); 2]` would be the same item.
    [] (): |_unit, parts| parts.push(&[0]);
    [] IpAddr: |address, parts| match address {
        Self::V4(address) => (4_u8, address).write_part(parts),
        Self::V6(address) => (6_u8, address).write_part(parts),
    };
    [] SocketAddrV4: |address, parts| (address.ip(), address.port()).write_part(parts);
    [] SocketAddrV6: |address, parts| {
        (address.ip(), address.port(), address.flowinfo(), address.scope_id()).write_part(parts);
    };
    [] SocketAddr: |address, parts| match address {
        Self::V4(address) => (4_u8, address).write_part(parts),
        Self::V6(address) => (6_u8, address).write_part(parts),
    };
}

macro_rules! tuples {
    ($([$($field:ident)+])+) => {$(
        composites! {
            [$($field)+] ($($field,)+): |tuple, parts| {
                #[allow(non_snake_case, reason = "the fields have the names of their types")]
                let ($($field,)+) = tuple;
                $($field.write_part(parts);)+
            };
        }
    )+};
}
tuples! {
    [A]
    [A B]
    [A B C]
    [A B C D]
    [A B C D E]
    [A B C D E F]
    [A B C D E F G]
    [A B C D E F G H]
    [A B C D E F G H I]
    [A B C D E F G H I J]
    [A B C D E F G H I J K]
    [A B C D E F G H I J K L]
}
