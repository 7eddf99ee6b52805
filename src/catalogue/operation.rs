//! From an operation of Burn's stream to the method that runs it.

use burn_ir::{
    ActivationOperationIr, BaseOperationIr, BoolOperationIr, DistributedOperationIr, FloatOperationIr, IntOperationIr,
    ModuleOperationIr, NumericOperationIr, OperationIr,
};

/// The method of burn-backend that runs an operation; the name in [`STREAM`](super::STREAM) for one that is no method.
pub fn operation(operation: &OperationIr) -> &'static str {
    match operation {
        OperationIr::BaseFloat(operation) => base(operation).float,
        OperationIr::BaseInt(operation) => base(operation).int,
        OperationIr::BaseBool(operation) => base(operation).bool,
        OperationIr::NumericFloat(_, operation) => numeric(operation).float,
        OperationIr::NumericInt(_, operation) => numeric(operation).int,
        OperationIr::Bool(operation) => bool(operation),
        OperationIr::Int(operation) => int(operation),
        OperationIr::Float(_, operation) => float(operation),
        OperationIr::Module(operation) => module(operation),
        OperationIr::Activation(operation) => activation(operation),
        OperationIr::Distributed(operation) => distributed(operation),
        OperationIr::Custom(_) => "custom",
        OperationIr::Init(_) => "init",
        OperationIr::Drop(_) => "drop",
    }
}

/// The [method](operation) that runs an operation; a custom operation's id.
pub(crate) fn name(operation: &OperationIr) -> &str {
    match operation {
        OperationIr::Custom(custom) => &custom.id,
        operation => self::operation(operation),
    }
}

/// Whether `operation` frees a tensor.
pub(crate) fn is_free(operation: &OperationIr) -> bool {
    matches!(operation, OperationIr::Drop(_))
}

/// Whether an operation computes something: not an upload, nor the end of a tensor.
pub(crate) fn computes(operation: &OperationIr) -> bool {
    !matches!(operation, OperationIr::Init(_) | OperationIr::Drop(_))
}

/// Whether an operation is a custom one, of the program or of an extension: those of burn-signal and burn-linalg are Burn's.
pub(crate) fn is_custom(operation: &OperationIr) -> bool {
    let is_burns = |id: &str| ["signal::", "linalg::"].iter().any(|extension| id.starts_with(extension));
    matches!(operation, OperationIr::Custom(custom) if !is_burns(&custom.id))
}

/// An operation that every kind of tensor has.
struct Base {
    float: &'static str,
    int: &'static str,
    bool: &'static str,
}

/// The three methods whose names differ in the kind alone.
macro_rules! base {
    ($operation:literal) => {
        Base {
            float: concat!("float_", $operation),
            int: concat!("int_", $operation),
            bool: concat!("bool_", $operation),
        }
    };
}

/// An operation that float and int tensors have.
struct Numeric {
    float: &'static str,
    int: &'static str,
}

/// The two methods whose names differ in the kind alone.
macro_rules! numeric {
    ($operation:literal) => {
        Numeric { float: concat!("float_", $operation), int: concat!("int_", $operation) }
    };
}

