//! The arithmetic of the model: matrix products, normalisation, softmax and GELU.
//!
//! [`pulp`] chooses the machine's widest instructions at run time, and all machines give the same bits, however wide
//! their vectors are: matrix products are of whole numbers, and every other sum is taken in one fixed order, with its
//! products fused into it (`mul_add` rounds once, by definition).

use pulp::bytemuck::{cast, cast_slice};
use pulp::{Arch, Simd, WithSimd};

use super::tensors::Rows;

/// Columns of a panel and rows of a block: as many sums as fit into the registers of a machine with 16 registers of 8
/// numbers.
const PANEL: usize = 32;
const BLOCK: usize = 6;

/// The number of values worked on side by side where their count is not fixed.
const LANES: usize = 16;

/// 1.5 · 2²³: adding it rounds to a whole number, which then stands in the lowest bits.
const ROUND: f32 = 12_582_912.0;

/// A matrix in bytes and an offset: `x · Wᵀ + b` for many rows `x`.
///
/// Inputs are rounded to 16 bits, for each row by its largest number, and whole numbers are multiplied: their sums are
/// the same in whatever order and on whatever machine they are taken.
#[derive(Debug)]
pub(super) struct Linear {
    inner: usize,
    outer: usize,
    /// The steps from 0 to the largest number of a row of inputs: as many as fit into 16 bits, and no sum into more than 32.
    steps: f32,
    /// `W` in panels of [`PANEL`] outputs, within a panel by pairs of inputs: the order in which it is read.
    panels: Vec<[[i8; 2]; PANEL]>,
    /// What one step of each output's weights is worth.
    scales: Vec<[f32; PANEL]>,
    bias: Vec<[f32; PANEL]>,
}

impl Linear {
    /// From matrices below each other, one row of `inner` weights per output, and one offset per output. Missing numbers
    /// count as 0.
    pub(super) fn new(inner: usize, matrices: &[Rows<'_>], bias: &[f32]) -> Self {
        let outer = bias.len();
        let (count, pairs) = (outer.div_ceil(PANEL), inner.div_ceil(2));
        let mut panels = vec![[[0; 2]; PANEL]; count * pairs];
        let (mut scales, mut offsets) = (vec![[0.0; PANEL]; count], vec![[0.0; PANEL]; count]);
        let rows = matrices.iter().flat_map(Rows::iter);
        for (output, ((row, scale), bias)) in rows.zip(bias).enumerate() {
            let (panel, column) = (output / PANEL, output % PANEL);
            if let (Some(scales), Some(offsets)) = (scales.get_mut(panel), offsets.get_mut(panel)) {
                (scales[column], offsets[column]) = (scale, *bias);
            }
            for (weights, packed) in row.chunks(2).zip(panels.iter_mut().skip(panel * pairs).take(pairs)) {
                for (weight, packed) in weights.iter().zip(&mut packed[column]) {
                    *packed = weight.cast_signed();
                }
            }
        }
        let most = i32::MAX.unsigned_abs() as usize / (pairs.max(1) * 2 * 128);
        let steps = most.min(usize::from(i16::MAX.unsigned_abs())) as f32;
        Self { inner, outer, steps, panels, scales, bias: offsets }
    }

    /// Writes to `out` one row of outputs for each row of inputs in `x`.
    pub(super) fn apply(&self, x: &[f32], out: &mut Vec<f32>) {
        let rows = x.len().checked_div(self.inner).unwrap_or(0);
        out.clear();
        out.resize(rows * self.outer, 0.0);
        if out.is_empty() {
            return;
        }
        let product = Product { linear: self, x, rows, out };
        #[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
        {
            if let Some(simd) = pulp::x86::V4::try_new() {
                return Simd::vectorize(simd, With { simd, product });
            }
            if let Some(simd) = pulp::x86::V3::try_new() {
                return Simd::vectorize(simd, With { simd, product });
            }
        }
        let simd = pulp::Scalar256b;
        Simd::vectorize(simd, With { simd, product });
    }
}

/// The heights of the blocks of `rows` rows, about equal: two of three rows take less time than one of five and one of one.
fn heights(rows: usize) -> impl Iterator<Item = usize> {
    let blocks = rows.div_ceil(BLOCK);
    (0..blocks).map(move |block| (block + 1) * rows / blocks - block * rows / blocks)
}

/// Products of whole numbers, two by two.
trait Multiply: Simd {
    /// The weights of as many outputs as a vector has numbers, two of each.
    type Weights: Copy;

