//! The kernels in `kernels/src`, found in its text: what a report has to cover.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use super::cases::Case;

/// A function that CubeCL launches.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Launchable {
    /// The family that it is in: a folder or a file of `kernels/src`.
    pub family: String,
    /// Its name.
    pub name: String,
}

/// Kernels that no GPU launches, and why. One that is launched after all is a fault, and so is one that does not exist.
/// Tests of plans in `kernels/tests` say that no GPU gets them.
pub const NOT_ON_GPUS: [(&str, &str); 6] = [
    ("matmul::direct", "its tiles are planned for software drivers only"),
    ("radix_sort::count_digits", "chunks of units are planned for software drivers only"),
    ("radix_sort::place_by_digit", "chunks of units are planned for software drivers only"),
    ("radix_sort::scan_blocks", "chunks of units are planned for software drivers only"),
    ("radix_sort::sum_blocks", "chunks of units are planned for software drivers only"),
    ("reduce::reduce_four_elements", "planned for software drivers only"),
];

/// Families that others launch for, where a name alone does not tell which family a kernel is of.
const USERS: [(&str, &[&str]); 1] = [("radix_sort", &["sort", "scatter"])];

/// Kernels of CubeCL's that families launch.
pub const OF_CUBECL: [&str; 1] = ["copy_kernel"];

/// All of them, sorted.
pub fn find(sources: &Path) -> Result<Vec<Launchable>> {
    let mut found = BTreeSet::new();
    let mut folders = vec![sources.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).with_context(|| format!("listing {}", folder.display()))? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
                let place = path.strip_prefix(sources)?.with_extension("");
                let family = place.iter().next().unwrap_or_default().to_string_lossy().into_owned();
                found.extend(in_text(&text).map(|name| Launchable { family: family.clone(), name: name.to_owned() }));
            }
        }
    }
    Ok(found.into_iter().collect())
}

/// The functions in a file that carry `#[cube(launch..)]`.
fn in_text(text: &str) -> impl Iterator<Item = &str> {
    text.split("#[cube(launch").skip(1).filter_map(|rest| {
        let (_, rest) = rest.split_once("fn ")?;
        rest.split(|c: char| !c.is_alphanumeric() && c != '_').next()
    })
}

/// Which families launch which kernels: pairs of the two names.
pub fn launched(cases: &[Case], all: &[Launchable]) -> BTreeSet<(String, String)> {
    let names: Vec<String> = all.iter().map(|launchable| launchable.name.clone()).collect();
    let launches = cases.iter().flat_map(|case| case.launches.iter().map(move |launch| (&case.name, launch)));
    let pairs = launches.filter_map(|(case, launch)| Some((family(case), launch.kernel.function(&names)?.to_owned())));
    pairs.collect()
}

/// The family that a case is of.
fn family(case: &str) -> String {
    case.split('/').next().unwrap_or_default().to_owned()
}

/// What is wrong between the kernels that exist, those [`launched`], and [`NOT_ON_GPUS`].
pub fn faults(all: &[Launchable], launched: &BTreeSet<(String, String)>, not_on_gpus: &[(&str, &str)]) -> Vec<String> {
    let is_launched = |launchable: &Launchable| {
        let is_unique = all.iter().filter(|other| other.name == launchable.name).count() == 1;
        let users = USERS.iter().find(|(family, _)| *family == launchable.family).map_or(&[][..], |(_, users)| users);
        let mut families = launched.iter().filter(|(_, name)| *name == launchable.name).map(|(family, _)| family);
        families.any(|family| is_unique || *family == launchable.family || users.contains(&family.as_str()))
    };
    let spelled = |launchable: &Launchable| format!("{}::{}", launchable.family, launchable.name);
    let mut faults = Vec::new();
    for launchable in all {
        let kernel = spelled(launchable);
        let is_left_out = not_on_gpus.iter().any(|(name, _)| *name == kernel);
        match (is_launched(launchable), is_left_out) {
            (false, false) => {
                faults.push(format!("{kernel} is launched by no case of kernels/examples/gpu_plans: add one"))
            }
            (true, true) => faults.push(format!("{kernel} is launched on a GPU: remove it from NOT_ON_GPUS")),
            _ => {}
        }
    }
    let missing = not_on_gpus.iter().filter(|(name, _)| !all.iter().any(|launchable| spelled(launchable) == *name));
    faults.extend(missing.map(|(name, _)| format!("{name} is in NOT_ON_GPUS and does not exist: remove it")));
    faults
}

