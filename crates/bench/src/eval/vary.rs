//! What a grid of configurations is asked to try in place of its own values: `k1=0.8,1.0`.

use std::collections::{BTreeMap, BTreeSet};
use std::str::FromStr;

/// The most configurations of a grid. A difference of many queries has no probability below one in ten thousand, since so many
/// flips are drawn, and Holm's correction multiplies it by the number of configurations: with more than this, little could be
/// shown of any of them. It bounds the time of a sweep too.
pub const MOST: usize = 400;

/// A parameter of a grid, and the values that replace its own there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Vary {
    parameter: String,
    values: Vec<String>,
}

/// A grid that cannot be made as it is asked for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GridError {
    /// The text names no parameter or no value.
    #[error("`{0}` is not PARAMETER=VALUE,VALUE; write, for instance, k1=0.8,1.0")]
    Form(String),
    /// The grid has no such parameter.
    #[error("no parameter `{parameter}` in this grid; there are {known}")]
    Unknown {
        /// What was asked for.
        parameter: String,
        /// The parameters that there are.
        known: String,
    },
    /// A parameter is asked for more than once.
    #[error("`{0}` is given more than once; write all its values after one `=`")]
    Repeated(String),
    /// A value that the parameter cannot have.
    #[error("{parameter}={value}: {reason}; the grid itself tries {own}")]
    Value {
        /// The parameter.
        parameter: String,
        /// The value.
        value: String,
        /// What values there are, or why this is not one.
        reason: String,
        /// The values that the grid tries where nothing is asked for.
        own: String,
    },
    /// More configurations than [`MOST`].
    #[error("{0} configurations are more than {MOST}; name fewer values")]
    TooMany(usize),
}

impl FromStr for Vary {
    type Err = GridError;

    /// `name-share` and `name_share` are `name share`, as it is printed.
    fn from_str(text: &str) -> Result<Self, GridError> {
        let form = || GridError::Form(text.to_owned());
        let (parameter, values) = text.split_once('=').ok_or_else(form)?;
        let parameter = parameter.trim().replace(['-', '_'], " ");
        let values: Vec<String> = values.split(',').map(|value| value.trim().to_owned()).collect();
        if parameter.is_empty() || values.iter().any(String::is_empty) {
            return Err(form());
        }
        Ok(Self { parameter, values })
    }
}

/// The values by parameter, each value once, of parameters that are all among `known`.
///
/// # Errors
/// [`GridError`]: a parameter that is not known or that is given twice, or more values than a grid may have configurations.
pub fn by_parameter<'v>(vary: &'v [Vary], known: &[&str]) -> Result<BTreeMap<&'v str, Vec<&'v str>>, GridError> {
    let mut found = BTreeMap::new();
    for Vary { parameter, values } in vary {
        if !known.contains(&parameter.as_str()) {
            return Err(GridError::Unknown { parameter: parameter.clone(), known: known.join(", ") });
        }
        let mut seen = BTreeSet::new();
        let values: Vec<&str> = values.iter().map(String::as_str).filter(|value| seen.insert(*value)).collect();
        bounded(values.len())?;
        if found.insert(parameter.as_str(), values).is_some() {
            return Err(GridError::Repeated(parameter.clone()));
        }
    }
    Ok(found)
}

/// The values of `parameter` from their texts; `read` says what is wrong with one that it cannot take. `own` are those of the
/// grid itself.
///
/// # Errors
/// [`GridError::Value`].
pub fn values<T: PartialEq>(
    parameter: &str,
    texts: &[&str],
    own: &[String],
    read: impl Fn(&str) -> Result<T, String>,
) -> Result<Vec<T>, GridError> {
    let mut found: Vec<T> = Vec::new();
    for text in texts {
        let value = read(text).map_err(|reason| GridError::Value {
            parameter: parameter.to_owned(),
            value: (*text).to_owned(),
            reason,
            own: own.join(", "),
        })?;
        // 1 and 1.0 are one value.
        if !found.contains(&value) {
            found.push(value);
        }
    }
    Ok(found)
}

/// A finite number.
///
/// # Errors
/// What is wrong with the text, as the reason of a [`GridError::Value`].
pub fn number(text: &str) -> Result<f64, String> {
    text.parse().ok().filter(|value: &f64| value.is_finite()).ok_or_else(|| "it is not a number".to_owned())
}

/// That a grid of so many configurations may be measured.
///
/// # Errors
/// [`GridError::TooMany`].
pub fn bounded(configurations: usize) -> Result<(), GridError> {
    if configurations > MOST { Err(GridError::TooMany(configurations)) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vary(texts: &[&str]) -> Vec<Vary> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    #[test]
    fn a_parameter_is_named_as_it_is_printed_or_with_hyphens() {
        let all = vary(&["name-share=1, 2,1", "k1=0.5"]);
        let found = by_parameter(&all, &["k1", "name share"]).unwrap();
        assert_eq!(found, BTreeMap::from([("name share", vec!["1", "2"]), ("k1", vec!["0.5"])]));
        assert_eq!(values("k1", &["1", "1.0", "2"], &[], number).unwrap(), [1.0, 2.0]);
    }

    #[test]
    fn what_no_grid_can_try_is_refused_with_what_there_is() {
        for text in ["", "k1", "=1", "k1=", "k1=1,,2"] {
            assert_eq!(text.parse::<Vary>(), Err(GridError::Form(text.to_owned())));
        }
        let refused = |texts: &[&str]| by_parameter(&vary(texts), &["k1", "b"]).unwrap_err().to_string();
        assert_eq!(refused(&["k9=1"]), "no parameter `k9` in this grid; there are k1, b");
        assert_eq!(refused(&["b=1", "b=0"]), "`b` is given more than once; write all its values after one `=`");
        let many: Vec<String> = (0..=MOST).map(|value| value.to_string()).collect();
        assert!(refused(&[&format!("b={}", many.join(","))]).starts_with("401 configurations are more than 400"));
        for text in ["x", "nan", "inf"] {
            let error = values("b", &[text], &["0.5".to_owned()], number).unwrap_err();
            assert_eq!(error.to_string(), format!("b={text}: it is not a number; the grid itself tries 0.5"));
        }
    }
}
