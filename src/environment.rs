//! Where the program runs.

use burn_deterministic_recording::Environment;

/// What can decide the bits of this program.
pub fn environment() -> Environment {
    let mut environment = Environment::new();
    environment.set("burn-deterministic", env!("CARGO_PKG_VERSION"));
    environment
}
