//! Reads the arrays of a safetensors file: a length, a JSON header, and the numbers.

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
    /// [`ModelError`] when there is no such array of 32-bit floating-point numbers.
    pub(super) fn get(&self, name: &str, shape: &[usize]) -> Result<Vec<f32>, ModelError> {
        let array = self.arrays.get(name).ok_or(ModelError::Unusable("the weights lack an array"))?;
        let [start, end] = array.data_offsets;
        let bytes = self.data.get(start..end).unwrap_or_default();
        let (words, rest) = bytes.as_chunks::<4>();
        let fits = array.dtype == "F32" && array.shape == shape;
        if !fits || !rest.is_empty() || words.len() != shape.iter().product::<usize>() {
            return Err(ModelError::Unusable("an array of the weights has another shape"));
        }
        let values: Vec<f32> = words.iter().map(|word| f32::from_le_bytes(*word)).collect();
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
}