    /// The weights in a row of bytes, from the vector number `at` on.
    fn weights(self, bytes: &[[i8; 2]; PANEL], at: usize) -> Self::Weights;

    /// For each output the sum of the products of its weights with two inputs of 16 bits, the first in the lower half.
    fn products(self, weights: Self::Weights, inputs: i32) -> Self::u32s;
}

#[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
impl Multiply for pulp::x86::V4 {
    type Weights = pulp::i16x32;

    #[inline(always)]
    fn weights(self, bytes: &[[i8; 2]; PANEL], at: usize) -> Self::Weights {
        self.convert_i8x32_to_i16x32(cast::<[[i8; 32]; PANEL / 16], [pulp::i8x32; PANEL / 16]>(cast(*bytes))[at])
    }

    #[inline(always)]
    fn products(self, weights: Self::Weights, inputs: i32) -> Self::u32s {
        cast(self.multiply_wrapping_add_adjacent_i16x32(weights, cast(self.splat_i32x16(inputs))))
    }
}

#[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
impl Multiply for pulp::x86::V3 {
    type Weights = pulp::i16x16;

    #[inline(always)]
    fn weights(self, bytes: &[[i8; 2]; PANEL], at: usize) -> Self::Weights {
        self.convert_i8x16_to_i16x16(cast::<[[i8; 16]; PANEL / 8], [pulp::i8x16; PANEL / 8]>(cast(*bytes))[at])
    }

    #[inline(always)]
    fn products(self, weights: Self::Weights, inputs: i32) -> Self::u32s {
        cast(self.multiply_wrapping_add_adjacent_i16x16(weights, cast(self.splat_i32x8(inputs))))
    }
}

/// What the compiler makes vector instructions of, where it knows some.
impl Multiply for pulp::Scalar256b {
    type Weights = [[i8; 2]; 8];

    #[inline(always)]
    fn weights(self, bytes: &[[i8; 2]; PANEL], at: usize) -> Self::Weights {
        bytes.as_chunks::<8>().0[at]
    }

    #[inline(always)]
    fn products(self, weights: Self::Weights, inputs: i32) -> Self::u32s {
        let [first, second] = halves(inputs);
        cast(weights.map(|[left, right]| i32::from(left) * first + i32::from(right) * second))
    }
}

/// Two numbers of 16 bits that stand in one of 32.
#[inline(always)]
fn halves(inputs: i32) -> [i32; 2] {
    [(inputs << 16) >> 16, inputs >> 16]
}

/// A product of rows with a matrix.
struct Product<'p> {
    linear: &'p Linear,
    x: &'p [f32],
    rows: usize,
    out: &'p mut [f32],
}

/// A product with the instructions that it is taken with.
struct With<'p, S> {
    simd: S,
    product: Product<'p>,
}

impl<M: Multiply> WithSimd for With<'_, M> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let Self { simd, product } = self;
        let Product { linear, x, rows, out } = product;
        let Linear { inner, outer, .. } = *linear;
        let pairs = inner.div_ceil(2);
        let (packed, worth) = pack(x, inner, rows, linear.steps);
        let panels = linear.panels.chunks_exact(pairs).zip(&linear.scales).zip(&linear.bias);
        for (panel, ((weights, scales), bias)) in panels.enumerate() {
            let mut next = 0;
            for height in heights(rows) {
                let span = next..next + height;
                let (Some(inputs), Some(worth), Some(out)) = (
                    packed.get(span.start * pairs..span.end * pairs),
                    worth.get(span.clone()),
                    out.get_mut(span.start * outer..span.end * outer),
                ) else {
                    return;
                };
                let mut sums = [[0; PANEL]; BLOCK];
                match height {
                    1 => block::<M, 1>(simd, weights, inputs, &mut sums),
                    2 => block::<M, 2>(simd, weights, inputs, &mut sums),
                    3 => block::<M, 3>(simd, weights, inputs, &mut sums),
                    4 => block::<M, 4>(simd, weights, inputs, &mut sums),
                    5 => block::<M, 5>(simd, weights, inputs, &mut sums),
                    _ => block::<M, BLOCK>(simd, weights, inputs, &mut sums),
                }
                for ((sums, worth), out) in sums.iter().zip(worth).zip(out.chunks_exact_mut(outer)) {
                    let out = out.get_mut(panel * PANEL..).unwrap_or_default();
                    let numbers: [f32; PANEL] =
                        std::array::from_fn(|at| (sums[at] as f32).mul_add(scales[at] * worth, bias[at]));
                    match out.first_chunk_mut() {
                        Some(out) => *out = numbers,
                        None => out.iter_mut().zip(numbers).for_each(|(out, number)| *out = number),
                    }
                }
                next += height;
            }
        }
    }
}

