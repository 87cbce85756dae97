//! Reads the arrays of a safetensors file: a length, a JSON header, and the numbers.
//!
//! A matrix may be stored in bytes: `NAME` of type I8, and `NAME.scale` of type F32 with what one step of each row is worth.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::ModelError;

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
    /// [`ModelError`] when there is no such array, of 32-bit floating-point numbers or of bytes with a scale for each row.
    pub(super) fn get(&self, name: &str, shape: &[usize]) -> Result<Vec<f32>, ModelError> {
        let array = self.arrays.get(name).ok_or(ModelError::Unusable("the weights lack an array"))?;
        let [start, end] = array.data_offsets;
        let bytes = self.data.get(start..end).unwrap_or_default();
        let other_shape = ModelError::Unusable("an array of the weights has another shape");
        let count = shape.iter().product::<usize>();
        let values: Vec<f32> = match (array.dtype.as_str(), shape) {
            _ if array.shape != shape => return Err(other_shape),
            ("F32", _) => {
                let (words, rest) = bytes.as_chunks::<4>();
                if !rest.is_empty() || words.len() != count {
                    return Err(other_shape);
                }
                words.iter().map(|word| f32::from_le_bytes(*word)).collect()
            }
            ("I8", &[rows, width]) if bytes.len() == count && width > 0 => {
                let scales = self.get(&format!("{name}.scale"), &[rows])?;
                let rows = bytes.chunks_exact(width).zip(scales);
                rows.flat_map(|(row, scale)| row.iter().map(move |byte| f32::from(byte.cast_signed()) * scale))
                    .collect()
            }
            _ => return Err(other_shape),
        };
        if values.iter().all(|value| value.is_finite()) {
            Ok(values)
        } else {
            Err(ModelError::Unusable("a weight is not a number"))
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A file with these arrays.
    pub(in super::super) fn file(arrays: &[(String, Vec<usize>, Vec<f32>)]) -> Vec<u8> {
        let (mut header, mut data) = (serde_json::Map::new(), Vec::new());
        for (name, shape, values) in arrays {
            let start = data.len();
            values.iter().for_each(|value| data.extend(value.to_le_bytes()));
            let entry = serde_json::json!({"dtype": "F32", "shape": shape, "data_offsets": [start, data.len()]});
            header.insert(name.clone(), entry);
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
        let bytes =
            file(&[("a".to_owned(), vec![2, 2], vec![1.0, 2.0, 3.0, 4.0]), ("b".to_owned(), vec![1], vec![5.0])]);
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
        let nan = file(&[("a".to_owned(), vec![1], vec![f32::NAN])]);
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
        assert_eq!(tensors.get("a", &[2, 2]).unwrap(), [0.5, -1.0, 254.0, -256.0]);
        for (name, shape) in [("a", &[4, 1][..]), ("b", &[2, 2]), ("c", &[4])] {
            assert!(tensors.get(name, shape).is_err(), "{name}");
        }
    }
}
