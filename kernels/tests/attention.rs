//! Attention against its reference, and against its steps as kernels of their own.

use crate::harness::*;
use crate::skip::skip;
use burn_deterministic_kernels::KernelError;
use burn_deterministic_kernels::arithmetic::multiply_add_of;
use burn_deterministic_kernels::attention::plan::{Plan, Problem, plan};
use burn_deterministic_kernels::attention::reference::{self, Functions, Head};
use burn_deterministic_kernels::attention::{Operands, Params, attention, attention_planned};
use burn_deterministic_kernels::device::Machine;
use burn_deterministic_kernels::elementwise::Unary;
use burn_deterministic_kernels::grid::MAX_ITERATIONS;
use cubecl::ir::{ElemType, FloatKind, UIntKind};
use cubecl::prelude::*;
use cubecl::std::tensor::TensorHandle;

const U32: ElemType = ElemType::UInt(UIntKind::U32);
const PLAIN: Params = Params { scale: 0.3, softcap: None, causal: false };

/// Extents of a problem.
#[derive(Clone, Copy, Debug)]
struct Size {
    batch: usize,
    heads: usize,
    queries: usize,
    keys: usize,
    width: usize,
    columns: usize,
}

fn size([batch, heads, queries, keys, width, columns]: [usize; 6]) -> Size {
    Size { batch, heads, queries, keys, width, columns }
}

/// The host's copy of the operands.
#[derive(Clone)]
struct Values {
    size: Size,
    query: Vec<f32>,
    key: Vec<f32>,
    value: Vec<f32>,
    mask: Option<Vec<bool>>,
    bias: Option<Vec<f32>>,
}

impl Values {
    fn random(size: Size) -> Self {
        let Size { batch, heads, queries, keys, width, columns } = size;
        let matrices = batch * heads;
        Self {
            size,
            query: random_values(1, matrices * queries * width),
            key: random_values(2, matrices * keys * width),
            value: random_values(3, matrices * keys * columns),
            mask: None,
            bias: None,
        }
    }

    fn scores(&self) -> usize {
        self.size.batch * self.size.heads * self.size.queries * self.size.keys
    }

    fn masked(self) -> Self {
        let mask = Some(random_values(4, self.scores()).iter().map(|x| *x < -0.2).collect());
        Self { mask, ..self }
    }

    fn biased(self) -> Self {
        Self { bias: Some(random_values(5, self.scores())), ..self }
    }

    fn upload(&self, client: &Client) -> Operands {
        let Size { batch, heads, queries, keys, width, columns } = self.size;
        let scored = [batch, heads, queries, keys];
        let mask = |mask: &Vec<bool>| {
            let mask: Vec<u32> = mask.iter().map(|hidden| u32::from(*hidden)).collect();
            upload(client, &mask, &scored, U32)
        };
        Operands {
            query: upload(client, &self.query, &[batch, heads, queries, width], F32),
            key: upload(client, &self.key, &[batch, heads, keys, width], F32),
            value: upload(client, &self.value, &[batch, heads, keys, columns], F32),
            mask: self.mask.as_ref().map(mask),
            bias: self.bias.as_ref().map(|bias| upload(client, bias, &scored, F32)),
        }
    }

    fn reference(&self, client: &Client, params: Params) -> Vec<f32> {
        let Size { batch, heads, queries, keys, width, columns } = self.size;
        let exponential = |values: &[f32]| elementary(client, Unary::Exponential, values);
        let hyperbolic_tangent = |values: &[f32]| elementary(client, Unary::HyperbolicTangent, values);
        let functions = Functions { exponential: &exponential, hyperbolic_tangent: &hyperbolic_tangent };
        let scores = queries * keys;
        let of = |head: usize| Head {
            queries: &self.query[head * queries * width..][..queries * width],
            keys: &self.key[head * keys * width..][..keys * width],
            values: &self.value[head * keys * columns..][..keys * columns],
            width,
            columns,
            mask: self.mask.as_ref().map(|mask| &mask[head * scores..][..scores]),
            bias: self.bias.as_ref().map(|bias| &bias[head * scores..][..scores]),
        };
        let fma = multiply_add_of(client);
        (0..batch * heads).flat_map(|head| reference::attention(of(head), params, functions, fma)).collect()
    }

