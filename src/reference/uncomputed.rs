//! Traits of which nothing is computed here: quantized tensors and collectives are refused under `GpuToGpu`,
//! activations and transactions are composed by Burn's default bodies.

use super::host::Host;
use super::{Reference, limits::not_checked};
use burn_backend::distributed::{CollectiveTensor, DistributedOps, ReduceOperation};
use burn_backend::ops::{
    ActivationOps, BoolTensorOps, FloatTensorOps, IntTensorOps, QTensorOps, TransactionOps, TransactionPrimitive,
    TransactionPrimitiveData,
};
use burn_backend::quantization::{QuantScheme, QuantizationParametersPrimitive};
use burn_backend::{DType, DeviceId, ExecutionError, FloatDType, Shape, TensorData, TensorMetadata};
use burn_cubecl::CubeDevice;

impl ActivationOps<Self> for Reference {}

impl TransactionOps<Self> for Reference {
    async fn tr_execute(transaction: TransactionPrimitive<Self>) -> Result<TransactionPrimitiveData, ExecutionError> {
        let mut data = TransactionPrimitiveData::default();
        for tensor in transaction.read_floats {
            data.read_floats.push(Self::float_into_data(tensor).await?);
        }
        for tensor in transaction.read_ints {
            data.read_ints.push(Self::int_into_data(tensor).await?);
        }
        for tensor in transaction.read_bools {
            data.read_bools.push(Self::bool_into_data(tensor).await?);
        }
        // Of quantized tensors there are none.
        Ok(data)
    }
}

impl DistributedOps<Self> for Reference {
    fn all_reduce(_tensor: Host, _op: ReduceOperation, _device_ids: Vec<DeviceId>) -> CollectiveTensor<Self> {
        not_checked("refused under `GpuToGpu`")
    }

    fn sync_collective(_device: &CubeDevice) {}
}

/// A quantized tensor: there is none.
#[derive(Clone, Debug)]
pub(crate) enum Quantized {}

impl TensorMetadata for Quantized {
    type Device = CubeDevice;

    fn dtype(&self) -> DType {
        match *self {}
    }

    fn shape(&self) -> Shape {
        match *self {}
    }

    fn device(&self) -> CubeDevice {
        match *self {}
    }

    fn can_mut(&self) -> bool {
        match *self {}
    }
}

impl QTensorOps<Self> for Reference {
    fn q_from_data(_data: TensorData, _device: &CubeDevice) -> Quantized {
        not_checked("refused under `GpuToGpu`")
    }

    fn quantize(_tensor: Host, _scheme: &QuantScheme, _qparams: QuantizationParametersPrimitive<Self>) -> Quantized {
        not_checked("refused under `GpuToGpu`")
    }

    fn dequantize(tensor: Quantized, _dtype: FloatDType) -> Host {
        match tensor {}
    }

    fn q_to_device(tensor: Quantized, _device: &CubeDevice) -> Quantized {
        tensor
    }

    fn q_reshape(tensor: Quantized, _shape: Shape) -> Quantized {
        tensor
    }

    async fn q_into_data(tensor: Quantized) -> Result<TensorData, ExecutionError> {
        match tensor {}
    }

    fn q_swap_dims(tensor: Quantized, _dim1: usize, _dim2: usize) -> Quantized {
        tensor
    }

    fn q_permute(tensor: Quantized, _axes: &[usize]) -> Quantized {
        tensor
    }

    fn q_flip(tensor: Quantized, _axes: &[usize]) -> Quantized {
        tensor
    }
}
