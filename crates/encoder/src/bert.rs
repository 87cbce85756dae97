//! The forward pass: piece numbers in, the mean of the last layer out.
//!
//! BERT after Devlin et al. 2019: embeddings of pieces and positions, then layers of attention (Vaswani et al.,
//! "Attention Is All You Need", 2017) and of a feed-forward network with GELU, each added to its input and normalised.
//! Texts are never padded: each is a run of rows of its own length.

use super::ModelError;
use super::kernel::{Linear, Norm, attend, gelu};
use super::tensors::{Rows, Tensors};

/// The sizes of a network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Shape {
    /// The number of pieces in the vocabulary.
    pub(super) pieces: usize,
    /// The number of positions that have an embedding: no text is longer.
    pub(super) places: usize,
    pub(super) width: usize,
    pub(super) heads: usize,
    /// The width of the feed-forward network in a layer.
    pub(super) net: usize,
    pub(super) layers: usize,
}

/// The network with its weights.
#[derive(Debug)]
pub(super) struct Bert<'w> {
    shape: Shape,
    pieces: Rows<'w>,
    /// The embeddings of positions, each with that of the first text type added.
    places: Vec<f32>,
    norm: Norm,
    layers: Vec<Layer>,
}

#[derive(Debug)]
struct Layer {
    /// Queries, keys and values of all heads in one product.
    attention: Linear,
    attended: Linear,
    attention_norm: Norm,
    up: Linear,
    down: Linear,
    norm: Norm,
}

impl<'w> Bert<'w> {
    /// Reads the weights from a file.
    ///
    /// # Errors
    /// [`ModelError`] when an array is missing or has another shape.
    pub(super) fn new(tensors: &Tensors<'w>, shape: Shape) -> Result<Self, ModelError> {
        let Shape { width, net, .. } = shape;
        let places = tensors.matrix("embeddings.position_embeddings.weight", shape.places, width)?;
        let mut places: Vec<f32> = (0..shape.places).filter_map(|place| places.row(place)).flatten().collect();
        let kinds = tensors.get("embeddings.token_type_embeddings.weight", &[2, width])?;
        for place in places.chunks_mut(width) {
            add(place, &kinds);
        }
        let linear = |name: &str, inner: usize, outer: usize| -> Result<Linear, ModelError> {
            let weights = tensors.matrix(&format!("{name}.weight"), outer, inner)?;
            Ok(Linear::new(inner, &[weights], &tensors.get(&format!("{name}.bias"), &[outer])?))
        };
        let norm = |name: &str| -> Result<Norm, ModelError> {
            let part = |part: &str| tensors.get(&format!("{name}.LayerNorm.{part}"), &[width]);
            Ok(Norm { weight: part("weight")?, bias: part("bias")? })
        };
        let layer = |number: usize| {
            let at = format!("encoder.layer.{number}");
            let (mut weights, mut bias) = (Vec::new(), Vec::new());
            for part in ["query", "key", "value"] {
                weights.push(tensors.matrix(&format!("{at}.attention.self.{part}.weight"), width, width)?);
                bias.extend(tensors.get(&format!("{at}.attention.self.{part}.bias"), &[width])?);
            }
            Ok(Layer {
                attention: Linear::new(width, &weights, &bias),
                attended: linear(&format!("{at}.attention.output.dense"), width, width)?,
                attention_norm: norm(&format!("{at}.attention.output"))?,
                up: linear(&format!("{at}.intermediate.dense"), width, net)?,
                down: linear(&format!("{at}.output.dense"), net, width)?,
                norm: norm(&format!("{at}.output"))?,
            })
        };
        Ok(Self {
            shape,
            pieces: tensors.matrix("embeddings.word_embeddings.weight", shape.pieces, width)?,
            places,
            norm: norm("embeddings")?,
            layers: (0..shape.layers).map(layer).collect::<Result<_, ModelError>>()?,
        })
    }

