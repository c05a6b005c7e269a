//! The expected bytes of one value of each type.

use super::{V6, bytes, part};
use koel::Item;
use std::{
    ffi::CString,
    net::{IpAddr, Ipv4Addr, SocketAddr, SocketAddrV4, SocketAddrV6},
    num::NonZero,
};

const V6_OCTETS: &[u8; 16] = b"\x20\x01\x0d\xb8\0\0\0\0\0\0\0\0\0\0\x01\x02";

/// Types that have the same bytes alone and as a part.
#[test]
fn golden_bytes_of_self_delimiting_types() {
    #[track_caller]
    fn golden<T: Item + ?Sized>(item: &T, expected: &[u8]) {
        assert_eq!(bytes(item), expected);
        assert_eq!(part(item), expected, "as a part");
    }
    golden(&0x12_u8, b"\x12");
    golden(&0x1234_u16, b"\x34\x12");
    golden(&0x1234_5678_u32, b"\x78\x56\x34\x12");
    golden(&0x0123_4567_89ab_cdef_u64, b"\xef\xcd\xab\x89\x67\x45\x23\x01");
    golden(&0x0123_u128, b"\x23\x01\0\0\0\0\0\0\0\0\0\0\0\0\0\0");
    golden(&0x1234_5678_usize, b"\x78\x56\x34\x12\0\0\0\0");
    golden(&-2_i8, b"\xfe");
    golden(&-2_i16, b"\xfe\xff");
    golden(&-2_i32, b"\xfe\xff\xff\xff");
    golden(&-2_i64, b"\xfe\xff\xff\xff\xff\xff\xff\xff");
    golden(&-2_i128, b"\xfe\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff");
    golden(&-2_isize, b"\xfe\xff\xff\xff\xff\xff\xff\xff");

    golden(&NonZero::new(7_u8), b"\x01\x07");
    golden(&NonZero::new(7_u8).expect("not 0"), b"\x07");
    golden(&NonZero::new(7_u16).expect("not 0"), b"\x07\0");
    golden(&NonZero::new(7_u32).expect("not 0"), b"\x07\0\0\0");
    golden(&NonZero::new(7_u64).expect("not 0"), b"\x07\0\0\0\0\0\0\0");
    golden(&NonZero::new(7_u128).expect("not 0"), b"\x07\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0");
    golden(&NonZero::new(7_usize).expect("not 0"), b"\x07\0\0\0\0\0\0\0");
    golden(&NonZero::new(-1_i8).expect("not 0"), b"\xff");
    golden(&NonZero::new(-1_i16).expect("not 0"), b"\xff\xff");
    golden(&NonZero::new(-1_i32).expect("not 0"), b"\xff\xff\xff\xff");
    golden(&NonZero::new(-1_i64).expect("not 0"), &[0xff; 8]);
    golden(&NonZero::new(-1_i128).expect("not 0"), &[0xff; 16]);
    golden(&NonZero::new(-1_isize).expect("not 0"), &[0xff; 8]);

    golden(&false, b"\0");
    golden(&true, b"\x01");
    golden(&'a', b"a\0\0\0");
    golden(&'\u{10ffff}', b"\xff\xff\x10\0");

    golden(&Ipv4Addr::new(192, 0, 2, 1), b"\xc0\0\x02\x01");
    golden(&V6, V6_OCTETS);
    golden(&IpAddr::from([192, 0, 2, 1]), b"\x04\xc0\0\x02\x01");
    golden(&IpAddr::from(V6), &[b"\x06", &V6_OCTETS[..]].concat());
    golden(&SocketAddrV4::new(Ipv4Addr::new(192, 0, 2, 1), 0x1f90), b"\xc0\0\x02\x01\x90\x1f");
    golden(&SocketAddr::from(([192, 0, 2, 1], 0x1f90)), b"\x04\xc0\0\x02\x01\x90\x1f");
    let v6 = SocketAddrV6::new(V6, 0x1f90, 0x0102_0304, 5);
    golden(&v6, &[V6_OCTETS, &b"\x90\x1f\x04\x03\x02\x01\x05\0\0\0"[..]].concat());
    golden(&SocketAddr::from(v6), &[b"\x06", &V6_OCTETS[..], b"\x90\x1f\x04\x03\x02\x01\x05\0\0\0"].concat());

    golden(&None::<u8>, b"\0");
    golden(&Some(7_u8), b"\x01\x07");
    golden(&Some("ab"), b"\x01\x02\0\0\0\0\0\0\0ab");
    golden(&Some(None::<u8>), b"\x01\0");
    golden(&Some(Some(7_u8)), b"\x01\x01\x07");

    golden(&(), b"\0");
    golden(&("ab",), b"\x02\0\0\0\0\0\0\0ab");
    golden(&(7_u8, "ab", 0x0102_u16), b"\x07\x02\0\0\0\0\0\0\0ab\x02\x01");
    golden(&((7_u8, "ab"), 0x0102_u16), b"\x07\x02\0\0\0\0\0\0\0ab\x02\x01");
    golden(&((), ()), b"\0\0");
    golden(&(1_u8, 2_u8, 3_u8, 4_u8), b"\x01\x02\x03\x04");
    golden(&(1_u8, 2_u8, 3_u8, 4_u8, 5_u8), b"\x01\x02\x03\x04\x05");
    golden(&(1_u8, 2_u8, 3_u8, 4_u8, 5_u8, 6_u8), b"\x01\x02\x03\x04\x05\x06");
    golden(&(1_u8, 2_u8, 3_u8, 4_u8, 5_u8, 6_u8, 7_u8), b"\x01\x02\x03\x04\x05\x06\x07");
    golden(&(1_u8, 2_u8, 3_u8, 4_u8, 5_u8, 6_u8, 7_u8, 8_u8), b"\x01\x02\x03\x04\x05\x06\x07\x08");
    golden(&(1_u8, 2_u8, 3_u8, 4_u8, 5_u8, 6_u8, 7_u8, 8_u8, 9_u8), b"\x01\x02\x03\x04\x05\x06\x07\x08\x09");
    golden(&(1_u8, 2_u8, 3_u8, 4_u8, 5_u8, 6_u8, 7_u8, 8_u8, 9_u8, 10_u8), b"\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a");
    let eleven = (1_u8, 2_u8, 3_u8, 4_u8, 5_u8, 6_u8, 7_u8, 8_u8, 9_u8, 10_u8, 11_u8);
    golden(&eleven, b"\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b");
    let twelve = (1_u8, 2_u8, 3_u8, 4_u8, 5_u8, 6_u8, 7_u8, 8_u8, 9_u8, 10_u8, 11_u8, 12_u8);
    golden(&twelve, b"\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c");
}