/// The sums of one panel for one block of rows, whose inputs are given by pair.
#[inline(always)]
fn block<M: Multiply, const ROWS: usize>(
    simd: M,
    weights: &[[[i8; 2]; PANEL]],
    inputs: &[i32],
    out: &mut [[i32; PANEL]; BLOCK],
) {
    let (inputs, _) = inputs.as_chunks::<ROWS>();
    for both in 0..PANEL / M::U32_LANES / 2 {
        let mut sums = [[simd.splat_u32s(0); 2]; ROWS];
        for (inputs, bytes) in inputs.iter().zip(weights) {
            let (left, right) = (simd.weights(bytes, 2 * both), simd.weights(bytes, 2 * both + 1));
            for (sums, inputs) in sums.iter_mut().zip(inputs) {
                sums[0] = simd.add_u32s(sums[0], simd.products(left, *inputs));
                sums[1] = simd.add_u32s(sums[1], simd.products(right, *inputs));
            }
        }
        for (sums, out) in sums.iter().zip(out.iter_mut()) {
            let sums: &[i32] = cast_slice(sums);
            out[both * sums.len()..(both + 1) * sums.len()].copy_from_slice(sums);
        }
    }
}

/// The rows of `x` in steps, in pairs, block by block, within a block by pair: the order in which they are read. And for
/// each row what a step is worth.
#[inline(always)]
fn pack(x: &[f32], inner: usize, rows: usize, steps: f32) -> (Vec<i32>, Vec<f32>) {
    let pairs = inner.div_ceil(2);
    let (mut packed, mut worth) = (vec![0; rows * pairs], Vec::with_capacity(rows));
    let mut whole = vec![0i16; pairs * 2];
    let mut next = 0;
    for height in heights(rows) {
        let Some(block) = packed.get_mut(next * pairs..(next + height) * pairs) else { break };
        for (at, row) in x.chunks_exact(inner).skip(next).take(height).enumerate() {
            let most = largest(row);
            worth.push(most / steps);
            let scale = if most > 0.0 { steps / most } else { 0.0 };
            for (whole, value) in whole.iter_mut().zip(row) {
                *whole = value.mul_add(scale, ROUND).to_bits() as i16;
            }
            for (pair, halves) in block.iter_mut().skip(at).step_by(height).zip(whole.as_chunks::<2>().0) {
                *pair = i32::from(halves[1]) << 16 | i32::from(halves[0].cast_unsigned());
            }
        }
        next += height;
    }
    (packed, worth)
}

/// The largest number without its sign.
#[inline(always)]
fn largest(values: &[f32]) -> f32 {
    let mut lanes = [0.0f32; LANES];
    for chunk in values.chunks(LANES) {
        for (lane, value) in lanes.iter_mut().zip(chunk) {
            *lane = lane.max(value.abs());
        }
    }
    lanes.into_iter().fold(0.0, f32::max)
}

/// The weights of a layer normalisation.
#[derive(Debug)]
pub(super) struct Norm {
    pub(super) weight: Vec<f32>,
    pub(super) bias: Vec<f32>,
}

impl Norm {
    /// Adds to every row of `x` that of `residual` and normalises the sum.
    pub(super) fn apply(&self, x: &mut [f32], residual: &[f32]) {
        Arch::new().dispatch(Normalise { norm: self, x, residual });
    }
}

struct Normalise<'n> {
    norm: &'n Norm,
    x: &'n mut [f32],
    residual: &'n [f32],
}

impl WithSimd for Normalise<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let Self { norm, x, residual } = self;
        let width = norm.weight.len().max(1);
        for (x, residual) in x.chunks_mut(width).zip(residual.chunks(width)) {
            for (x, residual) in x.iter_mut().zip(residual) {
                *x += residual;
            }
            let mean = sum(x, |x| x) / width as f32;
            let variance = sum(x, |x| (x - mean) * (x - mean)) / width as f32;
            let scale = 1.0 / (variance + 1e-12).sqrt();
            for ((x, weight), bias) in x.iter_mut().zip(&norm.weight).zip(&norm.bias) {
                *x = ((*x - mean) * scale).mul_add(*weight, *bias);
            }
        }
    }
}

