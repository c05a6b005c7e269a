//! Different values of a type have different bytes, also as parts of others.

use super::{
    Name, V6, bytes,
    decoder::{Decode, decode},
    part,
};
use koel::{Item, Prehashed, Xxh3};
use proptest::prelude::*;
use std::net::{IpAddr, SocketAddr, SocketAddrV4, SocketAddrV6};

/// Pairs whose parts are the same bytes if nothing keeps them apart.
#[test]
fn parts_do_not_run_into_each_other() {
    #[track_caller]
    fn differ<T: Item + ?Sized>(one: &T, other: &T) {
        assert_ne!(bytes(one), bytes(other));
        assert_ne!(part(one), part(other), "as parts");
        assert_ne!(Prehashed::of(&Xxh3, 0, one), Prehashed::of(&Xxh3, 0, other));
    }
    differ(&("ab", "c"), &("a", "bc"));
    differ(&("", "a"), &("a", ""));
    differ(&(b"ab".to_vec(), b"".to_vec()), &(b"a".to_vec(), b"b".to_vec()));
    differ(&("a", Some("b")), &("a\x01", Some("")));
    differ(&(1_u8, "x"), &(0_u8, "x"));
    differ(&["ab", "c"][..], &["a", "bc"]);
    differ(&["ab"][..], &["ab", ""]);
    differ(&["a", "b"][..], &["ab"]);
    // A length that looks like text, and text that looks like a length.
    differ(&("\x01\0\0\0\0\0\0\0a", ""), &("", "\x01\0\0\0\0\0\0\0a"));
    differ(&["\x01\0\0\0\0\0\0\0a"][..], &["", "a"]);
    differ(&[vec![1_u16], vec![2, 3]][..], &[vec![1, 2], vec![3]]);
    differ(&[vec![], vec![1_u16]][..], &[vec![1], vec![]]);
    differ(&vec![vec![(); 2]], &vec![vec![()], vec![()]]);
    differ(&[(); 1][..], &[(); 2]);
    differ(&[[0_u8; 0]; 1][..], &[[0_u8; 0]; 2]);
    differ(&None::<()>, &Some(()));
    differ(&None, &Some(None::<()>));
    differ(&Some(None::<u8>), &Some(Some(0)));
    differ(&(None, Some(0_u8)), &(Some(0), None::<u8>));
    differ(&(None, 1_u8, None), &(Some(1_u8), 0, None::<u8>));
    differ(&[None, Some(0_u8)][..], &[Some(0), None]);
    differ(&(Some("a"), "b"), &(None, "a"));
    differ(&IpAddr::from([0, 0, 0, 0]), &IpAddr::from([0; 16]));
    let flows = |flow, scope| SocketAddrV6::new(V6, 80, flow, scope);
    differ(&flows(0, 1), &flows(1, 0));
    differ(&SocketAddr::from(([192, 0, 2, 1], 80)), &SocketAddr::from((V6, 80)));
}

fn text() -> impl Strategy<Value = String> {
    // Bytes that lengths and tags have, too, and often the same text again.
    "[\0\x01\x02a]{0,3}|.{0,20}|[a-z]{100,200}"
}

/// What two values of a type have in common is their bytes, and only if they are the same: from the bytes a value can be had
/// back, by a reader that knows the documentation only.
fn comes_back<T: Item + Decode + PartialEq + std::fmt::Debug>(item: &T) -> Result<(), TestCaseError> {
    let read = decode::<T>(&bytes(item));
    prop_assert_eq!(read.as_ref(), Some(item));
    // A part ends where it ends, whatever follows.
    let (read, byte) = decode::<(T, u8)>(&bytes(&(item, 0x55_u8))).expect("it can be read");
    prop_assert_eq!((&read, byte), (item, 0x55));
    Ok(())
}

fn injective<T: Item + PartialEq + std::fmt::Debug>(one: &T, other: &T) -> Result<(), TestCaseError> {
    prop_assert_eq!(bytes(one) == bytes(other), one == other);
    prop_assert_eq!(part(one) == part(other), one == other);
    Ok(())
}

type Nested = (Vec<(String, Option<u16>)>, Option<Option<Vec<u8>>>, [Vec<Vec<u16>>; 2], char);

fn nested() -> impl Strategy<Value = Nested> {
    let rows = proptest::collection::vec((text(), any::<Option<u16>>()), 0..4);
    let words = proptest::collection::vec(proptest::collection::vec(0_u16..3, 0..3), 0..3);
    let blob = proptest::option::of(proptest::option::of(proptest::collection::vec(0_u8..3, 0..4)));
    (rows, blob, proptest::array::uniform2(words), any::<char>())
}

proptest! {
    #[test]
    fn composites_come_back(item in nested()) {
        comes_back(&item)?;
        comes_back(&item.0)?;
        comes_back(&item.1)?;
        comes_back(&item.2)?;
    }

    #[test]
    fn tuples_come_back(item in (text(), any::<(i8, u64, bool)>(), any::<u128>(), proptest::option::of(text()))) {
        comes_back(&item)?;
    }

    #[test]
    fn addresses_come_back(ip in any::<IpAddr>(), v4 in any::<SocketAddrV4>(), v6 in any::<SocketAddrV6>(), v6_first: bool) {
        comes_back(&ip)?;
        comes_back(&v4)?;
        comes_back(&v6)?;
        comes_back(&if v6_first { SocketAddr::from(v6) } else { SocketAddr::from(v4) })?;
    }

    #[test]
    fn different_values_have_different_bytes(
        (a, b) in (text(), text()),
        (c, d) in (proptest::collection::vec(text(), 0..3), proptest::collection::vec(text(), 0..3)),
        (e, f) in (any::<Option<Option<bool>>>(), any::<Option<Option<bool>>>()),
    ) {
        injective(&(&a, &b), &(&b, &a))?;
        injective(&c, &d)?;
        injective(&(&a, &c, e), &(&b, &d, f))?;
        injective(&e, &f)?;
        injective(&(Name(a.clone()), e), &(Name(b.clone()), f))?;
        injective(&[Name(a.clone()), Name(b.clone())], &[Name(b), Name(a)])?;
    }

    #[test]
    fn a_hash_is_that_of_the_bytes(item in nested(), seed: u64) {
        prop_assert_eq!(Prehashed::of(&Xxh3, seed, &item), Prehashed::of(&Xxh3, seed, &bytes(&item)));
    }
}
