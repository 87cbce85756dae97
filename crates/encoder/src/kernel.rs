//! The arithmetic of the model: matrix products, normalisation, softmax and GELU.
//!
//! Written as plain loops over fixed-size arrays, which the compiler turns into vector instructions; [`pulp`] chooses
//! the machine's widest at run time. Every sum is taken in one fixed order and every product is fused into it
//! (`mul_add` rounds once, by definition), so all machines give the same bits, however wide their vectors are.

use pulp::bytemuck::cast_slice;
use pulp::{Arch, Simd, WithSimd};

/// Columns of a panel and rows of a block: as many sums as fit into the registers of a machine with 16 registers of 8
/// numbers.
const PANEL: usize = 32;
const BLOCK: usize = 6;

/// The number of values worked on side by side where their count is not fixed.
const LANES: usize = 16;

/// A matrix and an offset: `x · Wᵀ + b` for many rows `x`.
#[derive(Debug)]
pub(super) struct Linear {
    inner: usize,
    outer: usize,
    /// `W` in panels of [`PANEL`] outputs, within a panel by input: the order in which it is read.
    panels: Vec<[f32; PANEL]>,
    bias: Vec<[f32; PANEL]>,
}

impl Linear {
    /// From one row of `inner` weights and one offset per output. Missing numbers count as 0.
    pub(super) fn new(inner: usize, weights: &[f32], bias: &[f32]) -> Self {
        let outer = bias.len();
        let mut panels = vec![[0.0; PANEL]; outer.div_ceil(PANEL) * inner];
        let mut offsets = vec![[0.0; PANEL]; outer.div_ceil(PANEL)];
        if inner > 0 {
            for (output, (row, bias)) in weights.chunks(inner).zip(bias).enumerate() {
                let (panel, column) = (output / PANEL, output % PANEL);
                if let Some(offset) = offsets.get_mut(panel) {
                    offset[column] = *bias;
                }
                for (weight, packed) in row.iter().zip(panels.iter_mut().skip(panel * inner)) {
                    packed[column] = *weight;
                }
            }
        }
        Self { inner, outer, panels, bias: offsets }
    }

    /// Writes to `out` one row of outputs for each row of inputs in `x`.
    pub(super) fn apply(&self, x: &[f32], out: &mut Vec<f32>) {
        let rows = x.len().checked_div(self.inner).unwrap_or(0);
        out.clear();
        out.resize(rows * self.outer, 0.0);
        let mut next = 0;
        // Blocks of about equal size: two of three rows take less time than one of five and one of one.
        let blocks = rows.div_ceil(BLOCK);
        let mut packed = Vec::new();
        for block in 0..blocks {
            let height = (rows - next).div_ceil(blocks - block);
            let (Some(x), Some(out)) = (
                x.get(next * self.inner..(next + height) * self.inner),
                out.get_mut(next * self.outer..(next + height) * self.outer),
            ) else {
                return;
            };
            match height {
                1 => self.block::<1>(x, &mut packed, out),
                2 => self.block::<2>(x, &mut packed, out),
                3 => self.block::<3>(x, &mut packed, out),
                4 => self.block::<4>(x, &mut packed, out),
                5 => self.block::<5>(x, &mut packed, out),
                _ => self.block::<BLOCK>(x, &mut packed, out),
            }
            next += height;
        }
    }

    fn block<const ROWS: usize>(&self, x: &[f32], packed: &mut Vec<f32>, out: &mut [f32]) {
        packed.clear();
        packed.resize(x.len(), 0.0);
        let (columns, _) = packed.as_chunks_mut::<ROWS>();
        for (row, values) in x.chunks(self.inner).enumerate() {
            for (column, value) in columns.iter_mut().zip(values) {
                if let Some(place) = column.get_mut(row) {
                    *place = *value;
                }
            }
        }
        Arch::new().dispatch(Product { linear: self, columns, out });
    }
}

/// The product of one block of rows, given by column.
struct Product<'p, const ROWS: usize> {
    linear: &'p Linear,
    columns: &'p [[f32; ROWS]],
    out: &'p mut [f32],
}

impl<const ROWS: usize> WithSimd for Product<'_, ROWS> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { linear, columns, out } = self;
        for (panel, (weights, bias)) in linear.panels.chunks_exact(linear.inner).zip(&linear.bias).enumerate() {
            let (bias, _) = S::as_simd_f32s(bias);
            for (pair, bias) in bias.as_chunks::<2>().0.iter().enumerate() {
                let mut sums = [*bias; ROWS];
                for (column, weights) in columns.iter().zip(weights) {
                    let (weights, _) = S::as_simd_f32s(weights);
                    let Some([left, right]) = weights.as_chunks::<2>().0.get(pair).copied() else { continue };
                    for (sums, value) in sums.iter_mut().zip(column) {
                        let value = simd.splat_f32s(*value);
                        sums[0] = simd.mul_add_f32s(value, left, sums[0]);
                        sums[1] = simd.mul_add_f32s(value, right, sums[1]);
                    }
                }
                let first = panel * PANEL + pair * 2 * S::F32_LANES;
                for (row, sums) in out.chunks_exact_mut(linear.outer).zip(&sums) {
                    for (out, sum) in row.iter_mut().skip(first).zip(cast_slice::<S::f32s, f32>(sums)) {
                        *out = *sum;
                    }
                }
            }
        }
    }
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
        let width = self.weight.len().max(1);
        Arch::new().dispatch(
            #[inline(always)]
            || {
                for (x, residual) in x.chunks_mut(width).zip(residual.chunks(width)) {
                    for (x, residual) in x.iter_mut().zip(residual) {
                        *x += residual;
                    }
                    let mean = sum(x, |x| x) / width as f32;
                    let variance = sum(x, |x| (x - mean) * (x - mean)) / width as f32;
                    let scale = 1.0 / (variance + 1e-12).sqrt();
                    for ((x, weight), bias) in x.iter_mut().zip(&self.weight).zip(&self.bias) {
                        *x = ((*x - mean) * scale).mul_add(*weight, *bias);
                    }
                }
            },
        );
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
    /// 1.5 · 2²³: adding it rounds to a whole number, which then stands in the lowest bits.
    const ROUND: f32 = 12_582_912.0;
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

    #[test]
    fn a_product_is_that_of_the_plain_sum_for_every_number_of_rows() {
        let (inner, outer) = (23, 37);
        let (weights, bias) = (numbers(inner * outer, 1), numbers(outer, 2));
        let linear = Linear::new(inner, &weights, &bias);
        let mut out = Vec::new();
        for rows in 0..20 {
            let x = numbers(rows * inner, 3);
            linear.apply(&x, &mut out);
            assert_eq!(out.len(), rows * outer);
            for (at, found) in out.iter().enumerate() {
                let (row, output) = (at / outer, at % outer);
                let pairs = x[row * inner..].iter().zip(&weights[output * inner..(output + 1) * inner]);
                let mut expected = bias[output];
                pairs.for_each(|(x, weight)| expected = x.mul_add(*weight, expected));
                assert_eq!(found.to_bits(), expected.to_bits(), "{rows} rows, {row}, {output}");
            }
        }
        Linear::new(0, &[], &[]).apply(&[1.0], &mut out);
        assert!(out.is_empty());
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
