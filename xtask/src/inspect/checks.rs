//! What no kernel may contain: operations whose order or result the hardware chooses, and spills.

use std::collections::BTreeSet;
use std::fmt;

use super::resources::Resources;
use super::sass::{Instruction, Listing};

/// What is wrong with a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Atomic operations take place in an order that differs from run to run.
    Atomic,
    /// Shuffles, votes, reductions of a warp: an order by hardware.
    Warp,
    /// Tensor cores, which add in an order of their own, but for [`KNOWN_FRAGMENTS`].
    Tensor,
    /// An approximation that no function in the source explains.
    Approximate,
    /// A product and a sum were contracted that the source keeps apart.
    Contraction,
    /// Inline PTX, which these checks do not read.
    Assembly,
    /// Registers are spilled to memory.
    Spill,
    /// Without a spill, a thread's array lies in memory.
    Stack,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Atomic => "atomic",
            Self::Warp => "warp",
            Self::Tensor => "tensor",
            Self::Approximate => "approximate",
            Self::Contraction => "contraction",
            Self::Assembly => "assembly",
            Self::Spill => "spill",
            Self::Stack => "stack",
        })
    }
}

/// Something in a kernel that may not be there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// What it is.
    pub kind: Kind,
    /// The instructions, or the bytes.
    pub detail: String,
    /// How many instructions, or bytes.
    pub amount: u32,
}

/// What the opcodes of each kind begin with; the first that fits decides.
const OPCODES: [(Kind, &[&str]); 3] = [
    (Kind::Warp, &["SHFL", "VOTE", "MATCH", "REDUX", "CREDUX"]),
    (Kind::Atomic, &["ATOM", "RED", "SUATOM", "SURED", "UTMARED"]),
    (Kind::Tensor, &["HMMA", "HGMMA", "QGMMA", "IMMA", "IGMMA", "BMMA", "BGMMA", "DMMA"]),
];

/// What tensor cores do for a source that multiplies such fragments, with sums of f32: products of 16 steps of halves, or 4 of TF32, in one
/// instruction. `kernels/src/matmul/tensor_cores` has a reference of its sums; an instruction of another shape would have others.
const KNOWN_FRAGMENTS: [(&str, &[&str]); 2] = [
    ("nvcuda::wmma::accumulator, 16, 16, 16, float>", &["HMMA.16816.F32", "HMMA.16816.F32.BF16"]),
    ("nvcuda::wmma::accumulator, 16, 16, 8, float>", &["HMMA.1684.F32.TF32"]),
];

/// What an opcode is, if it is one of [`OPCODES`].
fn kind_of(opcode: &str) -> Option<Kind> {
    let fits = |beginnings: &[&str]| beginnings.iter().any(|beginning| opcode.starts_with(beginning));
    OPCODES.iter().find(|(_, beginnings)| fits(beginnings)).map(|(kind, _)| *kind)
}

/// What explains each `MUFU`, the unit's approximations: functions, and `/`, a division of floats.
///
/// Division and square root are correctly rounded: they begin with an approximation, and correct it by multiply-adds.
/// Division makes a NaN by an `RSQ` of one. A division of integers begins with `RCP` of a converted integer. CUDA's exponential, power and hyperbolic functions are made of `EX2`, its
/// logarithms of `LG2`; their error is CUDA's, and no contract says that they are exact. Sines and cosines are
/// polynomials: no source explains `SIN`, `COS`, `TANH` or `SQRT`.
const EXPLAINED: [(&str, &[&str]); 4] = [
    ("RCP", &["/", "tanh", "pow", "atan", "sinh", "cosh", "asinh", "acosh", "atanh", "log1p", "erf", "hrcp", "h2rcp"]),
    ("RSQ", &["/", "sqrt", "rsqrt", "hypot", "asin", "acos", "asinh", "acosh", "hsqrt", "h2sqrt", "hrsqrt", "h2rsqrt"]),
    ("EX2", &["exp", "exp2", "exp10", "expm1", "pow", "tanh", "sinh", "cosh", "erf", "erfc", "hexp", "h2exp"]),
    ("LG2", &["log", "log2", "log10", "log1p", "pow", "atanh", "asinh", "acosh", "hlog", "h2log"]),
];

/// Functions of CUDA that are less exact than those they stand for.
const FAST: [&str; 14] = [
    "__expf",
    "__exp10f",
    "__logf",
    "__log2f",
    "__log10f",
    "__powf",
    "__sinf",
    "__cosf",
    "__sincosf",
    "__tanf",
    "__fdividef",
    "__tanhf",
    "htanh_approx",
    "h2tanh_approx",
];

