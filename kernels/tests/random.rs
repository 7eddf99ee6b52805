//! Random kernels against `rand_chacha` and their reference.

use crate::harness::*;
use burn_deterministic_kernels::KernelError;
use burn_deterministic_kernels::arithmetic::{MultiplyAdd, multiply_add_of};
use burn_deterministic_kernels::random::plan::{Plan, Problem, plan};
use burn_deterministic_kernels::random::{Distribution, Key, Source, Stream, draw, draw_with, reference};
use cubecl::ir::features::TypeUsage;
use cubecl::ir::{ElemType, FloatKind, IntKind, UIntKind};
use cubecl::prelude::*;
use cubecl::std::tensor::TensorHandle;
use half::{bf16, f16};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

const F16: ElemType = ElemType::Float(FloatKind::F16);
const BF16: ElemType = ElemType::Float(FloatKind::BF16);
const F64: ElemType = ElemType::Float(FloatKind::F64);
const I64: ElemType = ElemType::Int(IntKind::I64);
const U8: ElemType = ElemType::UInt(UIntKind::U8);
const U32: ElemType = ElemType::UInt(UIntKind::U32);

const STANDARD_NORMAL: Distribution = Distribution::Normal { mean: 0.0, std: 1.0 };
const UNIT: Distribution = Distribution::Uniform { low: 0.0, high: 1.0 };

fn source(stream: u64, block: u64) -> Source {
    Source { key: Key::from(std::array::from_fn(|i| (7 * i + 3) as u8)), stream: Stream(stream), block }
}

/// The generator the words must equal, at the first word of a source.
fn chacha(source: Source) -> ChaCha8Rng {
    let mut seed = [0; 32];
    for (bytes, word) in seed.chunks_exact_mut(4).zip(source.key.0) {
        bytes.copy_from_slice(&word.to_le_bytes());
    }
    let mut rng = ChaCha8Rng::from_seed(seed);
    rng.set_stream(source.stream.0);
    rng.set_word_pos(16 * u128::from(source.block));
    rng
}

fn device_has(client: &Client, dtype: ElemType) -> bool {
    let has = client.properties().type_usage(dtype).contains(TypeUsage::Buffer);
    if !has {
        eprintln!("skipped: the device cannot store {dtype}");
    }
    has
}

/// The elements of a float draw, widened to f32.
fn download_floats(client: &Client, tensor: TensorHandle) -> Vec<f32> {
    match tensor.dtype {
        F16 => download::<f16>(client, tensor).into_iter().map(f16::to_f32).collect(),
        BF16 => download::<bf16>(client, tensor).into_iter().map(bf16::to_f32).collect(),
        _ => download(client, tensor),
    }
}

/// The elements of an integer draw, widened to i64.
fn download_integers(client: &Client, tensor: TensorHandle) -> Vec<i64> {
    match tensor.dtype {
        U8 => download::<u8>(client, tensor).into_iter().map(i64::from).collect(),
        U32 => download::<u32>(client, tensor).into_iter().map(i64::from).collect(),
        I32 => download::<i32>(client, tensor).into_iter().map(i64::from).collect(),
        _ => download(client, tensor),
    }
}

#[track_caller]
fn assert_floats(client: &Client, shape: &[usize], dtype: ElemType, source: Source, distribution: Distribution) {
    let elements = shape.iter().product::<usize>() as u64;
    let got = download_floats(client, draw(client, shape, dtype, source, distribution).unwrap());
    let fma = multiply_add_of(client);
    assert_bits(&got, &reference::floats(source, distribution, dtype, 0..elements, fma).unwrap());
}

#[track_caller]
fn assert_integers(client: &Client, shape: &[usize], dtype: ElemType, source: Source, distribution: Distribution) {
    let elements = shape.iter().product::<usize>() as u64;
    let got = download_integers(client, draw(client, shape, dtype, source, distribution).unwrap());
    let want = reference::integers(source, distribution, dtype, 0..elements).unwrap();
    assert_eq!(got.len(), want.len());
    let differs = (0..got.len()).find(|&i| got[i] != want[i]);
    assert_eq!(differs.map(|i| (i, got[i], want[i])), None, "{dtype} {shape:?} {distribution:?}");
}

