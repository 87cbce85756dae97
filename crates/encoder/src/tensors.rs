//! Reads the arrays of a safetensors file: a length, a JSON header, and the numbers.
//!
//! A matrix may be stored in bytes: `NAME` of type I8, and `NAME.scale` of type F32 with what one step of each row is
//! worth. It stays in bytes, which take a quarter of the memory, and of the time to read it.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::ModelError;

/// A matrix in bytes.
#[derive(Debug)]
pub(super) struct Rows<'b> {
    width: usize,
    bytes: &'b [u8],
    scales: Vec<f32>,
}

impl<'b> Rows<'b> {
    /// From rows of `width` signed bytes, and what one step of each row is worth.
    pub(super) fn new(width: usize, bytes: &'b [u8], scales: Vec<f32>) -> Self {
        Self { width, bytes, scales }
    }

    /// Every row with what one of its steps is worth.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&'b [u8], f32)> {
        self.bytes.chunks_exact(self.width.max(1)).zip(self.scales.iter().copied())
    }

    /// The numbers of the row `at`, if there is one.
    pub(super) fn row(&self, at: usize) -> Option<impl Iterator<Item = f32>> {
        let start = at.checked_mul(self.width)?;
        let (row, scale) = (self.bytes.get(start..start.checked_add(self.width)?)?, *self.scales.get(at)?);
        Some(row.iter().map(move |byte| f32::from(byte.cast_signed()) * scale))
    }
}

/// A file of arrays, read by name.
#[derive(Debug)]
pub(super) struct Tensors<'b> {
    arrays: BTreeMap<String, Array>,
    data: &'b [u8],
}

#[derive(Debug, Deserialize)]
struct Array {
    #[serde(default)]
    dtype: String,
    #[serde(default)]
    shape: Vec<usize>,
    #[serde(default)]
    data_offsets: [usize; 2],
}

impl<'b> Tensors<'b> {
    /// Reads the header.
    ///
    /// # Errors
    /// [`ModelError`] when there is no valid header.
    pub(super) fn parse(bytes: &'b [u8]) -> Result<Self, ModelError> {
        let bad = || ModelError::Unusable("the weights have no readable header");
        let (length, rest) = bytes.split_first_chunk::<8>().ok_or_else(bad)?;
        let length = usize::try_from(u64::from_le_bytes(*length)).map_err(|_| bad())?;
        let (header, data) = rest.split_at_checked(length).ok_or_else(bad)?;
        let arrays = serde_json::from_slice(header).map_err(|_| bad())?;
        Ok(Self { arrays, data })
    }

    /// The numbers of the array `name`, which must have `shape`.
    ///
    /// # Errors
    /// [`ModelError`] when there is no such array of 32-bit floating-point numbers.
    pub(super) fn get(&self, name: &str, shape: &[usize]) -> Result<Vec<f32>, ModelError> {
        let (words, rest) = self.bytes(name, "F32", shape)?.as_chunks::<4>();
        if !rest.is_empty() || words.len() != shape.iter().product::<usize>() {
            return Err(OTHER_SHAPE);
        }
        let values: Vec<f32> = words.iter().map(|word| f32::from_le_bytes(*word)).collect();
        let sound = values.iter().all(|value| value.is_finite());
        if sound { Ok(values) } else { Err(ModelError::Unusable("a weight is not a number")) }
    }

    /// The matrix `name`, which must have as many `rows` of that `width`.
    ///
    /// # Errors
    /// [`ModelError`] when there is no such array of bytes with a scale for each row.
    pub(super) fn matrix(&self, name: &str, rows: usize, width: usize) -> Result<Rows<'b>, ModelError> {
        let bytes = self.bytes(name, "I8", &[rows, width])?;
        let scales = self.get(&format!("{name}.scale"), &[rows])?;
        if bytes.len() != rows * width {
            return Err(OTHER_SHAPE);
        }
        Ok(Rows::new(width, bytes, scales))
    }

    fn bytes(&self, name: &str, dtype: &str, shape: &[usize]) -> Result<&'b [u8], ModelError> {
        let array = self.arrays.get(name).ok_or(ModelError::Unusable("the weights lack an array"))?;
        let [start, end] = array.data_offsets;
        if array.dtype != dtype || array.shape != shape {
            return Err(OTHER_SHAPE);
        }
        self.data.get(start..end).ok_or(OTHER_SHAPE)
    }
}

