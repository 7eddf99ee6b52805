//! The Burn settings the route depends on.
//!
//! Burn explores several independent blocks of operations at once, and at a sync runs what its search left over
//! unfused, which is on the plain backend. With one block, operations run in program order and nothing is left over.
//! After `max_explorations` searches Burn runs everything unfused.

use crate::error::Error;
use crate::memory::note_unused_stream;
use burn_backend::StreamId;
use burn_std::config::{BurnConfig, RuntimeConfig};

/// Fixes the settings, before anything has read them.
pub(super) fn install() -> Result<(), Error> {
    check_streams()?;
    // What Burn itself would load at first use, with the number of blocks replaced.
    let mut wanted = BurnConfig::from_current_dir().override_from_env();
    check_explorations(&wanted)?;
    set_one_block(&mut wanted)?;
    if BurnConfig::try_set(wanted) {
        return Ok(());
    }
    // The program, or a library, has read or set the configuration before.
    let current = BurnConfig::get();
    check_explorations(&current)?;
    match current.fusion().beam_search.max_blocks {
        1 => Ok(()),
        blocks => Err(Error::Configuration {
            setting: "fusion.beam_search.max_blocks",
            value: blocks.to_string(),
            effect: "makes Burn run operations out of program order, and some of them on its plain backend",
            remedy: "call `enable_op_determinism` before Burn's configuration is first read or set, or set it to 1",
        }),
    }
}

/// Each thread must be a stream of its own: operations keep their order within a stream, and a stream's random numbers
/// are its own.
fn check_streams() -> Result<(), Error> {
    let here = StreamId::current();
    let there = std::thread::spawn(StreamId::current).join();
    match there.is_ok_and(|there| there != here) {
        true => {
            note_unused_stream();
            Ok(())
        }
        false => Err(Error::Configuration {
            setting: "streaming.policy",
            value: "single".to_owned(),
            effect: "makes all threads share one stream, so that their operations mix in the order they arrive",
            remedy: "remove it from cubecl.toml",
        }),
    }
}

fn check_explorations(config: &BurnConfig) -> Result<(), Error> {
    match config.fusion().beam_search.max_explorations {
        None => Ok(()),
        Some(limit) => Err(Error::Configuration {
            setting: "fusion.beam_search.max_explorations",
            value: limit.to_string(),
            effect: "makes Burn run operations on its plain backend after that many searches",
            remedy: "remove it from burn.toml and unset BURN_FUSION_MAX_EXPLORATIONS",
        }),
    }
}

/// Burn's configuration has private fields and is deserialised; so it is edited in its serialised form.
fn set_one_block(config: &mut BurnConfig) -> Result<(), Error> {
    let invalid = |error: &dyn core::fmt::Display| Error::Configuration {
        setting: "burn.toml",
        value: error.to_string(),
        effect: "cannot be read back by Burn",
        remedy: "correct the file",
    };
    let mut value = serde_json::to_value(&*config).map_err(|error| invalid(&error))?;
    value["fusion"]["beam_search"]["max_blocks"] = 1.into();
    *config = serde_json::from_value(value).map_err(|error| invalid(&error))?;
    Ok(())
}
