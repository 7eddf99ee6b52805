//! Scans, sorts, Fourier transforms and random numbers: what runs along an axis.

use crate::case::{BF16, Case, F16, F32, FLOATS, I32, I64, tensor};
use burn_deterministic_kernels::random::{Distribution, Key, Source, Stream, draw};
use burn_deterministic_kernels::scan::{Operation, scan};
use burn_deterministic_kernels::sort::{Direction, Sorting, sort};
use burn_deterministic_kernels::{KernelError, fourier};
use cubecl::ir::ElemType;

pub fn cases() -> Vec<Case> {
    [scans(), sorts(), transforms(), draws()].into_iter().flatten().collect()
}

fn scans() -> Vec<Case> {
    let shapes = [("lines", [1 << 14, 1000], 1), ("a line", [1, 1 << 24], 1), ("columns", [1 << 14, 1024], 0)];
    let case = |label: &str, shape: [usize; 2], axis, operation: Operation, dtype: ElemType| {
        let elements: usize = shape.iter().product();
        let label = format!("{} of {label}", format!("{operation:?}").to_lowercase());
        let case = Case::new("scan", label, dtype, format!("{shape:?} along {axis}"));
        case.flops(elements)
            .elements(2 * elements)
            .runs(move |client| scan(client, operation, tensor(client, &shape, dtype), axis, None))
    };
    let mut cases = Vec::new();
    for (label, shape, axis) in shapes {
        cases.extend(FLOATS.map(|dtype| case(label, shape, axis, Operation::Sum, dtype)));
        cases.extend([Operation::Prod, Operation::Max].map(|operation| case(label, shape, axis, operation, F32)));
    }
    cases
}

fn sorts() -> Vec<Case> {
    let base = |label: &str, shape: [usize; 2], dtype| {
        let elements: usize = shape.iter().product();
        Case::new("sort", label, dtype, format!("{shape:?} along 1")).elements(elements)
    };
    let all = |shape: [usize; 2]| shape.iter().product::<usize>();
    let (many, long) = ([4096, 256], [1, 1 << 20]);
    let (axis, index) = (1, Some(I32));
    let ascending = Sorting { axis, direction: Direction::Ascending, kept: None, values: true, index: None };
    let indices = Sorting { values: false, index, ..ascending };
    let mut cases = Vec::new();
    for dtype in [F32, F16, I32, I64] {
        cases.push(
            base("sort of short lines", many, dtype)
                .elements(all(many))
                .runs(move |client| sort(client, tensor(client, &many, dtype), ascending, None)),
        );
        cases.push(
            base("sort of a line", long, dtype)
                .elements(all(long))
                .runs(move |client| sort(client, tensor(client, &long, dtype), ascending, None)),
        );
    }
    let lines = [16, 1 << 16];
    cases.push(
        base("argsort of lines", lines, F32)
            .indices(all(lines))
            .runs(move |client| sort(client, tensor(client, &lines, F32), indices, None)),
    );
    let largest = [
        ("top 5 of lines", [4096, 50_257], 5),
        ("top 5 of short lines", [1024, 1000], 5),
        ("top 5 of many short lines", [1 << 18, 128], 5),
        ("top 32 of a line", [1, 1 << 20], 32),
    ];
    for (label, shape, kept) in largest {
        let results = shape[0] * kept;
        let first = Sorting { axis, direction: Direction::Descending, kept: Some(kept), values: true, index };
        cases.push(
            base(label, shape, F32)
                .elements(results)
                .indices(results)
                .runs(move |client| sort(client, tensor(client, &shape, F32), first, None)),
        );
    }
    cases
}

fn transforms() -> Vec<Case> {
    let short = FLOATS.into_iter().flat_map(|dtype| transforms_of("", 4096, 1024, dtype));
    short.chain(transforms_of(" of long lines", 256, 16384, F32)).collect()
}

fn transforms_of(what: &'static str, lines: usize, n: usize, dtype: ElemType) -> [Case; 2] {
    let spectrum = [lines, n / 2 + 1];
    // The usual count of a real transform.
    let flops = lines * 5 * n * n.ilog2() as usize / 2;
    let base = |label| {
        let case = Case::new("fourier", format!("{label}{what}"), dtype, format!("{lines} lines of {n}"));
        case.flops(flops).elements(lines * n + 2 * spectrum[0] * spectrum[1])
    };
    let forward =
        base("forward").runs(move |client| fourier::forward(client, tensor(client, &[lines, n], dtype), 1, n, None));
    let inverse = base("inverse").runs(move |client| {
        fourier::inverse(client, tensor(client, &spectrum, dtype), tensor(client, &spectrum, dtype), 1, n, None)
    });
    [forward, inverse]
}

fn draws() -> Vec<Case> {
    let source = Source { key: Key([812; 8]), stream: Stream(0), block: 0 };
    let case = |label: &str, elements: usize, dtype: ElemType, distribution: Distribution| {
        let case = Case::new("random", label, dtype, format!("[{elements}]")).elements(elements);
        case.runs(move |client| -> Result<_, KernelError> { draw(client, &[elements], dtype, source, distribution) })
    };
    let (uniform, normal) =
        (Distribution::Uniform { low: 0.0, high: 1.0 }, Distribution::Normal { mean: 0.0, std: 1.0 });
    let large = 1 << 24;
    let mut cases = vec![
        case("uniform", 1 << 16, F32, uniform),
        case("normal, not in fours", 9999, F32, normal),
        case("integers", large, I32, Distribution::Integers { low: 0, high: 10 }),
    ];
    for dtype in [F32, F16, BF16] {
        cases.push(case("uniform, large", large, dtype, uniform));
        cases.push(case("normal, large", large, dtype, normal));
        cases.push(case("bernoulli, large", large, dtype, Distribution::Bernoulli { probability: 0.5 }));
    }
    cases
}