#[inline(always)]
fn sum(values: &[f32], each: impl Fn(f32) -> f32) -> f32 {
    let mut lanes = [0.0; LANES];
    for chunk in values.chunks(LANES) {
        for (lane, value) in lanes.iter_mut().zip(chunk) {
            *lane += each(*value);
        }
    }
    lanes.iter().sum()
}

/// GELU, x · Φ(x), of every value, with erf after Abramowitz and Stegun 7.1.26 (error below 2 · 10⁻⁷).
pub(super) fn gelu(values: &mut [f32]) {
    Arch::new().dispatch(
        #[inline(always)]
        || {
            for value in values {
                let z = value.abs() * std::f32::consts::FRAC_1_SQRT_2;
                let t = 1.0 / 0.327_591_1f32.mul_add(z, 1.0);
                let mut poly = 1.061_405_4f32;
                for coefficient in [-1.453_152_1, 1.421_413_8, -0.284_496_72, 0.254_829_6] {
                    poly = poly.mul_add(t, coefficient);
                }
                // (1 - erf z) / 2, which is Φ(-|x|).
                let below = 0.5 * poly * t * exp(-z * z);
                let phi = if *value < 0.0 { below } else { 1.0 - below };
                *value *= phi;
            }
        },
    );
}

/// e^x for x ≤ 0: 2ⁿ times the Taylor series of what is left, within two units in the last place.
#[inline(always)]
fn exp(x: f32) -> f32 {
    let x = x.max(-87.0);
    let shifted = x.mul_add(std::f32::consts::LOG2_E, ROUND);
    let n = shifted - ROUND;
    // ln 2 in two parts, so that the rest is exact.
    let rest = n.mul_add(-1.428_606_8e-6, n.mul_add(-0.693_145_75, x));
    let mut power = 1.0 / 5040.0;
    for coefficient in [1.0 / 720.0, 1.0 / 120.0, 1.0 / 24.0, 1.0 / 6.0, 0.5, 1.0, 1.0] {
        power = rest.mul_add(power, coefficient);
    }
    let exponent = shifted.to_bits().wrapping_sub(ROUND.to_bits()).wrapping_add(127) << 23;
    power * f32::from_bits(exponent)
}

/// The attention of one text: for each of `heads`, every token's mean of the values, weighted by the softmax of its
/// query with the keys. A row of `qkv` holds the queries of all heads, their keys and their values, `width` numbers
/// each; the result goes to `out`, one row of `width` numbers per token.
pub(super) fn attend(qkv: &[f32], width: usize, heads: usize, out: &mut [f32]) {
    let size = width.checked_div(heads).unwrap_or(0);
    if size > 0 {
        Arch::new().dispatch(Attention { qkv, width, heads, size, out });
    }
}

struct Attention<'a> {
    qkv: &'a [f32],
    width: usize,
    heads: usize,
    size: usize,
    out: &'a mut [f32],
}

impl WithSimd for Attention<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { qkv, width, heads, size, out } = self;
        let tokens = qkv.len() / (3 * width);
        let scale = 1.0 / (size as f32).sqrt();
        // Whole vectors: what is beyond the last token is computed and not read.
        let padded = tokens.next_multiple_of(LANES);
        let mut keys = vec![0.0; size * padded];
        let mut weights = vec![0.0; padded];
        for head in 0..heads {
            let part = |which: usize| which * width + head * size..which * width + (head + 1) * size;
            // Keys by dimension, so that a query is compared with all of them side by side.
            for (token, row) in qkv.chunks_exact(3 * width).enumerate() {
                for (dimension, key) in row[part(1)].iter().enumerate() {
                    if let Some(place) = keys.get_mut(dimension * padded + token) {
                        *place = *key;
                    }
                }
            }
            for (row, out) in qkv.chunks_exact(3 * width).zip(out.chunks_exact_mut(width)) {
                weights.fill(0.0);
                for (query, keys) in row[part(0)].iter().zip(keys.chunks_exact(padded)) {
                    add_scaled(simd, &mut weights, keys, *query);
                }
                let Some(weights) = weights.get_mut(..tokens) else { return };
                let most = weights.iter().fold(f32::MIN, |most, &weight| most.max(weight));
                for weight in &mut *weights {
                    *weight = exp((*weight - most) * scale);
                }
                let total: f32 = weights.iter().sum();
                let out = &mut out[part(0)];
                out.fill(0.0);
                for (row, weight) in qkv.chunks_exact(3 * width).zip(&*weights) {
                    add_scaled(simd, out, &row[part(2)], weight / total);
                }
            }
        }
    }
}

