//! The settings of the emulator, from the environment.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::env;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

/// The most devices that `CUDA_EMULATOR_DEVICES` may ask for.
const MOST_DEVICES: usize = 16;

/// What becomes of the findings of the checks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Findings {
    /// They are counted, and the process ends with status 97.
    Fail,
    /// They are appended to a file, and the process ends as it would.
    File(PathBuf),
    /// They are kept for [`findings_of`](crate::findings_of).
    Keep,
}

/// Where counts are written at the end of the process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Counts {
    /// To standard error.
    Stderr,
    /// At the end of a file.
    File(PathBuf),
}

/// What the arithmetic of kernels is compiled to: that of CUDA, or a fault that is planted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Arithmetic {
    /// One rounding for each operation that is written.
    #[default]
    AsWritten,
    /// Products are contracted with the sums that follow.
    Contracted,
    /// Subnormal numbers are taken for zero, as operands and as results.
    Flushed,
    /// Sums and products are regrouped.
    Reassociated,
    /// Quotients and square roots of f32 are products with reciprocals.
    Approximate,
    /// All that g++'s `-ffast-math` allows.
    Fast,
    /// Tensor cores add 8 products of halves, to 24 bits.
    Ampere,
    /// Tensor cores keep 23 bits of their terms.
    Volta,
}

impl Arithmetic {
    /// The planted faults, by the names that the variable has for them.
    pub const PLANTED: [(&str, Self); 7] = [
        ("contracted", Self::Contracted),
        ("flushed", Self::Flushed),
        ("reassociated", Self::Reassociated),
        ("approximate", Self::Approximate),
        ("fast", Self::Fast),
        ("ampere", Self::Ampere),
        ("volta", Self::Volta),
    ];
}

/// The settings of the emulator; the README has the environment variables that set them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// `CUDA_EMULATOR_SEED`: shuffles blocks and threads; without it both run in ascending order.
    pub seed: Option<u64>,
    /// `CUDA_EMULATOR_CHECK`: whether memory, initialisation, races and barriers are checked.
    pub check: bool,
    /// `CUDA_EMULATOR_QUEUES`: whether work that is given to a stream waits until something waits for it, and how many milliseconds
    /// that waits before it runs the work.
    pub queues: Option<u64>,
    /// `CUDA_EMULATOR_NULL`: whether kernels are neither compiled nor run.
    pub null: bool,
    /// `CUDA_EMULATOR_ARITHMETIC`: what the arithmetic of kernels is.
    pub arithmetic: Arithmetic,
    /// `CUDA_EMULATOR_RUN`: how many launches run.
    pub run: Option<u64>,
    /// `CUDA_EMULATOR_COUNT`: where launches, copies and barriers are counted.
    pub count: Option<Counts>,
    /// `CUDA_EMULATOR_CACHE`: the folder of compiled kernels.
    pub cache: PathBuf,
    /// `CUDA_EMULATOR_SOURCES`: the folder in which sources and launches are recorded.
    pub sources: Option<PathBuf>,
    /// `CUDA_EMULATOR_REPORT`: what becomes of findings.
    pub findings: Findings,
    /// `CUDA_EMULATOR_DEVICES` and `CUDA_VISIBLE_DEVICES`: the numbers of the devices that programs see, in their order.
    pub visible: Vec<usize>,
}

impl Settings {
    /// The settings that the environment gives.
    ///
    /// # Panics
    ///
    /// Where a variable has a value that it cannot have.
    pub fn from_environment() -> Self {
        Self {
            seed: number("SEED"),
            check: flag("CHECK"),
            queues: number("QUEUES"),
            null: flag("NULL"),
            arithmetic: text("ARITHMETIC").map_or_else(Arithmetic::default, |name| arithmetic(&name)),
            run: number("RUN"),
            count: text("COUNT").map(|place| match place.as_str() {
                "1" => Counts::Stderr,
                path => Counts::File(path.into()),
            }),
            cache: text("CACHE").map_or_else(|| env::temp_dir().join("cuda-emulator"), PathBuf::from),
            sources: text("SOURCES").map(PathBuf::from),
            findings: text("REPORT").map_or(Findings::Fail, |path| Findings::File(path.into())),
            visible: match env::var_os("CUDA_VISIBLE_DEVICES") {
                Some(list) => listed(&list.to_string_lossy(), devices()),
                None => (0..devices()).collect(),
            },
        }
    }
}

/// The arithmetic of this name.
fn arithmetic(name: &str) -> Arithmetic {
    let planted = Arithmetic::PLANTED.into_iter().find(|(planted, _)| *planted == name);
    let names = || Arithmetic::PLANTED.map(|(planted, _)| planted).join(", ");
    planted.unwrap_or_else(|| panic!("CUDA_EMULATOR_ARITHMETIC is {name:?}: want one of {}, or nothing", names())).1
}

