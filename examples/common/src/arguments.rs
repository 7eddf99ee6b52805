//! The command line that all examples have.

use crate::Help;
use anyhow::{Result, ensure};
use burn::prelude::*;
use burn_deterministic::{covers, device_environment};
use clap::error::ErrorKind;
use clap::{CommandFactory, FromArgMatches, Parser, ValueEnum};
use std::path::PathBuf;

/// Trains a model, prints the digest of its weights, and leaves a plot of the loss and the weights in a folder.
#[derive(Parser, Clone, Debug)]
pub struct Arguments {
    /// Train on plain Burn, without determinism.
    #[arg(long)]
    pub plain: bool,
    /// Passes over the training data; each example has its own default.
    #[arg(long)]
    pub epochs: Option<usize>,
    /// Samples in a batch; each example has its own default.
    #[arg(long, value_parser = positive)]
    pub batch_size: Option<usize>,
    /// Seed of the initial weights, of all that is random in training, and of the order of the samples.
    #[arg(long, default_value_t = 812)]
    pub seed: u64,
    /// Stop after this many steps.
    #[arg(long)]
    pub steps: Option<usize>,
    /// Learning rate; each example has its own default.
    #[arg(long)]
    pub learning_rate: Option<f64>,
    /// Threads that prepare samples; the weights do not depend on it.
    #[arg(long, default_value_t = 0)]
    pub workers: usize,
    /// Devices to train on, in the examples that train on several: the first of the default device's kind. The weights do not
    /// depend on it.
    #[arg(long, default_value_t = 1, value_parser = positive)]
    pub devices: usize,
    /// The handwritten digits to train on, in the examples that do.
    #[arg(long, value_enum, default_value_t)]
    pub dataset: DigitSet,
    /// Where to put the loss plot, the weights and pictures [default: target/results/NAME].
    #[arg(long)]
    pub out: Option<PathBuf>,
    /// Keep checkpoints of the training in this folder.
    #[arg(long, value_name = "FOLDER", conflicts_with = "plain")]
    pub checkpoint: Option<PathBuf>,
    /// Steps from one checkpoint to the next [default: one at the end of each epoch]; the last step has one too.
    #[arg(long, value_name = "STEPS", requires = "checkpoint", value_parser = positive)]
    pub checkpoint_every: Option<usize>,
    /// Go on from the last checkpoint in the folder of `--checkpoint`, or start where there is none yet.
    #[arg(long, requires = "checkpoint")]
    pub resume: bool,
}

/// A data set of handwritten digits.
#[derive(ValueEnum, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DigitSet {
    /// 1,797 images of 8x8 pixels, in this repository.
    #[default]
    Digits,
    /// 70,000 images of 28x28 pixels, downloaded once; needs a build with the feature `mnist`.
    Mnist,
}

impl Arguments {
    /// Reads the command line of this process; ends the process with clap's message where it is wrong, and with `help` for
    /// `--help`.
    pub fn read(help: &Help) -> Self {
        let mut command = Self::command().about(help.to_string()).long_about(help.to_string());
        let matches = command.get_matches_mut();
        Self::from_arg_matches(&matches).unwrap_or_else(|error| error.format(&mut command).exit())
    }

    /// Reads a command line without its program name.
    ///
    /// # Errors
    ///
    /// With clap's message, when it is wrong.
    pub fn from_words<'a>(words: impl IntoIterator<Item = &'a str>) -> Result<Self, clap::Error> {
        Self::try_parse_from(std::iter::once("example").chain(words))
    }

    /// The default device, for training; with the seed of plain Burn, for `--plain`. Ends the process with a message where
    /// `--devices` wants several.
    pub fn device(&self) -> Device {
        if self.devices > 1 {
            let text = "this example trains on one device; `digits_learner` trains on several";
            Self::command().error(ErrorKind::ArgumentConflict, text).exit();
        }
        self.seeded(Device::default())
    }

    /// The devices for training; with the seed of plain Burn, for `--plain`.
    ///
    /// # Errors
    ///
    /// When there are fewer.
    pub fn devices(&self) -> Result<Vec<Device>> {
        let first = Device::default();
        if self.devices == 1 {
            return Ok(vec![self.seeded(first)]);
        }
        let kind = device_environment(&first);
        let is_alike = |device: &Device| covers(device) && kind.differences(&device_environment(device)).is_empty();
        let alike: Vec<_> = burn_deterministic::devices().into_iter().filter(is_alike).collect();
        ensure!(
            self.devices <= alike.len(),
            "`--devices {}`: this machine has {} of the kind of {first:?}, {alike:?}; give at most as many",
            self.devices,
            alike.len()
        );
        Ok(alike.into_iter().take(self.devices).map(|device| self.seeded(device)).collect())
    }

    fn seeded(&self, device: Device) -> Device {
        if self.plain {
            device.seed(self.seed);
        }
        device.autodiff()
    }
}

fn positive(number: &str) -> Result<usize, String> {
    match number.parse() {
        Ok(0) => Err("must be at least 1".to_owned()),
        Ok(number) => Ok(number),
        Err(error) => Err(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::markdown::commands_of;
    use std::path::Path;

    #[test]
    fn the_commands_of_the_documentation_exist() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let commands = commands_of(&root, "target/release/examples/");
        assert!(!commands.is_empty(), "examples/README.md starts them");
        for (file, words) in commands {
            if let Err(error) = Arguments::from_words(words.iter().map(String::as_str)) {
                panic!("{}: `{}`: {error}", file.display(), words.join(" "));
            }
        }
    }
}
