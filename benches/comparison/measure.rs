//! Timing ways to do the same work.

use std::time::{Duration, Instant};

/// How long a sample takes at least, so that waiting for the device and the clock do not show.
const SAMPLE: Duration = Duration::from_millis(50);

/// Runs of each way before the first sample: autotune chooses in the first one, memory pools grow in all.
const WARM_UP: usize = 3;

/// The median times of one run of each way; `run(way, n)` does the work n times, waits for it and says how long it took.
///
/// The ways take turns, so that what else the machine does meets both.
pub fn medians<const WAYS: usize>(samples: usize, mut run: impl FnMut(usize, u32) -> Duration) -> [Duration; WAYS] {
    let ways: [usize; WAYS] = std::array::from_fn(|way| way);
    let runs = ways.map(|way| {
        let fastest = (0..WARM_UP).map(|_| run(way, 1)).min().unwrap_or(SAMPLE);
        SAMPLE.as_micros().div_ceil(fastest.as_micros().max(1)).min(1000) as u32
    });
    let mut times = [const { Vec::new() }; WAYS];
    for _ in 0..samples {
        for way in ways {
            times[way].push(run(way, runs[way]) / runs[way]);
        }
    }
    times.map(median)
}

/// How long `work` takes.
pub fn elapsed(work: impl FnOnce()) -> Duration {
    let started = Instant::now();
    work();
    started.elapsed()
}

/// The middle one of some values.
pub fn median<T: PartialOrd + Copy>(mut values: Vec<T>) -> T {
    values.sort_by(|a, b| a.partial_cmp(b).expect("measurements are numbers"));
    values[values.len() / 2]
}
