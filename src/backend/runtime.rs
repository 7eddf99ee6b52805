//! The device: its name, its queue, its memory.

use super::Deterministic;
use super::adapters::indices::reported;
use super::forward::forward;
use crate::random::set_backend_seed;
use burn_backend::tensor::Device;
use burn_backend::{
    Backend, BackendGraph, BackendTypes, DType, DTypeUsageSet, ExecutionError, MemoryPoolUsage, ProfileDuration,
    ProfileOptions, ProfileToken, SlicedPoolReport, TensorData,
};
use burn_cubecl::CubeBackend;

impl BackendTypes for Deterministic<CubeBackend> {
    type Device = <CubeBackend as BackendTypes>::Device;
    type FloatTensorPrimitive = <CubeBackend as BackendTypes>::FloatTensorPrimitive;
    type IntTensorPrimitive = <CubeBackend as BackendTypes>::IntTensorPrimitive;
    type BoolTensorPrimitive = <CubeBackend as BackendTypes>::BoolTensorPrimitive;
    type QuantizedTensorPrimitive = <CubeBackend as BackendTypes>::QuantizedTensorPrimitive;
    type GraphPrimitive = <CubeBackend as BackendTypes>::GraphPrimitive;
}

impl Backend for Deterministic<CubeBackend> {
    fn name(device: &Device<Self>) -> String {
        format!("deterministic<{}>", CubeBackend::name(device))
    }

    /// Seeds the random operations that run on this backend outside Burn's stream, on every device and from every
    /// thread that has no seed of its own.
    fn seed(_device: &Device<Self>, seed: u64) {
        set_backend_seed(seed);
    }

    fn sync(device: &Device<Self>) -> Result<(), ExecutionError> {
        CubeBackend::sync(device)?;
        match reported(device) {
            Some(error) => Err(ExecutionError::with_context(error.to_string())),
            None => Ok(()),
        }
    }

    forward! {
        MANAGEMENT:
        fn flush(device: &Device<Self>) -> Result<(), ExecutionError>;
        fn memory_cleanup(device: &Device<Self>);
        fn memory_pool_report(device: &Device<Self>) -> Option<Vec<SlicedPoolReport>>;
        fn memory_pool_usage(device: &Device<Self>) -> Option<MemoryPoolUsage>;
        fn supports_dtype(device: &Device<Self>, dtype: DType) -> bool;
        fn dtype_usage(device: &Device<Self>, dtype: DType) -> DTypeUsageSet;
        fn device_count(type_id: u16) -> usize;
        fn profile_start(device: &Device<Self>) -> Result<Option<ProfileToken>, ExecutionError>;
        fn profile_end(
            device: &Device<Self>,
            token: ProfileToken,
            options: ProfileOptions,
        ) -> Result<ProfileDuration, ExecutionError>;
        fn profile_abandon(device: &Device<Self>, token: ProfileToken);
    }

    forward! {
        REPLAY:
        fn graph_prepare(device: &Device<Self>) -> Result<(), ExecutionError>;
        fn graph_start_capture(device: &Device<Self>) -> Result<(), ExecutionError>;
        fn graph_stop_capture(device: &Device<Self>) -> Result<BackendGraph<Self>, ExecutionError>;
    }

    unsafe fn graph_replay(device: &Device<Self>, graph: &BackendGraph<Self>) -> Result<(), ExecutionError> {
        // SAFETY: the obligations are the same, and the caller's.
        unsafe { CubeBackend::graph_replay(device, graph) }
    }

    fn profile<O: Send + 'static>(
        device: &Device<Self>,
        options: ProfileOptions,
        func: impl FnOnce() -> O + Send,
    ) -> Result<(O, ProfileDuration), ExecutionError> {
        CubeBackend::profile(device, options, func)
    }

    fn memory_persistent_allocations<Output: Send, Input: Send, Func: Fn(Input) -> Output + Send>(
        device: &Device<Self>,
        input: Input,
        func: Func,
    ) -> Output {
        CubeBackend::memory_persistent_allocations(device, input, func)
    }

    fn staging<'a, Iter>(data: Iter, device: &Device<Self>)
    where
        Iter: Iterator<Item = &'a mut TensorData>,
    {
        CubeBackend::staging(data, device);
    }
}
