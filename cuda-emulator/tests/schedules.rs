//! Bits that depend on the order of blocks or threads differ between seeds; others do not.

mod driver;

use driver::{Run, settings};
use std::collections::BTreeSet;

const HEAD: &str = "struct info_st { unsigned static_meta[2]; };\nextern \"C\" __global__ void ";
const PARAMETERS: &str = "(float const* input, float* output, __grid_constant__ info_st const info)";

/// The distinct outputs of a kernel under several seeds and none.
fn outputs(name: &str, body: &str, blocks: u32, threads: u32, output: usize) -> BTreeSet<Vec<u32>> {
    let source = format!("{HEAD}{name}{PARAMETERS} {{ {body} }}");
    let input: Vec<f32> = (1..=blocks * threads).map(|i| 1.0 / i as f32).collect();
    let run = Run { source: &source, name, blocks, threads, shared: 4, input: &input, output };
    let seeds = [None].into_iter().chain((1..8).map(Some));
    seeds.map(|seed| run.with(settings(seed, false)).expect("it compiles").0).collect()
}

#[test]
fn a_sum_in_the_order_of_the_blocks_depends_on_the_seed() {
    // New memory holds a negative number.
    let body = "float sum = output[0]; output[0] = (sum < 0.0f ? 0.0f : sum) + input[blockIdx.x];";
    assert!(outputs("sum_of_blocks", body, 50, 1, 1).len() > 1);
}

#[test]
fn a_sum_in_the_order_of_the_threads_depends_on_the_seed() {
    let body = "extern __shared__ __align__(4) char memory[]; float* sum = (float*)memory;\
        if (threadIdx.x == 0) *sum = 0.0f; __syncthreads(); *sum += input[threadIdx.x]; __syncthreads();\
        if (threadIdx.x == 0) output[0] = *sum;";
    assert!(outputs("sum_of_threads", body, 1, 64, 1).len() > 1);
}

#[test]
fn a_sum_in_a_fixed_order_does_not() {
    let body = "unsigned i = blockIdx.x * blockDim.x + threadIdx.x; float sum = 0.0f;\
        for (unsigned j = 0; j <= i; j++) sum += input[j]; output[i] = sum;";
    assert_eq!(outputs("sum_in_order", body, 5, 32, 160).len(), 1);
}

#[test]
fn launches_of_several_threads_do_not_mix() {
    let body = "unsigned i = blockIdx.x * blockDim.x + threadIdx.x; __syncthreads(); output[i] = input[i] + 1.0f;";
    let all: BTreeSet<_> = std::thread::scope(|scope| {
        let launches: Vec<_> = (0..8).map(|_| scope.spawn(|| outputs("beside_others", body, 4, 32, 128))).collect();
        launches.into_iter().flat_map(|launch| launch.join().expect("no panic")).collect()
    });
    assert_eq!(all.len(), 1);
}
