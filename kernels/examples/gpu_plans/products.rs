//! Matrix products.

use crate::case::{Case, F16, F32, FLOATS, tensor, transposed};
use burn_deterministic_kernels::arithmetic::Products;
use burn_deterministic_kernels::matmul::tensor_cores::{self, Sums};
use burn_deterministic_kernels::matmul::{matmul, matmul_each};
use cubecl::ir::ElemType;

/// `[m, k] x [k, n]`
type Sizes = [usize; 3];

pub fn cases() -> Vec<Case> {
    let sizes: [(&str, Sizes); 9] = [
        ("large", [4096, 4096, 4096]),
        ("middle", [1024, 1024, 1024]),
        ("small", [256, 512, 256]),
        ("small, split", [128, 8192, 128]),
        ("ragged", [4095, 4093, 4094]),
        ("a row", [1, 4096, 4096]),
        ("a column", [4096, 4096, 1]),
        ("16 rows", [16, 4096, 4096]),
        ("few outputs", [64, 1600, 128]),
    ];
    let mut cases: Vec<Case> =
        FLOATS.into_iter().flat_map(|dtype| sizes.map(|(label, sizes)| case(label, sizes, dtype))).collect();
    let [m, k, n] = [4096; 3];
    cases.push(base("large, lhs transposed", [m, k, n], F32).runs(move |client| {
        matmul(client, Products::Native, transposed(client, [m, k], F32), tensor(client, &[k, n], F32), None)
    }));
    cases.push(base("large, rhs transposed", [m, k, n], F32).runs(move |client| {
        matmul(client, Products::Native, tensor(client, &[m, k], F32), transposed(client, [k, n], F32), None)
    }));
    let (batch, [m, k, n]) = (64, [512, 64, 512]);
    let batched = Case::new("matmul", "batched", F32, format!("{batch} x [{m}, {k}] x [{k}, {n}]"));
    cases.push(batched.flops(2 * batch * m * k * n).elements(batch * (m * k + k * n + m * n)).runs(move |client| {
        matmul(client, Products::Native, tensor(client, &[batch, m, k], F32), tensor(client, &[batch, k, n], F32), None)
    }));
    // As those of the gates of an LSTM.
    let (count, [m, k, n]) = (8, [16, 64, 64]);
    let several = Case::new("matmul", "side by side", F32, format!("{count} times [{m}, {k}] x [{k}, {n}]"));
    cases.push(several.flops(2 * count * m * k * n).elements(count * (m * k + k * n + m * n)).runs(move |client| {
        let pairs = (0..count).map(|_| [tensor(client, &[m, k], F32), tensor(client, &[k, n], F32)]);
        matmul_each(client, Products::Native, pairs.collect(), None)
    }));
    let on_tensor_cores: [(&str, Sizes); 6] = [
        ("large", [4096, 4096, 4096]),
        ("middle", [1024, 1024, 1024]),
        ("small, split", [128, 8192, 128]),
        ("ragged", [4095, 4093, 4094]),
        ("a row", [1, 4096, 4096]),
        ("fours", [4092, 4092, 4092]),
    ];
    for dtype in FLOATS {
        cases.extend(on_tensor_cores.map(|(label, sizes @ [m, k, n])| {
            base(&format!("{label}, on tensor cores"), sizes, dtype).runs(move |client| {
                tensor_cores::assume_sums(client, dtype, Sums::Hopper);
                tensor_cores::matmul(client, tensor(client, &[m, k], dtype), tensor(client, &[k, n], dtype), None)
            })
        }));
    }
    let [m, k, n] = [4096; 3];
    cases.push(base("large, transposed, on tensor cores", [m, k, n], F16).runs(move |client| {
        tensor_cores::assume_sums(client, F16, Sums::Hopper);
        tensor_cores::matmul(client, transposed(client, [m, k], F16), transposed(client, [k, n], F16), None)
    }));
    cases
}

fn base(label: &str, [m, k, n]: Sizes, dtype: ElemType) -> Case {
    let case = Case::new("matmul", label, dtype, format!("[{m}, {k}] x [{k}, {n}]"));
    case.flops(2 * m * k * n).elements(m * k + k * n + m * n)
}

fn case(label: &str, sizes: Sizes, dtype: ElemType) -> Case {
    let [m, k, n] = sizes;
    base(label, sizes, dtype).runs(move |client| {
        matmul(client, Products::Native, tensor(client, &[m, k], dtype), tensor(client, &[k, n], dtype), None)
    })
}