/// A variable that is set and not empty.
fn text(name: &str) -> Option<String> {
    let name = format!("CUDA_EMULATOR_{name}");
    let value = env::var_os(&name)?;
    let value = value.into_string().unwrap_or_else(|value| panic!("{name} is {value:?}: want UTF-8"));
    Some(value).filter(|value| !value.is_empty())
}

/// The number of devices.
fn devices() -> usize {
    text("DEVICES").map_or(1, |text| {
        let number = text.parse().ok().filter(|number| (1..=MOST_DEVICES).contains(number));
        number.unwrap_or_else(|| panic!("CUDA_EMULATOR_DEVICES is {text:?}: want an integer from 1 to {MOST_DEVICES}"))
    })
}

/// The devices of a list, of `count` that exist. As CUDA's driver does, it reads the list up to the first device that does
/// not exist, and returns none where one is named twice.
fn listed(list: &str, count: usize) -> Vec<usize> {
    let existing = |entry: &str| (0..count).find(|device| device.to_string() == entry.trim());
    let devices: Vec<_> = list.split(',').map_while(existing).collect();
    let distinct: BTreeSet<_> = devices.iter().collect();
    if distinct.len() == devices.len() { devices } else { Vec::new() }
}

fn number(name: &str) -> Option<u64> {
    let parse = |text: String| {
        text.parse().unwrap_or_else(|_| panic!("CUDA_EMULATOR_{name} is {text:?}: want an integer from 0 to 2^64 - 1"))
    };
    text(name).map(parse)
}

fn flag(name: &str) -> bool {
    match text(name).as_deref() {
        None | Some("0") => false,
        Some("1") => true,
        Some(value) => panic!("CUDA_EMULATOR_{name} is {value:?}: want 0 or 1"),
    }
}

thread_local! {
    static OF_THREAD: RefCell<Option<Arc<Settings>>> = const { RefCell::new(None) };
}

/// Calls `body` with settings of the calling thread's own, in place of those of the environment.
pub fn with_settings<R>(settings: Settings, body: impl FnOnce() -> R) -> R {
    let outer = OF_THREAD.replace(Some(Arc::new(settings)));
    let result = body();
    OF_THREAD.set(outer);
    result
}

/// The settings of the calling thread.
pub(crate) fn settings() -> Arc<Settings> {
    static ENVIRONMENT: OnceLock<Arc<Settings>> = OnceLock::new();
    // The end of the process calls this when the thread's own are gone.
    let own = OF_THREAD.try_with(|settings| settings.borrow().clone()).unwrap_or_default();
    own.unwrap_or_else(|| ENVIRONMENT.get_or_init(|| Arc::new(Settings::from_environment())).clone())
}

#[cfg(test)]
mod tests {
    use super::{Arithmetic, arithmetic, listed};

    #[test]
    fn planted_arithmetic_has_a_name() {
        assert_eq!(arithmetic("flushed"), Arithmetic::Flushed);
        let refused = std::panic::catch_unwind(|| arithmetic("Flushed")).expect_err("no such arithmetic");
        let text = refused.downcast_ref::<String>().expect("a text");
        let names = "contracted, flushed, reassociated, approximate, fast, ampere, volta";
        for part in ["CUDA_EMULATOR_ARITHMETIC is \"Flushed\"", names] {
            assert!(text.contains(part), "{text}");
        }
    }

    #[test]
    fn one_device_is_visible_where_the_list_begins_with_it() {
        for list in ["0", " 0", "0,1", "0,-1"] {
            assert_eq!(listed(list, 1), [0], "{list:?}");
        }
        for list in ["", "-1", "1", "1,0", "-1,0", "00", "+0", "GPU-0"] {
            assert!(listed(list, 1).is_empty(), "{list:?}");
        }
    }

    #[test]
    fn a_list_is_read_up_to_the_first_device_that_does_not_exist() {
        assert_eq!(listed("0,1", 4), [0, 1]);
        assert_eq!(listed("3, 1,0,2", 4), [3, 1, 0, 2]);
        assert_eq!(listed("2,4,1", 4), [2]);
        assert_eq!(listed("0,2,-1,1", 4), [0, 2]);
        assert_eq!(listed("15,10", 16), [15, 10]);
        assert!(listed("4,0", 4).is_empty());
    }

    #[test]
    fn a_list_that_names_a_device_twice_shows_none() {
        assert!(listed("1,1", 4).is_empty() && listed("0,1,2,0", 4).is_empty());
        assert_eq!(listed("0,1,-1,0", 4), [0, 1]);
    }
}
