//! What `--help` says of an example.

use std::fmt;

/// The digits that most examples train on.
pub const DIGITS: &str = "1,437 handwritten digits of 8x8 pixels, and 360 to test with, all in this repository";

/// The text that most examples train on.
pub const TEXT: &str =
    "the Constitution of the United States, 45 kB, in this repository; its last tenth is to test with";

/// What an example trains, on what, how long, and what that leaves.
#[derive(Clone, Copy, Debug)]
pub struct Help {
    /// The model and its training.
    pub trains: &'static str,
    /// The data.
    pub data: &'static str,
    /// Its time without a GPU, and the metric that it ends with.
    pub takes: &'static str,
    /// Files in the folder of `--out`, beside `loss.svg`, `weights` and `environment.txt`.
    pub leaves: &'static [&'static str],
}

/// What every training leaves.
pub const LEFT: [&str; 3] = ["environment.txt", "loss.svg", "weights"];

impl fmt::Display for Help {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { trains, data, takes, leaves } = self;
        writeln!(f, "Trains {trains}.\n")?;
        writeln!(f, "Data:    {data}.")?;
        writeln!(f, "Time:    {takes}.")?;
        writeln!(
            f,
            "Prints:  losses and metrics of each epoch, then a digest of the environment and one of the weights:"
        )?;
        writeln!(f, "         two runs on one machine agree in both.")?;
        write!(
            f,
            "Writes:  loss.svg (losses and metrics by epoch), weights/*.npy (`numpy.load` reads them), environment.txt"
        )?;
        leaves.iter().try_for_each(|file| write!(f, ", {file}"))
    }
}
