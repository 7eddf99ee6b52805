//! From CUDA C++ to what g++ compiles.

use crate::refused::refusal;

/// A kernel of a source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    pub name: String,
    /// The names of the parameters.
    pub parameters: Vec<String>,
    /// Those that are `T const* __restrict__`: nothing writes what they point to.
    pub constants: Vec<String>,
}

/// A source for g++, with a function for each kernel that calls it by an array of argument addresses.
pub fn translate(source: &str) -> Result<String, String> {
    let source = without_other_architectures(&without_comments(source))?;
    if let Some(refusal) = refusal(&source) {
        return Err(refusal);
    }
    let entries = entries(&source)?;
    let barriers = source.contains("__syncthreads");
    let mut out = String::from("#include \"cuda_emulator.h\"\n");
    for line in source.lines() {
        if !line.trim_start().starts_with("#include") {
            out.push_str(&with_shared_memory(line)?);
            out.push('\n');
        }
    }
    out.push_str(&format!("EMULATOR_EXPORT const int emulator_barriers = {};\n", i32::from(barriers)));
    for Entry { name, parameters, constants } in entries {
        out.push_str(&format!("EMULATOR_KERNEL({name})\n"));
        for (what, names) in [("names", parameters), ("constants", constants)] {
            let names = names.join(",");
            out.push_str(&format!("EMULATOR_EXPORT const char emulator_{what}_{name}[] = \"{names}\";\n"));
        }
    }
    Ok(out)
}

/// A translated source whose quotients and square roots of f32 are products with reciprocals; those of other types stay.
pub fn with_quotients_by_reciprocals(translated: &str) -> String {
    let mut out = String::from("#define CUDA_EMULATOR_RECIPROCALS\n");
    for line in translated.lines() {
        out.push_str(&by_reciprocals(line));
        out.push('\n');
    }
    out
}

/// A line with `emulator_quotient(a, b)` for each `a / b` of two words.
fn by_reciprocals(line: &str) -> String {
    let is_word = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.');
    let mut out = String::new();
    let mut rest = line;
    while let Some((before, after)) = rest.split_once(" / ") {
        let begin = before.rfind(|c| !is_word(c)).map_or(0, |at| at + 1);
        let end = after.find(|c| !is_word(c)).unwrap_or(after.len());
        match begin < before.len() && end > 0 {
            true => {
                let (kept, dividend) = before.split_at(begin);
                out.push_str(&format!("{kept}emulator_quotient({dividend}, {})", &after[..end]));
                rest = &after[end..];
            }
            false => {
                out.push_str(before);
                out.push_str(" / ");
                rest = after;
            }
        }
    }
    out + rest
}

fn without_comments(source: &str) -> String {
    source.lines().map(|line| line.split("//").next().unwrap_or("")).collect::<Vec<_>>().join("\n")
}