    /// The mean over the pieces of each text; pieces that the vocabulary does not have are left out, and so is
    /// everything beyond the last position. A text without pieces gives zeros.
    pub(super) fn encode(&self, texts: &[Vec<u32>]) -> Vec<Vec<f32>> {
        let Shape { width, heads, places, .. } = self.shape;
        let mut x = Vec::new();
        let mut ends = Vec::with_capacity(texts.len());
        for text in texts {
            for (piece, place) in text.iter().take(places).zip(self.places.chunks_exact(width)) {
                if let Some(row) = self.pieces.row(*piece as usize) {
                    x.extend(row.zip(place).map(|(piece, place)| piece + place));
                }
            }
            ends.push(x.len());
        }
        let mut attended = vec![0.0; x.len()];
        self.norm.apply(&mut x, &attended);
        let (mut qkv, mut inner) = (Vec::new(), Vec::new());
        let mut out = Vec::new();
        for layer in &self.layers {
            layer.attention.apply(&x, &mut qkv);
            let mut start = 0;
            for &end in &ends {
                if let (Some(qkv), Some(out)) = (qkv.get(3 * start..3 * end), attended.get_mut(start..end)) {
                    attend(qkv, width, heads, out);
                }
                start = end;
            }
            layer.attended.apply(&attended, &mut out);
            layer.attention_norm.apply(&mut out, &x);
            layer.up.apply(&out, &mut inner);
            gelu(&mut inner);
            layer.down.apply(&inner, &mut x);
            layer.norm.apply(&mut x, &out);
        }
        let mut start = 0;
        let mut mean = |end: usize| {
            let rows = x.get(start..end).unwrap_or_default();
            start = end;
            let mut mean = vec![0.0; width];
            rows.chunks_exact(width).for_each(|row| add(&mut mean, row));
            let count = (rows.len() / width).max(1) as f32;
            mean.iter_mut().for_each(|value| *value /= count);
            mean
        };
        ends.into_iter().map(&mut mean).collect()
    }
}

fn add(sums: &mut [f32], values: &[f32]) {
    for (sum, value) in sums.iter_mut().zip(values) {
        *sum += value;
    }
}

#[cfg(test)]
mod tests {
    use super::super::tensors::tests::{STEP, file};
    use super::*;

    const SHAPE: Shape = Shape { pieces: 5, places: 4, width: 4, heads: 2, net: 3, layers: 2 };

