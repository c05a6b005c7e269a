//! A module for Valkey and Redis: the CF.* commands of RedisBloom on koel's cuckoo filters. docs/VALKEY.md describes its use.
//!
//! ```text
//! server ──▶ server/, the module API ──▶ commands/ ──▶ Stored ─┬─▶ Filter ──▶ koel::ElasticFilter, RedisBloomFilter
//!                                     └──▶ stored.rs, RDB, AOF   └─▶ Load, chunks that have come so far
//! ```

// Loads and rates are for people to read.
#![allow(clippy::cast_precision_loss)]

use std::ffi::CStr;

mod commands;
mod counts;
mod dump;
mod filter;
mod load;
mod plan;
mod reply;
mod server;
mod settings;
mod stored;

const NAME: &CStr = c"koel";

/// 0.1.0, as the server counts.
const VERSION: i32 = 100;

/// Tells the server what the module has.
fn register(module: server::Module<'_>) -> server::Module<'_> {
    commands::register(module.arguments(settings::argument).category(c"cuckoo").values::<stored::Stored>())
        .info()
        .number(&settings::INITIAL_SIZE)
        .number(&settings::EXPANSION)
        .number(&settings::MAX_BYTES)
        .number(&settings::SEED)
        .setting(&settings::ERROR_RATE)
        .without_effect(&settings::WITHOUT_EFFECT)
        .switch(&settings::ABSENT_WHILE_LOADING)
}