    /// Every plan: single elements and vectors have the same.
    fn plans(&self) -> Vec<Plan> {
        let Size { batch, heads, queries, keys, width, columns } = self.size;
        Plan::candidates(&Problem { heads: batch * heads, queries, keys, width, columns, qk_lanes: 1 })
    }

    /// Requires the reference's bits of every plan.
    #[track_caller]
    fn check(&self, params: Params) {
        self.plans().into_iter().for_each(|plan| self.check_plan(plan, params));
    }

    /// Requires the reference's bits.
    #[track_caller]
    fn check_plan(&self, plan: Plan, params: Params) {
        println!("{:?}, {params:?}, mask {}, bias {}, {plan:?}", self.size, self.mask.is_some(), self.bias.is_some());
        let client = client();
        let Size { batch, heads, queries, columns, .. } = self.size;
        let got = attention_planned(&client, self.upload(&client), params, plan).expect("operands fit");
        assert_eq!(got.shape()[..], [batch, heads, queries, columns]);
        assert_bits_or_nan(&download(&client, got), &self.reference(&client, params));
    }
}

/// NaN is the device's own.
#[track_caller]
fn assert_bits_or_nan(got: &[f32], want: &[f32]) {
    let canonical = |values: &[f32]| values.iter().map(|x| if x.is_nan() { f32::NAN } else { *x }).collect::<Vec<_>>();
    assert_bits(&canonical(got), &canonical(want));
}

#[test]
fn equals_reference_on_every_shape() {
    let sizes = [
        [1, 1, 1, 1, 1, 1],
        [1, 1, 1, 1, 4, 4],
        [2, 3, 1, 5, 8, 8],
        [1, 2, 5, 1, 3, 2],
        [1, 1, 3, 2, 5, 7],
        [2, 2, 7, 9, 4, 12],
        [1, 2, 8, 8, 16, 16],
        [1, 2, 9, 63, 12, 20],
        [1, 1, 16, 64, 8, 36],
        [3, 1, 17, 65, 7, 33],
        [1, 1, 5, 127, 64, 64],
        [1, 2, 70, 3, 4, 4],
        [1, 1, 2, 4, 1024, 8],
        [1, 1, 2, 4, 1023, 8],
    ];
    for sizes in sizes {
        Values::random(size(sizes)).check(PLAIN);
    }
}

/// Where a block of `PV`'s chain, or of the exponentials' sum, begins or ends.
#[test]
fn equals_reference_with_many_keys() {
    for keys in [1023, 1024, 1025, 2051, 4095, 4096, 4097, 5000] {
        Values::random(size([1, 1, 3, keys, 4, 4])).check_plan(Plan::FEW, PLAIN);
    }
    Values::random(size([1, 1, 9, 1030, 4, 4])).check(PLAIN);
    Values::random(size([1, 1, 2, 8200, 4, 3])).masked().check_plan(Plan::ONE, Params { causal: true, ..PLAIN });
}

#[test]
fn every_option_equals_reference() {
    // A kernel takes a while to make, so that plans take turns.
    let mut plans = Values::random(size([2, 3, 10, 13, 8, 8])).plans().into_iter().cycle();
    for sizes in [[2, 3, 10, 13, 8, 8], [1, 2, 13, 10, 3, 5]] {
        let values = Values::random(size(sizes));
        let forms = [values.clone(), values.clone().masked(), values.clone().biased(), values.masked().biased()];
        for values in forms {
            for (softcap, causal) in [(None, false), (Some(1.5), false), (None, true), (Some(0.7), true)] {
                let plan = plans.next().expect("they take turns");
                values.check_plan(plan, Params { scale: 0.8, softcap, causal });
            }
        }
    }
}

