//! Hashers compared with test vectors that their authors and other programs published.

use crate::common::split_mix::{mixed, unmixed};
use koel::{
    CuckooFilter, Xxh3,
    hash::{AnyHasher, Hasher, HasherId, Uniform},
};

/// Length, seed and hash of xxHash's own sanity tests. The bytes are those of `sanity_buffer`.
const XXH3: [(usize, u64, u64); 24] = [
    (0, 0, 0x2d06_8005_38d3_94c2),
    (0, PRIME64, 0xa8a6_b918_b2f0_364a),
    (1, 0, 0xc44b_dff4_074e_ecdb),
    (1, PRIME64, 0x032b_e332_dd76_6ef8),
    (6, 0, 0x27b5_6a84_cd2d_7325),
    (6, PRIME64, 0x8458_9c11_6ab5_9ab9),
    (12, 0, 0xa713_daf0_dfbb_77e7),
    (12, PRIME64, 0xe730_3e1b_2336_de0e),
    (24, 0, 0xa3fe_70bf_9d35_10eb),
    (24, PRIME64, 0x850e_80fc_35bd_d690),
    (48, 0, 0x397d_a259_ecba_1f11),
    (48, PRIME64, 0xadc2_cbaa_44ac_c616),
    (80, 0, 0xbcde_fbbb_2c47_c90a),
    (80, PRIME64, 0xc6dd_0cb6_9953_2e73),
    (195, 0, 0xcd94_217e_e362_ec3a),
    (195, PRIME64, 0xba68_003d_370c_b3d9),
    (403, 0, 0xcdeb_804d_65c6_dea4),
    (403, PRIME64, 0x6259_f6ec_fd64_43fd),
    (512, 0, 0x617e_4959_9013_cb6b),
    (512, PRIME64, 0x3ce4_57de_14c2_7708),
    (2048, 0, 0xdd59_e2c3_a5f0_38e0),
    (2048, PRIME64, 0x66f8_1670_669a_babc),
    (2240, 0, 0x6e73_a905_39cf_2948),
    (2240, PRIME64, 0x757b_a848_7d1b_5247),
];
const PRIME32: u64 = 2_654_435_761;
const PRIME64: u64 = 11_400_714_785_074_694_797;

fn sanity_buffer(len: usize) -> Vec<u8> {
    let mut state = PRIME32;
    let mut next = || {
        let byte = state.to_be_bytes()[0];
        state = state.wrapping_mul(PRIME64);
        byte
    };
    (0..len).map(|_| next()).collect()
}

#[test]
fn xxh3_gives_the_published_hashes() {
    for (len, seed, expected) in XXH3 {
        assert_eq!(Xxh3.hash(seed, &sanity_buffer(len)), Uniform::new(expected), "{len} bytes, seed {seed}");
        assert_eq!(AnyHasher::Xxh3.hash(seed, &sanity_buffer(len)), Uniform::new(expected));
    }
}

/// Compares `MetroHash64` with Go's go-metro on 131 byte strings.
#[test]
#[cfg(feature = "metrohash")]
fn metrohash_agrees_with_go() {
    use koel::go::MetroHash64;

    let vectors: Vec<serde_json::Value> = serde_json::from_str(include_str!("data/go/metro64.json")).expect("it is JSON");
    assert_eq!(vectors.len(), 131);
    for vector in vectors {
        let text = |name: &str| vector[name].as_str().expect("a string").to_owned();
        let key = text("key_hex");
        let key: Vec<u8> = (0..key.len() / 2).map(|i| u8::from_str_radix(&key[2 * i..2 * i + 2], 16).expect("hex")).collect();
        let expected = u64::from_str_radix(&text("metro64_seed1337"), 16).expect("hex");
        assert_eq!(MetroHash64.hash(1337, &key), Uniform::new(expected), "{} bytes", key.len());
        assert_eq!(AnyHasher::MetroHash64.hash(1337, &key), Uniform::new(expected));
    }
}

/// Computes `SMHasher`'s verification value of `MurmurHash64A`: the hash of the hashes of 256 keys, each with another seed.
#[test]
#[cfg(feature = "redisbloom")]
fn redisbloom_hash_is_murmurhash64a() {
    use koel::redisbloom::RedisBloomHash;

    const VERIFICATION: u64 = 0x1f0d_3804;
    // x has the hash modulo 2³² in its upper half, and modulo 2³² − 1 in its lower half. Both determine the hash, as 2³² is 1
    // modulo 2³² − 1.
    let murmur = |seed, key: &[u8]| {
        let x = mixed(koel::Prehashed::of(&RedisBloomHash, seed, key).0);
        assert_eq!(AnyHasher::RedisBloomHash.hash(seed, key), Uniform::new(x));
        let (low, rest, divisor) = (x >> 32, x % (1 << 32), u64::from(u32::MAX));
        assert!(rest < divisor);
        let high = (rest + 2 * divisor - low) % divisor;
        (high << 32) + low
    };
    let key: Vec<u8> = (0..=255).collect();
    let hashes: Vec<u8> = (0..256).flat_map(|len| murmur(256 - len as u64, &key[..len]).to_le_bytes()).collect();
    assert_eq!(murmur(0, &hashes) % (1 << 32), VERIFICATION);
}