/// Types whose bytes have a length in front when they are a part.
#[test]
fn golden_bytes_of_types_of_any_length() {
    #[track_caller]
    fn golden<T: Item + ?Sized>(item: &T, expected: &[u8], len: u8) {
        assert_eq!(bytes(item), expected);
        assert_eq!(part(item), [&[len, 0, 0, 0, 0, 0, 0, 0], expected].concat(), "as a part");
    }
    golden("", b"", 0);
    golden("köl", b"k\xc3\xb6l", 4);
    golden(&String::from("koel"), b"koel", 4);
    golden(b"\0\x01\xff", b"\0\x01\xff", 3);
    golden(&b"\0\x01\xff"[..], b"\0\x01\xff", 3);
    golden(&vec![0_u8, 1, 255], b"\0\x01\xff", 3);
    golden(c"koel", b"koel", 4);
    golden(&CString::from(c"koel"), b"koel", 4);

    golden(&[0x0102_u16, 3], b"\x02\x01\x03\0", 2);
    golden(&[0x0102_u16, 3][..], b"\x02\x01\x03\0", 2);
    golden(&vec![0x0102_u16, 3], b"\x02\x01\x03\0", 2);
    golden(&["ab", "c"], b"\x02\0\0\0\0\0\0\0ab\x01\0\0\0\0\0\0\0c", 2);
    golden(&[[1_u8, 2], [3, 4]], b"\x02\0\0\0\0\0\0\0\x01\x02\x02\0\0\0\0\0\0\0\x03\x04", 2);
    golden(&[(); 3], b"\0\0\0", 3);
    golden(&[0_u16; 0], b"", 0);
    golden(&[None, Some(7_u8)], b"\0\x01\x07", 2);
    // A `u8` has no length in front, even behind a reference.
    golden(&[&1_u8, &2], b"\x01\x02", 2);

    // This item is longer than the buffer on the stack.
    let long = "x".repeat(300);
    assert_eq!(bytes(&(1_u8, &long, 2_u8)), [b"\x01\x2c\x01\0\0\0\0\0\0", long.as_bytes(), b"\x02"].concat());
}

#[cfg(all(feature = "std", unix))]
#[test]
fn golden_bytes_of_paths() {
    use std::{
        ffi::{OsStr, OsString},
        os::unix::ffi::OsStrExt as _,
        path::{Path, PathBuf},
    };
    let name = OsStr::from_bytes(b"/tmp/\xff");
    assert_eq!(bytes(name), b"/tmp/\xff");
    assert_eq!(bytes(&OsString::from(name)), b"/tmp/\xff");
    assert_eq!(bytes(Path::new(name)), b"/tmp/\xff");
    assert_eq!(bytes(&PathBuf::from(name)), b"/tmp/\xff");
    for part in [part(name), part(&OsString::from(name)), part(Path::new(name)), part(&PathBuf::from(name))] {
        assert_eq!(part, b"\x06\0\0\0\0\0\0\0/tmp/\xff");
    }
    // These paths are equal by `==`, but are distinct items.
    assert_ne!(bytes(Path::new("a//b")), bytes(Path::new("a/b")));
}
