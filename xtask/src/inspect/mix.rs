//! Which instructions a kernel has: how wide it reads and writes, and what its hot loop is made of.

use std::collections::BTreeMap;
use std::fmt;

use super::sass::Instruction;

/// Loads or stores of one memory, by the bits that a thread moves at once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Widths(BTreeMap<u32, usize>);

impl Widths {
    /// The widths of the instructions with one of these opcodes.
    pub fn of(instructions: &[Instruction], opcodes: &[&str]) -> Self {
        let mut widths = BTreeMap::new();
        for instruction in instructions.iter().filter(|instruction| opcodes.contains(&instruction.opcode())) {
            *widths.entry(bits(instruction)).or_default() += 1;
        }
        Self(widths)
    }
}

impl fmt::Display for Widths {
    /// `128 x8, 32 x2`, widest first; `-` for none.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str("-");
        }
        let spelled: Vec<_> = self.0.iter().rev().map(|(bits, count)| format!("{bits} x{count}")).collect();
        f.write_str(&spelled.join(", "))
    }
}

/// The bits that a load or store moves for a thread.
fn bits(instruction: &Instruction) -> u32 {
    let width = |modifier| match modifier {
        "U8" | "S8" => Some(8),
        "U16" | "S16" => Some(16),
        "64" => Some(64),
        "128" => Some(128),
        _ => None,
    };
    instruction.modifiers().find_map(width).unwrap_or(32)
}

/// Loads and stores of global memory and of shared memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Accesses {
    /// Loads of global memory.
    pub global_loads: Widths,
    /// Stores to global memory.
    pub global_stores: Widths,
    /// Loads of shared memory.
    pub shared_loads: Widths,
    /// Stores to shared memory.
    pub shared_stores: Widths,
}

impl Accesses {
    /// Those of a kernel.
    pub fn of(instructions: &[Instruction]) -> Self {
        let widths = |opcodes: &[&str]| Widths::of(instructions, opcodes);
        Self {
            // An asynchronous copy loads from global memory and stores to shared memory.
            global_loads: widths(&["LDG", "LD", "LDGSTS"]),
            global_stores: widths(&["STG", "ST"]),
            shared_loads: widths(&["LDS", "LDSM"]),
            shared_stores: widths(&["STS", "LDGSTS"]),
        }
    }
}

/// The opcodes of a loop, by how often they occur; those of loads and stores with their width.
pub fn mix<'a>(body: impl IntoIterator<Item = &'a Instruction>) -> String {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for instruction in body {
        let name = match instruction.opcode() {
            opcode @ ("LDG" | "STG" | "LDS" | "STS" | "LDL" | "STL" | "LDGSTS") => {
                format!("{opcode}.{}", bits(instruction))
            }
            "MUFU" => instruction.operation.clone(),
            opcode => opcode.to_owned(),
        };
        *counts.entry(name).or_default() += 1;
    }
    let mut counts: Vec<_> = counts.into_iter().collect();
    counts.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    let shown = counts.iter().take(MOST_SHOWN).map(|(name, count)| format!("{name} {count}"));
    let rest: usize = counts.iter().skip(MOST_SHOWN).map(|(_, count)| count).sum();
    let rest = (rest > 0).then(|| format!("others {rest}"));
    shown.chain(rest).collect::<Vec<_>>().join(", ")
}

/// Opcodes that are told by name.
const MOST_SHOWN: usize = 8;

#[cfg(test)]
mod tests {
    use super::{Accesses, mix};
    use crate::inspect::sass::{Instruction, Listing};

    const TEXT: &str = "
        /*0000*/ LDG.E.128.CONSTANT R4, desc[UR4][R8.64] ;
        /*0010*/ LDG.E R4, desc[UR4][R8.64] ;
        /*0020*/ LDG.E.U16 R4, desc[UR4][R8.64] ;
        /*0030*/ STS.128 [R3], R4 ;
        /*0040*/ FFMA R0, R2, R3, R0 ;
        /*0050*/ FFMA R0, R2, R3, R0 ;
        /*0060*/ MUFU.RCP R0, R2 ;
        /*0070*/ STG.E.64 desc[UR4][R8.64], R4 ;
    ";

    #[test]
    fn widths_are_those_of_a_thread() {
        let accesses = Accesses::of(Listing::parse(TEXT).instructions());
        assert_eq!(accesses.global_loads.to_string(), "128 x1, 32 x1, 16 x1");
        assert_eq!(accesses.global_stores.to_string(), "64 x1");
        assert_eq!(accesses.shared_stores.to_string(), "128 x1");
        assert_eq!(accesses.shared_loads.to_string(), "-");
    }

    #[test]
    fn the_mix_names_the_most_frequent_first() {
        let listing = Listing::parse(TEXT);
        let text = mix(listing.instructions());
        assert_eq!(text, "FFMA 2, LDG.128 1, LDG.16 1, LDG.32 1, MUFU.RCP 1, STG.64 1, STS.128 1");
        let mut many = listing.instructions().to_vec();
        many.extend(["A", "B"].map(|name| Instruction { operation: name.to_owned(), ..many[0].clone() }));
        assert!(mix(&many).ends_with("others 1"), "{}", mix(&many));
    }
}
