//! Random kernels against `rand_chacha` and their reference.

use crate::harness::*;
use crate::skip::skip;
use burn_deterministic_kernels::KernelError;
use burn_deterministic_kernels::random::{Distribution, Key, Source, Stream, draw, reference};
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
        skip(format_args!("the device cannot store {dtype}"));
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
    assert_bits(&got, &reference::floats(source, distribution, dtype, 0..elements).unwrap());
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
    // Enough draws for every exponent but the last.
    assert_floats(&client, &[1 << 20], F32, source(40, 0), STANDARD_NORMAL);
}

/// Blocks that hold the largest and the smallest radius of 2^30 pairs, and an angle next to none.
#[test]
fn rare_normal_numbers_match_reference() {
    let client = client();
    for (block, pair, rare) in [
        (21_244_023, 3, |a: u32, _: u32| a & 0x3FFF_FFFF == 2),
        (33_631_027, 1, |a, _| a & 0x3FFF_FFFF == 0x3FFF_FFFF),
        (32_374_733, 7, |_, b| (b | 1).cast_signed().unsigned_abs() == 3),
    ] as [(u64, usize, fn(u32, u32) -> bool); 3]
    {
        let words = reference::block(source(50, block), 0);
        assert!(rare(words[2 * pair], words[2 * pair + 1]), "block {block}");
        assert_floats(&client, &[16], F32, source(50, block), STANDARD_NORMAL);
    }
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
        (I32, -5, 65_531),
        (I32, -5, 65_532),
        (U32, (1 << 32) - 65_536, 1 << 32),
        (U8, 0, 256),
        (U8, 250, 256),
        (I64, i64::MIN, i64::MAX),
        (I64, -3, 9_000_000_000_000),
        (I64, 5, 6),
        (I64, (1 << 32) - 7, (1 << 32) + 65_529),
        (I64, i64::MIN, i64::MIN + 65_537),
        (I64, -(1 << 31) - 1, (1 << 31) - 1),
        (I64, -(1 << 31) - 1, 1 << 31),
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
    let cases =
        [(-1_000_000_007i64, 2_000_000_011i64, 2), (0, 1 << 32, 2), (-7, 65_529, 1), (-7, 65_530, 2), (5, 6, 1)];
    for (low, high, words) in cases {
        let mut rng = chacha(source(2, 0));
        let distribution = Distribution::Integers { low, high };
        for value in reference::integers(source(2, 0), distribution, I64, 0..1000).unwrap() {
            let x = if words == 1 { u64::from(rng.next_u32()) } else { rng.next_u64() };
            let product = u128::from(x) * u128::from((high - low) as u64);
            assert_eq!(value, low + (product >> (32 * words)) as i64);
        }
    }
}

#[test]
fn integers_of_a_range_are_the_same_in_every_type_that_has_them() {
    for (low, high) in [(-3, 200), (-70_000, 70_000)] {
        let draw =
            |dtype| reference::integers(source(2, 0), Distribution::Integers { low, high }, dtype, 0..100).unwrap();
        assert_eq!(draw(I32), draw(I64));
    }
}

