//! Matrix products and convolutions under `RunToRun`: chains of multiply-adds, or sums of tensor cores.

use crate::driver;
use crate::process::{Program, arguments};
use burn::prelude::*;
use burn::tensor::module::conv1d;
use burn::tensor::ops::ConvOptions;
use burn::tensor::{DType, FloatDType};
use burn_deterministic::{Determinism, device_arithmetic, enable_op_determinism};
use burn_deterministic_kernels::matmul::reference as chains;
use burn_deterministic_kernels::matmul::tensor_cores::{Sums, reference, sums};
use cubecl::ir::{ElemType, FloatKind};

/// Allows TF32.
const ALLOWED: &str = "TF32";

/// Rows, steps and columns: more than a block of steps, in no fours; as many as a convolution on tensor cores has.
const SIZES: [usize; 3] = [17, 1100, 18];

/// Steps after which the products of a sum come again with the other sign, so that what is left of it is its roundings.
const HALF: usize = 512;

/// A matrix of factors, of `lines` rows or columns: numbers of a type for the first steps, these again `times` a sign, then zeros.
fn factor(device: &Device, seed: u32, lines: usize, times: f32, float: FloatDType) -> Tensor<2> {
    let word = |n: usize| (n as u32 ^ seed).wrapping_mul(0x9e37_79b1);
    let values: Vec<f32> = (0..lines * HALF).map(|n| (word(n) >> 8) as f32 / 8_388_608.0 - 1.0).collect();
    let first = Tensor::<2>::from_data(TensorData::new(values, [lines, HALF]), device).cast(float);
    let rest = Tensor::<2>::zeros([lines, SIZES[1] - 2 * HALF], device).cast(float);
    Tensor::cat(vec![first.clone(), first * times, rest], 1)
}

/// What a product of these numbers of a type is by each order, rounded to the type.
fn orders(device: &Device, a: &[f32], b: &[f32], kind: FloatKind, dtype: FloatDType) -> [(&'static str, Vec<u32>); 3] {
    let arithmetic = device_arithmetic(device).expect("the device computes as the kernels rely on");
    let [m, _, n] = SIZES;
    let rounded = |values: Vec<f32>| {
        let data = TensorData::new(values, [m, n]).convert_dtype(dtype.into()).convert::<f32>();
        data.iter::<f32>().map(f32::to_bits).collect()
    };
    let tensor_cores = |sums| rounded(reference::matmul(a, b, SIZES, ElemType::Float(kind), sums));
    [
        ("chains", rounded(chains::matmul(a, b, SIZES, arithmetic.multiply_add))),
        ("Ampere's", tensor_cores(Sums::Ampere)),
        ("Hopper's", tensor_cores(Sums::Hopper)),
    ]
}

/// The product of `[m, k]` and `[k, n]`, as each pass of a convolution of one tap has it.
fn passes(a: &Tensor<2>, b: &Tensor<2>) -> [(&'static str, Tensor<2>); 3] {
    let options = || ConvOptions::new([1], [0], [1], 1);
    let weight = |matrix: &Tensor<2>| matrix.clone().unsqueeze_dim::<3>(2);
    let input = |matrix: &Tensor<2>| matrix.clone().unsqueeze_dim::<3>(0);
    let autodiff = |tensor: Tensor<3>| Tensor::<3>::from_inner(tensor);
    let forward = conv1d(input(b), weight(a), None, options());

    let x = autodiff(Tensor::zeros_like(&forward)).require_grad();
    let y = conv1d(x.clone(), autodiff(weight(&a.clone().transpose())), None, options());
    let by_input = x.grad(&(y * autodiff(input(b))).sum().backward()).expect("x took part");

    let w = autodiff(Tensor::zeros_like(&forward).permute([1, 2, 0])).require_grad();
    let y = conv1d(autodiff(input(&b.clone().transpose())), w.clone(), None, options());
    let by_weight = w.grad(&(y * autodiff(input(a))).sum().backward()).expect("the weights took part");
    [
        ("forward", forward.squeeze_dim(0)),
        ("input gradient", by_input.squeeze_dim(0)),
        ("weight gradient", by_weight.squeeze_dim(2)),
    ]
}

/// Which order the products of each type have.
pub fn products_of_types() {
    let is_allowed = arguments().iter().any(|argument| argument == ALLOWED);
    let settings = Determinism::default();
    let settings = if is_allowed { settings.allow_tensor_float_32() } else { settings };
    enable_op_determinism(settings).expect("this process has run no tensor operation");
    let (device, client) = (Device::default(), crate::cube_device().client());
    let [m, _, n] = SIZES;
    let types = [
        (DType::F16, FloatDType::F16, FloatKind::F16),
        (DType::BF16, FloatDType::BF16, FloatKind::BF16),
        (DType::F32, FloatDType::F32, FloatKind::F32),
    ];
    for (dtype, float, kind) in types.into_iter().filter(|(dtype, ..)| device.supports_dtype(*dtype)) {
        let floats = |tensor: &Tensor<2>| tensor.to_data().convert::<f32>().iter::<f32>().collect::<Vec<_>>();
        let (a, b) = (factor(&device, 1, m, 1.0, float), factor(&device, 2, n, -1.0, float).transpose());
        let orders = orders(&device, &floats(&a), &floats(&b), kind, float);
        let want = match kind {
            FloatKind::F32 if !is_allowed => "chains",
            _ if driver::is_emulator() => "Hopper's",
            _ => match sums(&client, ElemType::Float(kind)).expect("the device answers") {
                None => "chains",
                Some(Sums::Ampere) => "Ampere's",
                Some(Sums::Hopper) => "Hopper's",
            },
        };
        let products = [("product", a.clone().matmul(b.clone()))].into_iter().chain(passes(&a, &b));
        for (operation, product) in products {
            let got: Vec<u32> = floats(&product).into_iter().map(f32::to_bits).collect();
            let fitting: Vec<_> = orders.iter().filter(|(_, want)| *want == got).map(|(name, _)| *name).collect();
            assert_eq!(fitting, [want], "{operation} of {dtype:?}");
        }
    }
}

#[test]
fn products_have_the_order_of_the_device() {
    Program::new("products_of_types").run();
    Program::new("products_of_types").arguments(&[ALLOWED]).run();
}
