//! The stages in their order, and the time that each may take.

use std::time::Duration;

use crate::machine::Runtime;

/// What a stage does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// Asks the device for its name and the driver's.
    Device,
    /// Runs the tests of a program whose names contain one of the filters, or all, without those whose names contain one of
    /// `left_out`.
    Tests { program: Program, filters: &'static [&'static str], left_out: &'static [&'static str] },
    /// Trains each example twice, several at once, and compares the digests with each other and with those recorded.
    Goldens,
    /// Runs tests of the suite beside a program that keeps the device busy.
    UnderLoad { filters: &'static [&'static str] },
    /// Runs [`SANITIZED`] under a tool of compute-sanitizer.
    Sanitizer { tool: &'static str },
    /// Measures against plain Burn.
    Benchmarks,
    /// Times the kernels of every plan.
    Plans,
}

/// A program of the bundle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Program {
    Kernels,
    Suite,
    Comparison,
    GpuPlans,
}

impl Program {
    /// The name of its file.
    pub fn name(self) -> &'static str {
        match self {
            Self::Kernels => "kernels",
            Self::Suite => "suite",
            Self::Comparison => "comparison",
            Self::GpuPlans => "gpu_plans",
        }
    }
}

impl Work {
    /// The programs that it runs.
    pub fn programs(&self) -> &[Program] {
        match self {
            Self::Device | Self::Goldens => &[Program::Suite],
            // The suite tells which device it takes.
            Self::Tests { .. } | Self::UnderLoad { .. } | Self::Sanitizer { .. } => &[Program::Suite, Program::Kernels],
            Self::Benchmarks => &[Program::Comparison],
            Self::Plans => &[Program::Suite, Program::GpuPlans],
        }
    }
}

/// One stage.
#[derive(Clone, Copy, Debug)]
pub struct Stage {
    pub name: &'static str,
    /// `--only` takes a stage's name, or that of its group.
    pub group: &'static str,
    pub runtime: Runtime,
    pub work: Work,
    /// Its share of the time, beside the shares of the others.
    share: u32,
}

/// Tests of the kernels that read this repository's sources, at the place where they were built. The suite has none.
pub const SOURCE_TESTS: &str = "sources::";

/// Tests of the kernels that are short, and among them launch kernels with shared memory, barriers and many blocks.
pub const SANITIZED: [&str; 13] = [
    "convolution::orders::one_axis_matches_reference",
    "convolution::plans::every_plan_gives_the_bits_of_the_reference_in_whole_stages",
    "gather::gather_and_select_read_what_indices_name",
    "index_check::views_and_wide_indices",
    "known_answer::the_device_passes",
    "matmul::every_plan::gives_the_same_bits",
    "random::words_are_those_of_rand_chacha",
    "reduce::plans::sums_match_the_reference_under_every_plan",
    "scan::layouts_do_not_reach_a_result",
    "scatter::orders::rows_of_whole_blocks_match_reference",
    "scatter::orders::scatter_add_matches_reference",
    "sort::layouts_do_not_reach_a_result",
    "sort::lines_of_every_length_match_the_reference_under_every_plan",
];

/// All stages, in the order in which they run.
pub const STAGES: [Stage; 17] = {
    const KNOWN: Work = Work::Tests { program: Program::Kernels, filters: &["known_answer::"], left_out: &[] };
    const KERNELS: Work = Work::Tests { program: Program::Kernels, filters: &[], left_out: &[SOURCE_TESTS] };
    // What is left out the stages `goldens` and `repeats` do.
    const SUITE: Work = Work::Tests {
        program: Program::Suite,
        filters: &[],
        left_out: &["ends_in_the_same_weights", "repeatability::"],
    };
    const VULKAN_SUITE: Work =
        Work::Tests { program: Program::Suite, filters: &[], left_out: &["ends_in_the_same_weights"] };
    const fn on_cuda(name: &'static str, group: &'static str, work: Work, share: u32) -> Stage {
        Stage { name, group, runtime: Runtime::Cuda, work, share }
    }
    const fn on_vulkan(name: &'static str, work: Work, share: u32) -> Stage {
        Stage { name, group: "vulkan", runtime: Runtime::Vulkan, work, share }
    }
    const fn sanitizer(name: &'static str, tool: &'static str, share: u32) -> Stage {
        on_cuda(name, "sanitizer", Work::Sanitizer { tool }, share)
    }
    [
        on_cuda("device", "device", Work::Device, 2),
        on_cuda("known-answer", "known-answer", KNOWN, 2),
        on_cuda("goldens", "goldens", Work::Goldens, 10),
        on_cuda("kernels", "kernels", KERNELS, 12),
        on_cuda("suite", "suite", SUITE, 24),
        on_vulkan("vulkan-device", Work::Device, 1),
        on_vulkan("vulkan-known-answer", KNOWN, 1),
        on_vulkan("vulkan-goldens", Work::Goldens, 5),
        on_vulkan("vulkan-kernels", KERNELS, 5),
        on_vulkan("vulkan-suite", VULKAN_SUITE, 10),
        on_cuda("repeats", "repeats", Work::UnderLoad { filters: &["repeatability::"] }, 8),
        sanitizer("sanitizer-memcheck", "memcheck", 4),
        // On an H100 one test takes it three times as long as the others.
        sanitizer("sanitizer-racecheck", "racecheck", 8),
        sanitizer("sanitizer-initcheck", "initcheck", 4),
        sanitizer("sanitizer-synccheck", "synccheck", 4),
        on_cuda("plans", "plans", Work::Plans, 6),
        on_cuda("bench", "bench", Work::Benchmarks, 25),
    ]
};