/// In causal attention the last query sees all keys, and of more queries than keys the first see none.
#[test]
fn queries_that_see_no_key_give_zeros() {
    let client = client();
    let values = Values::random(size([1, 1, 9, 4, 4, 4]));
    let causal = Params { causal: true, ..PLAIN };
    values.check(causal);
    let got: Vec<f32> =
        download(&client, attention_planned(&client, values.upload(&client), causal, Plan::MANY).unwrap());
    assert_eq!(got[..5 * 4], [0.0; 5 * 4]);
    assert_eq!(got[5 * 4..6 * 4], values.value[..4], "one key has all the weight");
    assert!(got[6 * 4..].iter().all(|x| *x != 0.0));

    let hidden = Values { mask: Some(vec![true; 9 * 4]), ..values };
    hidden.check(PLAIN);
    let got: Vec<f32> =
        download(&client, attention_planned(&client, hidden.upload(&client), PLAIN, Plan::FEW).unwrap());
    assert_eq!(got, [0.0; 9 * 4]);
}

#[test]
fn numbers_that_are_not_finite() {
    let client = client();
    let specials = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, -0.0, 1e-40, f32::MAX, f32::MIN];
    let values = Values::random(size([1, 1, 9, 11, 4, 8])).masked().biased();
    for special in specials {
        for at in [2, 17] {
            let mut one = values.clone();
            one.query[at] = special;
            one.check_plan(Plan::MANY, PLAIN);
            let mut one = values.clone();
            one.key[at] = special;
            one.check_plan(Plan::FEW, PLAIN);
            let mut one = values.clone();
            one.value[at] = special;
            one.check_plan(Plan::ONE, PLAIN);
        }
        let mut one = values.clone();
        one.bias.as_mut().expect("a bias")[40] = special;
        one.check_plan(Plan::FEW, Params { causal: true, ..PLAIN });
    }
    // Scores far apart: all but one exponential vanish.
    let mut values = Values::random(size([1, 1, 4, 70, 4, 4]));
    values.query.iter_mut().for_each(|x| *x *= 1e4);
    values.check(PLAIN);
    // The value of a masked key has the probability zero.
    let mut values = Values::random(size([1, 1, 1, 2, 4, 4]));
    values.mask = Some(vec![false, true]);
    values.value[4] = f32::INFINITY;
    let got: Vec<f32> =
        download(&client, attention_planned(&client, values.upload(&client), PLAIN, Plan::ONE).unwrap());
    assert!(got[0].is_nan());
    assert_eq!(got[1..], values.value[1..4]);
}

/// The same elements through other shape and strides.
fn view(tensor: TensorHandle, shape: &[usize], strides: &[usize]) -> TensorHandle {
    TensorHandle::new(tensor.handle, shape.to_vec(), strides.to_vec(), tensor.dtype)
}

/// A tensor of the same elements whose axes lie in the given order.
fn stored(client: &Client, values: &[f32], shape: [usize; 4], order: [usize; 4], gap: usize) -> TensorHandle {
    let mut strides = [0; 4];
    let mut reach = 1;
    for axis in order.into_iter().rev() {
        strides[axis] = reach;
        reach *= shape[axis] + gap;
    }
    let mut elements = vec![f32::NAN; reach];
    for (at, value) in values.iter().enumerate() {
        let [a, b, c] = [at / (shape[1] * shape[2] * shape[3]), at / (shape[2] * shape[3]), at / shape[3]];
        let index = [a, b % shape[1], c % shape[2], at % shape[3]];
        elements[(0..4).map(|axis| index[axis] * strides[axis]).sum::<usize>()] = *value;
    }
    view(upload(client, &elements, &[reach], F32), &shape, &strides)
}

#[test]
fn layout_does_not_reach_a_result() {
    let client = client();
    let params = Params { scale: 0.5, softcap: Some(2.0), causal: true };
    for sizes in [[2, 3, 10, 12, 8, 8], [2, 2, 5, 7, 6, 4]] {
        let values = Values::random(size(sizes)).biased();
        let Size { batch, heads, queries, keys, width, columns } = values.size;
        let want = values.reference(&client, params);
        let orders = [[0, 1, 2, 3], [0, 2, 1, 3], [0, 1, 3, 2], [3, 2, 1, 0], [1, 0, 2, 3]];
        for (order, gap) in orders.into_iter().flat_map(|order| [(order, 0), (order, 4), (order, 1)]) {
            let bias = values.bias.as_ref().expect("a bias");
            let operands = Operands {
                query: stored(&client, &values.query, [batch, heads, queries, width], order, gap),
                key: stored(&client, &values.key, [batch, heads, keys, width], order, gap),
                value: stored(&client, &values.value, [batch, heads, keys, columns], order, gap),
                mask: None,
                bias: Some(stored(&client, bias, [batch, heads, queries, keys], order, gap)),
            };
            for plan in values.plans() {
                let got = attention_planned(&client, operands.clone(), params, plan).expect("operands fit");
                assert_bits(&download(&client, got), &want);
            }
        }
    }
}