#[test]
fn hasher_ids_never_change() {
    assert_eq!((HasherId::XXH3.number(), HasherId::METRO_HASH_64.number(), HasherId::REDIS_BLOOM.number()), (1, 2, 3));
    assert_eq!(HasherId::custom(0x8000).number(), 0x8000);
    assert_eq!(AnyHasher::from_id(HasherId::custom(0x8000)), None);
    assert_eq!(AnyHasher::from_id(HasherId::XXH3).map(|hasher| hasher.id()), Some(HasherId::XXH3));
    #[cfg(feature = "metrohash")]
    assert_eq!(AnyHasher::from_id(HasherId::METRO_HASH_64).map(|hasher| hasher.id()), Some(HasherId::METRO_HASH_64));
    #[cfg(feature = "redisbloom")]
    assert_eq!(AnyHasher::from_id(HasherId::REDIS_BLOOM).map(|hasher| hasher.id()), Some(HasherId::REDIS_BLOOM));
}

#[test]
#[should_panic(expected = "ids below 0x8000")]
fn custom_ids_below_0x8000_panic() {
    let _ = HasherId::custom(1);
}

#[test]
fn hashes_depend_on_seed_and_bytes() {
    let filter = |seed| CuckooFilter::builder().capacity(100).fingerprint_bits(16).seed(seed).build().expect("valid parameters");
    // `hash` returns the number that mixing turns into the hasher's result, with both kinds of addressing.
    let powers_of_two = CuckooFilter::builder().capacity(100).fingerprint_bits(16).addressing(koel::Addressing::PowerOfTwo);
    for seed in [0, 7] {
        let expected = Xxh3.hash(seed, b"koel");
        let hash = filter(seed).hash("koel");
        assert_eq!(powers_of_two.clone().seed(seed).build().expect("valid parameters").hash("koel"), hash);
        assert_eq!((Uniform::new(mixed(hash)), unmixed(mixed(hash))), (expected, hash));
    }
    assert_ne!(filter(0).hash("koel"), filter(1).hash("koel"));
    // Items of different types with equal bytes are the same item.
    assert_eq!(filter(5).hash("koel"), filter(5).hash(&b"koel".to_vec()));
    assert_eq!(filter(5).hash(&0x0102_u16), filter(5).hash(&[2u8, 1]));
}

#[test]
fn hasher_ids_are_parsed_strictly() {
    assert_eq!("xxh3".parse(), Ok(HasherId::XXH3));
    assert_eq!("metrohash64".parse(), Ok(HasherId::METRO_HASH_64), "the name is known in builds without the hasher, too");
    assert_eq!("redisbloom".parse(), Ok(HasherId::REDIS_BLOOM), "the name is known in builds without the hasher, too");
    assert_eq!("0x8000".parse(), Ok(HasherId::custom(0x8000)));
    assert_eq!("0xffff".parse(), Ok(HasherId::custom(0xffff)));
    for text in
        ["", "XXH3", " xxh3", "md5", "1", "0x", "0x0001", "0x0003", "0x7fff", "0xFFFF", "0X8000", "0x08000", "0x800", "0x+800"]
    {
        let error = text.parse::<HasherId>().expect_err(text).to_string();
        let names = "xxh3, metrohash64, redisbloom, 0x8000 to 0xffff in lower case";
        assert_eq!(error, format!("hasher: the names here are {names}; give one of those"));
    }
}

#[test]
fn any_hasher_has_the_name_of_its_id() {
    assert_eq!(AnyHasher::default(), AnyHasher::Xxh3);
    for &hasher in AnyHasher::ALL {
        assert_eq!(hasher.to_string().parse(), Ok(hasher));
        assert_eq!(hasher.to_string().parse(), Ok(hasher.id()));
        assert_eq!(AnyHasher::from_id(hasher.id()), Some(hasher));
    }
    for text in ["md5", "0x8000", "", "Xxh3"] {
        let error = text.parse::<AnyHasher>().expect_err(text).to_string();
        assert!(error.starts_with("hasher: the names here are xxh3"), "{error}");
    }
    #[cfg(feature = "metrohash")]
    assert_eq!("metrohash64".parse(), Ok(AnyHasher::MetroHash64));
    #[cfg(not(feature = "metrohash"))]
    check_missing("metrohash64");
    #[cfg(feature = "redisbloom")]
    assert_eq!("redisbloom".parse(), Ok(AnyHasher::RedisBloomHash));
    #[cfg(not(feature = "redisbloom"))]
    check_missing("redisbloom");
}

/// Asserts that the error for a hasher that this build lacks names only the hashers that it has.
#[cfg(not(all(feature = "metrohash", feature = "redisbloom")))]
fn check_missing(name: &str) {
    let error = name.parse::<AnyHasher>().expect_err("not in this build");
    let koel::ParamError::Name { names, .. } = error else { panic!("{error}") };
    assert!(names.len() == AnyHasher::ALL.len() && names.contains(&"xxh3") && !names.contains(&name), "{error}");
}