#[test]
fn words_are_those_of_rand_chacha() {
    let client = client();
    // The counter's low half overflows inside the fourth draw, the whole counter inside the last.
    for (stream, block) in
        [(0, 0), (1, 5), (u64::MAX, 1 << 31), (1 << 32, (1 << 32) - 3), (7, (5 << 32) - 1), (9, u64::MAX - 4)]
    {
        let source = source(stream, block);
        for length in [0usize, 1, 2, 3, 4, 15, 16, 17, 63, 64, 127, 1024, 1025, 4093] {
            let got: Vec<u32> = download(&client, draw(&client, &[length], U32, source, Distribution::Bits).unwrap());
            let mut rng = chacha(source);
            let want: Vec<u32> = (0..length).map(|_| rng.next_u32()).collect();
            assert_eq!(got, want, "stream {stream}, block {block}, {length} words");
        }
    }
}

#[test]
fn reference_words_are_those_of_rand_chacha_from_any_position() {
    for (stream, block) in [(0, 0), (3, (1 << 32) - 2), (4, u64::MAX - 1)] {
        for start in [0u64, 1, 15, 16, 33] {
            let mut rng = chacha(source(stream, block));
            rng.set_word_pos(16 * u128::from(block) + u128::from(start));
            let want: Vec<u32> = (0..50).map(|_| rng.next_u32()).collect();
            assert_eq!(reference::words(source(stream, block), start..start + 50).collect::<Vec<_>>(), want);
        }
    }
}

#[test]
fn floats_match_reference() {
    let client = client();
    let max = f64::from(f32::MAX);
    let distributions = [
        UNIT,
        Distribution::Uniform { low: -0.1, high: 0.3 },
        Distribution::Uniform { low: 5.0, high: 17.0 },
        Distribution::Uniform { low: 1e6, high: 1e6 + 0.25 },
        Distribution::Uniform { low: 2.5, high: 2.5 },
        Distribution::Uniform { low: -max, high: max },
        STANDARD_NORMAL,
        Distribution::Normal { mean: -3.7, std: 0.02 },
        Distribution::Normal { mean: 1.25, std: 0.0 },
        Distribution::Bernoulli { probability: 0.3 },
    ];
    for dtype in [F32, F16, BF16].into_iter().filter(|&dtype| device_has(&client, dtype)) {
        for (stream, distribution) in distributions.into_iter().enumerate() {
            let source = source(stream as u64, (1 << 32) - 2);
            let result = draw(&client, &[1], dtype, source, distribution);
            if dtype != F32 && matches!(result, Err(KernelError::Argument { .. })) {
                continue;
            }
            for shape in [&[1][..], &[7], &[3, 11], &[257], &[64, 64], &[4, 0, 3], &[70_001, 1]] {
                assert_floats(&client, shape, dtype, source, distribution);
            }
        }
    }
    // Enough draws for every segment of the quantile.
    assert_floats(&client, &[1 << 20], F32, source(40, 0), STANDARD_NORMAL);
}

#[test]
fn integers_match_reference() {
    let client = client();
    let ranges = [
        (U32, 0, 1 << 32),
        (U32, 3, 10),
        (I32, 0, 255),
        (I32, i64::from(i32::MIN), 1 << 31),
        (I32, -1, 0),
        (I32, -1_000_000_007, 2_000_000_011),
        (U8, 0, 256),
        (U8, 250, 256),
        (I64, i64::MIN, i64::MAX),
        (I64, -3, 9_000_000_000_000),
        (I64, 5, 6),
    ];
    for (stream, (dtype, low, high)) in ranges.into_iter().enumerate() {
        if !device_has(&client, dtype) {
            continue;
        }
        for shape in [&[1][..], &[6], &[8], &[3, 11], &[33, 31], &[0], &[4096]] {
            let source = source(stream as u64, (1 << 32) - 2);
            assert_integers(&client, shape, dtype, source, Distribution::Integers { low, high });
            assert_integers(&client, shape, dtype, source, Distribution::Bernoulli { probability: 0.75 });
        }
    }
}

#[test]
fn integers_are_the_high_part_of_the_exact_product() {
    let (low, high) = (-1_000_000_007i64, 2_000_000_011i64);
    let mut rng = chacha(source(2, 0));
    let got = reference::integers(source(2, 0), Distribution::Integers { low, high }, I32, 0..1000).unwrap();
    for value in got {
        let product = u128::from(rng.next_u64()) * u128::from((high - low) as u64);
        assert_eq!(value, low + (product >> 64) as i64);
    }
}

