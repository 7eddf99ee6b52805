//! Arithmetic of the header, by bits.

mod driver;

use driver::settings;
use half::{bf16, f16};

fn evaluate(name: &str, expression: &str, input: &[f32]) -> Vec<u32> {
    driver::evaluate(settings(None, false), name, expression, input)
}

/// Values around every step of the 16-bit types: ties, their neighbours, subnormals, and what overflows.
fn values() -> Vec<f32> {
    let halves =
        (0..=u16::MAX).step_by(37).flat_map(|bits| [f16::from_bits(bits).to_f32(), bf16::from_bits(bits).to_f32()]);
    let around = halves.filter(|value| !value.is_nan()).flat_map(|value| {
        let bits = value.to_bits();
        [0, 1, 0x7FFF, 0x8000, 0x8001, 0xFFF, 0x1000, 0x1001].map(|more| f32::from_bits(bits.wrapping_add(more)))
    });
    around.filter(|value| !value.is_nan()).chain([65519.0, 65520.0, 65536.0, f32::MAX, f32::INFINITY, -0.0]).collect()
}

#[test]
fn floats_round_to_sixteen_bits() {
    let values = values();
    let got = evaluate("to_f16", "__half(x).bits", &values);
    for (value, got) in values.iter().zip(got) {
        assert_eq!(got, u32::from(f16::from_f32(*value).to_bits()), "f16 of {value:e}");
    }
    let got = evaluate("to_bf16", "__nv_bfloat16(x).bits", &values);
    for (value, got) in values.iter().zip(got) {
        assert_eq!(got, u32::from(bf16::from_f32(*value).to_bits()), "bf16 of {value:e}");
    }
    assert_eq!(evaluate("nan_to_16", "__half(x).bits << 16 | __nv_bfloat16(x).bits", &[f32::NAN]), [0x7FFF_7FFF]);
}

#[test]
fn sixteen_bits_widen_exactly() {
    let input: Vec<f32> = (0..=u16::MAX).map(f32::from).collect();
    let widened = |name, of| {
        evaluate(name, &format!("({{ {of} h; h.bits = (unsigned short)x; __float_as_uint((float)h); }})"), &input)
    };
    for (bits, got) in
        (0..=u16::MAX).zip(widened("from_f16", "__half")).filter(|(bits, _)| !f16::from_bits(*bits).is_nan())
    {
        assert_eq!(got, f16::from_bits(bits).to_f32().to_bits(), "f16 {bits:#x}");
    }
    for (bits, got) in
        (0..=u16::MAX).zip(widened("from_bf16", "__nv_bfloat16")).filter(|(bits, _)| !bf16::from_bits(*bits).is_nan())
    {
        assert_eq!(got, bf16::from_bits(bits).to_f32().to_bits(), "bf16 {bits:#x}");
    }
}

#[test]
fn what_is_wider_than_f32_rounds_once() {
    let up = [1.0f32];
    // Above a tie by less than an f32 holds.
    assert_eq!(evaluate("f64_to_f16", "__half(1.0 + 0x1p-11 + 0x1p-40).bits", &up), [0x3C01]);
    assert_eq!(evaluate("f64_to_bf16", "__nv_bfloat16(-1.0 - 0x1p-8 - 0x1p-40).bits", &up), [0xBF81]);
    assert_eq!(evaluate("f64_tie", "__half(1.0 + 0x1p-11).bits", &up), [0x3C00]);
    assert_eq!(evaluate("integer_to_bf16", "__nv_bfloat16((1ll << 40) + (1ll << 32) + 1).bits", &up), [0x5381]);
    assert_eq!(
        evaluate("integer_to_f16", "__half(-2147483647 - 1).bits << 16 | __half(2049).bits", &up),
        [0xFC00_6800]
    );
    // 1 + 2^-10 times itself is 1 + 2^-9 + 2^-20; with 2^-11 it lies above the tie between 1 + 2 * 2^-10 and 1 + 3 * 2^-10.
    let fma = "({ __half a; a.bits = 0x3C01; __half c; c.bits = 0x1000; __hfma(a, a, c).bits; })";
    assert_eq!(evaluate("fma_f16", fma, &up), [0x3C03]);
}