fn base(operation: &BaseOperationIr) -> Base {
    match operation {
        BaseOperationIr::Reshape(_) => base!("reshape"),
        BaseOperationIr::SwapDims(_) => base!("swap_dims"),
        BaseOperationIr::Permute(_) => base!("permute"),
        BaseOperationIr::Flip(_) => base!("flip"),
        BaseOperationIr::Expand(_) => base!("expand"),
        BaseOperationIr::Unfold(_) => base!("unfold"),
        BaseOperationIr::Slice(_) => base!("slice"),
        BaseOperationIr::SliceAssign(_) => base!("slice_assign"),
        BaseOperationIr::Select(_) => base!("select"),
        BaseOperationIr::SelectAssign(_) => {
            Base { float: "float_select_assign", int: "int_select_assign", bool: "bool_select_or" }
        }
        BaseOperationIr::MaskWhere(_) => base!("mask_where"),
        BaseOperationIr::MaskFill(_) => base!("mask_fill"),
        BaseOperationIr::Gather(_) => base!("gather"),
        BaseOperationIr::Scatter(_) => Base { float: "float_scatter", int: "int_scatter", bool: "bool_scatter_or" },
        BaseOperationIr::ScatterNd(_) => base!("scatter_nd"),
        BaseOperationIr::GatherNd(_) => base!("gather_nd"),
        BaseOperationIr::Equal(_) => base!("equal"),
        BaseOperationIr::EqualElem(_) => base!("equal_elem"),
        BaseOperationIr::RepeatDim(_) => base!("repeat_dim"),
        BaseOperationIr::Cat(_) => base!("cat"),
        BaseOperationIr::Cast(_) => base!("cast"),
        BaseOperationIr::Empty(_) => base!("empty"),
        BaseOperationIr::Ones(_) => base!("ones"),
        BaseOperationIr::Zeros(_) => base!("zeros"),
        BaseOperationIr::NotEqual(_) => base!("not_equal"),
        BaseOperationIr::NotEqualElem(_) => base!("not_equal_elem"),
        BaseOperationIr::All(_) => base!("all"),
        BaseOperationIr::Any(_) => base!("any"),
        BaseOperationIr::AllDim(_) => base!("all_dim"),
        BaseOperationIr::AnyDim(_) => base!("any_dim"),
    }
}

fn numeric(operation: &NumericOperationIr) -> Numeric {
    match operation {
        NumericOperationIr::Add(_) => numeric!("add"),
        NumericOperationIr::AddScalar(_) => numeric!("add_scalar"),
        NumericOperationIr::Sub(_) => numeric!("sub"),
        NumericOperationIr::SubScalar(_) => numeric!("sub_scalar"),
        NumericOperationIr::Div(_) => numeric!("div"),
        NumericOperationIr::DivScalar(_) => numeric!("div_scalar"),
        NumericOperationIr::Rem(_) => numeric!("remainder"),
        NumericOperationIr::RemScalar(_) => numeric!("remainder_scalar"),
        NumericOperationIr::Mul(_) => numeric!("mul"),
        NumericOperationIr::MulScalar(_) => numeric!("mul_scalar"),
        NumericOperationIr::Abs(_) => numeric!("abs"),
        NumericOperationIr::Full(_) => numeric!("full"),
        NumericOperationIr::MeanDim(_) => numeric!("mean_dim"),
        NumericOperationIr::Mean(_) => numeric!("mean"),
        NumericOperationIr::Sum(_) => numeric!("sum"),
        NumericOperationIr::SumDim(_) => numeric!("sum_dim"),
        NumericOperationIr::SumDims(_) => Numeric { float: "float_sum_dims", int: "int_sum_dim" },
        NumericOperationIr::Prod(_) => numeric!("prod"),
        NumericOperationIr::ProdDim(_) => numeric!("prod_dim"),
        NumericOperationIr::Greater(_) => numeric!("greater"),
        NumericOperationIr::GreaterElem(_) => numeric!("greater_elem"),
        NumericOperationIr::GreaterEqual(_) => numeric!("greater_equal"),
        NumericOperationIr::GreaterEqualElem(_) => numeric!("greater_equal_elem"),
        NumericOperationIr::Lower(_) => numeric!("lower"),
        NumericOperationIr::LowerElem(_) => numeric!("lower_elem"),
        NumericOperationIr::LowerEqual(_) => numeric!("lower_equal"),
        NumericOperationIr::LowerEqualElem(_) => numeric!("lower_equal_elem"),
        NumericOperationIr::ArgMax(_) => numeric!("argmax"),
        NumericOperationIr::ArgTopK(_) => numeric!("argtopk"),
        NumericOperationIr::TopK(_) => numeric!("topk"),
        NumericOperationIr::TopKWithIndices(_) => numeric!("topk_with_indices"),
        NumericOperationIr::ArgMin(_) => numeric!("argmin"),
        NumericOperationIr::Max(_) => numeric!("max"),
        NumericOperationIr::MaxDimWithIndices(_) => numeric!("max_dim_with_indices"),
        NumericOperationIr::MinDimWithIndices(_) => numeric!("min_dim_with_indices"),
        NumericOperationIr::Min(_) => numeric!("min"),
        NumericOperationIr::MaxDim(_) => numeric!("max_dim"),
        NumericOperationIr::MinDim(_) => numeric!("min_dim"),
        NumericOperationIr::MaxAbs(_) => numeric!("max_abs"),
        NumericOperationIr::MaxAbsDim(_) => numeric!("max_abs_dim"),
        NumericOperationIr::Clamp(_) => numeric!("clamp"),
        NumericOperationIr::IntRandom(_) => Numeric { float: "int_random", int: "int_random" },
        NumericOperationIr::Powi(_) => numeric!("powi"),
        NumericOperationIr::PowiScalar(_) => numeric!("powi_scalar"),
        NumericOperationIr::CumSum(_) => numeric!("cumsum"),
        NumericOperationIr::CumProd(_) => numeric!("cumprod"),
        NumericOperationIr::CumMin(_) => numeric!("cummin"),
        NumericOperationIr::CumMax(_) => numeric!("cummax"),
        NumericOperationIr::Neg(_) => numeric!("neg"),
        NumericOperationIr::Sign(_) => numeric!("sign"),
        NumericOperationIr::ClampMin(_) => numeric!("clamp_min"),
        NumericOperationIr::ClampMax(_) => numeric!("clamp_max"),
        NumericOperationIr::Sort(_) => numeric!("sort"),
        NumericOperationIr::SortWithIndices(_) => numeric!("sort_with_indices"),
        NumericOperationIr::ArgSort(_) => numeric!("argsort"),
        NumericOperationIr::Pad(_) => numeric!("pad"),
    }
}

