//! Decodes items from their bytes, as the documentation of `Item` describes them. Values that can be decoded have distinct bytes.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};

pub(crate) trait Decode: Sized {
    /// Decodes a value that is part of another one, from the front of the bytes.
    fn part(bytes: &mut &[u8]) -> Option<Self>;

    /// Decodes a value that is an item by itself, from all bytes.
    fn alone(bytes: &mut &[u8]) -> Option<Self> {
        Self::part(bytes)
    }
}

pub(crate) fn decode<T: Decode>(mut bytes: &[u8]) -> Option<T> {
    T::alone(&mut bytes).filter(|_| bytes.is_empty())
}

fn take<'a>(bytes: &mut &'a [u8], len: usize) -> Option<&'a [u8]> {
    bytes.split_off(..len)
}

fn len(bytes: &mut &[u8]) -> Option<usize> {
    usize::try_from(u64::part(bytes)?).ok()
}

macro_rules! integers {
    ($($integer:ty),+) => {$(
        impl Decode for $integer {
            fn part(bytes: &mut &[u8]) -> Option<Self> {
                Some(Self::from_le_bytes(take(bytes, size_of::<Self>())?.try_into().ok()?))
            }
        }
    )+};
}
integers!(u8, u16, u32, u64, u128, i8);

impl Decode for bool {
    fn part(bytes: &mut &[u8]) -> Option<Self> {
        match u8::part(bytes)? {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }
}

impl Decode for char {
    fn part(bytes: &mut &[u8]) -> Option<Self> {
        Self::from_u32(u32::part(bytes)?)
    }
}

impl Decode for String {
    fn part(bytes: &mut &[u8]) -> Option<Self> {
        let len = len(bytes)?;
        Self::from_utf8(take(bytes, len)?.to_vec()).ok()
    }

    fn alone(bytes: &mut &[u8]) -> Option<Self> {
        Self::from_utf8(std::mem::take(bytes).to_vec()).ok()
    }
}

impl<T: Decode> Decode for Vec<T> {
    fn part(bytes: &mut &[u8]) -> Option<Self> {
        (0..len(bytes)?).map(|_| T::part(bytes)).collect()
    }

    fn alone(bytes: &mut &[u8]) -> Option<Self> {
        let mut items = Self::new();
        while !bytes.is_empty() {
            items.push(T::part(bytes)?);
        }
        Some(items)
    }
}

impl<T: Decode, const N: usize> Decode for [T; N] {
    fn part(bytes: &mut &[u8]) -> Option<Self> {
        Vec::part(bytes)?.try_into().ok()
    }

    fn alone(bytes: &mut &[u8]) -> Option<Self> {
        Vec::alone(bytes)?.try_into().ok()
    }
}

impl<T: Decode> Decode for Option<T> {
    fn part(bytes: &mut &[u8]) -> Option<Self> {
        match u8::part(bytes)? {
            0 => Some(None),
            1 => T::part(bytes).map(Some),
            _ => None,
        }
    }
}

macro_rules! tuples {
    ($([$($field:ident)+])+) => {$(
        impl<$($field: Decode),+> Decode for ($($field,)+) {
            fn part(bytes: &mut &[u8]) -> Option<Self> {
                Some(($($field::part(bytes)?,)+))
            }
        }
    )+};
}
tuples!([A B] [A B C] [A B C D]);

impl Decode for Ipv4Addr {
    fn part(bytes: &mut &[u8]) -> Option<Self> {
        Some(Self::from(u32::from_be_bytes(take(bytes, 4)?.try_into().ok()?)))
    }
}

impl Decode for Ipv6Addr {
    fn part(bytes: &mut &[u8]) -> Option<Self> {
        Some(Self::from(u128::from_be_bytes(take(bytes, 16)?.try_into().ok()?)))
    }
}

impl Decode for IpAddr {
    fn part(bytes: &mut &[u8]) -> Option<Self> {
        match u8::part(bytes)? {
            4 => Ipv4Addr::part(bytes).map(Self::V4),
            6 => Ipv6Addr::part(bytes).map(Self::V6),
            _ => None,
        }
    }
}

impl Decode for SocketAddrV4 {
    fn part(bytes: &mut &[u8]) -> Option<Self> {
        Some(Self::new(Decode::part(bytes)?, Decode::part(bytes)?))
    }
}

impl Decode for SocketAddrV6 {
    fn part(bytes: &mut &[u8]) -> Option<Self> {
        Some(Self::new(Decode::part(bytes)?, Decode::part(bytes)?, Decode::part(bytes)?, Decode::part(bytes)?))
    }
}

impl Decode for SocketAddr {
    fn part(bytes: &mut &[u8]) -> Option<Self> {
        match u8::part(bytes)? {
            4 => SocketAddrV4::part(bytes).map(Self::V4),
            6 => SocketAddrV6::part(bytes).map(Self::V6),
            _ => None,
        }
    }
}
