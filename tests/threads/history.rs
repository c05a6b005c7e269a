//! Linearizability: for any concurrent operations on one item there is an order, compatible with the times at which they were
//! called and returned, in which a multiset on one thread gives the same results.

use std::{
    collections::HashSet,
    sync::{
        Barrier,
        atomic::{AtomicU64, Ordering},
    },
    thread,
};

use super::{Random, shared};
use koel::SharedFilter;

const THREADS: usize = 3;
const EACH: usize = 5;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Operation {
    Insert,
    InsertUnique,
    Remove,
    Contains,
    Count,
}

/// An operation, its result as a number, and the times at which it was called and returned.
#[derive(Clone, Copy, Debug)]
struct Event {
    operation: Operation,
    answer: u32,
    called: u64,
    returned: u64,
}

fn perform(filter: &SharedFilter, operation: Operation, item: u64) -> u32 {
    match operation {
        Operation::Insert => u32::from(filter.insert(&item).is_ok()),
        Operation::InsertUnique => u32::from(filter.insert_unique(&item).expect("there is room")),
        Operation::Remove => u32::from(filter.remove(&item)),
        Operation::Contains => u32::from(filter.contains(&item)),
        Operation::Count => filter.count(&item),
    }
}

/// Returns the result of an operation on a multiset with this many copies, and the copies afterward.
fn expected(operation: Operation, copies: u32) -> (u32, u32) {
    match operation {
        Operation::Insert => (1, copies + 1),
        Operation::InsertUnique if copies == 0 => (1, 1),
        Operation::Remove if copies > 0 => (1, copies - 1),
        Operation::InsertUnique | Operation::Remove => (0, copies),
        Operation::Contains => (u32::from(copies > 0), copies),
        Operation::Count => (copies, copies),
    }
}

/// Returns whether the events outside the bit set `done` can follow in some order. The states in `failed` were tried already.
fn is_linearizable(events: &[Event], done: u32, copies: u32, failed: &mut HashSet<(u32, u32)>) -> bool {
    if done.count_ones() as usize == events.len() {
        return true;
    }
    if failed.contains(&(done, copies)) {
        return false;
    }
    let open = || (0..events.len()).filter(|event| done >> event & 1 == 0);
    let first_return = open().map(|event| events[event].returned).min().expect("an event is open");
    for event in open().filter(|&event| events[event].called < first_return) {
        let (answer, after) = expected(events[event].operation, copies);
        if answer == events[event].answer && is_linearizable(events, done | 1 << event, after, failed) {
            return true;
        }
    }
    failed.insert((done, copies));
    false
}

#[test]
fn operations_on_an_item_are_linearizable() {
    let rounds = if cfg!(miri) { 3 } else { 2000 };
    let (filter, clock, start) = (shared(), AtomicU64::new(0), Barrier::new(THREADS));
    // Other items make shards split during the rounds.
    let histories: Vec<Vec<Event>> = thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS as u64)
            .map(|thread| {
                let (filter, clock, start) = (&filter, &clock, &start);
                scope.spawn(move || {
                    let mut random = Random(thread + 1);
                    let mut history = Vec::new();
                    for round in 0..rounds {
                        start.wait();
                        for _ in 0..EACH {
                            let operation = [
                                Operation::Insert,
                                Operation::Insert,
                                Operation::InsertUnique,
                                Operation::Remove,
                                Operation::Contains,
                                Operation::Count,
                            ][random.below(6) as usize];
                            let called = clock.fetch_add(1, Ordering::SeqCst);
                            let answer = perform(filter, operation, round);
                            let returned = clock.fetch_add(1, Ordering::SeqCst);
                            history.push(Event { operation, answer, called, returned });
                        }
                        // The copies of this item are removed before the next round.
                        start.wait();
                        while thread == 0 && filter.remove(&round) {}
                        for other in 0..20 {
                            filter.insert(&(round << 20 | thread << 16 | other | 1 << 60)).expect("the filter grows");
                        }
                    }
                    history
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().expect("the thread does not panic")).collect()
    });
    for round in 0..rounds as usize {
        let events: Vec<Event> =
            histories.iter().flat_map(|history| &history[round * EACH..(round + 1) * EACH]).copied().collect();
        assert!(is_linearizable(&events, 0, 0, &mut HashSet::new()), "round {round}: {events:#?}");
    }
}

#[test]
fn the_check_detects_non_linearizable_histories() {
    let event = |operation, answer, called, returned| Event { operation, answer, called, returned };
    let check = |events: &[Event]| is_linearizable(events, 0, 0, &mut HashSet::new());
    // The removal overlaps the insertion, so either order is possible.
    for found in [0, 1] {
        assert!(check(&[event(Operation::Insert, 1, 0, 3), event(Operation::Remove, found, 1, 2)]));
    }
    // A lookup after the insertion must find the item.
    assert!(!check(&[event(Operation::Insert, 1, 0, 1), event(Operation::Contains, 0, 2, 3)]));
    // The item cannot be new to both threads.
    assert!(!check(&[event(Operation::InsertUnique, 1, 0, 3), event(Operation::InsertUnique, 1, 1, 2)]));
}