/// The inline PTX that CubeCL writes for minima and maxima that give a NaN for a NaN.
const KNOWN_PTX: [&str; 2] = [r#"asm("min.NaN.f32 %0, %1, %2;""#, r#"asm("max.NaN.f32 %0, %1, %2;""#];

/// What the machine code of a kernel contains that it may not, given its source.
pub fn instructions(listing: &Listing, source: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    let known = KNOWN_FRAGMENTS.iter().filter(|(fragment, _)| source.contains(fragment));
    let known: Vec<&str> = known.flat_map(|(_, operations)| *operations).copied().collect();
    for (kind, _) in OPCODES {
        let is_found = |instruction: &&Instruction| {
            kind_of(instruction.opcode()) == Some(kind) && !known.contains(&&instruction.operation[..])
        };
        let found = listing.instructions().iter().filter(is_found);
        findings.extend(counted(kind, found.map(|instruction| instruction.operation.clone())));
    }
    let words = words(source);
    let is_unexplained = |(index, instruction): &(usize, &Instruction)| {
        let (before, divides) = (&listing.instructions()[..*index], divides_integers(source));
        let of_integers = divides && instruction.operation.contains("RCP") && is_converted(instruction, before);
        instruction.opcode() == "MUFU" && !of_integers && !is_explained(instruction, &words, source)
    };
    let unexplained = listing.instructions().iter().enumerate().filter(is_unexplained).map(|(_, i)| i);
    let fast = FAST.into_iter().filter(|name| words.contains(name)).map(str::to_owned);
    let approximate = unexplained.map(|instruction| instruction.operation.clone()).chain(fast);
    findings.extend(counted(Kind::Approximate, approximate));
    let others = KNOWN_PTX.into_iter().fold(source.to_owned(), |text, known| text.replace(known, ""));
    let assembly = others.split(|c: char| !is_of_word(c)).filter(|word| matches!(*word, "asm" | "__asm__" | "__asm"));
    findings.extend(counted(Kind::Assembly, assembly.map(str::to_owned)));
    findings
}

/// What the resources of a kernel show.
pub fn resources(resources: &Resources) -> Option<Finding> {
    let Resources { stack, spill_stores, spill_loads, .. } = *resources;
    if spill_stores + spill_loads > 0 {
        let detail = format!("{spill_stores} bytes stored, {spill_loads} loaded");
        return Some(Finding { kind: Kind::Spill, detail, amount: spill_stores + spill_loads });
    }
    (stack > 0).then(|| Finding { kind: Kind::Stack, detail: format!("{stack} bytes a thread"), amount: stack })
}

/// Multiply-adds, and what they can be made of. Some functions contract one product and split another, so that the number of
/// multiply-adds alone stays as it is.
const ARITHMETIC: [&str; 9] = ["FFMA", "FADD", "FMUL", "DFMA", "DADD", "DMUL", "HFMA2", "HADD2", "HMUL2"];

/// What differs where the compiler may contract: `allowed` was compiled as kernels are, `forbidden` with `-fmad=false`,
/// which leaves the source's own `fma` and those inside of divisions and functions.
pub fn contraction(allowed: &Listing, forbidden: &Listing) -> Option<Finding> {
    let count = |listing: &Listing, opcode: &str| {
        // With a constant as operand: FADD32I.
        let is = |i: &&Instruction| i.opcode().trim_end_matches("32I") == opcode && i.is_float_arithmetic();
        listing.instructions().iter().filter(is).count()
    };
    let counts = ARITHMETIC.map(|opcode| (opcode, count(allowed, opcode), count(forbidden, opcode)));
    let other: Vec<_> = counts.into_iter().filter(|(_, with, without)| with != without).collect();
    let spelled: Vec<_> =
        other.iter().map(|(opcode, with, without)| format!("{opcode} x{with}, x{without} with -fmad=false")).collect();
    let amount = other.iter().map(|(_, with, without)| with.abs_diff(*without) as u32).sum();
    (!other.is_empty()).then(|| Finding { kind: Kind::Contraction, detail: spelled.join("; "), amount })
}

/// One finding for all of a kind: how often what occurs.
fn counted(kind: Kind, names: impl Iterator<Item = String>) -> Option<Finding> {
    let names: Vec<_> = names.collect();
    let distinct: BTreeSet<_> = names.iter().collect();
    let count = |name| names.iter().filter(|other| *other == name).count();
    let spelled: Vec<_> = distinct.into_iter().map(|name| format!("{name} x{}", count(name))).collect();
    (!spelled.is_empty()).then(|| Finding { kind, detail: spelled.join(", "), amount: names.len() as u32 })
}

fn is_explained(instruction: &Instruction, words: &BTreeSet<&str>, source: &str) -> bool {
    let function = instruction.modifiers().nth(1).unwrap_or_default();
    // The first half of a division or square root of doubles: RCP64H.
    let function = function.strip_suffix("64H").unwrap_or(function);
    EXPLAINED.iter().filter(|(name, _)| *name == function).flat_map(|(_, reasons)| *reasons).any(|reason| {
        let single = |word: &&str| word.strip_suffix('f').is_some_and(|word| word == *reason);
        match *reason {
            "/" => divides_floats(source),
            _ => words.contains(reason) || words.iter().any(single),
        }
    })
}

/// Whether the operand of an instruction is what the last one that wrote that register made of an integer.
fn is_converted(instruction: &Instruction, before: &[Instruction]) -> bool {
    let operand = |i: &Instruction, place: usize| i.operands.split(',').nth(place).map(|word| word.trim().to_owned());
    let register = operand(instruction, 1);
    let writer = before.iter().rev().find(|earlier| register.is_some() && operand(earlier, 0) == register);
    writer.is_some_and(|writer| writer.opcode() == "I2F")
}

/// The identifiers of a source.
fn words(source: &str) -> BTreeSet<&str> {
    source.split(|c| !is_of_word(c)).collect()
}

fn is_of_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// What the types of CubeCL's values of floats begin with.
const FLOATS: [&str; 4] = ["float", "double", "__half", "__nv_bfloat16"];

/// Whether a source divides floats. CubeCL writes a statement for each operation, with the type of its result in front.
fn divides_floats(source: &str) -> bool {
    divided(source).any(|statement| FLOATS.iter().any(|float| statement.starts_with(float)))
}

/// Whether a source divides something else.
fn divides_integers(source: &str) -> bool {
    divided(source).any(|statement| !FLOATS.iter().any(|float| statement.starts_with(float)))
}

/// The statements with a `/` or `%`, without comments and directives.
fn divided(source: &str) -> impl Iterator<Item = &str> {
    let code = source.lines().filter(|line| !line.trim_start().starts_with('#'));
    let statements = code.flat_map(|line| line.split("//").next().unwrap_or_default().split([';', '{']));
    statements.map(str::trim_start).filter(|statement| statement.contains(['/', '%']))
}

#[cfg(test)]
mod tests {
    use super::{Kind, contraction, instructions, resources};
    use crate::inspect::{resources::Resources, sass::Listing};

    fn listing(operations: &[&str]) -> Listing {
        let line = |text: &&str| match text.contains(' ') {
            true => format!("/*0000*/ {text}\n"),
            false => format!("/*0000*/ {text} R0, R1 ;\n"),
        };
        Listing::parse(&operations.iter().map(line).collect::<String>())
    }

    fn found(operations: &[&str], source: &str) -> Vec<String> {
        instructions(&listing(operations), source).iter().map(|f| format!("{}: {}", f.kind, f.detail)).collect()
    }

    #[test]
    fn operations_without_an_order_are_named() {
        let operations = [
            "ATOMG.E.ADD.F32.FTZ.RN.STRONG.GPU",
            "RED.E.ADD",
            "REDG.E.ADD",
            "REDUX.SUM",
            "SHFL.BFLY",
            "HMMA.16816.F32",
            "FFMA",
        ];
        assert_eq!(
            found(&operations, ""),
            [
                "warp: REDUX.SUM x1, SHFL.BFLY x1",
                "atomic: ATOMG.E.ADD.F32.FTZ.RN.STRONG.GPU x1, RED.E.ADD x1, REDG.E.ADD x1",
                "tensor: HMMA.16816.F32 x1"
            ]
        );
        assert_eq!(found(&["FFMA", "LDG.E"], ""), [""; 0]);
    }

    #[test]
    fn fragments_explain_the_instructions_whose_sums_are_known() {
        let source = "nvcuda::wmma::fragment<nvcuda::wmma::accumulator, 16, 16, 16, float> d;";
        assert_eq!(found(&["HMMA.16816.F32", "HMMA.16816.F32.BF16"], source), [""; 0]);
        assert_eq!(found(&["HMMA.1684.F32.TF32"], source), ["tensor: HMMA.1684.F32.TF32 x1"]);
        let tf32 = "nvcuda::wmma::fragment<nvcuda::wmma::accumulator, 16, 16, 8, float> d;";
        assert_eq!(found(&["HMMA.1684.F32.TF32"], tf32), [""; 0]);
        assert_eq!(found(&["HMMA.1688.F32.TF32"], tf32), ["tensor: HMMA.1688.F32.TF32 x1"]);
        assert_eq!(found(&["HMMA.1688.F32"], source), ["tensor: HMMA.1688.F32 x1"]);
        assert_eq!(found(&["HMMA.16816.F16"], source), ["tensor: HMMA.16816.F16 x1"]);
        let wide = "nvcuda::wmma::fragment<nvcuda::wmma::accumulator, 32, 8, 16, float> d;";
        assert_eq!(found(&["HMMA.16816.F32"], wide), ["tensor: HMMA.16816.F32 x1"]);
        assert_eq!(found(&["HMMA.16816.F32"], "fma(a, b, c)"), ["tensor: HMMA.16816.F32 x1"]);
    }

    #[test]
    fn an_approximation_needs_a_function_in_the_source() {
        assert_eq!(found(&["MUFU.RCP"], "x = a + b;"), ["approximate: MUFU.RCP x1"]);
        assert_eq!(found(&["MUFU.RCP"], "#include <a/b.h>\n// a / b\nx = a + b;"), ["approximate: MUFU.RCP x1"]);
        assert_eq!(found(&["MUFU.RCP", "MUFU.RCP64H"], "f(); float const x = a / b;"), [""; 0]);
        assert_eq!(found(&["MUFU.RSQ", "MUFU.EX2", "MUFU.LG2"], "sqrtf(x) + exp(y) + log(z)"), [""; 0]);
        assert_eq!(found(&["MUFU.EX2"], "expose(x)"), ["approximate: MUFU.EX2 x1"]);
        assert_eq!(found(&["MUFU.SIN"], "sinf(x)"), ["approximate: MUFU.SIN x1"]);
        assert_eq!(found(&["MUFU.EX2"], "__expf(x) + exp(y)"), ["approximate: __expf x1"]);
    }

    #[test]
    fn a_division_of_integers_explains_the_reciprocal_of_an_integer_only() {
        for source in ["uint32_t const x = a / b;", "int32_t const x = a % b;"] {
            assert_eq!(
                found(&["I2F.U32.RP R1, R2 ;", "IMAD R3, R3", "MUFU.RCP R4, R1 ;"], source),
                [""; 0],
                "{source}"
            );
            assert_eq!(
                found(&["I2F R1, R2 ;", "FADD R1, R2 ;", "MUFU.RCP R4, R1 ;"], source),
                ["approximate: MUFU.RCP x1"]
            );
        }
        assert_eq!(found(&["I2F R1, R2 ;", "MUFU.RCP R4, R1 ;"], "x = a + b;"), ["approximate: MUFU.RCP x1"]);
    }

    #[test]
    fn inline_ptx_is_named_but_for_two_instructions() {
        let known = r#"asm("min.NaN.f32 %0, %1, %2;" : "=f"(r) : "f"(a), "f"(b)); asm("max.NaN.f32 %0, %1, %2;" : "#;
        assert_eq!(found(&["FMNMX"], known), [""; 0]);
        let others = r#"asm volatile("ex2.approx.f32 %0, %1;" : "=f"(r)); asm("min.NaN.f32 %0, %1, 0f3f800000;" : "#;
        assert_eq!(found(&["FMNMX"], others), ["assembly: asm x2"]);
    }

    #[test]
    fn a_contraction_shows_as_other_arithmetic() {
        assert_eq!(contraction(&listing(&["FFMA", "FMUL"]), &listing(&["FFMA", "FMUL"])), None);
        let finding = contraction(&listing(&["FFMA", "FFMA"]), &listing(&["FFMA", "FMUL", "FADD"])).unwrap();
        let detail = "FFMA x2, x1 with -fmad=false; FADD x0, x1 with -fmad=false; FMUL x0, x1 with -fmad=false";
        assert_eq!((finding.kind, finding.detail.as_str(), finding.amount), (Kind::Contraction, detail, 3));
        // One contracted, another split.
        assert!(contraction(&listing(&["FFMA", "FADD"]), &listing(&["FFMA", "FADD32I", "FMUL"])).is_some());
    }

    #[test]
    fn spills_are_told_from_arrays() {
        let spilled = Resources { stack: 32, spill_stores: 8, spill_loads: 4, ..Resources::default() };
        assert_eq!(resources(&spilled).unwrap().detail, "8 bytes stored, 4 loaded");
        assert_eq!(resources(&Resources { stack: 32, ..Resources::default() }).unwrap().kind, Kind::Stack);
        assert_eq!(resources(&Resources::default()), None);
    }
}
