//! Short names for the marks of a chart.

use std::borrow::Cow;

/// What every reader sees from the colour, or can do without.
const LEFT_OUT: [(&str, &str); 7] = [
    ("koel ", ""),
    ("packed f", "packed, f"),
    ("single f", "single, f"),
    ("batches of 1024", "batches"),
    ("its default", "default"),
    ("0000000", "0 M"),
    ("000000", " M"),
];

/// A label for each of these names: its first part, without a version, and of the others only those that tell it from the rest.
pub(super) fn short(names: &[&str]) -> Vec<String> {
    let shortened = |name: &&str| {
        let name = LEFT_OUT.iter().fold((*name).to_owned(), |name, (long, short)| name.replace(long, short));
        name.split(", ").map(in_percent).collect::<Vec<_>>().join(", ")
    };
    let names: Vec<_> = names.iter().map(shortened).collect();
    let all: Vec<Vec<&str>> = names.iter().map(|name| name.split(", ").collect()).collect();
    all.iter().map(|parts| join(parts, &all)).collect()
}

/// A load in per cent, which is shorter; other parts as they are.
fn in_percent(part: &str) -> Cow<'_, str> {
    part.strip_prefix("load 0.").map_or(Cow::Borrowed(part), |percent| Cow::Owned(format!("{percent} %")))
}

/// The fewest parts that no other name has, but one that has all parts of this one and more.
fn join(parts: &[&str], all: &[Vec<&str>]) -> String {
    let has = |other: &[&str], parts: &[&str]| parts.iter().all(|part| other.contains(part));
    let is_clear = |some: &[&str]| all.iter().all(|other| !has(other, some) || has(other, parts));
    // Each set of the parts after the first is a number's bits.
    let sets = (0..1_usize << (parts.len() - 1).min(8)).map(|set| {
        let chosen = parts.iter().enumerate().filter(|(place, _)| *place == 0 || set >> (place - 1) & 1 == 1);
        chosen.map(|(_, part)| *part).collect::<Vec<_>>()
    });
    let shortest = sets.filter(|some| is_clear(some)).min_by_key(Vec::len);
    let mut parts = shortest.unwrap_or_else(|| parts.to_vec());
    parts[0] = without_version(parts[0]);
    parts.join(", ")
}

/// The name of a crate without the version after it.
fn without_version(name: &str) -> &str {
    match name.rsplit_once(' ') {
        Some((name, version)) if version.chars().all(|c| c.is_ascii_digit() || c == '.') => name,
        _ => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_have_what_tells_them_apart() {
        let names = [
            "koel packed f = 13, load 0.95",
            "koel packed f = 13, load 0.97",
            "koel packed f = 13, load 0.97, batches of 1024",
            "koel packed f = 13, load 0.95, build_from_items",
            "koel single f = 12, load 0.95, its own ε",
            "koel single f = 13, load 0.95",
            "cuckoofilter 0.5, f = 8, load 0.60, its default hasher, its own ε",
            "cuckoofilter 0.5, f = 8, load 0.60, XXH3, its own ε",
            "bloomfilter 3, SipHash",
            "koel ElasticFilter",
            "koel ElasticFilter, capacity 1000",
            "koel ElasticFilter, capacity 1000, max_capacity 10000000",
        ];
        let labels = [
            "packed, 95 %",
            "packed, 97 %",
            "packed, batches",
            "packed, build_from_items",
            "single, f = 12",
            "single, f = 13",
            "cuckoofilter, default hasher",
            "cuckoofilter, XXH3",
            "bloomfilter",
            "ElasticFilter",
            "ElasticFilter, capacity 1000",
            "ElasticFilter, max_capacity 10 M",
        ];
        assert_eq!(short(&names), labels);
    }
}
