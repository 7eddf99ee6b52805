//! What a GPU runs: every family, on shapes that reach each of its plans and kernels.
//!
//! Without an argument it lists its cases, one a line: name, shape, float operations and bytes between tabs. With the name
//! of a case it launches that and reads nothing back: on the CUDA emulator, which keeps what it is given to compile, this
//! says which kernels a GPU gets. `cargo xtask inspect` does that for every case. With `--measure I/N [FILTER..]` it times
//! every case whose number is I modulo N, of all or of those whose names have a filter in them; several such programs
//! compile side by side, and one of them at a time measures.

mod case;
mod convolutions;
mod elements;
mod images;
mod indices;
mod lines;
mod measure;
mod products;
mod reductions;
mod rows;

use burn_deterministic_kernels::known_answer;
use burn_deterministic_kernels::quotient::Quotients;
use case::Case;
use std::env;
use std::process::ExitCode;

/// Every case, by family.
fn cases() -> Vec<Case> {
    [
        products::cases(),
        convolutions::cases(),
        reductions::cases(),
        rows::cases(),
        lines::cases(),
        indices::cases(),
        elements::cases(),
        images::cases(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn main() -> ExitCode {
    let cases = cases();
    let mut arguments = env::args().skip(1);
    let Some(name) = arguments.next() else {
        for case in &cases {
            println!("{}\t{}\t{}\t{}", case.name(), case.shape, case.flops, case.bytes);
        }
        return ExitCode::SUCCESS;
    };
    if name == "--measure" {
        return match measure::part(&cases, &arguments.next().unwrap_or_default(), &arguments.collect::<Vec<_>>()) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("--measure: {error}");
                ExitCode::FAILURE
            }
        };
    }
    let Some(case) = cases.iter().find(|case| case.name() == name) else {
        eprintln!("no case `{name}`; without an argument this lists them");
        return ExitCode::FAILURE;
    };
    let client = cubecl::Device::default().client();
    // Which has no kernel that asks, beside those of the case.
    known_answer::assume_quotients(&client, Quotients::Device);
    if let Err(error) = case.launch(&client) {
        eprintln!("{name}: {error}");
        return ExitCode::FAILURE;
    }
    if let Err(error) = cubecl::future::block_on(client.sync()) {
        eprintln!("{name}: {error}");
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}