fn bool(operation: &BoolOperationIr) -> &'static str {
    match operation {
        BoolOperationIr::IntoFloat(_) => "bool_into_float",
        BoolOperationIr::IntoInt(_) => "bool_into_int",
        BoolOperationIr::Not(_) => "bool_not",
        BoolOperationIr::And(_) => "bool_and",
        BoolOperationIr::Or(_) => "bool_or",
        BoolOperationIr::Xor(_) => "bool_xor",
    }
}

fn int(operation: &IntOperationIr) -> &'static str {
    match operation {
        IntOperationIr::IntoFloat(_) => "int_into_float",
        IntOperationIr::BitwiseAnd(_) => "bitwise_and",
        IntOperationIr::BitwiseAndScalar(_) => "bitwise_and_scalar",
        IntOperationIr::BitwiseOr(_) => "bitwise_or",
        IntOperationIr::BitwiseOrScalar(_) => "bitwise_or_scalar",
        IntOperationIr::BitwiseXor(_) => "bitwise_xor",
        IntOperationIr::BitwiseXorScalar(_) => "bitwise_xor_scalar",
        IntOperationIr::BitwiseNot(_) => "bitwise_not",
        IntOperationIr::BitwiseLeftShift(_) => "bitwise_left_shift",
        IntOperationIr::BitwiseLeftShiftScalar(_) => "bitwise_left_shift_scalar",
        IntOperationIr::BitwiseRightShift(_) => "bitwise_right_shift",
        IntOperationIr::BitwiseRightShiftScalar(_) => "bitwise_right_shift_scalar",
        IntOperationIr::Matmul(_) => "int_matmul",
    }
}

