//! The steps of a program.

use crate::record::Place;
use core::fmt;

/// A step. Programs number them through, or anew in each epoch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Step {
    /// Its epoch.
    pub epoch: Option<u64>,
    /// Its number; `None` between steps.
    pub number: Option<u64>,
}

impl Step {
    /// That of a place.
    pub fn of(place: &Place) -> Self {
        Self { epoch: place.epoch, number: place.step }
    }
}

/// `step 3 (epoch 1)`.
impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.number {
            Some(number) => write!(f, "step {number}")?,
            None => f.write_str("no step")?,
        }
        self.epoch.map_or(Ok(()), |epoch| write!(f, " (epoch {epoch})"))
    }
}
