//! Half types, doubles and integers.

use super::*;

/// Runs one case in another type by all plans.
fn check_type<T, I>(
    client: &Client,
    dtypes: (ElemType, ElemType),
    of: impl Fn(f32) -> T,
    index_of: impl Fn(i32) -> I,
    update: Update,
    expect: impl Fn(&[T], &[i64], &[T]) -> Vec<T>,
) where
    T: bytemuck::Pod + PartialEq + std::fmt::Debug,
    I: bytemuck::Pod,
{
    check_type_of(client, 400, dtypes, of, index_of, update, expect);
}

/// [`check_type`] of that many sources.
fn check_type_of<T, I>(
    client: &Client,
    sources: usize,
    (dtype, index_dtype): (ElemType, ElemType),
    of: impl Fn(f32) -> T,
    index_of: impl Fn(i32) -> I,
    update: Update,
    expect: impl Fn(&[T], &[i64], &[T]) -> Vec<T>,
) where
    T: bytemuck::Pod + PartialEq + std::fmt::Debug,
    I: bytemuck::Pod,
{
    let rows = 6;
    let tensor: Vec<T> = random_values(14, rows).into_iter().map(&of).collect();
    let values: Vec<T> = random_values(15, sources).into_iter().map(&of).collect();
    let indices = random_indices(16, sources, rows);
    let device_indices: Vec<I> = indices.iter().map(|&index| index_of(index)).collect();
    let want = expect(&tensor, &wide(&indices), &values);
    let of_type = Problem { dtype, ..problem([1, rows, 1], sources, Indexed::Position, update) };
    for plan in Plan::candidates(&of_type) {
        let got = scatter::update(
            client,
            Addressing::Rows { dim: 0 },
            Operands {
                tensor: upload(client, &tensor, &[rows], dtype),
                indices: upload(client, &device_indices, &[sources], index_dtype),
                values: upload(client, &values, &[sources], dtype),
            },
            update,
            Some(plan),
        );
        match got {
            Err(KernelError::Dtype { dtype, .. }) => skip(format_args!("the device has no {dtype}")),
            got => assert_eq!(download::<T>(client, got.unwrap()), want, "{dtype} by {index_dtype}, {plan:?}"),
        }
    }
}

fn by_scatter<T: Copy>(combine: impl Fn(T, T) -> T) -> impl Fn(&[T], &[i64], &[T]) -> Vec<T> {
    move |tensor, indices, values| reference::scatter([1, tensor.len(), 1], tensor, indices, values, &combine)
}

#[test]
fn other_types_match_reference() {
    let client = client();
    let narrow = |index: i32| index;
    let float = ElemType::Float;
    let through_f32 = |tensor: &[f32], indices: &[i64], values: &[f32]| {
        reference::scatter([1, tensor.len(), 1], tensor, indices, values, |a, b| a + b)
    };
    let halves = |x: &[f16]| x.iter().map(|x| x.to_f32()).collect::<Vec<_>>();
    check_type(&client, (float(FloatKind::F16), I32), f16::from_f32, narrow, Update::Add, |t, i, v| {
        through_f32(&halves(t), i, &halves(v)).into_iter().map(f16::from_f32).collect()
    });
    let brains = |x: &[bf16]| x.iter().map(|x| x.to_f32()).collect::<Vec<_>>();
    check_type(&client, (float(FloatKind::BF16), I32), bf16::from_f32, narrow, Update::Add, |t, i, v| {
        through_f32(&brains(t), i, &brains(v)).into_iter().map(bf16::from_f32).collect()
    });
    check_type_of(&client, 5000, (float(FloatKind::F16), I32), f16::from_f32, narrow, Update::Add, |t, i, v| {
        through_f32(&halves(t), i, &halves(v)).into_iter().map(f16::from_f32).collect()
    });
    check_type_of(&client, 5000, (F32, I64), |x| x, i64::from, Update::Add, through_f32);
    check_type(&client, (float(FloatKind::F64), I32), f64::from, narrow, Update::Add, by_scatter(|a, b| a + b));
    // Whole numbers, of which a sum is exact in every order, over the whole range: an f64 total is not taken for -0.
    let tiny = |x: f32| f64::from((x * 1024.0) as i32) * f64::MIN_POSITIVE;
    check_type_of(&client, 5000, (float(FloatKind::F64), I32), tiny, narrow, Update::Add, by_scatter(|a, b| a + b));
    check_type(&client, (F32, I64), |x| x, i64::from, Update::Add, by_scatter(|a, b| a + b));
    // An index that only fits 64 bits must not be taken for its low half.
    let high = |index: i32| i64::from(index) + if index % 2 == 0 { 1 << 32 } else { 0 };
    check_type(
        &client,
        (F32, I64),
        |x| x,
        high,
        Update::Add,
        |t, i, v| {
            let seen: Vec<i64> = i.iter().map(|&index| if index % 2 == 0 { -1 } else { index }).collect();
            by_scatter(|a: f32, b| a + b)(t, &seen, v)
        },
    );
    check_type(&client, (F32, U32), |x| x, |index| index as u32, Update::Add, by_scatter(|a, b| a + b));
    let whole = |x: f32| (x * 1e9) as i32;
    check_type(&client, (I32, I32), whole, narrow, Update::Add, by_scatter(i32::wrapping_add));
    check_type(&client, (I32, I32), whole, narrow, Update::Mul, by_scatter(i32::wrapping_mul));
    check_type(&client, (I32, I32), whole, narrow, Update::Min, by_scatter(i32::min));
    check_type(&client, (I64, I32), |x| i64::from(whole(x)) << 20, narrow, Update::Max, by_scatter(i64::max));
    let bit = |x: f32| u32::from(x > 1.5);
    check_type(&client, (U32, I32), bit, narrow, Update::Or, by_scatter(|a, b| a | b));
    let byte = |x: f32| u8::from(x > 1.5);
    check_type(&client, (ElemType::UInt(UIntKind::U8), I32), byte, narrow, Update::Or, by_scatter(|a, b| a | b));
}
