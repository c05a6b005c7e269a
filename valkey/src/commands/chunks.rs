//! Commands that dump and load filters.

use std::iter;

use super::{ERROR, EXPANSION, ITERATOR, SEED, create};
use crate::{
    dump::{MAX_CHUNK_BYTES, Position},
    load::{Load, is_first},
    plan::{Word, integer},
    refusal::Limit,
    reply::{Failure, Outcome, Reply, reserved},
    server::{About, Access, Argument, Command, Context, Found, Key, Text, boxed},
    stored::Stored,
};

/// The most bytes of a snapshot that CF.SNAPSHOT returns.
const MAX_SNAPSHOT_BYTES: u64 = 64 << 20;

/// CF.SCANDUMP: returns the next chunk of a filter.
pub(crate) struct ScanDump;

/// CF.LOADCHUNK: loads the next chunk of a filter.
pub(crate) struct LoadChunk;

/// CF.SNAPSHOT: returns all bytes of a small filter.
pub(crate) struct Snapshot;

impl Command for ScanDump {
    const ABOUT: About = About {
        name: c"cf.scandump",
        flags: c"readonly",
        categories: c"read cuckoo",
        arity: 3,
        summary: c"Returns a chunk of a cuckoo filter, and the iterator of the next one; the first iterator is 0",
        complexity: c"O(n) for the first chunk that a server returns, where n is the number of bytes; then O(1)",
        access: Access::Read,
        arguments: &[ITERATOR],
    };

    fn run(context: &Context, arguments: &[Text<'_>]) -> Outcome {
        let invalid = || Failure::new("Invalid position");
        let iterator = integer(arguments[2].bytes()).ok_or_else(invalid)?;
        let mut position = Position::from_iterator(iterator).ok_or_else(invalid)?;
        let key = context.read::<Stored>(arguments[1]);
        let filter = super::filter_for_read(&key)?.ok_or_else(Failure::not_found)?;
        if filter.is_empty() && iterator == 0 {
            return Ok(Reply::Chunk(0, None));
        }
        if let Some(imported) = filter.imported_alone() {
            if iterator == 0 {
                filter.is_unchanged_since_dump.set(true);
            } else if position.tag != 0 || !filter.is_unchanged_since_dump.get() {
                return Err(Failure::new(
                    "Invalid position: the filter has changed since the dump began, or this server did not begin it; start again with \
                     iterator 0",
                ));
            }
            let next = imported.chunk_after(position.offset, MAX_CHUNK_BYTES);
            let Some((next, bytes)) = next else { return Ok(Reply::Chunk(0, None)) };
            let mut copy = reserved(bytes.len())?;
            copy.extend_from_slice(bytes);
            return Ok(Reply::Chunk(i64::try_from(next).unwrap_or(i64::MAX), Some(copy)));
        }
        let tag = filter.tag()?;
        if iterator == 0 {
            position.tag = tag;
        } else if position.tag != tag {
            return Err(Failure::new(
                "Invalid position: the filter has changed since the dump began; start again with iterator 0",
            ));
        }
        let bytes = filter.dump(position.offset, MAX_CHUNK_BYTES)?;
        if bytes.is_empty() {
            filter.dump.replace(None);
            return Ok(Reply::Chunk(0, None));
        }
        position.offset += bytes.len() as u64;
        Ok(Reply::Chunk(position.iterator(), Some(bytes)))
    }
}

impl Command for Snapshot {
    const ABOUT: About = About {
        name: c"cf.snapshot",
        flags: c"readonly",
        categories: c"read cuckoo",
        arity: 2,
        summary: c"Returns a small cuckoo filter as a koel snapshot",
        complexity: c"O(n), where n is the number of bytes",
        access: Access::Read,
        arguments: &[],
    };

