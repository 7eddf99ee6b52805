//! What a kernel may not use here: an error that names it, in place of wrong bits.

/// Names, or beginnings of names that end in `*`, and why each is refused.
const REFUSED: &[(&str, &str)] = &[
    ("__shfl*", "warps are not emulated"),
    ("__ballot*", "warps are not emulated"),
    ("__any_sync", "warps are not emulated"),
    ("__all_sync", "warps are not emulated"),
    ("__uni_sync", "warps are not emulated"),
    ("__match_*", "warps are not emulated"),
    ("__reduce_*", "warps are not emulated"),
    ("__activemask", "warps are not emulated"),
    ("__syncwarp", "warps are not emulated"),
    ("cooperative_groups", "clusters and cooperative groups are not emulated"),
    ("asm", "PTX is not emulated"),
    ("clock", "a kernel that reads the clock differs from run to run"),
    ("clock64", "a kernel that reads the clock differs from run to run"),
];

/// CUDA's headers whose contents `cuda_emulator.h` has.
const HEADERS: &[&str] = &["cuda_fp16.h", "cuda_bf16.h", "cuda_runtime.h", "mma.h"];

/// The first thing in a source, free of comments, that is refused, with the reason.
pub fn refusal(source: &str) -> Option<String> {
    for line in source.lines() {
        if let Some(included) = line.trim_start().strip_prefix("#include") {
            let header = included.trim().trim_matches(['<', '>', '"']);
            if !HEADERS.contains(&header) {
                return Some(format!("the kernel includes `{header}`: only {HEADERS:?} are emulated"));
            }
        }
    }
    let identifiers = || source.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
    if let Some(identifier) = identifiers().find(|identifier| is_atomic(identifier)) {
        return Some(format!("the kernel uses `{identifier}`: atomics run in no fixed order, so they are refused"));
    }
    for identifier in identifiers() {
        let refused = REFUSED.iter().find(|(name, _)| match name.strip_suffix('*') {
            Some(beginning) => identifier.starts_with(beginning),
            None => identifier == *name,
        });
        if let Some((_, reason)) = refused {
            return Some(format!("the kernel uses `{identifier}`: {reason}"));
        }
    }
    None
}

/// `atomicAdd` and its like, or `atom` of PTX: `atom.relaxed.add.f32`.
fn is_atomic(identifier: &str) -> bool {
    let of_cuda = |what: &str| what.starts_with(|c: char| c.is_ascii_uppercase());
    identifier == "atom" || identifier.strip_prefix("atomic").is_some_and(of_cuda)
}