#[test]
fn masks_and_biases_broadcast() {
    let client = client();
    let values = Values::random(size([2, 3, 9, 6, 4, 4])).masked().biased();
    for shape in [[1, 1, 9, 6], [2, 1, 1, 6], [1, 3, 9, 1], [1, 1, 1, 1]] {
        let mut wide = values.clone();
        let (mask, bias) = (wide.mask.as_mut().expect("a mask"), wide.bias.as_mut().expect("a bias"));
        let narrow = |at: usize| {
            let index = [at / 162 % 2, at / 54 % 3, at / 6 % 9, at % 6];
            (0..4).fold(0, |place, axis| place * shape[axis] + index[axis] % shape[axis])
        };
        for at in 0..mask.len() {
            // Fewer elements than there are, from the front.
            mask[at] = values.mask.as_ref().expect("a mask")[narrow(at)];
            bias[at] = values.bias.as_ref().expect("a bias")[narrow(at)];
        }
        let mut operands = values.upload(&client);
        let few = shape.iter().product::<usize>();
        let hidden: Vec<u32> = values.mask.as_ref().expect("a mask")[..few].iter().map(|x| u32::from(*x)).collect();
        operands.mask = Some(upload(&client, &hidden, &shape, U32));
        operands.bias = Some(upload(&client, &values.bias.as_ref().expect("a bias")[..few], &shape, F32));
        let got = attention_planned(&client, operands, PLAIN, Plan::MANY).expect("operands fit");
        assert_bits(&download(&client, got), &wide.reference(&client, PLAIN));
    }
}

/// Another order of the keys has other bits: what the contract is there to prevent.
#[test]
fn order_is_visible_in_the_bits() {
    let client = client();
    let values = Values::random(size([1, 1, 8, 300, 8, 8]));
    let reversed = |values: &[f32], length: usize| values.chunks(length).rev().flatten().copied().collect::<Vec<_>>();
    let other = Values { key: reversed(&values.key, 8), value: reversed(&values.value, 8), ..values.clone() };
    let [a, b] = [values, other].map(|values| values.reference(&client, PLAIN));
    let differing = a.iter().zip(&b).filter(|(a, b)| a.to_bits() != b.to_bits()).count();
    assert!(differing > 32, "{differing} of 64 differ");
}

#[test]
fn more_heads_than_cubes_an_axis() {
    // A cube holds eight units, each of one query; every head has the operands of the first one.
    let heads = 8 * 65_535 + 9;
    let client = client();
    let values = Values::random(size([1, 1, 1, 2, 4, 4]));
    let Operands { query, key, value, .. } = values.upload(&client);
    let every = |tensor: TensorHandle, [rows, columns]: [usize; 2]| {
        view(tensor, &[1, heads, rows, columns], &[0, 0, columns, 1])
    };
    let (query, key, value) = (every(query, [1, 4]), every(key, [2, 4]), every(value, [2, 4]));
    let operands = Operands { query, key, value, mask: None, bias: None };
    let got: Vec<f32> = download(&client, attention_planned(&client, operands, PLAIN, Plan::ONE).expect("they fit"));
    let want = values.reference(&client, PLAIN);
    assert_eq!(got.len(), heads * 4);
    assert!(got.chunks(4).all(|got| got == want));
}

