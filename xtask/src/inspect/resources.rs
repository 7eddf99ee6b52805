//! What the assembler says of a kernel (`ptxas -v`): registers, spills, memory.

use anyhow::{Context, Result};

/// What one thread, or one block, of a kernel needs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Resources {
    /// Registers of a thread, 32 bits each.
    pub registers: u32,
    /// Bytes of a thread's stack frame: spilled registers, and arrays that no register holds.
    pub stack: u32,
    /// Bytes that a thread's spills store.
    pub spill_stores: u32,
    /// Bytes that a thread's spills load.
    pub spill_loads: u32,
    /// Bytes of shared memory of a block, without what the launch adds.
    pub shared: u32,
}

impl Resources {
    /// Reads the assembler's lines on the kernel `entry` from the compiler's log.
    ///
    /// # Errors
    ///
    /// Where the log has no such lines.
    pub fn parse(log: &str, entry: &str) -> Result<Self> {
        let from = log.split_once(&format!("entry function '{entry}'")).map(|(_, rest)| rest);
        let lines = from.with_context(|| format!("the compiler's log does not name {entry}: {log}"))?;
        let mut resources = Self::default();
        let mut is_named = false;
        for line in lines.lines() {
            if let Some((_, function)) = line.split_once("Function properties for ") {
                is_named = function.trim() == entry;
            } else if is_named && line.contains("bytes stack frame") {
                resources.stack = before(line, " bytes stack frame")?;
                resources.spill_stores = before(line, " bytes spill stores")?;
                resources.spill_loads = before(line, " bytes spill loads")?;
            } else if line.contains(" registers") {
                resources.registers = before(line, " registers")?;
                if line.contains(" bytes smem") {
                    resources.shared = before(line, " bytes smem")?;
                }
                return Ok(resources);
            }
        }
        Err(anyhow::anyhow!("the compiler's log has no registers of {entry}: {log}"))
    }
}

/// The number in front of `what`.
fn before(line: &str, what: &str) -> Result<u32> {
    let number = line.split_once(what).and_then(|(front, _)| front.split([' ', ',']).next_back());
    number.and_then(|number| number.parse().ok()).with_context(|| format!("no number before `{what}` in `{line}`"))
}

#[cfg(test)]
mod tests {
    use super::Resources;

    const LOG: &str = "ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'spills' for 'sm_90a'
ptxas info    : Function properties for spills
ptxas         .     10352 bytes stack frame, 26080 bytes spill stores, 47420 bytes spill loads
ptxas info    : Used 64 registers, used 1 barriers, 10352 bytes cumulative stack size, 16896 bytes smem
ptxas info    : Compile time = 2595.350 ms
";

    #[test]
    fn a_log_is_read() {
        let want =
            Resources { registers: 64, stack: 10_352, spill_stores: 26_080, spill_loads: 47_420, shared: 16_896 };
        assert_eq!(Resources::parse(LOG, "spills").unwrap(), want);
    }

    #[test]
    fn a_kernel_that_the_log_does_not_name_is_an_error() {
        let error = Resources::parse(LOG, "spill").unwrap_err().to_string();
        assert!(error.starts_with("the compiler's log does not name spill"), "{error}");
        let cut = LOG.split_once("ptxas info    : Used").unwrap().0;
        assert!(Resources::parse(cut, "spills").is_err());
    }
}
