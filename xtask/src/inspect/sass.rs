//! What nvdisasm prints of a kernel: instructions, and the loops among them.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::ops::Range;

/// One machine instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instruction {
    /// The operation with its modifiers: `LDG.E.128`.
    pub operation: String,
    /// The operands, as printed.
    pub operands: String,
}

impl Instruction {
    /// The operation without modifiers: `LDG`.
    pub fn opcode(&self) -> &str {
        self.modifiers().next().unwrap_or_default()
    }

    /// The operation, then its modifiers: `LDG`, `E`, `128`.
    pub fn modifiers(&self) -> impl Iterator<Item = &str> {
        self.operation.split('.')
    }

    /// Whether it does arithmetic on floats. `HFMA2` on the zero register makes a constant.
    pub fn is_float_arithmetic(&self) -> bool {
        const OPCODES: [&str; 13] = [
            "FFMA", "FADD", "FMUL", "FFMA32I", "FADD32I", "FMUL32I", "DFMA", "DADD", "DMUL", "HFMA2", "HADD2", "HMUL2",
            "HMMA",
        ];
        OPCODES.contains(&self.opcode()) && !(self.opcode() == "HFMA2" && self.operands.contains("-RZ, RZ"))
    }
}

/// The instructions of a kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listing {
    instructions: Vec<Instruction>,
    /// From the first instruction of a loop to behind its backward branch.
    loops: Vec<Range<usize>>,
}

impl Listing {
    /// Reads the output of `nvdisasm -c`.
    pub fn parse(text: &str) -> Self {
        let mut listing = Self::default();
        let mut labels = BTreeMap::new();
        for line in text.lines().map(str::trim) {
            if let Some(label) = line.strip_suffix(':') {
                labels.insert(label, listing.instructions.len());
            } else if let Some(instruction) = instruction(line) {
                listing.instructions.push(instruction);
            }
        }
        for (index, instruction) in listing.instructions.iter().enumerate() {
            if instruction.opcode() == "BRA"
                && let Some(&first) = target(&instruction.operands).and_then(|label| labels.get(label))
                // What follows the last instruction is padded by a branch to itself.
                && first < index
            {
                listing.loops.push(first..index + 1);
            }
        }
        listing
    }

    /// All instructions, in order.
    pub fn instructions(&self) -> &[Instruction] {
        &self.instructions
    }

    /// The loop with the most float arithmetic outside of the loops in it, and of those the shortest: another one that has as
    /// much is for what is left over at the end. Without the loops in it.
    pub fn hot_loop(&self) -> Option<Vec<&Instruction>> {
        let own = |outer: &Range<usize>| -> Vec<_> {
            let inner = |place: &usize| {
                self.loops
                    .iter()
                    .any(|inner| outer.start < inner.start && inner.end <= outer.end && inner.contains(place))
            };
            outer.clone().filter(|place| !inner(place)).map(|place| &self.instructions[place]).collect()
        };
        let bodies = self.loops.iter().map(own);
        bodies.max_by_key(|body| (body.iter().filter(|i| i.is_float_arithmetic()).count(), Reverse(body.len())))
    }

    /// How many instructions have this opcode.
    pub fn count(&self, opcode: &str) -> usize {
        self.instructions.iter().filter(|instruction| instruction.opcode() == opcode).count()
    }
}

/// The instruction of a line `/*0090*/ @!P0 LDG.E R4, [R2.64] ;`, without its predicate.
fn instruction(line: &str) -> Option<Instruction> {
    let (_, text) = line.strip_prefix("/*")?.split_once("*/")?;
    let (text, _) = text.split_once(';')?;
    let mut text = text.trim();
    if text.starts_with('@') {
        text = text.split_once(' ')?.1.trim_start();
    }
    let (operation, operands) = text.split_once(' ').unwrap_or((text, ""));
    Some(Instruction { operation: operation.to_owned(), operands: operands.trim().to_owned() })
}

/// The label in the operands of a branch: ``P0, `(.L_x_3)``.
fn target(operands: &str) -> Option<&str> {
    let (_, label) = operands.split_once("`(")?;
    Some(label.split_once(')')?.0)
}

#[cfg(test)]
mod tests {
    use super::Listing;

    /// Cut from a kernel: a loop of two multiply-adds in a loop, a loop without floats, and the padding.
    const TEXT: &str = "
        .text.kernel:
                /*0000*/                   LDC R1, c[0x0][0x28] ;
                /*0010*/                   HFMA2.MMA R5, -RZ, RZ, 0, 0 ;
        .L_x_1:
                /*0020*/                   LDG.E.128 R4, desc[UR4][R8.64] ;
        .L_x_2:
                /*0030*/                   LDS.64 R2, [R3] ;
                /*0040*/                   FFMA R0, R2, R3, R0 ;
                /*0050*/              @!P1 FFMA R0, R2, R4, R0 ;
                /*0060*/               @P0 BRA `(.L_x_2) ;
                /*0070*/               @P2 BRA P3, `(.L_x_1) ;
        .L_x_3:
                /*0080*/                   IADD3 R1, R1, 0x1, RZ ;
                /*0090*/                   IADD3 R2, R2, 0x1, RZ ;
                /*00a0*/                   IADD3 R3, R3, 0x1, RZ ;
                /*00b0*/                   IADD3 R4, R4, 0x1, RZ ;
                /*00c0*/               @P0 BRA `(.L_x_3) ;
                /*00d0*/                   EXIT ;
        .L_x_4:
                /*00e0*/                   BRA `(.L_x_4);
                /*00f0*/                   NOP;
    ";

    #[test]
    fn instructions_are_read_without_predicates() {
        let listing = Listing::parse(TEXT);
        assert_eq!(listing.instructions().len(), 16);
        assert_eq!(listing.instructions()[5].operation, "FFMA");
        assert_eq!(listing.instructions()[2].modifiers().collect::<Vec<_>>(), ["LDG", "E", "128"]);
        assert_eq!((listing.count("FFMA"), listing.count("IADD3")), (2, 4));
        assert!(!listing.instructions()[1].is_float_arithmetic(), "a constant");
    }

    #[test]
    fn the_hot_loop_is_the_one_with_most_float_arithmetic_of_its_own() {
        let body = |text: &str| -> Vec<String> {
            Listing::parse(text).hot_loop().unwrap().iter().map(|i| i.operation.clone()).collect()
        };
        assert_eq!(body(TEXT), ["LDS.64", "FFMA", "FFMA", "BRA"]);
        // Three more in the outer loop.
        let outer =
            TEXT.replace("@P2 BRA P3", "FADD R0 ;\n/*0070*/ FADD R0 ;\n/*0070*/ FADD R0 ;\n/*0070*/ @P2 BRA P3");
        assert_eq!(body(&outer), ["LDG.E.128", "FADD", "FADD", "FADD", "BRA"]);
    }

    #[test]
    fn the_padding_is_no_loop() {
        let padding = "/*00e0*/ EXIT ;\n.L_x_4:\n/*00f0*/ BRA `(.L_x_4);";
        assert_eq!(Listing::parse(padding).hot_loop(), None);
    }
}