#[test]
fn a_plan_never_exceeds_the_iterations_of_a_unit() {
    let mut taken = 0;
    for queries in [1, 2, 4, 7, 8, 100, 5000] {
        for keys in [1, 64, 1000, 4096, 10_000, 20_000, 100_000] {
            for (width, qk_lanes) in [(1, 1), (64, 1), (64, 4), (1024, 4), (1025, 1)] {
                for columns in [1, 64, 1024] {
                    let problem = Problem { heads: 8, queries, keys, width, columns, qk_lanes };
                    assert_eq!(plan(&problem, Machine::Gpu), None);
                    let Some(plan) = plan(&problem, Machine::Software) else { continue };
                    taken += 1;
                    assert!(plan.iterations(&problem) <= MAX_ITERATIONS, "{problem:?}: {plan:?}");
                    assert!(Plan::candidates(&problem).contains(&plan), "{problem:?}: {plan:?}");
                    assert!(width <= 1024, "{problem:?}");
                }
            }
        }
    }
    assert!(taken > 200, "{taken} problems are taken");
    let none = Problem { heads: 8, queries: 8, keys: 0, width: 4, columns: 4, qk_lanes: 4 };
    assert_eq!(plan(&none, Machine::Software), None);
    assert_eq!(Plan::candidates(&none), []);
}

/// A plan that does not apply is an error with what it wants, and never another plan in its place.
#[test]
fn a_plan_that_does_not_apply_is_an_error() {
    let client = client();
    let text = |sizes: [usize; 6], plan: Plan| {
        let operands = Values::random(size(sizes)).upload(&client);
        let refused = attention_planned(&client, operands, PLAIN, plan).unwrap_err();
        assert!(matches!(refused, KernelError::Plan { kernel: "attention", .. }), "{refused}");
        refused.to_string()
    };
    let wanted = text([1, 1, 2, 3, 4, 5], Plan { keys: 6, ..Plan::FEW });
    assert!(wanted.ends_with("want rows, and keys and columns in fours"), "{wanted}");
    let wanted = text([1, 1, 1, 100_000, 4, 4], Plan::ONE);
    assert!(wanted.ends_with("want at most 60000"), "{wanted}");
}

#[test]
fn refuses_what_does_not_fit() {
    let client = client();
    let values = Values::random(size([1, 2, 3, 4, 5, 6]));
    let good = || values.upload(&client);
    let shape = |tensor: TensorHandle, shape: &[usize]| {
        let strides = vec![0; shape.len()];
        view(tensor, shape, &strides)
    };
    let half = ElemType::Float(FloatKind::F16);
    let bad = [
        Operands { query: shape(good().query, &[1, 2, 3, 4]), ..good() },
        Operands { key: shape(good().key, &[1, 1, 4, 5]), ..good() },
        Operands { value: shape(good().value, &[1, 2, 5, 6]), ..good() },
        Operands { query: shape(good().query, &[2, 3, 5]), ..good() },
        Operands { query: shape(good().query, &[1, 2, 0, 5]), ..good() },
        Operands { mask: Some(shape(good().query, &[1, 2, 3, 5])), ..good() },
        Operands { bias: Some(shape(good().query, &[3, 4])), ..good() },
        Operands { bias: Some(upload(&client, &[0u16], &[1, 1, 1, 1], half)), ..good() },
        Values::random(size([1, 1, 1, 1, 1025, 1])).upload(&client),
    ];
    for (number, operands) in bad.into_iter().enumerate() {
        let error = attention_planned(&client, operands.clone(), PLAIN, Plan::MANY).unwrap_err();
        assert!(matches!(error, KernelError::Shape { kernel: "attention", .. }), "{number}: {error}");
        assert!(attention(&client, operands, PLAIN).is_err(), "{number}");
    }
}

#[test]
fn the_chosen_plan_runs() {
    let client = client();
    for sizes in [[1, 2, 1, 9, 4, 4], [1, 2, 4, 9, 4, 4], [4, 8, 64, 9, 4, 4]] {
        let values = Values::random(size(sizes));
        if !values.upload(&client).fit(&client) {
            skip("no plan of the attention kernel is for this device");
            continue;
        }
        let got = attention(&client, values.upload(&client), PLAIN).expect("operands fit");
        assert_bits(&download(&client, got), &values.reference(&client, PLAIN));
    }
}