#[test]
fn an_element_depends_on_its_index_alone() {
    let client = client();
    let longest = 16 * 300;
    let cases = [(F32, UNIT, 1), (F32, STANDARD_NORMAL, 1), (I32, Distribution::Integers { low: -9, high: 90 }, 2)];
    for (dtype, distribution, words) in cases {
        let read = |length: usize, plan: Plan| -> Vec<u32> {
            download(&client, draw_with(&client, &[length], dtype, source(1, 0), distribution, plan).unwrap())
        };
        let whole = read(longest, plan(Problem { elements: longest as u32, words }));
        for length in [1usize, 5, 64, 1001, 1024, 4799] {
            for vector_width in [1, 2, 4] {
                for (units, cubes) in [(1, (100, 6)), (32, (3, 20)), (64, (100, 1)), (256, (1, 20))] {
                    if length.is_multiple_of(vector_width) {
                        let got = read(length, Plan { units, cubes, vector_width });
                        assert_eq!(got, whole[..length], "{length} {vector_width} {units} {cubes:?}");
                    }
                }
            }
        }
        let first = read(longest, plan(Problem { elements: longest as u32, words }));
        for _ in 0..10 {
            assert_eq!(read(longest, plan(Problem { elements: longest as u32, words })), first);
        }
    }
}

#[test]
fn key_stream_and_block_select_the_draw() {
    let client = client();
    let read = |source| download::<u32>(&client, draw(&client, &[64], U32, source, Distribution::Bits).unwrap());
    let base = source(0, 0);
    let mut other_key = base;
    other_key.key.0[7] ^= 1 << 31;
    for other in [other_key, source(1, 0), source(1 << 32, 0), source(0, 4), source(0, 1 << 32)] {
        assert!(read(base).iter().zip(read(other)).filter(|(a, b)| *a == b).count() < 2);
    }
    assert_eq!(read(base)[16..], read(source(0, 1))[..48]);
}

#[test]
fn uniform_stays_in_its_half_open_interval() {
    let client = client();
    // The naive formula reaches the excluded bound: u = 1 - 2^-24, low + u * (high - low) rounds to high.
    let (low, high) = (1.0f32, 1.0 + 2f32.powi(-22));
    assert_eq!(low + (1.0 - 2f32.powi(-24)) * (high - low), high);

    let third = 1.0 / 3.0;
    for dtype in [F32, F16, BF16].into_iter().filter(|&dtype| device_has(&client, dtype)) {
        for (low, high) in [(0.0, 1.0), (1.0, 1.0 + 2f64.powi(-6)), (-third, third), (-1e4, -1e4 + 100.0), (0.1, 0.2)] {
            let distribution = Distribution::Uniform { low, high };
            let values =
                download_floats(&client, draw(&client, &[1 << 16], dtype, source(3, 0), distribution).unwrap());
            assert!(values.iter().all(|&v| low <= f64::from(v) && f64::from(v) < high), "{dtype} [{low}, {high})");
        }
    }
    let tight = Distribution::Uniform { low: 1.0, high: f64::from(high) };
    let values = download_floats(&client, draw(&client, &[1 << 16], F32, source(3, 0), tight).unwrap());
    assert!(values.iter().all(|&v| (1.0..high).contains(&v)));
    assert!(values.contains(&high.next_down()));
}

#[test]
fn bernoulli_is_exact_at_its_ends() {
    let client = client();
    for (probability, want) in [(0.0, 0.0), (2f64.powi(-40), 0.0), (1.0, 1.0)] {
        let got = draw(&client, &[1 << 16], F32, source(5, 0), Distribution::Bernoulli { probability }).unwrap();
        assert!(download_floats(&client, got).iter().all(|&v| v == want), "p = {probability}");
    }
}

/// The quantile of the standard normal distribution at the smaller tail `p`, as a positive number: Newton's method on
/// the tail probability, which is a continued fraction far out and a series at the centre.
fn quantile(p: f64) -> f64 {
    let density = |z: f64| (-z * z / 2.0).exp() / (2.0 * std::f64::consts::PI).sqrt();
    let tail = |z: f64| {
        if z < 2.5 {
            let series = (0..120).fold((z, z), |(sum, term), k| {
                let next = term * z * z / f64::from(2 * k + 3);
                (sum + next, next)
            });
            0.5 - density(z) * series.0
        } else {
            density(z) / (1..400).rev().fold(z, |fraction, k| z + f64::from(k) / fraction)
        }
    };
    let mut z = if p > 0.02 { (0.5 - p) * 2.5 } else { (-2.0 * p.ln()).sqrt() };
    for _ in 0..60 {
        // Newton on the logarithm converges from either side in the tail.
        let t = tail(z);
        z += if p > 0.02 { (t - p) / density(z) } else { (t / p).ln() * t / density(z) };
    }
    z
}

