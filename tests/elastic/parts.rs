//! Growing filters that are built in parts.

use std::io;

use super::snapshots::{filled, key, small};
use koel::{
    ElasticBuilder, ElasticFilter, ElasticPart, ElasticView, InsertErrorKind, MergeError, Parameter, SnapshotErrorKind as Kind,
};

fn part(builder: ElasticBuilder, part: usize, parts: usize, items: u64) -> ElasticPart {
    let mut part = builder.build_part(part, parts).expect("the parameters are right");
    part.insert_iter((0..items).map(key)).expect("it grows");
    part
}

fn snapshot(part: &ElasticPart) -> Vec<u8> {
    let mut bytes = Vec::new();
    part.write_to(&mut bytes).expect("a vector takes all");
    bytes
}

fn join(snapshots: &[impl AsRef<[u8]>]) -> Result<Vec<u8>, MergeError> {
    let mut joined = Vec::new();
    let items = ElasticPart::join_snapshots(snapshots.iter().map(AsRef::as_ref), &mut joined)?;
    assert_eq!(items, ElasticView::over(&joined).expect("a whole filter").len() as u64);
    Ok(joined)
}

/// Joined in any order, in memory and as snapshots; planned for their size, growing, and beyond the maximal capacity.
#[test]
fn joined_parts_are_the_filter_that_one_would_have_built() {
    let builders = [small(), small().max_capacity(1000), small().capacity(30_000).max_capacity(30_000)];
    for (builder, parts) in builders.into_iter().zip([3, 2, 5]) {
        let builder = builder.lanes(16);
        let whole = filled(builder.clone(), 30_000);
        let made: Vec<_> = (0..parts).map(|number| part(builder.clone(), number, parts, 30_000)).collect();
        assert_eq!(made.iter().map(ElasticPart::len).sum::<usize>(), 30_000);
        let mut snapshots: Vec<_> = made.iter().map(snapshot).collect();
        for _ in 0..parts {
            snapshots.rotate_left(1);
            assert!(join(&snapshots).expect("all parts") == whole.to_bytes());
        }
        let joined = ElasticFilter::join(made.into_iter().rev()).expect("all parts");
        assert!(joined.to_bytes() == whole.to_bytes());
    }
}

#[test]
fn each_item_belongs_to_one_part() {
    for parts in [1, 3, 7, 32] {
        let mut made: Vec<_> = (0..parts).map(|number| part(small(), number, parts, 0)).collect();
        let mut counts = vec![0_u32; parts];
        for item in (0..4000).map(key) {
            let belongs = made[0].part_of(&item);
            for (number, part) in made.iter_mut().enumerate() {
                assert_eq!((part.part(), part.parts(), part.part_of(&item)), (number, parts, belongs));
                assert_eq!(part.insert(&item).expect("it grows"), number == belongs);
                assert!(!part.insert_unique(&item).expect("it grows"), "it has it, or it belongs to another one");
            }
            counts[belongs] += 1;
        }
        let (least, most) = (counts.iter().min().unwrap(), counts.iter().max().unwrap());
        assert!(f64::from(*least) > 0.6 * f64::from(*most), "{counts:?}");
        assert!(made.iter().zip(&counts).all(|(part, &count)| part.len() == count as usize && part.is_empty() == (count == 0)));
    }
}

#[test]
fn a_part_takes_its_share_of_the_memory() {
    let builder = || ElasticFilter::builder().false_positive_rate(0.001).capacity(1_000_000).max_capacity(1_000_000);
    let whole = builder().lanes(32).build().expect("there is memory");
    let parts = [0, 1, 2, 3].map(|number| part(builder(), number, 4, 0).table_bytes());
    assert_eq!(parts.iter().sum::<usize>(), whole.table_bytes());
    assert!(parts.iter().all(|&bytes| bytes == whole.table_bytes() / 4), "{parts:?}");
}