const OTHER_SHAPE: ModelError = ModelError::Unusable("an array of the weights has another shape");

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// What one step of every matrix in bytes is worth.
    pub(in super::super) const STEP: f32 = 1.0 / 128.0;

    /// A file with these arrays: numbers, or bytes where the last is set.
    pub(in super::super) fn file(arrays: &[(String, Vec<usize>, Vec<f32>, bool)]) -> Vec<u8> {
        let (mut header, mut data) = (serde_json::Map::new(), Vec::new());
        for (name, shape, values, in_bytes) in arrays {
            let mut add = |name: String, dtype: &str, shape: &[usize], bytes: Vec<u8>| {
                let offsets = [data.len(), data.len() + bytes.len()];
                data.extend(bytes);
                header.insert(name, serde_json::json!({"dtype": dtype, "shape": shape, "data_offsets": offsets}));
            };
            let numbers = |values: &[f32]| values.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<u8>>();
            if *in_bytes {
                let bytes = values.iter().map(|value| ((value / STEP) as i8).cast_unsigned()).collect();
                add(name.clone(), "I8", shape, bytes);
                add(format!("{name}.scale"), "F32", &shape[..1], numbers(&vec![STEP; shape[0]]));
            } else {
                add(name.clone(), "F32", shape, numbers(values));
            }
        }
        header.insert("__metadata__".to_owned(), serde_json::json!({"format": "pt"}));
        let header = serde_json::to_vec(&header).unwrap();
        let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
        bytes.extend(header);
        bytes.extend(data);
        bytes
    }

    #[test]
    fn an_array_is_read_by_name_and_shape_and_damage_is_refused() {
        let bytes = file(&[
            ("a".to_owned(), vec![2, 2], vec![1.0, 2.0, 3.0, 4.0], false),
            ("b".to_owned(), vec![1], vec![5.0], false),
        ]);
        let tensors = Tensors::parse(&bytes).unwrap();
        assert_eq!(tensors.get("a", &[2, 2]).unwrap(), [1.0, 2.0, 3.0, 4.0]);
        assert_eq!(tensors.get("b", &[1]).unwrap(), [5.0]);
        for (name, shape) in [("a", &[4][..]), ("b", &[2]), ("c", &[1]), ("__metadata__", &[])] {
            assert!(tensors.get(name, shape).is_err(), "{name}");
        }
        let cut = Tensors::parse(&bytes[..bytes.len() - 1]).unwrap();
        assert!(cut.get("a", &[2, 2]).is_ok() && cut.get("b", &[1]).is_err());
        for end in [0, 7, 8, 40] {
            assert!(Tensors::parse(&bytes[..end]).is_err(), "{end}");
        }
        let mut endless = bytes.clone();
        endless[..8].fill(0xff);
        assert!(Tensors::parse(&endless).is_err());
        let nan = file(&[("a".to_owned(), vec![1], vec![f32::NAN], false)]);
        assert!(Tensors::parse(&nan).unwrap().get("a", &[1]).is_err());
    }

    #[test]
    fn rows_of_bytes_have_a_scale_each() {
        let header = br#"{"a": {"dtype": "I8", "shape": [2, 2], "data_offsets": [8, 12]},
            "a.scale": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]},
            "b": {"dtype": "I8", "shape": [2, 2], "data_offsets": [8, 12]},
            "c": {"dtype": "I8", "shape": [4], "data_offsets": [8, 12]}}"#;
        let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
        bytes.extend(header);
        [0.5f32, 2.0].iter().for_each(|scale| bytes.extend(scale.to_le_bytes()));
        bytes.extend([1i8, -2, 127, -128].map(i8::cast_unsigned));
        let tensors = Tensors::parse(&bytes).unwrap();
        let matrix = tensors.matrix("a", 2, 2).unwrap();
        let row = |at| matrix.row(at).map(Iterator::collect::<Vec<f32>>);
        assert_eq!(
            [row(0), row(1), row(2), row(usize::MAX)],
            [Some(vec![0.5, -1.0]), Some(vec![254.0, -256.0]), None, None]
        );
        for (name, rows, width) in [("a", 4, 1), ("b", 2, 2), ("c", 4, 1), ("a.scale", 2, 1), ("d", 1, 1)] {
            assert!(tensors.matrix(name, rows, width).is_err(), "{name}");
        }
    }
}