#[test]
fn normal_is_accurate_in_the_centre_and_in_the_tails() {
    let words = (0..20_000u32).map(|i| i * 107_374 + 12_345).chain((0..31).flat_map(|k| [1 << k, (1 << k) - 1]));
    for fma in [MultiplyAdd::Fused, MultiplyAdd::Unfused] {
        let mut worst = 0.0f64;
        for word in words.clone().chain((0..2000).map(|i| 0x7FFF_FFFF - i * i)) {
            let got = f64::from(reference::standard_normal(word, fma));
            assert_eq!(got, -f64::from(reference::standard_normal(!word, fma)));
            let tail = if word >> 31 == 0 { word } else { !word };
            // Near one half the tail loses the digits that the distance to the centre keeps.
            let want = match tail > 0x7FF0_0000 {
                true => {
                    let distance = (f64::from(0x7FFF_FFFF - tail) + 0.5) / 2f64.powi(32);
                    let x = distance * (2.0 * std::f64::consts::PI).sqrt();
                    x + x.powi(3) / 6.0
                }
                false => quantile((f64::from(tail) + 0.5) / 2f64.powi(32)),
            };
            worst = worst.max((got.abs() / want - 1.0).abs());
        }
        // Q contributes 2.1e-8, its Horner chain and the two products a few roundings of 6e-8 each.
        assert!(worst < 6e-7, "{fma:?}: relative error {worst:e}");
        assert_eq!(reference::standard_normal(u32::MAX, fma), 6.337958);
    }
}

/// The largest distance between the empirical distribution of the values and a distribution function.
fn kolmogorov_smirnov(mut values: Vec<f32>, cumulative: impl Fn(f64) -> f64) -> f64 {
    values.sort_unstable_by(f32::total_cmp);
    let n = values.len() as f64;
    let distance = |(i, &v): (usize, &f32)| {
        let c = cumulative(f64::from(v));
        (c - i as f64 / n).abs().max(((i + 1) as f64 / n - c).abs())
    };
    values.iter().enumerate().map(distance).fold(0.0, f64::max)
}

const DRAWS: usize = 1_000_000;

/// Kolmogorov's 1 % point, `1.628 / sqrt(n)`.
const KS_BOUND: f64 = 1.628e-3;

#[test]
fn uniform_and_normal_pass_kolmogorov_smirnov() {
    let client = client();
    let read = |d| download_floats(&client, draw(&client, &[DRAWS], F32, source(21, 0), d).unwrap());
    let uniform = kolmogorov_smirnov(read(Distribution::Uniform { low: -2.0, high: 6.0 }), |v| (v + 2.0) / 8.0);
    assert!(uniform < KS_BOUND, "uniform {uniform}");

    let normal = read(Distribution::Normal { mean: 2.0, std: 3.0 });
    // The distribution function by its series, from the centre.
    let cumulative = |v: f64| {
        let z = (v - 2.0) / 3.0;
        let series = (0..200).try_fold((z, z), |(sum, term), k| {
            let next = term * z * z / f64::from(2 * k + 3);
            if next.abs() < 1e-15 { Err(sum + next) } else { Ok((sum + next, next)) }
        });
        let sum = series.map_or_else(|sum| sum, |(sum, _)| sum);
        0.5 + sum * (-z * z / 2.0).exp() / (2.0 * std::f64::consts::PI).sqrt()
    };
    let distance = kolmogorov_smirnov(normal, cumulative);
    assert!(distance < KS_BOUND, "normal {distance}");
}

#[test]
fn integers_and_bernoulli_pass_chi_square() {
    let client = client();
    let integers = draw(&client, &[DRAWS], I32, source(22, 0), Distribution::Integers { low: -50, high: 51 }).unwrap();
    let mut counts = [0f64; 101];
    for value in download::<i32>(&client, integers) {
        counts[(value + 50) as usize] += 1.0;
    }
    let expected = DRAWS as f64 / 101.0;
    let chi_square: f64 = counts.iter().map(|c| (c - expected).powi(2) / expected).sum();
    // The 1 % and 99 % points for 100 degrees of freedom.
    assert!((70.06..135.81).contains(&chi_square), "{chi_square}");

    for probability in [0.001, 0.1, 0.5, 0.9] {
        let got = draw(&client, &[DRAWS], U32, source(23, 0), Distribution::Bernoulli { probability }).unwrap();
        let ones = download::<u32>(&client, got).into_iter().filter(|&v| v == 1).count() as f64;
        let n = DRAWS as f64;
        let deviation = (ones - n * probability) / (n * probability * (1.0 - probability)).sqrt();
        assert!(deviation.abs() < 2.58, "p = {probability}: {deviation} standard deviations");
    }
}

