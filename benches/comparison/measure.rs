//! Timing two ways to do the same work.

use std::time::{Duration, Instant};

/// How long a sample takes at least, so that waiting for the device and the clock do not show.
const SAMPLE: Duration = Duration::from_millis(100);

/// Runs of each way before the first sample: autotune chooses in the first one, memory pools grow in all.
const WARM_UP: usize = 3;

/// The median times of one run of each way; `run(way, n)` does the work n times and waits for it.
///
/// The ways take turns, so that what else the machine does meets both.
pub fn medians(samples: usize, run: impl Fn(usize, u32)) -> [Duration; 2] {
    let timed = |way, runs| {
        let started = Instant::now();
        run(way, runs);
        started.elapsed()
    };
    let runs = [0, 1].map(|way| {
        let fastest = (0..WARM_UP).map(|_| timed(way, 1)).min().unwrap_or(SAMPLE);
        SAMPLE.as_micros().div_ceil(fastest.as_micros().max(1)).min(1000) as u32
    });
    let mut times = [Vec::new(), Vec::new()];
    for _ in 0..samples {
        for way in [0, 1] {
            times[way].push(timed(way, runs[way]) / runs[way]);
        }
    }
    times.map(median)
}

/// The middle one of some values.
pub fn median<T: PartialOrd + Copy>(mut values: Vec<T>) -> T {
    values.sort_by(|a, b| a.partial_cmp(b).expect("measurements are numbers"));
    values[values.len() / 2]
}
