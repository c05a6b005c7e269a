//! The bytes of every type of item. Snapshots depend on them, so they must never change.

mod decoder;
mod distinct;
mod golden;

use koel::{CuckooFilter, Item};
use std::{
    borrow::Cow,
    ffi::CStr,
    net::{IpAddr, Ipv6Addr},
    rc::Rc,
    sync::Arc,
};

const V6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0x102);

fn bytes<T: Item + ?Sized>(item: &T) -> Vec<u8> {
    item.with_bytes(<[u8]>::to_vec)
}

/// Returns the bytes of an item as the middle of three parts.
fn part<T: Item + ?Sized>(item: &T) -> Vec<u8> {
    let bytes = bytes(&(0xee_u8, item, 0xff_u8));
    bytes
        .strip_prefix(&[0xee])
        .and_then(|bytes| bytes.strip_suffix(&[0xff]))
        .expect("the outer parts have one byte each")
        .to_vec()
}

#[test]
fn references_and_owners_have_the_bytes_of_their_target() {
    #[track_caller]
    fn same_bytes<T: Item + Clone>(item: &T) {
        let (mut copy, expected) = (item.clone(), (bytes(item), part(item)));
        let both = |item: &dyn Fn() -> (Vec<u8>, Vec<u8>)| assert_eq!(item(), expected);
        both(&|| (bytes(&item), part(&item)));
        both(&|| (bytes(&&item), part(&&item)));
        both(&|| (bytes(&Box::new(item.clone())), part(&Box::new(item.clone()))));
        both(&|| (bytes(&Rc::new(item.clone())), part(&Rc::new(item.clone()))));
        both(&|| (bytes(&Arc::new(item.clone())), part(&Arc::new(item.clone()))));
        both(&|| (bytes(&Cow::Borrowed(item)), part(&Cow::Borrowed(item))));
        both(&|| (bytes(&Cow::<T>::Owned(item.clone())), part(&Cow::<T>::Owned(item.clone()))));
        assert_eq!(bytes(&&mut copy), expected.0);
        assert_eq!(part(&&mut copy), expected.1);
    }
    same_bytes(&7_u8);
    same_bytes(&0x0102_u64);
    same_bytes(&String::from("koel"));
    same_bytes(&[1_u8, 2]);
    same_bytes(&vec![1_u16, 2]);
    same_bytes(&Some("koel"));
    same_bytes(&(1_u8, "koel", [2_u16]));

    assert_eq!(bytes(&Box::<str>::from("koel")), b"koel");
    assert_eq!(bytes(&Arc::<[u16]>::from([1, 2])), b"\x01\0\x02\0");
    assert_eq!(bytes(&Cow::Borrowed(c"koel")), b"koel");
    assert_eq!(part(&Cow::Borrowed("koel")), part(&String::from("koel")));
}

#[test]
fn equal_items_are_equal_as_parts() {
    let as_parts = [part("ab"), part(&String::from("ab")), part(b"ab"), part(&b"ab"[..]), part(&b"ab".to_vec()), part(c"ab")];
    assert!(as_parts.iter().all(|part| *part == as_parts[0]));
    assert_eq!(part(&[1_u32, 2]), part(&vec![1_u32, 2]));
    assert_eq!(part(&[1_u32, 2]), part(&[1_u32, 2][..]));
}

/// A user's type that implements only `with_bytes`.
#[derive(Clone, Debug, PartialEq)]
struct Name(String);

impl Item for Name {
    fn with_bytes<R>(&self, read: impl FnOnce(&[u8]) -> R) -> R {
        self.0.with_bytes(read)
    }
}

#[test]
fn a_custom_type_has_its_length_in_front_as_a_part() {
    let name = |text: &str| Name(text.into());
    assert_eq!(bytes(&name("ab")), b"ab");
    assert_eq!(part(&name("ab")), b"\x02\0\0\0\0\0\0\0ab");
    assert_eq!(bytes(&[name("ab"), name("")]), b"\x02\0\0\0\0\0\0\0ab\0\0\0\0\0\0\0\0");
    assert_ne!(bytes(&(name("ab"), name("c"))), bytes(&(name("a"), name("bc"))));
    assert_ne!(bytes(&[name("")][..]), bytes(&[name(""), name("")][..]));
}

#[test]
fn items_of_many_types_can_be_inserted() {
    let mut filter = CuckooFilter::builder().capacity(100).false_positive_rate(1e-6).build().expect("valid parameters");
    filter.insert(&("alice", 7_u64)).expect("there is room");
    filter.insert(&[1_u32, 2, 3]).expect("there is room");
    filter.insert(&Some(IpAddr::from([127, 0, 0, 1]))).expect("there is room");
    filter.insert::<CStr>(c"koel").expect("there is room");
    assert!(filter.contains(&(String::from("alice"), &7_u64)));
    assert!(filter.contains(&vec![1_u32, 2, 3]) && filter.contains([1_u32, 2, 3].as_slice()));
    assert!(filter.contains(&Some(IpAddr::from([127, 0, 0, 1]))));
    assert!(filter.contains("koel"));
    assert!(!filter.contains(&("alice", 8_u64)) && !filter.contains(&[1_u32, 2]) && !filter.contains(&None::<IpAddr>));
}