    /// A made-up network: every array with its shape and numbers, which are whole steps, and whether it is stored in bytes.
    fn arrays() -> Vec<(String, Vec<usize>, Vec<f32>, bool)> {
        let Shape { pieces, places, width, net, layers, .. } = SHAPE;
        let mut shapes = vec![
            ("embeddings.word_embeddings.weight".to_owned(), vec![pieces, width]),
            ("embeddings.position_embeddings.weight".to_owned(), vec![places, width]),
            ("embeddings.token_type_embeddings.weight".to_owned(), vec![2, width]),
        ];
        let mut norms = vec!["embeddings".to_owned()];
        for layer in 0..layers {
            let at = format!("encoder.layer.{layer}");
            let square =
                ["attention.self.query", "attention.self.key", "attention.self.value", "attention.output.dense"];
            let mut linear = square.map(|part| (part, width, width)).to_vec();
            linear.extend([("intermediate.dense", net, width), ("output.dense", width, net)]);
            for (part, outer, inner) in linear {
                shapes.push((format!("{at}.{part}.weight"), vec![outer, inner]));
                shapes.push((format!("{at}.{part}.bias"), vec![outer]));
            }
            norms.extend([format!("{at}.attention.output"), format!("{at}.output")]);
        }
        for norm in norms {
            shapes.push((format!("{norm}.LayerNorm.weight"), vec![width]));
            shapes.push((format!("{norm}.LayerNorm.bias"), vec![width]));
        }
        let mut state = 7u32;
        let mut next = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            ((state >> 24) as f32 - 128.0) * STEP
        };
        let filled = shapes.into_iter().map(|(name, shape)| {
            let values = (0..shape.iter().product()).map(|_| next()).collect();
            let in_bytes = shape.len() == 2 && !name.contains("token_type");
            (name, shape, values, in_bytes)
        });
        filled.collect()
    }

    /// The same pass by the formulas, one number at a time in 64 bits.
    fn plain(arrays: &[(String, Vec<usize>, Vec<f32>, bool)], text: &[u32]) -> Vec<f64> {
        let get = |name: &str| -> Vec<f64> {
            let (_, _, values, _) = arrays.iter().find(|(known, ..)| known == name).unwrap();
            values.iter().map(|value| f64::from(*value)).collect()
        };
        let Shape { width, heads, layers, .. } = SHAPE;
        let norm = |name: &str, x: Vec<f64>| -> Vec<f64> {
            let (weight, bias) = (get(&format!("{name}.LayerNorm.weight")), get(&format!("{name}.LayerNorm.bias")));
            let mean = x.iter().sum::<f64>() / width as f64;
            let variance = x.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / width as f64;
            let unit = x.iter().map(|x| (x - mean) / (variance + 1e-12).sqrt());
            unit.zip(weight).zip(bias).map(|((x, weight), bias)| x * weight + bias).collect()
        };
        let linear = |name: &str, x: &[f64]| -> Vec<f64> {
            let (weight, bias) = (get(&format!("{name}.weight")), get(&format!("{name}.bias")));
            let row = |at: usize| weight[at * x.len()..].iter().zip(x).map(|(w, x)| w * x).sum::<f64>() + bias[at];
            (0..bias.len()).map(row).collect()
        };
        let sum = |left: &[f64], right: &[f64]| left.iter().zip(right).map(|(l, r)| l + r).collect::<Vec<f64>>();
        let row = |name: &str, at: usize| get(name)[at * width..(at + 1) * width].to_vec();
        let embedded = text.iter().enumerate().map(|(place, piece)| {
            let places = row("embeddings.position_embeddings.weight", place);
            let kind = row("embeddings.token_type_embeddings.weight", 0);
            let piece = row("embeddings.word_embeddings.weight", *piece as usize);
            norm("embeddings", sum(&sum(&piece, &places), &kind))
        });
        let mut x: Vec<Vec<f64>> = embedded.collect();
        for layer in 0..layers {
            let at = format!("encoder.layer.{layer}");
            let part = |part: &str| -> Vec<Vec<f64>> {
                x.iter().map(|x| linear(&format!("{at}.attention.self.{part}"), x)).collect()
            };
            let (queries, keys, values) = (part("query"), part("key"), part("value"));
            let size = width / heads;
            let attend = |query: &[f64]| -> Vec<f64> {
                let head = |head: usize| {
                    let span = head * size..(head + 1) * size;
                    let dot = |key: &Vec<f64>| {
                        let pairs = query[span.clone()].iter().zip(&key[span.clone()]);
                        (pairs.map(|(q, k)| q * k).sum::<f64>() / (size as f64).sqrt()).exp()
                    };
                    let weights: Vec<f64> = keys.iter().map(dot).collect();
                    let total: f64 = weights.iter().sum();
                    let value = |at: usize| {
                        weights.iter().zip(&values).map(|(weight, value)| weight / total * value[at]).sum::<f64>()
                    };
                    span.clone().map(value).collect::<Vec<f64>>()
                };
                (0..heads).flat_map(head).collect()
            };
            let next = x.iter().zip(&queries).map(|(x, query)| {
                let attended = linear(&format!("{at}.attention.output.dense"), &attend(query));
                let x = norm(&format!("{at}.attention.output"), sum(x, &attended));
                let gelu = |x: f64| x * 0.5 * (1.0 + libm::erf(x / 2f64.sqrt()));
                let inner: Vec<f64> = linear(&format!("{at}.intermediate.dense"), &x).into_iter().map(gelu).collect();
                norm(&format!("{at}.output"), sum(&x, &linear(&format!("{at}.output.dense"), &inner)))
            });
            x = next.collect();
        }
        (0..width).map(|at| x.iter().map(|x| x[at]).sum::<f64>() / x.len() as f64).collect()
    }

    #[test]
    fn a_pass_is_what_the_formulas_give_whatever_is_beside_it() {
        let arrays = arrays();
        let bytes = file(&arrays);
        let bert = Bert::new(&Tensors::parse(&bytes).unwrap(), SHAPE).unwrap();
        let texts = vec![vec![1, 2, 3], vec![4], vec![], vec![0, 0, 1, 4]];
        let together = bert.encode(&texts);
        for (text, found) in texts.iter().zip(&together) {
            if text.is_empty() {
                assert_eq!(found, &[0.0; SHAPE.width]);
                continue;
            }
            let expected = plain(&arrays, text);
            for (found, expected) in found.iter().zip(&expected) {
                assert!((f64::from(*found) - expected).abs() < 1e-3, "{text:?}: {found} {expected}");
            }
            assert_eq!(&bert.encode(std::slice::from_ref(text))[0], found, "{text:?}");
        }
        // Only as many places as there are, and only pieces that there are.
        assert_eq!(bert.encode(&[vec![1, 2, 3, 4, 0]]), bert.encode(&[vec![1, 2, 3, 4]]));
        assert_eq!(bert.encode(&[vec![9]]), [vec![0.0; SHAPE.width]]);
        assert!(bert.encode(&[]).is_empty());
    }

    #[test]
    fn weights_of_another_shape_are_refused() {
        let all = arrays();
        for left_out in 0..all.len() {
            let mut arrays = all.clone();
            arrays.remove(left_out);
            let bytes = file(&arrays);
            assert!(Bert::new(&Tensors::parse(&bytes).unwrap(), SHAPE).is_err(), "{left_out}");
        }
        let bytes = file(&all);
        let wider = Shape { width: 8, ..SHAPE };
        assert!(Bert::new(&Tensors::parse(&bytes).unwrap(), wider).is_err());
    }
}