/// The PTX that may stand where only a GPU's compiler reads it: minima and maxima that give a NaN for a NaN, which CubeCL
/// spells in C++ for other compilers.
const FOR_GPUS: [&str; 2] = [r#"asm("min.NaN.f32 %0, %1, %2;""#, r#"asm("max.NaN.f32 %0, %1, %2;""#];

/// A source without what only a GPU's compiler reads: of `#if __CUDA_ARCH__ >= n`, `#else`, `#endif`, the middle part
/// stays, since a CPU has no such number. CubeCL writes no other condition. What is left out is refused like the rest, but
/// for [`FOR_GPUS`].
fn without_other_architectures(source: &str) -> Result<String, String> {
    let (mut out, mut left_out) = (String::new(), String::new());
    // Whether a condition's first part is being read, or its second one.
    let mut first = None;
    for line in source.lines() {
        let words: Vec<_> = line.split_whitespace().collect();
        match (words.as_slice(), first) {
            (["#if", "__CUDA_ARCH__", ">=", _], None) => first = Some(true),
            (["#else"], Some(true)) => first = Some(false),
            (["#endif"], Some(_)) => first = None,
            ([directive, ..], _) if directive.starts_with("#if") || directive.starts_with("#el") => {
                return Err(format!("`{}`: only `#if __CUDA_ARCH__ >= n` is emulated, not nested", line.trim()));
            }
            (_, in_first) => {
                let part = if in_first == Some(true) { &mut left_out } else { &mut out };
                part.push_str(line);
                part.push('\n');
            }
        }
    }
    if first.is_some() {
        return Err("`#if` without `#endif`".into());
    }
    let left_out = FOR_GPUS.into_iter().fold(left_out, |text, allowed| text.replace(allowed, ""));
    match refusal(&left_out) {
        Some(refusal) => Err(format!("under `#if __CUDA_ARCH__` {refusal}")),
        None => Ok(out),
    }
}

/// `extern __shared__ [__align__(n)] type name[];` names the block's dynamic shared memory.
fn with_shared_memory(line: &str) -> Result<String, String> {
    let mut out = String::new();
    let mut rest = line;
    while let Some(at) = rest.find("extern __shared__") {
        out.push_str(&rest[..at]);
        let declared = &rest[at + "extern __shared__".len()..];
        let end = declared.find(';').ok_or("`extern __shared__` without `;` in its line")?;
        let words = declared[..end].trim().trim_end_matches("[]").trim_end();
        let words = match words.strip_prefix("__align__(") {
            Some(aligned) => aligned.split_once(')').ok_or("`__align__(` without `)`")?.1.trim(),
            None => words,
        };
        let (of, name) = words.rsplit_once(' ').ok_or("`extern __shared__` without a type and a name")?;
        out.push_str(&format!("{of}* const {name} = ({of}*)emulator_state.shared;"));
        rest = &declared[end + 1..];
    }
    out.push_str(rest);
    match out.contains("__shared__") {
        true => {
            Err(format!("`{}`: only dynamic shared memory (`extern __shared__ type name[];`) is emulated", line.trim()))
        }
        false => Ok(out),
    }
}

/// The kernels: `__global__ void [__launch_bounds__(..)] name(parameters)`.
fn entries(source: &str) -> Result<Vec<Entry>, String> {
    let mut entries = Vec::new();
    for after in source.split("__global__").skip(1) {
        let mut rest = after;
        let name = loop {
            let open = rest.find('(').ok_or("`__global__` without a parameter list")?;
            let word = rest[..open].split_whitespace().last().unwrap_or("");
            rest = &rest[open + 1..];
            if !word.starts_with("__") {
                break word.to_string();
            }
            rest = &rest[closing(rest)? + 1..];
        };
        let list = &rest[..closing(rest)?];
        let list = split(list);
        let named = |declared: &str| declared.rsplit([' ', '*', '&', '\n']).next().unwrap_or("").to_string();
        let parameters = list.iter().map(|declared| named(declared)).filter(|name| !name.is_empty()).collect();
        let constants = list.iter().filter(|declared| is_constant(declared)).map(|declared| named(declared)).collect();
        entries.push(Entry { name, parameters, constants });
    }
    match entries.is_empty() {
        true => Err("the source has no `__global__` function".into()),
        false => Ok(entries),
    }
}

/// Whether a parameter is declared as `T const* __restrict__`.
fn is_constant(declared: &str) -> bool {
    declared.split_once('*').is_some_and(|(pointee, pointer)| {
        pointee.split_whitespace().any(|word| word == "const") && pointer.contains("__restrict__")
    })
}

/// Where the bracket closes that is open at the beginning.
fn closing(text: &str) -> Result<usize, String> {
    let mut depth = 1;
    for (at, c) in text.char_indices() {
        depth += i32::from(c == '(') - i32::from(c == ')');
        if depth == 0 {
            return Ok(at);
        }
    }
    Err("a bracket is not closed".into())
}

/// A list's parts, commas within `<>` and `()` aside.
fn split(list: &str) -> Vec<&str> {
    let (mut parts, mut depth, mut from) = (Vec::new(), 0, 0);
    for (at, c) in list.char_indices() {
        match c {
            '<' | '(' => depth += 1,
            '>' | ')' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(list[from..at].trim());
                from = at + 1;
            }
            _ => {}
        }
    }
    parts.push(list[from..].trim());
    parts
}

#[cfg(test)]
mod tests {
    use super::{Entry, by_reciprocals, entries, is_constant, translate, with_shared_memory};

    #[test]
    fn quotients_are_found() {
        for (line, expected) in [
            ("float const x_1 = a_2 / b_3;", "float const x_1 = emulator_quotient(a_2, b_3);"),
            ("y[i] = v.x / 3.0f + 1 / z;", "y[i] = emulator_quotient(v.x, 3.0f) + emulator_quotient(1, z);"),
            ("y = (a + b) / c;", "y = (a + b) / c;"),
            ("y = a * b;", "y = a * b;"),
        ] {
            assert_eq!(by_reciprocals(line), expected);
        }
    }

