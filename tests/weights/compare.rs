//! Where two modules differ, to the bit.

use crate::deterministic_device;
use crate::random::initialize::Nameless;
use burn::module::{Module, Param, ParamId};
use burn::nn::{BatchNorm, BatchNormConfig, LinearConfig};
use burn::prelude::*;
use burn::tensor::quantization::QuantScheme;
use burn::tensor::{DType, bf16, f16};
use burn_deterministic::{Comparison, Difference, ElementDifference, Error, Form, compare, set_random_seed};

fn compared<M: Module, N: Module>(first: &M, second: &N) -> Comparison {
    compare(first, second).expect("readable modules")
}

/// What differs between two tensors, of which at least one element does.
fn between(first: TensorData, second: TensorData) -> ElementDifference {
    match Difference::between(&first, &second) {
        Some(Difference::Elements(elements)) => elements,
        other => panic!("other elements were expected, not {other:?}"),
    }
}

/// The distance in ULP of two f32 of these bits.
fn ulp(first: u32, second: u32) -> Option<u64> {
    let [first, second] = [first, second].map(|bits| TensorData::from([f32::from_bits(bits)]));
    between(first, second).ulp
}

#[test]
fn distances_of_f32() {
    let one = 1f32.to_bits();
    assert_eq!(ulp(one, one + 3), Some(3));
    assert_eq!(ulp(one + 3, one), Some(3));
    assert_eq!(ulp(0x3fff_ffff, 0x4000_0000), Some(1), "across an exponent");
    assert_eq!(ulp(0, 0x8000_0000), Some(1), "from one zero to the other");
    assert_eq!(ulp(1, 0x8000_0001), Some(3), "across zero");
    assert_eq!(ulp(0x7f7f_ffff, 0x7f80_0000), Some(1), "to infinity");
    assert_eq!(ulp(0x7f80_0000, 0xff80_0000), Some(2 * 0x7f80_0000 + 1), "from one infinity to the other");
    for other in [0, 0x7f80_0000, 0x7fc0_0001, 0xffc0_0000] {
        assert_eq!(ulp(0x7fc0_0000, other), None, "{other:#x} from a NaN");
    }
}

#[test]
fn distances_of_other_floats() {
    let half = |bits: u16| TensorData::from([f16::from_bits(bits)]);
    let found = between(half(0x3c00), half(0x3bfe));
    assert_eq!((found.dtype, found.ulp, found.bits), (DType::F16, Some(2), ["0x3c00", "0x3bfe"].map(str::to_owned)));
    assert_eq!(between(half(0x7c00), half(0x7c01)).ulp, None);
    let brain = |bits: u16| TensorData::from([bf16::from_bits(bits)]);
    assert_eq!(between(brain(0x3f80), brain(0xbf80)).ulp, Some(2 * 0x3f80 + 1));
    assert_eq!(between(brain(0x7f80), brain(0x7c01)).ulp, Some(0x37f), "a NaN of f16 is a number here");
    assert_eq!(between(brain(0x7f80), brain(0x7f81)).ulp, None);
    let double = |bits: u64| TensorData::from([f64::from_bits(bits)]);
    let found = between(double(f64::MAX.to_bits()), double(f64::NEG_INFINITY.to_bits()));
    assert_eq!(found.ulp, Some(f64::MAX.to_bits() + f64::INFINITY.to_bits() + 1));
    assert_eq!(found.values, ["1.7976931348623157e308", "-inf"]);
}

#[test]
fn integers_and_booleans_have_values_and_bits() {
    let found = between(TensorData::from([7i64, -1]), TensorData::from([7i64, i64::MIN]));
    assert_eq!((found.index, found.ulp, found.largest_ulp), (vec![1], None, None));
    assert_eq!(found.values, ["-1", "-9223372036854775808"]);
    assert_eq!(found.bits, ["0xffffffffffffffff", "0x8000000000000000"]);
    let found = between(TensorData::from([true, false]), TensorData::from([true, true]));
    assert_eq!((found.values, found.bits), (["false", "true"].map(str::to_owned), ["0x00", "0x01"].map(str::to_owned)));
    let found = between(TensorData::from([200u8]), TensorData::from([201u8]));
    assert_eq!(found.values, ["200", "201"]);
}