    fn run(context: &Context, arguments: &[Text<'_>]) -> Outcome {
        let key = context.read::<Stored>(arguments[1]);
        let Some(filter) = super::filter_for_read(&key)? else { return Ok(Reply::Null) };
        if filter.imported.is_some() {
            return Err(Failure::new("ERR items that were imported from RedisBloom are in no snapshot; use CF.SCANDUMP"));
        }
        let length = filter.dump_bytes();
        if length > MAX_SNAPSHOT_BYTES {
            return Err(Failure::new(format_args!(
                "ERR the snapshot has {length} bytes, more than {MAX_SNAPSHOT_BYTES}; use CF.SCANDUMP"
            )));
        }
        let bytes = filter.dump(0, usize::try_from(length).unwrap_or(usize::MAX))?;
        filter.dump.replace(None);
        Ok(Reply::Bytes(bytes))
    }
}

impl Command for LoadChunk {
    const ABOUT: About = About {
        name: c"cf.loadchunk",
        flags: c"write deny-oom",
        categories: c"write cuckoo",
        arity: -4,
        summary: c"Loads a chunk of CF.SCANDUMP, koel's or RedisBloom's; the filter appears with its last chunk",
        complexity: c"O(n), where n is the number of bytes; for the last chunk, of all bytes",
        access: Access::Insert,
        arguments: &[ITERATOR, Argument::string(c"data"), EXPANSION, ERROR, SEED],
    };

    fn run(context: &Context, arguments: &[Text<'_>]) -> Outcome {
        let iterator = integer(arguments[2].bytes()).filter(|&iterator| iterator != 0);
        let iterator = iterator.ok_or_else(|| Failure::new("Invalid position"))?;
        let chunk = arguments[3].bytes();
        let limit = super::limit(context);
        let mut key = context.write::<Stored>(arguments[1]);
        let (is_first, was_empty) = (is_first(iterator, chunk), key.is_empty());
        let options = match key.get_mut() {
            Found::Other => return Err(Failure::wrong_type()),
            Found::Value(Stored::Filter(_)) if is_first => return Err(Failure::exists()),
            // RedisBloom's message, which its clients compare.
            Found::Value(Stored::Filter(_)) => return Err(Failure::new("Couldn't load chunk!")),
            Found::Nothing if !is_first => {
                return Err(Failure::new("ERR not found: this is not the first chunk of a dump, and no other one has arrived"));
            }
            // Only the first chunk takes options.
            Found::Value(Stored::Load(_)) if !is_first && arguments.len() > 4 => return Ok(Reply::WrongArity),
            Found::Value(Stored::Load(load)) if !is_first || arguments.len() == 4 && load.expects(iterator, chunk) => {
                load.push(iterator, chunk, limit)?;
                None
            }
            Found::Nothing | Found::Value(Stored::Load(_)) => {
                let words = &arguments[4..];
                if words.len() % 2 == 1 {
                    return Ok(Reply::WrongArity);
                }
                let options = create::parse_options(words, false, |_| true)?;
                let load = Load::start(iterator, chunk, options.plan, options.deleted.unsigned_abs(), limit)?;
                let words = load.plan.chunk_options(load.deleted);
                key.set(Stored::Load(boxed(load)?))?;
                Some(words)
            }
        };
        // A chunk with which the load fails is not replicated: an append-only file with it could not be loaded.
        if let Err(failure) = finish(&mut key, limit) {
            key.delete();
            if !was_empty {
                context.replicate_as(c"DEL", &arguments[1..2], [], iter::empty());
            }
            return Err(failure);
        }
        match options {
            None => context.replicate(),
            Some(words) => {
                context.replicate_as(c"CF.LOADCHUNK", &arguments[1..4], words.each_ref().map(Word::as_ref), iter::empty());
            }
        }
        Ok(Reply::Done)
    }
}

/// Makes the filter visible if it is complete. Fails if the dump turns out to be damaged, or the filter too large.
fn finish(key: &mut Key<'_, Stored>, limit: Limit) -> Result<(), Failure> {
    if let Found::Value(stored) = key.get_mut()
        && let Stored::Load(load) = stored
        && load.is_complete()
    {
        *stored = Stored::Filter(load.finish(limit)?);
    }
    Ok(())
}
