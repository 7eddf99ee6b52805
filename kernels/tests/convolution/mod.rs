//! Convolution kernels against their references.

mod edges;
mod orders;
mod plans;
mod tensor_cores;
mod types;

use crate::harness::*;
use crate::skip::skip;
use burn_deterministic_kernels::KernelError;
use burn_deterministic_kernels::arithmetic::{MultiplyAdd, Products};
use burn_deterministic_kernels::convolution::*;
use burn_deterministic_kernels::device::Machine;
use burn_deterministic_kernels::order::BLOCK;
use cubecl::ir::{ElemType, FloatKind};
use cubecl::prelude::*;
use cubecl::std::tensor::TensorHandle;
use half::f16;

/// A convolution's operands on the host, its device, and its geometry.
struct Case<const N: usize> {
    client: Client,
    products: Products,
    fma: MultiplyAdd,
    params: ConvolutionParams<N>,
    geometry: Geometry,
    input_shape: Vec<usize>,
    weight_shape: Vec<usize>,
    output_shape: Vec<usize>,
    input: Vec<f32>,
    weight: Vec<f32>,
    bias: Vec<f32>,
    gradient: Vec<f32>,
}

impl<const N: usize> Case<N> {
    fn new(input: &[usize], weight: &[usize], params: ConvolutionParams<N>) -> Self {
        let client = client();
        let geometry = Geometry::new("test", input, weight, &params).expect("operands that fit together");
        let output_shape = geometry.output_shape(N);
        let values = |seed, shape: &[usize]| random_values(seed, shape.iter().product());
        Self {
            products: Products::Native,
            fma: multiply_add_of(&client),
            client,
            params,
            geometry,
            input: values(1, input),
            weight: values(2, weight),
            bias: values(3, &weight[..1]),
            gradient: values(4, &output_shape),
            input_shape: input.to_vec(),
            weight_shape: weight.to_vec(),
            output_shape,
        }
    }

    /// The same case with rounded products.
    fn rounded(self) -> Self {
        Self { products: Products::Rounded, fma: self.fma.of(Products::Rounded), ..self }
    }

    fn upload(&self, values: &[f32], shape: &[usize]) -> TensorHandle {
        upload(&self.client, values, shape, F32)
    }

    fn device_input(&self) -> TensorHandle {
        self.upload(&self.input, &self.input_shape)
    }

    fn device_weight(&self) -> TensorHandle {
        self.upload(&self.weight, &self.weight_shape)
    }

    fn device_bias(&self) -> TensorHandle {
        self.upload(&self.bias, &self.weight_shape[..1])
    }

    fn device_gradient(&self) -> TensorHandle {
        self.upload(&self.gradient, &self.output_shape)
    }

    fn problem(&self, pass: Pass) -> Problem {
        Problem { pass, rank: N, geometry: self.geometry, products: self.products }
    }

    /// What the reference computes, and the operands of the same pass on the device.
    fn pass(&self, pass: Pass) -> (Vec<f32>, Operands) {
        match pass {
            Pass::ToOutput => {
                let bias = Some(self.device_bias());
                (self.forward(), Operands { source: self.device_input(), other: self.device_weight(), bias })
            }
            Pass::ToInput => {
                let (source, other) = (self.device_gradient(), self.device_weight());
                (self.input_gradient(), Operands { source, other, bias: None })
            }
            Pass::ToWeight => {
                let (source, other) = (self.device_input(), self.device_gradient());
                (self.weight_gradient(), Operands { source, other, bias: None })
            }
        }
    }

    fn forward(&self) -> Vec<f32> {
        reference::forward(&self.geometry, self.fma, &self.input, &self.weight, Some(&self.bias))
    }

    fn input_gradient(&self) -> Vec<f32> {
        reference::input_gradient(&self.geometry, self.fma, &self.gradient, &self.weight, None)
    }

    fn weight_gradient(&self) -> Vec<f32> {
        reference::weight_gradient(&self.geometry, self.fma, &self.input, &self.gradient)
    }

    /// The three operations on the device, for operands laid out by the caller.
    fn device(&self, input: TensorHandle, weight: TensorHandle, gradient: TensorHandle) -> [Vec<f32>; 3] {
        let (client, products, params) = (&self.client, self.products, &self.params);
        let bias = Some(self.device_bias());
        let y = forward(client, products, input.clone(), weight.clone(), bias, params).expect("a forward pass");
        let dx = input_gradient(client, products, gradient.clone(), weight, &self.input_shape, params)
            .expect("an input gradient");
        let dw =
            weight_gradient(client, products, input, gradient, &self.weight_shape, params).expect("a weight gradient");
        assert_eq!(y.shape()[..], self.output_shape);
        assert_eq!(dx.shape()[..], self.input_shape);
        assert_eq!(dw.shape()[..], self.weight_shape);
        [y, dx, dw].map(|tensor| download(client, tensor))
    }

    #[track_caller]
    fn check(&self) {
        println!("{:?}", self.geometry);
        let [y, dx, dw] = self.device(self.device_input(), self.device_weight(), self.device_gradient());
        assert_bits(&y, &self.forward());
        assert_bits(&dx, &self.input_gradient());
        assert_bits(&dw, &self.weight_gradient());
    }
}

/// The same step on every axis.
fn uniform<const N: usize>(
    stride: usize,
    padding: (usize, usize),
    dilation: usize,
    groups: usize,
) -> ConvolutionParams<N> {
    ConvolutionParams { stride: [stride; N], padding: [padding; N], dilation: [dilation; N], groups }
}