#[test]
fn elements_that_differ_are_counted() {
    let nan = f32::from_bits(0x7fc0_0001);
    let first = TensorData::new(vec![1.0, 2.0, 3.0, nan, 0.0, 6.0], [2, 3]);
    let second = TensorData::new(vec![1.0, 2.0000002, 3.0, f32::NAN, -0.0, 6.000002], [2, 3]);
    let found = between(first.clone(), second.clone());
    assert_eq!((found.differing, found.nan, found.largest_ulp, found.index.clone()), (4, 1, Some(4), vec![0, 1]));
    assert_eq!(
        found.to_string(),
        "4 of 6 elements of f32 [2, 3] differ, by at most 4 ULP, 1 of them NaN in one or both; the first at [0, 1]: 2.0 \
         (0x40000000) and 2.0000002 (0x40000001), 1 ULP apart"
    );
    assert_eq!((found.largest, found.histogram), (Some(1.9073486328125e-6), vec![2, 2, 0, 1]));
    assert_eq!(Difference::between(&first, &first.clone()), None, "a NaN has bits like any other value");
    let scalar = |value: f32| TensorData::new::<f32, [usize; 0]>(vec![value], []);
    assert_eq!(between(scalar(1.0), scalar(2.0)).index, Vec::<usize>::new());
    let empty = TensorData::new(Vec::<f32>::new(), [0, 3]);
    assert_eq!(Difference::between(&empty, &empty.clone()), None);
    assert!(matches!(Difference::between(&empty, &scalar(0.0)), Some(Difference::Form(_))));
}

#[test]
fn distances_are_measured_and_counted_where_there_are_some() {
    let found = between(TensorData::from([f64::MAX, 1.0]), TensorData::from([f64::NEG_INFINITY, 1.0]));
    assert_eq!((found.largest, found.histogram.len()), (Some(f64::INFINITY), 65));
    assert_eq!([found.histogram[0], found.histogram[64]], [1, 1]);
    let found = between(TensorData::from([f32::NAN, 1.0]), TensorData::from([2.0f32, 1.0]));
    assert_eq!((found.largest, found.histogram, found.nan), (None, vec![1], 1));
    let found = between(TensorData::from([i64::MAX, 3]), TensorData::from([i64::MIN, 5]));
    assert_eq!((found.largest, found.histogram), (Some(u64::MAX as f64), Vec::new()));
    let found = between(TensorData::from([true, false]), TensorData::from([true, true]));
    assert_eq!((found.largest, found.histogram), (None, Vec::new()));
}

#[derive(Module, Debug)]
struct Layers {
    weight: Param<Tensor<2>>,
    steps: Param<Tensor<1, Int>>,
    mask: Param<Tensor<1, Bool>>,
    norm: BatchNorm,
}

fn layers(weight: [[f32; 2]; 2], device: &Device) -> Layers {
    Layers {
        weight: Param::from_data(weight, device),
        steps: Param::initialized(ParamId::new(), Tensor::from_data([1, 2, 3], device)),
        mask: Param::initialized(ParamId::new(), Tensor::from_data([true, false], device)),
        norm: BatchNormConfig::new(2).init(device),
    }
}

#[test]
fn equal_modules_are_equal() {
    for device in [deterministic_device(), deterministic_device().autodiff(), Device::flex()] {
        let layers = || layers([[1.0, f32::NAN], [-0.0, 4.0]], &device);
        let comparison = compared(&layers(), &layers());
        assert!(comparison.is_equal() && comparison.first().is_none(), "{comparison}");
        // The norm's two parameters are not initialised.
        assert_eq!(comparison.to_string(), "all 7 tensors have the same bits (13 elements)");
    }
}

/// A sign that no `==` sees.
#[test]
fn the_first_difference_is_named() {
    let device = deterministic_device();
    let comparison =
        compared(&layers([[1.0, 2.0], [0.0, 4.0]], &device), &layers([[1.0, 2.0], [-0.0, 4.0000005]], &device));
    let first = comparison.first().expect("they differ");
    assert_eq!(first.path, "weight");
    assert_eq!(
        comparison.to_string(),
        "1 of 7 tensors differ\n`weight`: 2 of 4 elements of f32 [2, 2] differ, by at most 1 ULP; the first at [1, 0]: \
         0.0 (0x00000000) and -0.0 (0x80000000), 1 ULP apart"
    );
}

#[test]
fn the_last_update_of_a_batch_norm_counts() {
    let device = deterministic_device().autodiff();
    let used = |steps: u8| {
        let norm = BatchNormConfig::new(1).init(&device);
        for step in 0..steps {
            norm.forward(Tensor::<2>::from_data([[f32::from(step)], [3.0]], &device));
        }
        norm
    };
    let differing = compared(&used(2), &used(3)).differences;
    let paths: Vec<&str> = differing.iter().map(|difference| &difference.path[..]).collect();
    assert_eq!(paths, ["running_mean", "running_var"]);
    let norm = used(3);
    let comparison = compared(&norm, &norm.valid());
    assert!(comparison.is_equal(), "{comparison}");
}

#[derive(Module, Debug)]
struct Other {
    mask: Param<Tensor<1, Bool>>,
    weight: Param<Tensor<2>>,
    steps: Param<Tensor<1>>,
}