#[test]
fn a_part_refuses_what_a_filter_refuses() {
    let mut part = small().build_part(0, 1).expect("right");
    let error = part.insert_iter([1, 2, 3, 3, 3, 3, 3, 3, 3, 3, 3, 4_u64]).unwrap_err();
    assert_eq!((error.kind(), error.position(), part.len()), (InsertErrorKind::Copies, 10, 10));
    let mut limited = small().lanes(2).max_bytes(30_000).build_part(1, 2).expect("right");
    let error = limited.insert_iter((0..100_000).map(key)).unwrap_err();
    assert!(error.kind() == InsertErrorKind::Limit && limited.table_bytes() <= 30_000, "{error}");
    assert!(format!("{limited:?}").contains("part: 1, parts: 2"));
}

#[test]
fn parts_that_cannot_be_are_refused_with_a_remedy() {
    let refused = |builder: ElasticBuilder, part, parts| match builder.build_part(part, parts) {
        Err(koel::BuildError::Param(error)) => {
            assert_eq!(error.parameter(), Parameter::Parts);
            error.to_string()
        }
        other => panic!("{other:?}"),
    };
    assert_eq!(refused(small(), 0, 0), "parts: 0 given, but a filter has 1 to 256; the nearest that works is 1");
    assert_eq!(refused(small(), 0, 257), "parts: 257 given, but a filter has 1 to 256; the nearest that works is 256");
    assert_eq!(refused(small().lanes(4), 0, 5), "parts: 5 given, but the filter has 4 lanes; the nearest that works is 4");
    assert_eq!(refused(small(), 3, 3), "parts: number 3 given, but 3 are numbered from 0; give a lower number");
    // What is wrong with the lanes is said first.
    for lanes in [0, 3, 512] {
        let error = small().lanes(lanes).build_part(0, 5).unwrap_err().to_string();
        assert!(error.starts_with(&format!("lanes: {lanes} given")), "{error}");
    }
    for (builder, part, parts) in [(small(), 0, 1), (small(), 255, 256), (small().lanes(4), 3, 4)] {
        assert!(builder.build_part(part, parts).is_ok());
    }
}

#[test]
fn what_does_not_make_up_a_filter_is_not_joined() {
    let parts = [0, 1, 2].map(|number| snapshot(&part(small(), number, 3, 500)));
    let [first, second, third] = &parts;
    let said = |snapshots: &[&Vec<u8>]| join(snapshots).unwrap_err().to_string();
    assert_eq!(said(&[]), "no parts to join; give all parts of a filter");
    let missing = |lane| {
        format!("no part has lane {lane} of 32, counted from 0; give all parts, each built as one of the same number of parts")
    };
    assert_eq!(said(&[first, third]), missing(11));
    assert_eq!(said(&[second]), missing(0));
    let twice = |parts: [usize; 2]| {
        let [one, other] = parts;
        format!(
            "parts {one} and {other}, counted from 0, have the same items; give each part once, built as one of the same number of \
             parts, and no whole filter"
        )
    };
    assert_eq!(said(&[first, second, third, second]), twice([1, 3]));
    let other = snapshot(&part(small().seed(6), 1, 3, 500));
    let different = "part 1, counted from 0, has other parameters than the first one; build all with the same ones";
    assert_eq!(said(&[first, &other, third]), different);
    let whole = filled(small().lanes(32), 10).to_bytes();
    assert_eq!(said(&[&whole, first]), twice([0, 1]));
    // Of other numbers of parts, of which these have as many lanes.
    let of_four = snapshot(&part(small(), 1, 4, 500));
    assert_eq!(said(&[first, &of_four, third]), twice([0, 1]));
    let error = join(&[first, second, &[&third[..], b"x"].concat()]).unwrap_err();
    assert!(matches!(&error, MergeError::Part { part: 2, error } if error.kind() == Kind::TrailingBytes), "{error}");
    assert!(join(&[&whole]).expect("a whole filter is one, too") == whole);

    // The same of those in memory.
    let made = |number| part(small(), number, 3, 100);
    let said = |parts: Vec<ElasticPart>| ElasticFilter::join(parts).unwrap_err().to_string();
    assert_eq!(said(Vec::new()), "no parts to join; give all parts of a filter");
    assert_eq!(said(vec![made(2), made(0)]), missing(11));
    assert_eq!(said(vec![made(0), made(1)]), missing(22));
    assert_eq!(said(vec![made(0), made(1), made(2), made(1)]), twice([1, 3]));
    assert_eq!(said(vec![made(0), part(small().seed(6), 1, 3, 10), made(2)]), different);
}