#[cfg(test)]
mod tests {
    use super::{Launchable, NOT_ON_GPUS, OF_CUBECL, family, faults, find, in_text, launched};
    use crate::inspect::REPORT;
    use crate::inspect::cases::{Case, Kernel, Launch};
    use crate::workspace;
    use std::collections::BTreeSet;
    use std::fs;

    #[test]
    fn kernels_are_found_by_their_attribute() {
        let text = "#[cube(launch_unchecked, explicit_define)]\npub(super) fn tiled<F: Float>(\n#[cube]\nfn helper() {}\n#[cube(launch)]\nfn add(";
        assert_eq!(in_text(text).collect::<Vec<_>>(), ["tiled", "add"]);
    }

    #[test]
    fn the_kernels_of_this_project_are_found() {
        let all = find(&workspace::root().join("kernels/src")).unwrap();
        let spelled: Vec<_> = all.iter().map(|l| format!("{}::{}", l.family, l.name)).collect();
        assert!(spelled.iter().any(|name| name == "index_check::check_kernel"), "{spelled:?}");
        for (name, _) in NOT_ON_GPUS {
            assert!(spelled.iter().any(|other| other == name), "{name}");
        }
    }

    #[test]
    fn a_kernel_is_launched_or_left_out() {
        let launchable = |family: &str, name: &str| Launchable { family: family.to_owned(), name: name.to_owned() };
        let all = [launchable("matmul", "direct"), launchable("scan", "chain"), launchable("scatter", "chain")];
        let kernel = Kernel { entry: "chain_f32".to_owned(), source: String::new(), threads: 1, shared: 0 };
        let launches = vec![Launch { kernel: kernel.into(), blocks: 1 }];
        let (name, shape) = ("scan/blocks f32".to_owned(), String::new());
        let case = Case { name, shape, flops: 0.0, bytes: 0.0, launches };
        let launched = launched(&[case], &all);
        let told = faults(&all, &launched, &[("matmul::direct", "."), ("scan::chain", "."), ("scan::gone", ".")]);
        assert_eq!(
            told,
            [
                "scan::chain is launched on a GPU: remove it from NOT_ON_GPUS",
                "scatter::chain is launched by no case of kernels/examples/gpu_plans: add one",
                "scan::gone is in NOT_ON_GPUS and does not exist: remove it",
            ]
        );
    }

    /// The kernels in the last column of the report's last table, by families.
    fn reported(report: &str) -> BTreeSet<(String, String)> {
        let (_, bounds) = report.split_once("\n## Bounds\n").expect("the report has bounds");
        let rows = bounds.lines().filter_map(|line| line.strip_prefix("| ")?.strip_suffix(" |"));
        let pairs = rows.flat_map(|row| {
            let cells: Vec<_> = row.split(" | ").collect();
            let names = cells[cells.len() - 1].split('`').skip(1).step_by(2);
            names.map(move |name| (family(cells[0]), name.to_owned())).collect::<Vec<_>>()
        });
        pairs.collect()
    }

    /// Needs no compiler: `cargo xtask inspect` compares the whole report.
    #[test]
    fn the_report_in_the_repository_has_every_kernel_and_no_other() {
        let all = find(&workspace::root().join("kernels/src")).unwrap();
        let reported = reported(&fs::read_to_string(workspace::root().join(REPORT)).unwrap());
        assert!(reported.len() > 20, "{reported:?}");
        let is_known = |name: &str| OF_CUBECL.contains(&name) || all.iter().any(|launchable| launchable.name == name);
        let unknown: Vec<_> = reported.iter().filter(|(_, name)| !is_known(name)).collect();
        let missing = faults(&all, &reported, &NOT_ON_GPUS);
        let advice = "`UPDATE_DOCS=1 cargo xtask inspect` writes it";
        assert!(unknown.is_empty(), "{REPORT} has kernels that do not exist: {unknown:?}; {advice}");
        assert!(missing.is_empty(), "{REPORT} is not of these kernels; {advice}\n{}", missing.join("\n"));
    }
}
