//! Quantized tensors.

use super::Deterministic;
use super::forward::forward;
use super::refused::{poison, refuse};
use crate::catalogue;
use burn_backend::ops::QTensorOps;
use burn_backend::quantization::{QuantScheme, QuantizationParametersPrimitive};
use burn_backend::tensor::{Device, FloatTensor, QuantizedTensor};
use burn_backend::{ExecutionError, FloatDType, Shape, TensorData, TensorMetadata};
use burn_cubecl::CubeBackend;

impl QTensorOps<Self> for Deterministic<CubeBackend> {
    forward! {
        TRANSFER:
        fn q_from_data(data: TensorData, device: &Device<Self>) -> QuantizedTensor<Self>;
        fn q_to_device(tensor: QuantizedTensor<Self>, device: &Device<Self>) -> QuantizedTensor<Self>;
        fn q_into_data(
            tensor: QuantizedTensor<Self>,
        ) -> impl Future<Output = Result<TensorData, ExecutionError>> + Send;
    }

    forward! {
        MOVEMENT:
        fn q_reshape(tensor: QuantizedTensor<Self>, shape: Shape) -> QuantizedTensor<Self>;
        fn q_swap_dims(tensor: QuantizedTensor<Self>, dim1: usize, dim2: usize) -> QuantizedTensor<Self>;
        fn q_permute(tensor: QuantizedTensor<Self>, axes: &[usize]) -> QuantizedTensor<Self>;
    }

    forward! {
        ELEMENTWISE:
        fn dequantize(tensor: QuantizedTensor<Self>, dtype: FloatDType) -> FloatTensor<Self>;
    }

    fn quantize(
        tensor: FloatTensor<Self>,
        scheme: &QuantScheme,
        qparams: QuantizationParametersPrimitive<Self>,
    ) -> QuantizedTensor<Self> {
        let QuantizationParametersPrimitive { scales, global } = qparams;
        CubeBackend::quantize(tensor, scheme, QuantizationParametersPrimitive { scales, global })
    }

    fn q_flip(tensor: QuantizedTensor<Self>, axes: &[usize]) -> QuantizedTensor<Self> {
        refuse(
            "q_flip",
            &[&tensor],
            catalogue::refusal("q_flip"),
            || CubeBackend::q_flip(tensor.clone(), axes),
            |error| poison(error, &tensor.device, tensor.shape(), tensor.dtype),
        )
    }
}