/// A part is a snapshot without some lanes, which no reader of whole filters takes for one.
#[test]
fn a_part_is_not_a_filter() {
    let bytes = snapshot(&part(small(), 1, 3, 500));
    let errors = [
        ElasticFilter::from_bytes(&bytes).unwrap_err(),
        ElasticFilter::read_from(&bytes[..]).unwrap_err(),
        ElasticView::over(&bytes).unwrap_err(),
    ];
    for error in errors {
        assert_eq!((error.kind(), error.offset()), (Kind::Part, 64));
        assert!(
            error.to_string().contains("this is a part of a filter, without lane 0; join it with the other parts"),
            "{error}"
        );
    }
}

#[test]
fn every_altered_bit_of_a_part_is_noticed() {
    let builder = ElasticFilter::builder().false_positive_rate(0.001).capacity(10).max_capacity(300).lanes(2);
    let parts = [0, 1].map(|number| snapshot(&part(builder.clone(), number, 2, 60)));
    join(&parts).expect("both parts");
    for bit in 0..8 * parts[1].len() {
        let mut altered = parts.clone();
        altered[1][bit / 8] ^= 1 << (bit % 8);
        match join(&altered).unwrap_err() {
            MergeError::Part { part: 1, .. } => {}
            error => panic!("bit {bit}: {error}"),
        }
    }
    for len in (0..parts[1].len()).step_by(7) {
        let error = join(&[&parts[0], &parts[1][..len].to_vec()]).unwrap_err();
        assert!(matches!(&error, MergeError::Part { part: 1, error } if error.kind() == Kind::Length), "{error}");
    }
}

#[test]
fn a_writer_that_fails_says_so() {
    struct Short(usize);
    impl io::Write for Short {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 = self.0.checked_sub(bytes.len()).ok_or_else(|| io::Error::other("the disk is full"))?;
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let bytes = snapshot(&part(small(), 0, 1, 500));
    for len in [0, 64, 100, bytes.len() - 1] {
        let error = ElasticPart::join_snapshots([&bytes[..]], Short(len)).unwrap_err();
        assert_eq!(error.to_string(), "the joined filter cannot be written: the disk is full");
        assert!(std::error::Error::source(&error).is_some());
    }
    assert_eq!(ElasticPart::join_snapshots([&bytes[..]], Short(bytes.len())).expect("there is room"), 500);
}

#[test]
fn parts_in_files_are_joined_into_a_file() {
    if cfg!(any(miri, target_family = "wasm")) {
        return;
    }
    let name = |name: &str| std::env::temp_dir().join(format!("koel-part-{}-{name}.koel", std::process::id()));
    let files = ["0", "1", "2"].map(name);
    for (number, path) in files.iter().enumerate() {
        part(small(), number, 3, 500).save(path).expect("the folder exists");
    }
    let joined = name("joined");
    assert_eq!(ElasticPart::join_files(&files, &joined).expect("all parts"), 500);
    let before = std::fs::read(&joined).expect("it was written");
    // If it fails, the file is as it was, and the error says why.
    assert!(matches!(ElasticPart::join_files(&files[..2], &joined), Err(MergeError::MissingPart { lane: 22, lanes: 32 })));
    assert!(std::fs::read(&joined).expect("it is there") == before);
    let error = ElasticPart::join_files([name("none")], &joined).unwrap_err();
    assert!(error.to_string().contains("none.koel: cannot be opened"), "{error}");
    let error = ElasticPart::join_files(&files, joined.join("below")).unwrap_err();
    assert!(matches!(&error, MergeError::Io(error) if error.kind() == io::ErrorKind::NotADirectory), "{error}");
    for path in files.iter().chain([&joined]) {
        std::fs::remove_file(path).expect("it was written");
    }
}