fn float(operation: &FloatOperationIr) -> &'static str {
    match operation {
        FloatOperationIr::Exp(_) => "float_exp",
        FloatOperationIr::Log(_) => "float_log",
        FloatOperationIr::Log1p(_) => "float_log1p",
        FloatOperationIr::Erf(_) => "float_erf",
        FloatOperationIr::PowfScalar(_) => "float_powf_scalar",
        FloatOperationIr::Sqrt(_) => "float_sqrt",
        FloatOperationIr::Cos(_) => "float_cos",
        FloatOperationIr::Cosh(_) => "float_cosh",
        FloatOperationIr::Sin(_) => "float_sin",
        FloatOperationIr::Sinh(_) => "float_sinh",
        FloatOperationIr::Tan(_) => "float_tan",
        FloatOperationIr::Tanh(_) => "float_tanh",
        FloatOperationIr::ArcCos(_) => "float_acos",
        FloatOperationIr::ArcCosh(_) => "float_acosh",
        FloatOperationIr::ArcSin(_) => "float_asin",
        FloatOperationIr::ArcSinh(_) => "float_asinh",
        FloatOperationIr::ArcTan(_) => "float_atan",
        FloatOperationIr::ArcTanh(_) => "float_atanh",
        FloatOperationIr::ArcTan2(_) => "float_atan2",
        FloatOperationIr::Round(_) => "float_round",
        FloatOperationIr::Floor(_) => "float_floor",
        FloatOperationIr::Ceil(_) => "float_ceil",
        FloatOperationIr::Trunc(_) => "float_trunc",
        FloatOperationIr::IntoInt(_) => "float_into_int",
        FloatOperationIr::Matmul(_) => "float_matmul",
        FloatOperationIr::Cross(_) => "float_cross",
        FloatOperationIr::Random(_) => "float_random",
        FloatOperationIr::Recip(_) => "float_recip",
        FloatOperationIr::IsNan(_) => "float_is_nan",
        FloatOperationIr::IsInf(_) => "float_is_inf",
        FloatOperationIr::Quantize(_) => "quantize",
        FloatOperationIr::Dequantize(_) => "dequantize",
        FloatOperationIr::GridSample2d(_) => "float_grid_sample_2d",
        FloatOperationIr::Powf(_) => "float_powf",
        FloatOperationIr::Hypot(_) => "float_hypot",
    }
}