#[test]
fn an_element_depends_on_its_index_alone() {
    let client = client();
    let longest = 16 * 300;
    let cases = [
        (F32, UNIT),
        (F32, STANDARD_NORMAL),
        (I32, Distribution::Integers { low: -9, high: 90 }),
        (I32, Distribution::Integers { low: -9, high: 90_000 }),
    ];
    for (dtype, distribution) in cases {
        let read = |length: usize| -> Vec<u32> {
            download(&client, draw(&client, &[length], dtype, source(1, 0), distribution).unwrap())
        };
        let whole = read(longest);
        // In stores of one element and of four.
        for length in [1usize, 5, 64, 1001, 1024, 4799] {
            assert_eq!(read(length), whole[..length], "{length}");
        }
        for _ in 0..10 {
            assert_eq!(read(longest), whole);
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

#[test]
fn normal_numbers_are_those_of_box_and_muller() {
    let mut rng = chacha(source(30, 0));
    let random = (0..200_000).map(|_| (rng.next_u32(), rng.next_u32()));
    let edges = |k: u32| [(1 << k) - 1, 1 << k, 3 << k, !(1 << k), u32::MAX >> k];
    let edges: Vec<u32> = (0..31).flat_map(edges).collect();
    let pairs: Vec<(u32, u32)> = random.chain(edges.iter().flat_map(|&a| edges.iter().map(move |&b| (a, b)))).collect();
    let (mut worst, mut least, mut greatest) = (0.0f64, f32::MAX, 0.0f32);
    for &(a, b) in &pairs {
        let u = (f64::from(a & 0x3FFF_FFFF) + 0.5) / 2f64.powi(30);
        let angle = f64::from((b | 1).cast_signed()) / 2f64.powi(31) * core::f64::consts::FRAC_PI_4;
        let radius = (-2.0 * u.ln()).sqrt();
        let sign = if a >> 31 == 1 { -1.0 } else { 1.0 };
        let mut want = [sign * radius * angle.cos(), radius * angle.sin()];
        if a >> 30 & 1 == 1 {
            want.reverse();
        }
        for (got, want) in reference::standard_normals(a, b).into_iter().zip(want) {
            worst = worst.max((f64::from(got) / want - 1.0).abs());
            (least, greatest) = (least.min(got.abs()), greatest.max(got.abs()));
        }
    }
    // A few roundings of 6e-8 each, and 7e-8 by the polynomials.
    assert!(worst < 5e-7, "relative error {worst:e}");
    // Both are among the edges: no pair of words makes a smaller or a greater one.
    assert_eq!((least, greatest), (1.1161179e-14, 6.5555415));
}

#[test]
fn normal_numbers_are_symmetric() {
    let mut rng = chacha(source(31, 0));
    for _ in 0..10_000 {
        let (a, b) = (rng.next_u32(), rng.next_u32());
        let [x, y] = reference::standard_normals(a & 0x3FFF_FFFF, b);
        assert_eq!(reference::standard_normals(a & 0x3FFF_FFFF | 1 << 31, b), [-x, y]);
        assert_eq!(reference::standard_normals(a & 0x3FFF_FFFF, !b), [x, -y]);
        assert_eq!(reference::standard_normals(a & 0x3FFF_FFFF | 1 << 30, b), [y, x]);
    }
}

#[test]
fn any_range_of_elements_can_be_computed_on_the_host() {
    for distribution in [UNIT, STANDARD_NORMAL, Distribution::Bernoulli { probability: 0.5 }] {
        let floats = |range| reference::floats(source(4, 2), distribution, F32, range).unwrap();
        let whole = floats(0..100);
        for (start, end) in [(0, 0), (0, 1), (1, 1), (1, 2), (1, 4), (15, 17), (16, 33), (31, 99)] {
            assert_bits(&floats(start..end), &whole[start as usize..end as usize]);
        }
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
    assert!(refusal(&[1 << 20, 1 << 20], F32, UNIT).contains("has more elements than 32-bit indices reach"));
}

/// The promise of the order contract: a seed keeps its numbers. Computed by this crate before its first release; the
/// words are those of `rand_chacha`.
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
        [45, -70, -54, 60, 62, -56, 91, 53]
    );
    assert_eq!(
        read_integers(I32, Distribution::Integers { low: -100_000, high: 100_000 }),
        [-69528, 60585, -55537, 53568, 621, -93732, -88871, 54827]
    );
    let wide = reference::integers(at, Distribution::Integers { low: 0, high: i64::MAX }, I64, 0..3).unwrap();
    assert_eq!(wide, [7405683835501541046, 7082093463309957204, 289064404699603253]);
    assert_eq!(read_integers(I32, Distribution::Bernoulli { probability: 0.5 }), [0, 1, 1, 0, 0, 1, 0, 0]);

    let first =
        [0xbed7_337e, 0x3dd2_0bb4, 0x3eb2_b6fb, 0xbde4_a517, 0x3f10_2350, 0xbfc5_eb05, 0xbe5b_a378, 0xbf0f_d677];
    let twentieth =
        [0x3e9d_e09b, 0x3f67_f084, 0x3f4e_c56c, 0x3e60_6ccf, 0xc039_2182, 0x3f17_77e8, 0xbebd_ac93, 0xbfe2_4c3b];
    let (first, twentieth) = (first.map(f32::from_bits), twentieth.map(f32::from_bits));
    assert_bits(&reference::floats(at, STANDARD_NORMAL, F32, 0..8).unwrap(), &first);
    assert_bits(&reference::floats(at, STANDARD_NORMAL, F32, 20..28).unwrap(), &twentieth);
    let drawn = download_floats(&client, draw(&client, &[28], F32, at, STANDARD_NORMAL).unwrap());
    assert_bits(&drawn[..8], &first);
    assert_bits(&drawn[20..], &twentieth);
}