/// Each half of a pair, as the same function of one half gives it.
#[test]
fn pairs_are_two_halves() {
    for (pair, half) in [("__half2", "__half"), ("__nv_bfloat162", "__nv_bfloat16")] {
        for (n, (of_pair, of_half)) in [
            ("p + q", "X + Y"),
            ("p / q", "X / Y"),
            ("-p", "-X"),
            ("__habs2(p)", "__habs(X)"),
            ("h2sqrt(p)", "hsqrt(X)"),
            ("h2exp(p)", "hexp(X)"),
            ("h2rint(p)", "hrint(X)"),
            ("__hmax2(p, q)", "__hmax(X, Y)"),
            ("__hmin2_nan(p, q)", "__hmin_nan(X, Y)"),
            ("__hfma2(p, q, p)", "__hfma(X, Y, X)"),
        ]
        .into_iter()
        .enumerate()
        {
            let single = |x: &str, y: &str| of_half.replace('X', x).replace('Y', y);
            let expression = format!(
                "({{ {pair} p({half}(x), {half}(3.0f)), q({half}(0.7f), {half}(x)); {pair} r = {of_pair}; {half} l = {}, h = {}; \
                 r.x.bits == l.bits && r.y.bits == h.bits && sizeof p == 4; }})",
                single("p.x", "q.x"),
                single("p.y", "q.y"),
            );
            let got = evaluate(&format!("pairs_{pair}_{n}"), &expression, &[1.3, 0.0, 65504.0, f32::NAN]);
            assert_eq!(got, [1; 4], "{of_pair} of {pair}");
        }
    }
}

#[test]
fn a_multiply_add_rounds_once_where_it_is_written_and_nowhere_else() {
    let x = 1.0 + 2f32.powi(-12);
    assert_eq!(evaluate("fused", "__float_as_uint(fma(x, x, -1.0f))", &[x]), [x.mul_add(x, -1.0).to_bits()]);
    assert_eq!(evaluate("not_fused", "__float_as_uint(x * x - 1.0f)", &[x]), [(x * x - 1.0).to_bits()]);
}

#[test]
fn conversions_to_integers_saturate() {
    let input = [1.9, -1.9, 3e9, -3e9, 1e20, -1e20, f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 2147483520.0];
    let want: Vec<u32> = input.iter().map(|&x| x as i32 as u32).collect();
    assert_eq!(evaluate("to_i32", "(unsigned)int32_t(x)", &input), want);
    assert_eq!(evaluate("to_u32", "uint32_t(x)", &input), input.map(|x| x as u32));
    assert_eq!(evaluate("to_i64", "(unsigned)(int64_t(x) >> 32)", &input), input.map(|x| (x as i64 >> 32) as u32));
    // The low bits of 32, as `cvt.rzi.s32.f32` and a narrow store leave them.
    let input = [300.9, -300.9, 70_000.0, 3e9, -3e9, f32::NAN];
    assert_eq!(evaluate("to_i8", "(unsigned)(int)int8_t(x)", &input), input.map(|x| i32::from(x as i32 as i8) as u32));
    assert_eq!(evaluate("to_u8", "uint8_t(x)", &input), input.map(|x| u32::from(x as u32 as u8)));
    assert_eq!(
        evaluate("to_i16", "(unsigned)(int)int16_t(x)", &input),
        input.map(|x| i32::from(x as i32 as i16) as u32)
    );
    assert_eq!(evaluate("half_to_i8", "(unsigned)(int)int8_t(__half(x))", &input[..2]), [127, -128i32 as u32]);
}

#[test]
fn extremes_are_the_devices() {
    let input = [0.0, -0.0, f32::NAN, 1.0];
    assert_eq!(
        evaluate("greater", "__float_as_uint(max(x, -0.0f))", &input),
        [0, 0x8000_0000, 0x8000_0000, 1f32.to_bits()]
    );
    assert_eq!(evaluate("less", "__float_as_uint(min(x, 0.0f))", &input), [0, 0x8000_0000, 0, 0]);
}
