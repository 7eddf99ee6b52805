//! What a deformable convolution reads, and its gradients.

use cubecl::std::tensor::TensorHandle;

/// The operands of a deformable convolution.
#[derive(Clone)]
pub struct Operands {
    /// `[batch, channels, height, width]`.
    pub input: TensorHandle,
    /// `[batch, offset groups * taps * 2, output height, output width]`: down, then to the right.
    pub offset: TensorHandle,
    /// `[output channels, channels / weight groups, taps down, taps across]`.
    pub weight: TensorHandle,
    /// `[batch, offset groups * taps, output height, output width]`.
    pub mask: Option<TensorHandle>,
}

/// The gradients of a deformable convolution's operands, each in the shape of its operand.
pub struct Gradients {
    /// Of the image.
    pub input: TensorHandle,
    /// Of the offsets.
    pub offset: TensorHandle,
    /// Of the weight.
    pub weight: TensorHandle,
    /// Of the mask, if there is one.
    pub mask: Option<TensorHandle>,
}
