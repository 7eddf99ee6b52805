//! The end of restoring: what has to agree before a training goes on, and its random state.

use super::Checkpoint;
use super::error::{Error, joined};
use super::versions::Versions;
use crate::environment;
use crate::random::restore_random_state;
use burn_deterministic_recording::EnvironmentDifference;
use std::io::Write;

impl Checkpoint {
    /// Ends the restoring: makes the calling thread draw random numbers from where the saved one stood, and returns the
    /// number of steps taken.
    ///
    /// What the program draws before this call makes no difference. Other threads that draw are the program's to
    /// restore: save the [`random_state`](crate::random_state) of each as a value.
    ///
    /// # Errors
    ///
    /// - [`Error::OtherVersions`] when other versions of this crate or of Burn took the checkpoint,
    /// - [`Error::Unrestored`] when there are parts that were not restored,
    /// - [`Error::Random`] when the thread has entered more or fewer random streams than the saved one.
    pub fn resume(self) -> Result<u64, Error> {
        self.check_versions()?;
        self.resume_across_versions()
    }

    /// As [`resume`](Self::resume), and an error in another [environment](Self::environment) than the checkpoint was taken in:
    /// for a training that must end with the same bits, and may move from machine to machine.
    ///
    /// # Errors
    ///
    /// As of [`resume`](Self::resume), and [`Error::OtherEnvironment`] with what differs. Nothing has been restored then.
    pub fn resume_in_same_environment(self) -> Result<u64, Error> {
        self.check_versions()?;
        self.check_restored()?;
        let differences = self.differences();
        if !differences.is_empty() {
            return Err(Error::OtherEnvironment { checkpoint: self.to_string(), differences });
        }
        self.restore_random()
    }

    /// As [`resume`](Self::resume), also where [other versions](Self::written_by) took the checkpoint: the training can
    /// then end with other bits than under either version alone. Its later checkpoints name the present versions.
    ///
    /// # Errors
    ///
    /// [`Error::Unrestored`] and [`Error::Random`], as of [`resume`](Self::resume).
    pub fn resume_across_versions(self) -> Result<u64, Error> {
        self.check_restored()?;
        let differences = self.differences();
        if !differences.is_empty() {
            // A closed standard error must not end the training.
            let _ = writeln!(
                std::io::stderr(),
                "burn-deterministic: warning, {self} was taken in another environment, and what follows can have other \
                 bits; then against now: {}",
                joined(&differences)
            );
        }
        self.restore_random()
    }

    fn check_versions(&self) -> Result<(), Error> {
        match self.written_by == Versions::current() {
            true => Ok(()),
            false => Err(Error::OtherVersions { checkpoint: self.to_string(), written_by: self.written_by.clone() }),
        }
    }

    fn check_restored(&self) -> Result<(), Error> {
        match self.parts.is_empty() {
            true => Ok(()),
            false => Err(Error::Unrestored { checkpoint: self.to_string(), parts: self.names() }),
        }
    }

    /// What differs between the environment of a loaded checkpoint and the present one.
    fn differences(&self) -> Vec<EnvironmentDifference> {
        let now = || environment::of(&self.devices);
        self.taken_in.as_ref().map(|then| then.differences(&now())).unwrap_or_default()
    }

    fn restore_random(self) -> Result<u64, Error> {
        restore_random_state(&self.random)?;
        Ok(self.step)
    }
}
