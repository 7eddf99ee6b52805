//! The methods that every kind of tensor has: transfers, movements and reads at indices.

/// Defines them, by their names for one kind.
macro_rules! moves {
    (
        fn $from_data:ident, $into_data:ident, $to_device:ident;
        fn $reshape:ident, $slice:ident, $slice_assign:ident, $repeat_dim:ident, $cat:ident, $swap_dims:ident,
            $permute:ident;
        fn $flip:ident, $expand:ident, $unfold:ident, $mask_where:ident, $gather:ident, $select:ident;
    ) => {
        fn $from_data(data: TensorData, device: &CubeDevice) -> Host {
            Host::from_data(&data, device)
        }

        async fn $into_data(tensor: Host) -> Result<TensorData, ExecutionError> {
            Ok(tensor.into_data())
        }

        fn $to_device(tensor: Host, _device: &CubeDevice) -> Host {
            tensor
        }

        fn $reshape(tensor: Host, shape: Shape) -> Host {
            tensor.reshape(shape)
        }

        fn $slice(tensor: Host, slices: &[Slice]) -> Host {
            tensor.slice(slices)
        }

        fn $slice_assign(tensor: Host, slices: &[Slice], value: Host) -> Host {
            tensor.slice_assign(slices, &value)
        }

        fn $repeat_dim(tensor: Host, dim: usize, times: usize) -> Host {
            tensor.repeat_dim(dim, times)
        }

        fn $cat(tensors: Vec<Host>, dim: usize) -> Host {
            Host::cat(&tensors, dim)
        }

        fn $swap_dims(tensor: Host, dim1: usize, dim2: usize) -> Host {
            tensor.swap_dims(dim1, dim2)
        }

        fn $permute(tensor: Host, axes: &[usize]) -> Host {
            tensor.permute(axes)
        }

        fn $flip(tensor: Host, axes: &[usize]) -> Host {
            tensor.flip(axes)
        }

        fn $expand(tensor: Host, shape: Shape) -> Host {
            tensor.expand(&shape)
        }

        fn $unfold(tensor: Host, dim: usize, size: usize, step: usize) -> Host {
            tensor.unfold(dim, size, step)
        }

        fn $mask_where(tensor: Host, mask: Host, value: Host) -> Host {
            tensor.masked(&mask, &value)
        }

        fn $gather(dim: usize, tensor: Host, indices: Host) -> Host {
            tensor.gather(dim, &indices)
        }

        fn $select(tensor: Host, dim: usize, indices: Host) -> Host {
            tensor.select(dim, &indices)
        }
    };
}

pub(super) use moves;
