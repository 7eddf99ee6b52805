//! The report, as Markdown.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::analysis::Analysis;
use super::cases::{Case, Kernel};
use super::device::{A100, DEVICES, Device, H100};
use super::tools::COMPILER;

/// A kernel, the first case that launches it, and what becomes of it.
pub struct Row<'a> {
    /// Its function in `kernels/src`.
    pub function: &'a str,
    /// The case.
    pub case: &'a str,
    /// The kernel.
    pub kernel: &'a Kernel,
    /// On each of [`DEVICES`].
    pub on: [Analysis; DEVICES.len()],
}

/// A finding that was accepted.
pub struct Accepted {
    /// Where: case, function, architecture.
    pub place: String,
    /// What.
    pub finding: String,
    /// Why.
    pub reason: String,
    /// The last day.
    pub until: String,
}

/// The report.
pub fn report(cases: &[Case], rows: &[Row<'_>], unreached: &[(&str, &str)], accepted: &[Accepted]) -> String {
    let mut text = head(cases.len(), rows.len());
    accepted_findings(&mut text, accepted);
    unlaunched(&mut text, unreached);
    kernels(&mut text, rows);
    loops(&mut text, rows);
    bounds(&mut text, cases, rows);
    text
}

fn head(cases: usize, kernels: usize) -> String {
    format!(
        "<!-- Written by `UPDATE_DOCS=1 cargo xtask inspect`; do not edit. -->

# What GPUs get

A static report on the CUDA C++ that CubeCL writes for NVIDIA GPUs (the feature `cuda-nvrtc`): {kernels} kernels of {cases} cases, compiled
by {COMPILER} for sm_80 (A100) and sm_90 (H100) with the options that CubeCL gives, and disassembled. No GPU took part, so
nothing here is a time. CubeCL hands PTX to the driver, whose own compiler may be of another version and make other machine code: what is
said here is of NVRTC's. `kernels/examples/gpu_plans` lists the cases; `cargo xtask inspect` fails if a kernel in
`kernels/src` is in none of them, and on

- **atomic**, **warp**, **tensor**: atomics; shuffles, votes and reductions of a warp; instructions of tensor cores other than those whose
  sums `kernels/src/matmul/tensor_cores` has references of;
- **approximate**: an instruction `MUFU` that no function or division in the kernel's source explains
  (`xtask/src/inspect/checks.rs` says which explains what), or a call of a less exact function such as `__expf`;
- **contraction**: another number of multiply-adds, sums or products than with `-fmad=false`;
- **assembly**: inline PTX other than `min.NaN.f32` and `max.NaN.f32`;
- **spill**, **stack**: registers spilled, a thread's array in memory.

A value on sm_80 and another on sm_90 are written `a / b`.
"
    )
}

fn accepted_findings(text: &mut String, accepted: &[Accepted]) {
    text.push_str("\n## Accepted findings\n\n");
    if accepted.is_empty() {
        text.push_str("None.\n");
        return;
    }
    text.push_str(
        "From `xtask/src/inspect/exceptions.toml`.\n\n| where | finding | reason | until |\n|---|---|---|---|\n",
    );
    for Accepted { place, finding, reason, until } in accepted {
        let _ = writeln!(text, "| {place} | {finding} | {reason} | {until} |");
    }
}

fn unlaunched(text: &mut String, unreached: &[(&str, &str)]) {
    text.push_str("\n## Kernels that no GPU launches\n\n| kernel | reason |\n|---|---|\n");
    for (kernel, reason) in unreached {
        let _ = writeln!(text, "| `{kernel}` | {reason} |");
    }
}

fn kernels(text: &mut String, rows: &[Row<'_>]) {
    text.push_str(
        "\n## Kernels

Registers of a thread; bytes that a thread's spills store and load; bytes of shared memory of a block; threads of a block; blocks
that a multiprocessor holds, what limits them, and the warps of 64 that are busy. Loads and stores: bits that a thread moves at once, by
how many instructions (sm_90).

| case | kernel | registers | spills | shared | threads | blocks held | limit | occupancy | global loads | global stores | shared loads | shared stores |
|---|---|---|---|---|---|---|---|---|---|---|---|---|
",
    );
    for Row { function, case, kernel, on } in rows {
        let accesses = &on[DEVICES.len() - 1].accesses;
        let both = |of: &dyn Fn(&Analysis) -> String| pair(on.each_ref().map(of));
        let cells = [
            (*case).to_owned(),
            format!("`{function}`"),
            both(&|a| a.resources.registers.to_string()),
            both(&|a| (a.resources.spill_stores + a.resources.spill_loads).to_string()),
            both(&|a| a.shared.to_string()),
            kernel.threads.to_string(),
            both(&|a| a.occupancy.blocks.to_string()),
            both(&|a| a.occupancy.limit.to_owned()),
            both(&|a| format!("{} %", a.occupancy.percent())),
            accesses.global_loads.to_string(),
            accesses.global_stores.to_string(),
            accesses.shared_loads.to_string(),
            accesses.shared_stores.to_string(),
        ];
        let _ = writeln!(text, "| {} |", cells.join(" | "));
    }
}

fn loops(text: &mut String, rows: &[Row<'_>]) {
    text.push_str(
        "\n## Hot loops

The loop with the most float arithmetic outside of the loops in it, and of those the shortest: its instructions on sm_90, by how often
they occur in its code, without the loops in it. What runs in some rounds only is counted too: the last steps of a chain, which are
fewer than a stage, and the table of terms of `convolve_tiled`, in one round of 8 or 16.

| case | kernel | instructions | which |
|---|---|---|---|
",
    );
    for Row { function, case, on, .. } in rows {
        if let Some((length, mix)) = &on[DEVICES.len() - 1].hot_loop {
            let _ = writeln!(text, "| {case} | `{function}` | {length} | {mix} |");
        }
    }
}

fn bounds(text: &mut String, cases: &[Case], rows: &[Row<'_>]) {
    let [a100, h100] =
        [A100, H100].map(|d| {
            let Device { name, teraflops, half_teraflops, gigabytes, .. } = d;
            format!("{name}: {teraflops} TFLOP/s in f32, on tensor cores {half_teraflops} for half types and half as many for TF32, {gigabytes} GB/s")
        });
    let _ = write!(
        text,
        "\n## Bounds

The least time that a case can take, from the operations that define its result and the bytes of its operands and results, each
moved once, at the peaks that NVIDIA publishes ({a100}; {h100}; tensor cores where a case launches `on_tensor_cores`). It is a bound, not a time: what a kernel adds, reads
twice or waits for is not in it.

| case | shape | operations | bytes | A100 | H100 | launches |
|---|---|---|---|---|---|---|
"
    );
    let functions: BTreeMap<&str, &str> = rows.iter().map(|row| (row.kernel.source.as_str(), row.function)).collect();
    for case in cases {
        let source =
            case.launches.iter().map(|launch| &launch.kernel.source).find(|source| source.contains("nvcuda::wmma"));
        let bound = |device: &Device| {
            let peak = match source {
                Some(source) if source.contains("precision::tf32") => device.half_teraflops / 2.0,
                Some(_) => device.half_teraflops,
                None => device.teraflops,
            };
            let (seconds, by) = device.bound(case.flops, peak, case.bytes);
            format!("{} ({by})", time(seconds))
        };
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} | {} | {} | {} |",
            case.name,
            case.shape,
            scaled(case.flops),
            scaled(case.bytes),
            bound(&A100),
            bound(&H100),
            launches(case, &functions),
        );
    }
}

/// The kernels that a case launches, in the order of their first launch, and how often.
fn launches(case: &Case, functions: &BTreeMap<&str, &str>) -> String {
    let mut counts: Vec<(&str, usize)> = Vec::new();
    for launch in &case.launches {
        let function = functions.get(launch.kernel.source.as_str()).copied().unwrap_or(&launch.kernel.entry);
        match counts.iter_mut().find(|(name, _)| *name == function) {
            Some((_, count)) => *count += 1,
            None => counts.push((function, 1)),
        }
    }
    let spelled = counts.iter().map(|(name, count)| match count {
        1 => format!("`{name}`"),
        count => format!("`{name}` x{count}"),
    });
    spelled.collect::<Vec<_>>().join(", ")
}

/// One value where both are equal.
fn pair([first, second]: [String; 2]) -> String {
    if first == second { first } else { format!("{first} / {second}") }
}

/// Three digits and a unit of time.
fn time(seconds: f64) -> String {
    match seconds {
        s if s >= 1e-3 => format!("{} ms", digits(s * 1e3)),
        s => format!("{} us", digits(s * 1e6)),
    }
}

/// Three digits and a power of 1000.
fn scaled(number: f64) -> String {
    match number {
        n if n >= 1e9 => format!("{} G", digits(n / 1e9)),
        n if n >= 1e6 => format!("{} M", digits(n / 1e6)),
        n if n >= 1e3 => format!("{} k", digits(n / 1e3)),
        n => digits(n),
    }
}

fn digits(number: f64) -> String {
    match number {
        n if n >= 100.0 || n == 0.0 => format!("{n:.0}"),
        n if n >= 10.0 => format!("{n:.1}"),
        n => format!("{n:.2}"),
    }
}

#[cfg(test)]
mod tests {
    use super::{pair, scaled, time};

    #[test]
    fn numbers_have_three_digits() {
        assert_eq!([0.0, 12.0, 1234.0, 137.4e9].map(scaled), ["0", "12.0", "1.23 k", "137 G"]);
        assert_eq!([7.048e-3, 1.2345e-5, 2e-9].map(time), ["7.05 ms", "12.3 us", "0.00 us"]);
    }

    #[test]
    fn equal_values_are_written_once() {
        assert_eq!(pair(["1", "1"].map(String::from)), "1");
        assert_eq!(pair(["1", "2"].map(String::from)), "1 / 2");
    }
}
