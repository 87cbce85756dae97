//! Whole numbers in sentences, in one manner everywhere.

use std::fmt::Display;

/// A count with its noun: `1 tool`, `2 tools`. The plural takes an s.
#[must_use]
pub fn counted(count: usize, noun: &str) -> String {
    let ending = if count == 1 { "" } else { "s" };
    format!("{count} {noun}{ending}")
}

/// A whole number, which is not below zero, with a comma between thousands: `10,000`.
#[must_use]
pub fn grouped(number: impl Display) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_as_people_read_them() {
        let all = [0_u64, 1, 12, 999, 1_000, 12_345, 999_999, 1_000_000, u64::MAX].map(grouped);
        insta::assert_snapshot!(
            all.join(" "), @"0 1 12 999 1,000 12,345 999,999 1,000,000 18,446,744,073,709,551,615"
        );
        assert_eq!([0, 1, 2].map(|count| counted(count, "tool")), ["0 tools", "1 tool", "2 tools"]);
    }
}
