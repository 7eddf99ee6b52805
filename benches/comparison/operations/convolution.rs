//! Convolutions and their gradients.

use super::{Rows, both, floats, halves};
use burn_backend::Backend;
use burn_backend::ops::{ConvOptions, ConvTransposeOptions, DeformConv2dBackward, DeformConvOptions, ModuleOps};
use burn_backend::tensor::FloatTensor;

pub fn compare(rows: &mut Rows<'_>) {
    planes(rows);
    of_halves(rows);
    signals_and_volumes(rows);
    transposed(rows);
    deformable(rows);
}

fn planes(rows: &mut Rows<'_>) {
    let (x, weight, gradient) = (floats([16, 32, 28, 28]), floats([64, 32, 3, 3]), floats([16, 64, 28, 28]));
    let options = || ConvOptions::new([1, 1], [1, 1], [1, 1], 1);
    let forward = both!(B => B::conv2d(x.clone(), weight.clone(), None, options()));
    rows.add("conv2d, 16 x 32 x 28 x 28 to 64 channels, 3 x 3", forward);
    let input = both!(B => B::conv2d_x_backward(x.clone(), weight.clone(), gradient.clone(), options()));
    rows.add("conv2d input gradient", input);
    let weights = both!(B => B::conv2d_weight_backward(x.clone(), weight.clone(), gradient.clone(), options()));
    rows.add("conv2d weight gradient", weights);
    let bias = floats([64]);
    let biases = both!(B => B::conv2d_bias_backward(x.clone(), bias.clone(), gradient.clone()));
    rows.add("conv2d bias gradient", biases);

    let (weight, gradient) = (floats([32, 1, 3, 3]), floats([16, 32, 28, 28]));
    let options = || ConvOptions::new([1, 1], [1, 1], [1, 1], 32);
    let forward = both!(B => B::conv2d(x.clone(), weight.clone(), None, options()));
    rows.add("conv2d of each channel by itself, 16 x 32 x 28 x 28, 3 x 3", forward);
    let weights = both!(B => B::conv2d_weight_backward(x.clone(), weight.clone(), gradient.clone(), options()));
    rows.add("conv2d of each channel, weight gradient", weights);
}

/// In a layer of a residual network.
fn of_halves(rows: &mut Rows<'_>) {
    let image = || halves([32, 64, 56, 56]);
    let (Some(x), Some(weight), Some(gradient)) = (image(), halves([64, 64, 3, 3]), image()) else { return };
    let options = || ConvOptions::new([1, 1], [1, 1], [1, 1], 1);
    let forward = both!(B => B::conv2d(x.clone(), weight.clone(), None, options()));
    rows.add("conv2d of f16, 32 x 64 x 56 x 56 to 64 channels, 3 x 3", forward);
    let input = both!(B => B::conv2d_x_backward(x.clone(), weight.clone(), gradient.clone(), options()));
    rows.add("conv2d of f16, input gradient", input);
    let weights = both!(B => B::conv2d_weight_backward(x.clone(), weight.clone(), gradient.clone(), options()));
    rows.add("conv2d of f16, weight gradient", weights);
}

fn signals_and_volumes(rows: &mut Rows<'_>) {
    let (x, weight, gradient) = (floats([16, 32, 512]), floats([64, 32, 5]), floats([16, 64, 512]));
    let options = || ConvOptions::new([1], [2], [1], 1);
    let forward = both!(B => B::conv1d(x.clone(), weight.clone(), None, options()));
    rows.add("conv1d, 16 x 32 x 512 to 64 channels, 5", forward);
    let input = both!(B => B::conv1d_x_backward(x.clone(), weight.clone(), gradient.clone(), options()));
    rows.add("conv1d input gradient", input);
    let weights = both!(B => B::conv1d_weight_backward(x.clone(), weight.clone(), gradient.clone(), options()));
    rows.add("conv1d weight gradient", weights);

    let (x, weight) = (floats([2, 16, 16, 16, 16]), floats([16, 16, 3, 3, 3]));
    let gradient = floats([2, 16, 16, 16, 16]);
    let options = || ConvOptions::new([1; 3], [1; 3], [1; 3], 1);
    let forward = both!(B => B::conv3d(x.clone(), weight.clone(), None, options()));
    rows.add("conv3d, 2 x 16 x 16 x 16 x 16 to 16 channels, 3 x 3 x 3", forward);
    let input = both!(B => B::conv3d_x_backward(x.clone(), weight.clone(), gradient.clone(), options()));
    rows.add("conv3d input gradient", input);
    let weights = both!(B => B::conv3d_weight_backward(x.clone(), weight.clone(), gradient.clone(), options()));
    rows.add("conv3d weight gradient", weights);
}