#[test]
fn what_cannot_be_drawn_is_refused() {
    let client = client();
    let refusal = |shape: &[usize], dtype, distribution| {
        draw(&client, shape, dtype, source(0, 0), distribution).expect_err("a refusal").to_string()
    };
    let uniform = |low, high| Distribution::Uniform { low, high };
    for (dtype, distribution) in [
        (F32, Distribution::Bits),
        (F64, UNIT),
        (I32, UNIT),
        (I32, STANDARD_NORMAL),
        (F32, Distribution::Integers { low: 0, high: 2 }),
    ] {
        assert!(refusal(&[4], dtype, distribution).contains("no fixed-order kernel"));
    }
    for (dtype, distribution) in [
        (F32, uniform(1.0, 0.0)),
        (F32, uniform(f64::NAN, 1.0)),
        (F32, uniform(0.0, f64::INFINITY)),
        (F16, uniform(1.0001, 1.0002)),
        (F32, Distribution::Normal { mean: 0.0, std: -1.0 }),
        (F32, Distribution::Normal { mean: f64::NAN, std: 1.0 }),
        (F32, Distribution::Bernoulli { probability: 1.5 }),
        (F32, Distribution::Bernoulli { probability: f64::NAN }),
        (I32, Distribution::Integers { low: 3, high: 3 }),
        (U8, Distribution::Integers { low: 0, high: 257 }),
        (U32, Distribution::Integers { low: -1, high: 2 }),
    ] {
        let text = refusal(&[4], dtype, distribution);
        assert!(text.contains("want") || text.contains("holds no"), "{text}");
    }
    assert!(refusal(&[1 << 20, 1 << 20], F32, UNIT).contains("2^32 - 1"));
}

/// The promise of the order contract: a seed keeps its numbers. Computed by this crate at its first version; the words
/// are those of `rand_chacha`.
#[test]
fn value_stability() {
    let client = client();
    let at = source(17, 3);
    let read_integers =
        |dtype, distribution| download_integers(&client, draw(&client, &[8], dtype, at, distribution).unwrap());
    let read_floats = |distribution| download_floats(&client, draw(&client, &[8], F32, at, distribution).unwrap());

    let words =
        [0xba48_2a01, 0x2701_6079, 0x3bd7_ed6f, 0xcd8c_8c6c, 0xd086_becd, 0x38e9_a486, 0xf569_70ab, 0xc491_4cf6];
    assert_eq!(read_integers(U32, Distribution::Bits), words);
    assert_eq!(
        read_floats(UNIT),
        [0.72766364, 0.15236473, 0.23376352, 0.8029258, 0.814556, 0.22231507, 0.9586401, 0.76784205]
    );
    assert_eq!(
        read_integers(I32, Distribution::Integers { low: -100, high: 100 }),
        [-70, 60, -56, 53, 0, -94, -89, 54]
    );
    assert_eq!(read_integers(I32, Distribution::Bernoulli { probability: 0.5 }), [0, 1, 1, 0, 0, 1, 0, 0]);

    // Three of the eight differ in the last bit between the two meanings of a multiply-add.
    let fused =
        [0x3f1b_133a, 0xbf83_5f3c, 0xbf39_fc76, 0x3f5a_2471, 0x3f65_125e, 0xbf43_af93, 0x3fde_1861, 0x3f3b_548c];
    let unfused =
        [0x3f1b_133a, 0xbf83_5f3d, 0xbf39_fc76, 0x3f5a_2471, 0x3f65_125d, 0xbf43_af94, 0x3fde_1861, 0x3f3b_548c];
    for (fma, want) in [(MultiplyAdd::Fused, fused), (MultiplyAdd::Unfused, unfused)] {
        let want = want.map(f32::from_bits);
        assert_bits(&reference::floats(at, STANDARD_NORMAL, F32, 0..8, fma).unwrap(), &want);
        if multiply_add_of(&client) == fma {
            assert_bits(&read_floats(STANDARD_NORMAL), &want);
        }
    }
}
