//! Quantized tensors.

use super::adapters::indices::read_checked;
use super::forward::{forward, only_run_to_run, run_to_run};
use super::{Deterministic, transfer};
use burn_backend::ops::{FloatTensorOps, QTensorOps};
use burn_backend::quantization::{QuantScheme, QuantizationParametersPrimitive};
use burn_backend::tensor::{Device, FloatTensor, QuantizedTensor};
use burn_backend::{ExecutionError, FloatDType, Shape, TensorData, TensorMetadata, get_or_init_device_settings};
use burn_cubecl::CubeBackend;

impl QTensorOps<Self> for Deterministic<CubeBackend> {
    fn q_to_device(tensor: QuantizedTensor<Self>, device: &Device<Self>) -> QuantizedTensor<Self> {
        transfer::to_device(tensor, device, Self::q_into_data, Self::q_from_data)
    }

    fn q_into_data(tensor: QuantizedTensor<Self>) -> impl Future<Output = Result<TensorData, ExecutionError>> + Send {
        read_checked(tensor, CubeBackend::q_into_data)
    }

    forward! {
        TRANSFER:
        fn q_from_data(data: TensorData, device: &Device<Self>) -> QuantizedTensor<Self>;
    }

    forward! {
        MOVEMENT:
        fn q_reshape(tensor: QuantizedTensor<Self>, shape: Shape) -> QuantizedTensor<Self>;
        fn q_swap_dims(tensor: QuantizedTensor<Self>, dim1: usize, dim2: usize) -> QuantizedTensor<Self>;
        fn q_permute(tensor: QuantizedTensor<Self>, axes: &[usize]) -> QuantizedTensor<Self>;
    }

    run_to_run! {
        PRODUCTS, only_run_to_run:
        fn dequantize(tensor: QuantizedTensor<Self>, dtype: FloatDType) -> FloatTensor<Self>;
    }

    fn quantize(
        tensor: FloatTensor<Self>,
        scheme: &QuantScheme,
        qparams: QuantizationParametersPrimitive<Self>,
    ) -> QuantizedTensor<Self> {
        let QuantizationParametersPrimitive { scales, global } = qparams;
        only_run_to_run("quantize", tensor, |tensor| {
            CubeBackend::quantize(tensor, scheme, QuantizationParametersPrimitive { scales, global })
        })
    }

    fn q_flip(tensor: QuantizedTensor<Self>, axes: &[usize]) -> QuantizedTensor<Self> {
        // As Burn's defaults for what an inner backend cannot do on the quantized values.
        let scheme = tensor.scheme();
        let dtype = get_or_init_device_settings::<Self>(&tensor.device()).float_dtype;
        Self::quantize_dynamic(Self::float_flip(Self::dequantize(tensor, dtype), axes), &scheme)
    }
}
