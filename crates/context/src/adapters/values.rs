//! The values that may be read of one document.

use serde_json::Value;

use contextweaver_core::json::{Names, Reader};

/// Values that may be read yet.
pub(super) struct Budget(Reader);

impl Budget {
    /// For so many values.
    pub(super) fn new(values: usize) -> Self {
        Self(Reader::new(Names::LastWins, values))
    }

    /// The value of a JSON text; `None` where it has more values than are left. From then on nothing is left.
    ///
    /// # Errors
    /// The text is not JSON.
    pub(super) fn parse(&self, text: &str) -> Result<Option<Value>, serde_json::Error> {
        let read = self.0.read(text);
        if self.0.is_spent() { Ok(None) } else { read.map(Some) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_is_spent_value_by_value() {
        let budget = Budget::new(5);
        assert_eq!(budget.parse(r#"{"a": [1, 2]}"#).unwrap().unwrap()["a"][1], 2);
        assert!(budget.parse("1 2").is_err());
        assert_eq!(budget.parse("[]").unwrap(), None);
        assert_eq!(budget.parse("]").unwrap(), None);
    }
}