    #[test]
    fn kernels_and_their_parameters_are_found() {
        let source = "extern \"C\" __global__ void __launch_bounds__(256) add(const float* const __restrict__ a,\n\
            array<float, 4>* const __restrict__ b, const __grid_constant__ info_st info) { f(a); }";
        let parameters = ["a", "b", "info"].map(String::from).to_vec();
        let constants = vec!["a".to_string()];
        assert_eq!(entries(source), Ok(vec![Entry { name: "add".into(), parameters, constants }]));
    }

    #[test]
    fn what_nothing_may_write_is_told_by_its_declaration() {
        for declared in ["float const* const __restrict__ a", "const float_4* __restrict__ a"] {
            assert!(is_constant(declared), "{declared}");
        }
        for declared in ["float * const __restrict__ a", "float const* const a", "__grid_constant__ info_st const info"]
        {
            assert!(!is_constant(declared), "{declared}");
        }
    }

    #[test]
    fn shared_memory_is_the_blocks() {
        let line = with_shared_memory("extern __shared__ __align__(16) char memory[]; x = 1;");
        assert_eq!(line.as_deref(), Ok("char* const memory = (char*)emulator_state.shared; x = 1;"));
        assert!(with_shared_memory("__shared__ float tile[32];").unwrap_err().contains("only dynamic shared memory"));
    }

    #[test]
    fn what_only_a_gpus_compiler_reads_is_left_out() {
        let source = |condition: &str, other: &str| {
            let ptx = r#"asm("min.NaN.f32 %0, %1, %2;" : "=f"(b) : "f"(a[0]), "f"(b));"#;
            format!("__global__ void k(float* a) {{\n#if {condition}\n{ptx}\n#else\n{other};\n#endif\n}}")
        };
        let translated =
            translate(&source("__CUDA_ARCH__ >= 800", "a[0] = fminf(a[0], 1.0f)")).expect("it has a part for a CPU");
        assert!(!translated.contains("asm") && translated.contains("fminf"), "{translated}");
        let refusal = translate(&source("__CUDA_ARCH__ >= 800", "asm(\"min.f32\")")).unwrap_err();
        assert!(refusal.contains("`asm`"), "{refusal}");
        for condition in ["__CUDA_ARCH__ < 800", "defined(FAST)"] {
            let refusal = translate(&source(condition, "")).unwrap_err();
            assert!(refusal.contains(condition), "{refusal}");
        }
        let refusal = translate("#if __CUDA_ARCH__ >= 800\n__global__ void k(float* a) {}").unwrap_err();
        assert!(refusal.contains("`#endif`"), "{refusal}");
    }

    #[test]
    fn what_only_a_gpus_compiler_reads_is_refused_too() {
        for (statement, name) in [
            ("atomicAdd(a, 1.0f);", "atomicAdd"),
            ("a[0] = __shfl_down_sync(0xffffffff, a[0], 1);", "__shfl_down_sync"),
            (r#"asm("ex2.approx.f32 %0, %1;" : "=f"(b) : "f"(b));"#, "asm"),
            (r#"asm("min.NaN.f32 %0, %1, %2; shfl.sync.idx.b32 %0, %0, 0, 31, -1;" : "=f"(b));"#, "asm"),
        ] {
            let source = format!("__global__ void k(float* a) {{\n#if __CUDA_ARCH__ >= 900\n{statement}\n#endif\n}}");
            let refusal = translate(&source).unwrap_err();
            assert!(refusal.contains(&format!("`{name}`")) && refusal.contains("__CUDA_ARCH__"), "{refusal}");
        }
    }

    #[test]
    fn what_is_not_emulated_is_named() {
        for (statement, name) in [
            ("atomicAdd(a, 1.0f);", "atomicAdd"),
            (r#"asm("atom.relaxed.add.f32 %0, [%1], %2;" : "=f"(b) : "l"(a), "f"(b));"#, "atom"),
            (r#"asm("ex2.approx.f32 %0, %1;" : "=f"(b) : "f"(b));"#, "asm"),
            ("a[0] = __shfl_down_sync(0xffffffff, a[0], 1);", "__shfl_down_sync"),
        ] {
            let refusal = translate(&format!("__global__ void k(float* a) {{ {statement} }}")).unwrap_err();
            assert!(refusal.contains(&format!("`{name}`")), "{refusal}");
        }
        let refusal = translate("#include <cooperative_groups.h>\n__global__ void k(float* a) {}").unwrap_err();
        assert!(refusal.contains("cooperative_groups.h"), "{refusal}");
    }
}
