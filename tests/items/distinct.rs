//! Distinct values of a type have distinct bytes, alone and as parts of other values.

use super::{
    Name, V6, bytes,
    decoder::{Decode, decode},
    part,
};
use koel::{Item, Prehashed, Xxh3};
use proptest::{prelude::*, test_runner::RngSeed};
use std::net::{IpAddr, SocketAddr, SocketAddrV4, SocketAddrV6};

/// Each pair would have equal bytes if lengths and tags did not separate the parts.
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
    // Text whose bytes look like a length.
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
    // Bytes that also occur in lengths and tags, and short texts, which are often equal.
    "[\0\x01\x02a]{0,3}|.{0,20}|[a-z]{100,200}"
}

/// Asserts that a decoder written from the documentation alone recovers the item from its bytes, so distinct values have distinct
/// bytes.
fn round_trips<T: Item + Decode + PartialEq + std::fmt::Debug>(item: &T) -> Result<(), TestCaseError> {
    let read = decode::<T>(&bytes(item));
    prop_assert_eq!(read.as_ref(), Some(item));
    // A part is decoded to its end, and what follows is not read.
    let (read, byte) = decode::<(T, u8)>(&bytes(&(item, 0x55_u8))).expect("the bytes can be decoded");
    prop_assert_eq!((&read, byte), (item, 0x55));
    Ok(())
}

fn equal_only_if_same<T: Item + PartialEq + std::fmt::Debug>(one: &T, other: &T) -> Result<(), TestCaseError> {
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
    #![proptest_config(ProptestConfig { rng_seed: RngSeed::Fixed(1), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn composites_can_be_decoded(item in nested()) {
        round_trips(&item)?;
        round_trips(&item.0)?;
        round_trips(&item.1)?;
        round_trips(&item.2)?;
    }

    #[test]
    fn tuples_can_be_decoded(item in (text(), any::<(i8, u64, bool)>(), any::<u128>(), proptest::option::of(text()))) {
        round_trips(&item)?;
    }

    #[test]
    fn addresses_can_be_decoded(ip in any::<IpAddr>(), v4 in any::<SocketAddrV4>(), v6 in any::<SocketAddrV6>(), v6_first: bool) {
        round_trips(&ip)?;
        round_trips(&v4)?;
        round_trips(&v6)?;
        round_trips(&if v6_first { SocketAddr::from(v6) } else { SocketAddr::from(v4) })?;
    }

    #[test]
    fn distinct_values_have_distinct_bytes(
        (a, b) in (text(), text()),
        (c, d) in (proptest::collection::vec(text(), 0..3), proptest::collection::vec(text(), 0..3)),
        (e, f) in (any::<Option<Option<bool>>>(), any::<Option<Option<bool>>>()),
    ) {
        equal_only_if_same(&(&a, &b), &(&b, &a))?;
        equal_only_if_same(&c, &d)?;
        equal_only_if_same(&(&a, &c, e), &(&b, &d, f))?;
        equal_only_if_same(&e, &f)?;
        equal_only_if_same(&(Name(a.clone()), e), &(Name(b.clone()), f))?;
        equal_only_if_same(&[Name(a.clone()), Name(b.clone())], &[Name(b), Name(a)])?;
    }

    #[test]
    fn an_item_has_the_hash_of_its_bytes(item in nested(), seed: u64) {
        prop_assert_eq!(Prehashed::of(&Xxh3, seed, &item), Prehashed::of(&Xxh3, seed, &bytes(&item)));
    }
}
