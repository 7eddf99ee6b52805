//! Which slices of a loader are being read.

use super::error::LoadError;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The slices of one loader that have a pass at the moment.
#[derive(Debug, Default)]
pub(super) struct Slices(Mutex<Vec<Range<usize>>>);

/// A pass of a slice.
#[derive(Debug)]
pub(super) struct Reading {
    slices: Arc<Slices>,
    samples: Range<usize>,
}

impl Slices {
    /// Starts a pass of the slice that has these samples.
    ///
    /// # Errors
    ///
    /// [`LoadError::SeveralDevices`] while another slice has one.
    pub(super) fn read(self: &Arc<Self>, loader: &str, samples: Range<usize>) -> Result<Reading, LoadError> {
        let mut read = self.lock();
        if let Some(other) = read.iter().find(|other| **other != samples) {
            return Err(LoadError::SeveralDevices { loader: loader.to_owned(), first: other.clone(), second: samples });
        }
        read.push(samples.clone());
        Ok(Reading { slices: self.clone(), samples })
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Range<usize>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Reading {
    fn drop(&mut self) {
        let mut read = self.slices.lock();
        if let Some(this) = read.iter().position(|samples| *samples == self.samples) {
            read.swap_remove(this);
        }
    }
}
