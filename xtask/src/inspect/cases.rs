//! What a GPU runs: the cases of `kernels/examples/gpu_plans`, and the kernels that each of them launches.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::rc::Rc;

use anyhow::{Context, Result, ensure};

/// A launch of a family by one plan, on operands of one shape and type.
#[derive(Clone, Debug, PartialEq)]
pub struct Case {
    /// `family/plan dtype`, of which there is one.
    pub name: String,
    /// The sizes of the operands.
    pub shape: String,
    /// Operations on floats that the result is defined by, a multiply-add being two.
    pub flops: f64,
    /// Bytes of the operands and the results, each counted once.
    pub bytes: f64,
    /// What it launches, in order.
    pub launches: Vec<Launch>,
}

/// A launch of a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Launch {
    /// The kernel.
    pub kernel: Rc<Kernel>,
    /// Blocks of the grid.
    pub blocks: u64,
}

/// A kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kernel {
    /// The name of its entry in the source, which does not depend on the build.
    pub entry: String,
    /// CUDA C++, as CubeCL writes it but for that name and the numbers of values.
    pub source: String,
    /// Threads of a block.
    pub threads: u32,
    /// Bytes of shared memory that the launch gives a block.
    pub shared: u32,
}

impl Kernel {
    /// The function in `kernels/src` that it was made of: CubeCL appends what tells its variants apart.
    pub fn function<'a>(&self, functions: &'a [String]) -> Option<&'a str> {
        let of = functions.iter().filter(|function| {
            let rest = self.entry.strip_prefix(function.as_str());
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('_'))
        });
        of.max_by_key(|function| function.len()).map(String::as_str)
    }
}

impl Case {
    /// Reads a line of the list that the example prints.
    pub fn parse(line: &str) -> Result<Self> {
        let fields: Vec<_> = line.split('\t').collect();
        let [name, shape, flops, bytes] = fields[..] else {
            anyhow::bail!("`{line}` is no case, want name, shape, operations and bytes between tabs");
        };
        let number = |text: &str| text.parse().with_context(|| format!("reading the case `{line}`"));
        let (flops, bytes) = (number(flops)?, number(bytes)?);
        Ok(Self { name: name.to_owned(), shape: shape.to_owned(), flops, bytes, launches: Vec::new() })
    }

    /// Reads what the emulator wrote of this case into `folder`: a source for each kernel, and `launches.tsv`.
    pub fn read_launches(&mut self, folder: &Path) -> Result<()> {
        let path = folder.join("launches.tsv");
        let text = fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
        let mut kernels: BTreeMap<&str, Rc<Kernel>> = BTreeMap::new();
        for line in text.lines() {
            let launch = Line::parse(line)?;
            if !kernels.contains_key(launch.source) {
                let path = folder.join(launch.source);
                let source = fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
                let Line { entry, threads, shared, .. } = launch;
                let name = without_hash(entry).to_owned();
                let source = renumbered(&source.replace(entry, &name));
                let kernel = Kernel { entry: name, source, threads, shared };
                kernels.insert(launch.source, Rc::new(kernel));
            }
            let kernel = kernels[launch.source].clone();
            self.launches.push(Launch { kernel, blocks: launch.blocks });
        }
        ensure!(!self.launches.is_empty(), "the case {} launches nothing", self.name);
        Ok(())
    }
}

/// The name of an entry without the hash at its end, which is another one in each build.
fn without_hash(entry: &str) -> &str {
    match entry.rsplit_once('_') {
        Some((name, hash)) if hash.len() == 8 && hash.bytes().all(|byte| byte.is_ascii_hexdigit()) => name,
        _ => entry,
    }
}

/// A source whose values `v12` are numbered in the order in which they appear: CubeCL numbers those in shared memory
/// differently in each process.
fn renumbered(source: &str) -> String {
    let is_of_word = |c: char| c.is_alphanumeric() || c == '_';
    let mut numbers = BTreeMap::new();
    let mut text = String::with_capacity(source.len());
    let mut rest = source;
    while let Some(start) = rest.find(is_of_word) {
        let (between, from) = rest.split_at(start);
        let (word, after) = from.split_at(from.find(|c| !is_of_word(c)).unwrap_or(from.len()));
        text += between;
        match word.strip_prefix('v').filter(|digits| !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit())) {
            Some(_) => {
                let next = numbers.len();
                text += &format!("v{}", numbers.entry(word).or_insert(next));
            }
            None => text += word,
        }
        rest = after;
    }
    text + rest
}

/// A line of `launches.tsv`.
struct Line<'a> {
    /// The file of the source.
    source: &'a str,
    entry: &'a str,
    blocks: u64,
    threads: u32,
    shared: u32,
}

impl<'a> Line<'a> {
    fn parse(line: &'a str) -> Result<Self> {
        let fields: Vec<_> = line.split('\t').collect();
        let [source, entry, blocks, threads, shared] = fields[..] else {
            anyhow::bail!("`{line}` is no launch, want source, entry, blocks, threads and shared memory between tabs");
        };
        let wrong = || format!("reading the launch `{line}`");
        Ok(Self {
            source,
            entry,
            blocks: blocks.parse().with_context(wrong)?,
            threads: threads.parse().with_context(wrong)?,
            shared: shared.parse().with_context(wrong)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{Case, Kernel, Line, renumbered, without_hash};

    #[test]
    fn a_case_is_read_from_its_line() {
        let case = Case::parse("matmul/large f32\t4096 x 4096 x 4096\t137438953472\t201326592").unwrap();
        assert_eq!((case.name.as_str(), case.shape.as_str()), ("matmul/large f32", "4096 x 4096 x 4096"));
        assert_eq!((case.flops, case.bytes), (137_438_953_472.0, 201_326_592.0));
        assert!(Case::parse("matmul/large f32\t4096").is_err());
        assert!(Case::parse("a\tb\tmany\t4").is_err());
    }

    #[test]
    fn a_launch_is_read_from_its_line() {
        let line = Line::parse("0f.cu\ttiled_f32\t1024\t256\t16896").unwrap();
        assert_eq!((line.source, line.entry), ("0f.cu", "tiled_f32"));
        assert_eq!((line.blocks, line.threads, line.shared), (1024, 256, 16_896));
        assert!(Line::parse("0f.cu\ttiled_f32\t1024\t256").is_err());
        assert!(Line::parse("0f.cu\ttiled_f32\t1024\t256\t-1").is_err());
    }

    #[test]
    fn a_name_does_not_depend_on_the_build() {
        assert_eq!(without_hash("tiled_i_f32_1d4abdb8"), "tiled_i_f32");
        assert_eq!(without_hash("chain_totals"), "chain_totals");
        assert_eq!(without_hash("probe"), "probe");
    }

    #[test]
    fn values_are_numbered_as_they_appear() {
        let source = "float v7 = v3[0];\nvalue_v7 = v7 + v12 * v; // v3";
        assert_eq!(renumbered(source), "float v0 = v1[0];\nvalue_v7 = v0 + v2 * v; // v1");
    }

    #[test]
    fn a_kernel_is_of_the_longest_function_that_its_name_begins_with() {
        let functions = ["scan", "scan_blocks", "add"].map(String::from);
        let kernel = |entry: &str| Kernel { entry: entry.to_owned(), source: String::new(), threads: 1, shared: 0 };
        assert_eq!(kernel("scan_blocks_f32").function(&functions), Some("scan_blocks"));
        assert_eq!(kernel("scan_f32").function(&functions), Some("scan"));
        assert_eq!(kernel("addition").function(&functions), None);
    }
}