#[test]
fn structure_differs_too() {
    let device = deterministic_device();
    let first = layers([[0.0; 2]; 2], &device);
    let second = Other {
        mask: Param::initialized(ParamId::new(), Tensor::from_data([true, false], &device)),
        weight: Param::from_data([[0.0, 0.0]], &device),
        steps: Param::from_data([1.0, 2.0, 3.0], &device),
    };
    let shown = |comparison: &Comparison| comparison.differences.iter().map(ToString::to_string).collect::<Vec<_>>();
    let comparison = compared(&first, &second);
    assert_eq!(
        shown(&comparison),
        [
            "`weight`: f32 [2, 2] in the first, f32 [1, 2] in the second",
            "`steps`: i32 [3] in the first, f32 [3] in the second",
            "`norm.gamma`: only in the first",
            "`norm.beta`: only in the first",
            "`norm.running_mean`: only in the first",
            "`norm.running_var`: only in the first",
        ]
    );
    let comparison = compared(&second, &first);
    assert_eq!(comparison.tensors, 7);
    assert_eq!(comparison.differences.last().expect("they differ").difference, Difference::OnlyInSecond);
}

#[test]
fn what_is_not_initialised_stays_so_and_is_compared() {
    let device = deterministic_device();
    set_random_seed(812);
    let layer = |outputs| LinearConfig::new(3, outputs).with_bias(false).init(&device);
    let (lazy, drawn) = (layer(4), layer(4));
    let _ = drawn.weight.val();
    assert!(compared(&lazy, &layer(4)).is_equal());
    assert!(!compared(&lazy, &layer(5)).is_equal());
    let comparison = compared(&lazy, &drawn);
    assert!(!lazy.weight.is_initialized());
    let found = comparison.first().expect("one has values");
    assert_eq!(found.to_string(), "`weight`: uninitialised float [3, 4] in the first, f32 [3, 4] in the second");
    let Difference::Form([Form::Uninitialised { kind: "float", shape }, Form::Initialised { .. }]) = &found.difference
    else {
        panic!("other forms were expected, not {:?}", found.difference);
    };
    assert_eq!(shape[..], [3, 4]);
}

/// `Display` stays short.
#[test]
fn many_differences_are_counted() {
    let device = Device::flex();
    let tensors = |value: f32| (0..11).map(|_| Param::<Tensor<1>>::from_data([value], &device)).collect::<Vec<_>>();
    let comparison = compared(&tensors(1.0), &tensors(2.0));
    assert_eq!(comparison.differences.len(), 11);
    let text = comparison.to_string();
    assert_eq!(text.lines().count(), Comparison::SHOWN + 2, "{text}");
    assert!(text.starts_with("11 of 11 tensors differ\n`0`: ") && text.ends_with("\nand 3 more"), "{text}");
}

#[test]
fn two_tensors_at_one_path_are_compared_in_their_order() {
    let device = Device::flex();
    let module = |values: [f32; 2]| {
        let [first, second] = values.map(|value| Param::from_data([value], &device));
        Nameless(first, second)
    };
    let comparison = compared(&module([1.0, 2.0]), &module([1.0, 3.0]));
    assert_eq!((comparison.tensors, comparison.differences.len()), (2, 1), "{comparison}");
}

#[test]
fn an_error_on_a_tensor_is_returned() {
    let unseeded = std::thread::spawn(|| {
        let device = deterministic_device();
        let layer = || LinearConfig::new(3, 4).init(&device);
        let (good, bad) = (layer(), layer());
        let _ = bad.weight.val();
        (compare(&good, &bad).expect_err("a weight without values"), compare(&bad, &good).expect_err("the same"))
    });
    let (second, first) = unseeded.join().expect("errors, not panics");
    for (error, expected) in [(second, "the second module"), (first, "the first module")] {
        match error {
            Error::Unreadable { module, path, reason } => {
                assert_eq!((module, &path[..]), (expected, "weight"));
                assert!(reason.contains("set_random_seed"), "{reason}");
            }
            other => panic!("expected an unreadable weight, found {other}"),
        }
    }
}

#[test]
fn quantized_tensors_are_compared_by_the_byte() {
    let device = deterministic_device();
    let quantized = |last: f32| {
        let values = Tensor::<1>::from_data([1.0, -0.5, 0.25, last], &device);
        vec![Param::from_tensor(values.quantize_dynamic(&QuantScheme::default()))]
    };
    let comparison = compared(&quantized(0.5), &quantized(0.5));
    assert!(comparison.is_equal(), "{comparison}");
    let text = compared(&quantized(0.5), &quantized(-0.5)).to_string();
    assert!(text.contains("1 of 8 bytes of qfloat [8] differ; the first at [3]: "), "{text}");
}