/// Adds `factor` times each of `values` to the sum at its position.
#[inline(always)]
fn add_scaled<S: Simd>(simd: S, sums: &mut [f32], values: &[f32], factor: f32) {
    let ((sums, last_sums), (values, last_values)) = (S::as_mut_simd_f32s(sums), S::as_simd_f32s(values));
    let factors = simd.splat_f32s(factor);
    for (sum, value) in sums.iter_mut().zip(values) {
        *sum = simd.mul_add_f32s(factors, *value, *sum);
    }
    for (sum, value) in last_sums.iter_mut().zip(last_values) {
        *sum = factor.mul_add(*value, *sum);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers without a pattern, from -1 to 1.
    fn numbers(count: usize, seed: u32) -> Vec<f32> {
        let mut state = seed;
        let mut next = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 8) as f32 / (1 << 23) as f32 - 1.0
        };
        (0..count).map(|_| next()).collect()
    }

    /// A matrix without a pattern, in bytes and with scales.
    fn matrix(inner: usize, outer: usize) -> (Vec<u8>, Vec<f32>) {
        let byte = |number: &f32| ((number * 128.0) as i8).cast_unsigned();
        (numbers(inner * outer, 1).iter().map(byte).collect(), numbers(outer, 4))
    }

    #[test]
    fn a_product_is_that_of_the_plain_sum_for_every_number_of_rows() {
        for (inner, outer) in [(23, 37), (64, 96), (1, 1)] {
            let ((bytes, scales), bias) = (matrix(inner, outer), numbers(outer, 2));
            // Two matrices below each other are one.
            let (upper, lower) = (bytes.split_at(outer / 3 * inner), scales.split_at(outer / 3));
            let rows = [Rows::new(inner, upper.0, lower.0.to_vec()), Rows::new(inner, upper.1, lower.1.to_vec())];
            let linear = Linear::new(inner, &rows, &bias);
            let mut out = Vec::new();
            for rows in 0..20 {
                let x = numbers(rows * inner, 3);
                linear.apply(&x, &mut out);
                assert_eq!(out.len(), rows * outer);
                for (at, found) in out.iter().enumerate() {
                    let (x, output) = (&x[at / outer * inner..][..inner], at % outer);
                    let most = x.iter().fold(0f32, |most, x| most.max(x.abs()));
                    let scale = f64::from(32767.0 / most);
                    let whole = x.iter().map(|x| (f64::from(*x) * scale).round_ties_even() as i64);
                    let weights = bytes[output * inner..].iter().map(|byte| i64::from(byte.cast_signed()));
                    let sum = whole.zip(weights).map(|(x, weight)| x * weight).sum::<i64>();
                    let exact =
                        f64::from(scales[output]) * f64::from(most) / 32767.0 * sum as f64 + f64::from(bias[output]);
                    assert!(
                        (f64::from(*found) - exact).abs() < 2e-5 + exact.abs() * 2e-7,
                        "{rows} rows, {at}: {found} {exact}"
                    );
                }
            }
        }
        let mut out = vec![1.0];
        Linear::new(0, &[], &[]).apply(&[1.0], &mut out);
        assert!(out.is_empty());
    }

    /// The sums of a matrix of the largest numbers are as large as they get.
    #[test]
    fn no_sum_overflows_and_every_way_to_take_it_gives_the_same_bits() {
        fn taken<M: Multiply>(simd: M, linear: &Linear, x: &[f32], rows: usize) -> Vec<u32> {
            let mut out = vec![0.0; rows * linear.outer];
            simd.vectorize(With { simd, product: Product { linear, x, rows, out: &mut out } });
            out.iter().map(|value| value.to_bits()).collect()
        }
        for inner in [5, 384, 1536, 5000] {
            let (rows, outer) = (8, 33);
            let bytes = vec![(-128i8).cast_unsigned(); inner * outer];
            let linear = Linear::new(inner, &[Rows::new(inner, &bytes, vec![1.0; outer])], &vec![0.0; outer]);
            let mut out = Vec::new();
            linear.apply(&vec![-3.0; rows * inner], &mut out);
            let exact = 384.0 * inner as f32;
            assert!(out.iter().all(|value| (value / exact - 1.0).abs() < 1e-6), "{inner}: {out:?}");

            let (bytes, scales) = matrix(inner, outer);
            let linear = Linear::new(inner, &[Rows::new(inner, &bytes, scales)], &numbers(outer, 2));
            let x = numbers(rows * inner, 3);
            let plain = taken(pulp::Scalar256b, &linear, &x, rows);
            #[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
            {
                let wider = [
                    pulp::x86::V3::try_new().map(|simd| taken(simd, &linear, &x, rows)),
                    pulp::x86::V4::try_new().map(|simd| taken(simd, &linear, &x, rows)),
                ];
                wider.into_iter().flatten().for_each(|wide| assert_eq!(wide, plain, "{inner}"));
            }
            linear.apply(&x, &mut out);
            assert_eq!(out.iter().map(|value| value.to_bits()).collect::<Vec<_>>(), plain, "{inner}");
        }
    }

    /// A row that is nothing, or too large for a number, is no reason to stop.
    #[test]
    fn rows_without_numbers_give_the_offset_or_no_number() {
        let linear = Linear::new(2, &[Rows::new(2, &[1, 2], vec![1.0])], &[0.5]);
        let mut out = Vec::new();
        linear.apply(&[0.0, -0.0, f32::INFINITY, 1.0, f32::NAN, f32::NAN], &mut out);
        assert_eq!(out[0], 0.5);
        assert_eq!(out.len(), 3);
    }

    #[test]
    fn the_functions_are_those_of_the_library() {
        for step in 0..=870 {
            let x = step as f32 * -0.1;
            assert!((exp(x) / x.exp() - 1.0).abs() < 4e-7, "{x}: {} {}", exp(x), x.exp());
        }
        assert_eq!(exp(0.0), 1.0);
        assert!(exp(f32::MIN) < 1e-37);
        for step in -60..=60 {
            let x = f64::from(step) * 0.1;
            let expected = x * 0.5 * (1.0 + libm::erf(x / 2f64.sqrt()));
            let mut found = [x as f32];
            gelu(&mut found);
            assert!((f64::from(found[0]) - expected).abs() < 1e-6, "{x}: {} {expected}", found[0]);
        }
    }

    #[test]
    fn a_normalised_row_has_mean_zero_and_variance_one() {
        let norm = Norm { weight: vec![1.0; 40], bias: vec![0.0; 40] };
        let (mut x, residual) = (numbers(80, 5), numbers(80, 6));
        let sums: Vec<f32> = x.iter().zip(&residual).map(|(x, residual)| x + residual).collect();
        norm.apply(&mut x, &residual);
        for (row, sums) in x.chunks(40).zip(sums.chunks(40)) {
            let mean = row.iter().sum::<f32>() / 40.0;
            let variance = row.iter().map(|x| x * x).sum::<f32>() / 40.0;
            assert!(mean.abs() < 1e-6 && (variance - 1.0).abs() < 1e-5, "{mean} {variance}");
            // Normalising shifts and scales: differences keep their ratio.
            let ratio = |row: &[f32]| (row[7] - row[3]) / (row[30] - row[3]);
            assert!((ratio(row) - ratio(sums)).abs() < 1e-4);
        }
    }

    #[test]
    fn attention_is_a_weighted_mean_of_the_values() {
        // Two heads of one dimension, two tokens; rows are queries, keys, values.
        let qkv = [1.0, 0.0, 2.0, 5.0, 10.0, 3.0, 0.0, 1.0, 1.0, 5.0, 20.0, 7.0];
        let mut out = [0.0; 4];
        attend(&qkv, 2, 2, &mut out);
        let nearer = 1.0 / (1.0 + f32::exp(-1.0));
        // A query of 0, and equal keys, weigh both alike.
        let expected = [10.0 * nearer + 20.0 * (1.0 - nearer), 5.0, 15.0, 5.0];
        for (found, expected) in out.iter().zip(expected) {
            assert!((found - expected).abs() < 1e-5, "{out:?}");
        }
        attend(&[], 0, 0, &mut []);
    }
}
