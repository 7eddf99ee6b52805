//! Times of the cases on the device.

use crate::case::{Case, forget_operands};
use cubecl::future::block_on;
use cubecl::prelude::*;
use std::error::Error;
use std::io::stdin;
use std::time::Duration;

/// How long a sample takes at least.
const SAMPLE: Duration = Duration::from_millis(5);

/// Most launches of a sample.
const MOST_LAUNCHES: u32 = 100;

const SAMPLES: usize = 5;

/// Launches the cases of a part, `I/N`, of all cases or of those whose names have one of `filters` in them, once, prints
/// `ready`, waits for a line on standard input, and times each: name, shape, nanoseconds, float operations and bytes
/// between tabs. The time is the device's, of launches one after the other: where
/// the host takes longer than the device, it is the host's.
pub fn part(cases: &[Case], part: &str, filters: &[String]) -> Result<(), Box<dyn Error>> {
    let numbers = part.split_once('/').and_then(|(index, count)| Some((index.parse().ok()?, count.parse().ok()?)));
    let (index, count): (usize, usize) = numbers.filter(|(_, count)| *count > 0).ok_or("a part I/N is wanted")?;
    let is_wanted = |case: &&Case| filters.is_empty() || filters.iter().any(|filter| case.name().contains(filter));
    let cases: Vec<_> = cases.iter().filter(is_wanted).skip(index).step_by(count).collect();
    let client = cubecl::Device::default().client();
    for case in &cases {
        once(&client, case)?;
    }
    println!("ready");
    stdin().read_line(&mut String::new())?;
    for case in cases {
        let time = time(&client, case)?;
        println!("{}\t{}\t{}\t{}\t{}", case.name(), case.shape, time.as_nanos(), case.flops, case.bytes);
        forget_operands();
        client.memory_cleanup()?;
    }
    Ok(())
}

/// Compiles a case's kernels.
fn once(client: &Client, case: &Case) -> Result<(), Box<dyn Error>> {
    case.launch(client).map_err(|error| format!("{}: {error}", case.name()))?;
    block_on(client.sync()).map_err(|error| format!("{}: {error}", case.name()))?;
    forget_operands();
    Ok(client.memory_cleanup()?)
}

/// The median time of a launch.
fn time(client: &Client, case: &Case) -> Result<Duration, Box<dyn Error>> {
    // The operands are uploaded, and the pools grow.
    sample(client, case, 1)?;
    let first = sample(client, case, 1)?;
    let launches = SAMPLE.as_nanos().div_ceil(first.as_nanos().max(1)).clamp(2, MOST_LAUNCHES.into()) as u32;
    let mut times = (0..SAMPLES).map(|_| sample(client, case, launches)).collect::<Result<Vec<_>, _>>()?;
    times.sort_unstable();
    Ok(times[SAMPLES / 2])
}

/// The time of a launch among so many.
fn sample(client: &Client, case: &Case, launches: u32) -> Result<Duration, Box<dyn Error>> {
    let window = client.profile_start()?;
    for _ in 0..launches {
        case.launch(client).map_err(|error| format!("{}: {error}", case.name()))?;
    }
    let profile = client.profile_end(window)?;
    let ticks = block_on(profile.resolve()).ok_or("the device has measured nothing")?;
    Ok(ticks.duration() / launches)
}
