//! What all processes of a group must have alike.

use super::error::GroupError;
use crate::environment::device_environment;
use crate::settings::{Guarantee, OnViolation, determinism, is_op_determinism_enabled};
use burn_core::tensor::Device;
use burn_deterministic_recording::Environment;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// What a process tells another before they train together.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct Facts {
    pub(super) rank: usize,
    size: usize,
    shards: usize,
    determinism: String,
    /// Milliseconds.
    silence: u64,
    /// Of the devices, which are alike within a process; none where they may differ.
    environment: Option<Environment>,
}

/// What `determinism` says where there is none.
const NOT_ENABLED: &str = "not enabled";

impl Facts {
    pub(super) fn new(rank: usize, size: usize, shards: usize, silence: Duration, device: &Device) -> Self {
        let settings = determinism();
        let guarantee = match settings.guarantee {
            Guarantee::RunToRun => "run to run",
            Guarantee::GpuToGpu => "GPU to GPU",
        };
        let violations = match settings.on_violation {
            OnViolation::Error => "violations are errors",
            OnViolation::Warn => "violations are warnings",
        };
        let determinism = match is_op_determinism_enabled() {
            true => format!("{guarantee}, {violations}"),
            false => NOT_ENABLED.to_owned(),
        };
        let environment = match settings.guarantee {
            Guarantee::RunToRun => Some(device_environment(device)),
            Guarantee::GpuToGpu => None,
        };
        Self { rank, size, shards, determinism, silence: silence.as_millis() as u64, environment }
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("numbers and texts are JSON")
    }

    pub(super) fn decode(contents: &[u8], peer: &str) -> Result<Self, GroupError> {
        serde_json::from_slice(contents)
            .map_err(|error| GroupError::Message { peer: peer.to_owned(), reason: error.to_string() })
    }

    /// Requires that a peer has what this process has.
    ///
    /// # Errors
    ///
    /// [`GroupError::Differ`], for the first thing in which they differ.
    pub(super) fn check(&self, theirs: &Self, own: &str, peer: &str) -> Result<(), GroupError> {
        let differ = |what: &str, theirs: &str, ours: &str, remedy| {
            Err(GroupError::Differ {
                peer: peer.to_owned(),
                own: own.to_owned(),
                what: what.to_owned(),
                theirs: theirs.to_owned(),
                ours: ours.to_owned(),
                remedy,
            })
        };
        let numbers = [
            ("a group of so many processes:", self.size, theirs.size, "give all the same (`Group::new`)"),
            ("so many shards:", self.shards, theirs.shards, "give all the same (`Shards::new`)"),
        ];
        for (what, ours, theirs, remedy) in numbers {
            if ours != theirs {
                return differ(what, &theirs.to_string(), &ours.to_string(), remedy);
            }
        }
        if self.determinism != theirs.determinism || self.determinism == NOT_ENABLED {
            let remedy = "call `enable_op_determinism` with the same settings in every process";
            return differ("determinism:", &theirs.determinism, &self.determinism, remedy);
        }
        if self.silence != theirs.silence {
            let [theirs, ours] = [theirs.silence, self.silence].map(|silence| format!("{silence} ms"));
            return differ("another bound of silence:", &theirs, &ours, "give all the same (`Group::silence`)");
        }
        let remedy = "what a shard computes would depend on the process it is in; use devices of one kind, or ask for \
                      the same bits on all devices (`Determinism::default().guarantee(Guarantee::GpuToGpu)`)";
        let environment = |facts: &Self| facts.environment.clone().unwrap_or_default();
        let Some(difference) = environment(theirs).differences(&environment(self)).into_iter().next() else {
            return Ok(());
        };
        let value = |value: Option<String>| value.unwrap_or_else(|| "nothing".to_owned());
        let what = format!("another device, {}:", difference.name);
        differ(&what, &value(difference.first), &value(difference.second), remedy)
    }
}