fn transposed(rows: &mut Rows<'_>) {
    let (x, weight, gradient) = (floats([8, 64, 14, 14]), floats([64, 32, 4, 4]), floats([8, 32, 28, 28]));
    let options = || ConvTransposeOptions::new([2, 2], [1, 1], [0, 0], [1, 1], 1);
    let forward = both!(B => B::conv_transpose2d(x.clone(), weight.clone(), None, options()));
    rows.add("conv_transpose2d, 8 x 64 x 14 x 14 to 32 channels, 4 x 4 by 2", forward);
    let input = both!(B => B::conv_transpose2d_x_backward(weight.clone(), gradient.clone(), options()));
    rows.add("conv_transpose2d input gradient", input);
    let weights =
        both!(B => B::conv_transpose2d_weight_backward(x.clone(), weight.clone(), gradient.clone(), options()));
    rows.add("conv_transpose2d weight gradient", weights);
    let (x, weight) = (floats([8, 32, 256]), floats([32, 16, 4]));
    let options = || ConvTransposeOptions::new([2], [1], [0], [1], 1);
    let forward = both!(B => B::conv_transpose1d(x.clone(), weight.clone(), None, options()));
    rows.add("conv_transpose1d, 8 x 32 x 256 to 16 channels, 4 by 2", forward);
    let (x, weight) = (floats([2, 16, 8, 8, 8]), floats([16, 8, 4, 4, 4]));
    let options = || ConvTransposeOptions::new([2; 3], [1; 3], [0; 3], [1; 3], 1);
    let forward = both!(B => B::conv_transpose3d(x.clone(), weight.clone(), None, options()));
    rows.add("conv_transpose3d, 2 x 16 x 8 x 8 x 8 to 8 channels, 4 x 4 x 4 by 2", forward);
}

fn deformable(rows: &mut Rows<'_>) {
    let (x, offset, weight) = (floats([4, 16, 28, 28]), floats([4, 18, 28, 28]), floats([32, 16, 3, 3]));
    let (mask, gradient) = (floats([4, 9, 28, 28]), floats([4, 32, 28, 28]));
    let options = || DeformConvOptions::new([1, 1], [1, 1], [1, 1], 1, 1);
    let forward = both!(B => {
        B::deform_conv2d(x.clone(), offset.clone(), weight.clone(), Some(mask.clone()), None, options())
    });
    rows.add("deform_conv2d, 4 x 16 x 28 x 28 to 32 channels, 3 x 3", forward);
    let backward = both!(B => {
        let operands = (x.clone(), offset.clone(), weight.clone(), Some(mask.clone()));
        all::<B>(B::deform_conv2d_backward(operands.0, operands.1, operands.2, operands.3, None, gradient.clone(), options()))
    });
    rows.add("deform_conv2d gradients", backward);
}

fn all<B: Backend>(gradients: DeformConv2dBackward<B>) -> Vec<FloatTensor<B>> {
    let DeformConv2dBackward { x_grad, offset_grad, weight_grad, mask_grad, .. } = gradients;
    [x_grad, offset_grad, weight_grad].into_iter().chain(mask_grad).collect()
}
