//! A module for Valkey and Redis: RedisBloom's CF.* commands on koel's cuckoo filters. docs/VALKEY.md describes its use.
//!
//! ```text
//! server ──▶ server/, the module API ──▶ commands/ ──▶ Stored ─┬─▶ Filter ──▶ koel::ElasticFilter, RedisBloomFilter
//!                                     └──▶ stored.rs, RDB, AOF   └─▶ Load, the chunks that have arrived so far
//! ```

// Load factors and rates are only displayed.
#![allow(clippy::cast_precision_loss)]

use std::ffi::CStr;

mod commands;
mod counts;
mod dump;
mod explain;
mod filter;
mod load;
mod plan;
mod refusal;
mod reply;
mod server;
mod settings;
mod stored;

const NAME: &CStr = c"koel";

/// 0.1.0, in the server's numbering.
const VERSION: i32 = 100;

/// Registers the module's commands, values and settings with the server.
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
