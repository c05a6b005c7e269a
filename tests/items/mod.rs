//! The bytes of every type of item: snapshots depend on them for ever.

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

/// The bytes of an item as the second part of three.
fn part<T: Item + ?Sized>(item: &T) -> Vec<u8> {
    let bytes = bytes(&(0xee_u8, item, 0xff_u8));
    bytes.strip_prefix(&[0xee]).and_then(|bytes| bytes.strip_suffix(&[0xff])).expect("between the others").to_vec()
}

#[test]
fn references_and_owners_are_what_they_lead_to() {
    #[track_caller]
    fn like<T: Item + Clone>(item: &T) {
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
    like(&7_u8);
    like(&0x0102_u64);
    like(&String::from("koel"));
    like(&[1_u8, 2]);
    like(&vec![1_u16, 2]);
    like(&Some("koel"));
    like(&(1_u8, "koel", [2_u16]));

    assert_eq!(bytes(&Box::<str>::from("koel")), b"koel");
    assert_eq!(bytes(&Arc::<[u16]>::from([1, 2])), b"\x01\0\x02\0");
    assert_eq!(bytes(&Cow::Borrowed(c"koel")), b"koel");
    assert_eq!(part(&Cow::Borrowed("koel")), part(&String::from("koel")));
}

#[test]
fn what_is_the_same_alone_is_the_same_as_a_part() {
    let as_parts = [part("ab"), part(&String::from("ab")), part(b"ab"), part(&b"ab"[..]), part(&b"ab".to_vec()), part(c"ab")];
    assert!(as_parts.iter().all(|part| *part == as_parts[0]));
    assert_eq!(part(&[1_u32, 2]), part(&vec![1_u32, 2]));
    assert_eq!(part(&[1_u32, 2]), part(&[1_u32, 2][..]));
}

/// A type of a user's own, with nothing but `with_bytes`.
#[derive(Clone, Debug, PartialEq)]
struct Name(String);

impl Item for Name {
    fn with_bytes<R>(&self, read: impl FnOnce(&[u8]) -> R) -> R {
        self.0.with_bytes(read)
    }
}

#[test]
fn a_type_of_ones_own_has_its_length_in_front_as_a_part() {
    let name = |text: &str| Name(text.into());
    assert_eq!(bytes(&name("ab")), b"ab");
    assert_eq!(part(&name("ab")), b"\x02\0\0\0\0\0\0\0ab");
    assert_eq!(bytes(&[name("ab"), name("")]), b"\x02\0\0\0\0\0\0\0ab\0\0\0\0\0\0\0\0");
    assert_ne!(bytes(&(name("ab"), name("c"))), bytes(&(name("a"), name("bc"))));
    assert_ne!(bytes(&[name("")][..]), bytes(&[name(""), name("")][..]));
}

#[test]
fn items_of_all_kinds_go_into_a_filter() {
    let mut filter = CuckooFilter::builder().capacity(100).false_positive_rate(1e-6).build().expect("right");
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