fn module(operation: &ModuleOperationIr) -> &'static str {
    match operation {
        ModuleOperationIr::BatchNorm(_) => "batch_norm",
        ModuleOperationIr::Embedding(_) => "embedding",
        ModuleOperationIr::EmbeddingBackward(_) => "embedding_backward",
        ModuleOperationIr::Linear(_) => "linear",
        ModuleOperationIr::LinearXBackward(_) => "linear_x_backward",
        ModuleOperationIr::LinearWeightBackward(_) => "linear_weight_backward",
        ModuleOperationIr::LinearBiasBackward(_) => "linear_bias_backward",
        ModuleOperationIr::Conv1d(_) => "conv1d",
        ModuleOperationIr::Conv1dXBackward(_) => "conv1d_x_backward",
        ModuleOperationIr::Conv1dWeightBackward(_) => "conv1d_weight_backward",
        ModuleOperationIr::Conv1dBiasBackward(_) => "conv1d_bias_backward",
        ModuleOperationIr::Conv2d(_) => "conv2d",
        ModuleOperationIr::Conv2dXBackward(_) => "conv2d_x_backward",
        ModuleOperationIr::Conv2dWeightBackward(_) => "conv2d_weight_backward",
        ModuleOperationIr::Conv2dBiasBackward(_) => "conv2d_bias_backward",
        ModuleOperationIr::Conv3d(_) => "conv3d",
        ModuleOperationIr::Conv3dXBackward(_) => "conv3d_x_backward",
        ModuleOperationIr::Conv3dWeightBackward(_) => "conv3d_weight_backward",
        ModuleOperationIr::Conv3dBiasBackward(_) => "conv3d_bias_backward",
        ModuleOperationIr::DeformableConv2d(_) => "deform_conv2d",
        ModuleOperationIr::DeformableConv2dBackward(_) => "deform_conv2d_backward",
        ModuleOperationIr::ConvTranspose1d(_) => "conv_transpose1d",
        ModuleOperationIr::ConvTranspose2d(_) => "conv_transpose2d",
        ModuleOperationIr::ConvTranspose3d(_) => "conv_transpose3d",
        ModuleOperationIr::AvgPool1d(_) => "avg_pool1d",
        ModuleOperationIr::AvgPool2d(_) => "avg_pool2d",
        ModuleOperationIr::AvgPool1dBackward(_) => "avg_pool1d_backward",
        ModuleOperationIr::AvgPool2dBackward(_) => "avg_pool2d_backward",
        ModuleOperationIr::AdaptiveAvgPool1d(_) => "adaptive_avg_pool1d",
        ModuleOperationIr::AdaptiveAvgPool2d(_) => "adaptive_avg_pool2d",
        ModuleOperationIr::AdaptiveAvgPool1dBackward(_) => "adaptive_avg_pool1d_backward",
        ModuleOperationIr::AdaptiveAvgPool2dBackward(_) => "adaptive_avg_pool2d_backward",
        ModuleOperationIr::AdaptiveAvgPool3d(_) => "adaptive_avg_pool3d",
        ModuleOperationIr::AdaptiveAvgPool3dBackward(_) => "adaptive_avg_pool3d_backward",
        ModuleOperationIr::MaxPool1d(_) => "max_pool1d",
        ModuleOperationIr::MaxPool1dWithIndices(_) => "max_pool1d_with_indices",
        ModuleOperationIr::MaxPool1dWithIndicesBackward(_) => "max_pool1d_with_indices_backward",
        ModuleOperationIr::MaxPool2d(_) => "max_pool2d",
        ModuleOperationIr::MaxPool2dWithIndices(_) => "max_pool2d_with_indices",
        ModuleOperationIr::MaxPool2dWithIndicesBackward(_) => "max_pool2d_with_indices_backward",
        ModuleOperationIr::Interpolate(_) => "interpolate",
        ModuleOperationIr::InterpolateBackward(_) => "interpolate_backward",
        ModuleOperationIr::Attention(_) => "attention",
        ModuleOperationIr::CtcLoss(_) => "ctc_loss",
        ModuleOperationIr::CtcLossBackward(_) => "ctc_loss_backward",
        ModuleOperationIr::LayerNorm(_) => "layer_norm",
        ModuleOperationIr::Unfold4d(_) => "unfold4d",
        ModuleOperationIr::ConvTranspose1dWeightBackward(_) => "conv_transpose1d_weight_backward",
        ModuleOperationIr::ConvTranspose1dBiasBackward(_) => "conv_transpose1d_bias_backward",
        ModuleOperationIr::ConvTranspose2dWeightBackward(_) => "conv_transpose2d_weight_backward",
        ModuleOperationIr::ConvTranspose2dBiasBackward(_) => "conv_transpose2d_bias_backward",
        ModuleOperationIr::ConvTranspose3dWeightBackward(_) => "conv_transpose3d_weight_backward",
        ModuleOperationIr::ConvTranspose3dBiasBackward(_) => "conv_transpose3d_bias_backward",
    }
}

fn activation(operation: &ActivationOperationIr) -> &'static str {
    match operation {
        ActivationOperationIr::Relu(_) => "relu",
        ActivationOperationIr::ReluBackward(_) => "relu_backward",
        ActivationOperationIr::LeakyRelu(_) => "leaky_relu",
        ActivationOperationIr::PRelu(_) => "prelu",
        ActivationOperationIr::Gelu(_) => "gelu",
        ActivationOperationIr::GeluBackward(_) => "gelu_backward",
        ActivationOperationIr::Sigmoid(_) => "sigmoid",
        ActivationOperationIr::SigmoidBackward(_) => "sigmoid_backward",
        ActivationOperationIr::HardSigmoid(_) => "hard_sigmoid",
        ActivationOperationIr::LogSigmoid(_) => "log_sigmoid",
        ActivationOperationIr::LogSigmoidBackward(_) => "log_sigmoid_backward",
        ActivationOperationIr::Softmax(_) => "softmax",
        ActivationOperationIr::LogSoftmax(_) => "log_softmax",
        ActivationOperationIr::Softmin(_) => "softmin",
    }
}

fn distributed(operation: &DistributedOperationIr) -> &'static str {
    match operation {
        DistributedOperationIr::AllReduce(_) => "all_reduce",
        DistributedOperationIr::SyncCollective => "sync_collective",
    }
}