/// The stages that `only` names, by their names or groups; all where it is empty.
///
/// # Errors
///
/// A name that no stage has, with those that there are.
pub fn chosen(only: &[String]) -> Result<Vec<Stage>, String> {
    let is = |stage: &Stage, name: &String| stage.name == name || stage.group == name;
    if let Some(unknown) = only.iter().find(|name| !STAGES.iter().any(|stage| is(stage, name))) {
        let mut names: Vec<_> = STAGES.iter().flat_map(|stage| [stage.group, stage.name]).collect();
        names.dedup();
        return Err(format!("--only {unknown}: no stage has this name; there are {}", names.join(", ")));
    }
    let wanted = |stage: &&Stage| only.is_empty() || only.iter().any(|name| is(stage, name));
    Ok(STAGES.iter().filter(wanted).copied().collect())
}

/// What each stage may take of `total` where all take their whole time.
pub fn budgets(total: Duration, stages: &[Stage]) -> Vec<Duration> {
    let mut left = total;
    let each = (0..stages.len()).map(|first| {
        let budget = budget(left, &stages[first..]);
        left -= budget;
        budget
    });
    each.collect()
}

/// The first stage's part of `left`: what a stage does not use is there for those after it.
pub fn budget(left: Duration, stages: &[Stage]) -> Duration {
    let all: u32 = stages.iter().map(|stage| stage.share).sum();
    stages.first().map_or(Duration::ZERO, |first| left * first.share / all)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(only: &[&str]) -> Vec<&'static str> {
        let only: Vec<_> = only.iter().map(|&name| name.to_owned()).collect();
        chosen(&only).expect("these are stages").iter().map(|stage| stage.name).collect()
    }

    #[test]
    fn stages_are_chosen_by_name_or_group_and_keep_their_order() {
        assert_eq!(names(&["bench", "kernels"]), ["kernels", "bench"]);
        assert_eq!(names(&["sanitizer"]).len(), 4);
        assert_eq!(names(&[]).len(), STAGES.len());
        let error = chosen(&["benches".to_owned()]).expect_err("no stage has this name");
        assert!(error.contains("--only benches") && error.contains("bench, ") | error.ends_with("bench"), "{error}");
    }

    #[test]
    fn budgets_use_up_the_time_and_no_more() {
        let total = Duration::from_secs(1500);
        let budgets = budgets(total, &STAGES);
        for (stage, budget) in STAGES.iter().zip(&budgets) {
            assert!(*budget > Duration::from_secs(5), "{}: {budget:?}", stage.name);
        }
        assert!(total - budgets.iter().sum::<Duration>() < Duration::from_millis(1), "{budgets:?}");
    }

    #[test]
    fn the_slowest_tool_has_twice_the_time_of_the_others() {
        let stages = chosen(&["sanitizer".to_owned()]).expect("a group");
        let tools: Vec<_> = stages.iter().map(|stage| stage.name).collect();
        let budgets = budgets(Duration::from_secs(500), &stages);
        let seconds: Vec<_> = tools.into_iter().zip(budgets.iter().map(Duration::as_secs)).collect();
        let [memcheck, racecheck, initcheck, synccheck] =
            ["memcheck", "racecheck", "initcheck", "synccheck"].map(|tool| format!("sanitizer-{tool}"));
        assert_eq!(seconds, [(&*memcheck, 100), (&*racecheck, 200), (&*initcheck, 100), (&*synccheck, 100)]);
    }

    #[test]
    fn tests_by_name_are_there() {
        let tests = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../kernels/tests");
        for name in SANITIZED {
            let (module, function) = name.rsplit_once("::").expect("a test in a module");
            let file = tests.join(module.replace("::", "/") + ".rs");
            let text = std::fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
            assert!(text.contains(&format!("#[test]\nfn {function}()")), "{name} is not in {}", file.display());
        }
    }

    #[test]
    fn tests_that_read_sources_are_left_out() {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let left_out = root.join("kernels/tests").join(SOURCE_TESTS.trim_end_matches("::"));
        // Of goldens the bundle names a file of its own.
        let exceptions = [root.join("tests/examples/golden.rs")];
        let mut folders = vec![root.join("kernels/tests"), root.join("tests")];
        let mut readers = 0;
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(&folder).expect("a folder of tests") {
                let path = entry.expect("an entry").path();
                if path.is_dir() {
                    folders.push(path);
                } else if path.extension().is_some_and(|extension| extension == "rs")
                    && std::fs::read_to_string(&path).expect("a source").contains("env!(\"CARGO_MANIFEST_DIR\")")
                {
                    let is_known = path.starts_with(&left_out) || exceptions.contains(&path);
                    assert!(is_known, "{} would read sources that a bundle has not", path.display());
                    readers += 1;
                }
            }
        }
        assert!(readers > exceptions.len());
    }

    #[test]
    fn what_is_not_used_is_there_for_the_next() {
        let left = Duration::from_secs(100);
        assert_eq!(budget(left, &STAGES[16..]), left);
        assert_eq!(budget(left, &STAGES[10..12]), left * 2 / 3);
    }
}
