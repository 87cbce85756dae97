//! Numbers of JSON texts, by the digits that stand there.
//!
//! The parser holds a number in 64 bits: as a whole one, or as a double. A whole number beyond that, and a fraction with
//! more digits than a double keeps, are read as a neighbour, and two that differ as one.

use serde_json::Number;

/// Digits that a double keeps of any number.
pub(crate) const MOST_DIGITS: usize = 17;

/// Bytes of a number without an exponent that a double holds in any case.
const ALWAYS_HELD: usize = 15;

/// The numbers of a JSON text, as they are written and in their order.
pub(crate) struct Tokens<'t>(pub(crate) &'t str);

impl<'t> Iterator for Tokens<'t> {
    type Item = &'t str;

    fn next(&mut self) -> Option<&'t str> {
        let bytes = self.0.as_bytes();
        let (mut at, mut in_string) = (0, false);
        while let Some(byte) = bytes.get(at) {
            match byte {
                b'"' => in_string = !in_string,
                b'\\' if in_string => at += 1,
                b'-' | b'0'..=b'9' if !in_string => {
                    let rest = self.0.get(at..)?;
                    let is_part = |c: char| c.is_ascii_digit() || matches!(c, '+' | '-' | '.' | 'e' | 'E');
                    let (token, rest) = rest.split_at(rest.find(|c| !is_part(c)).unwrap_or(rest.len()));
                    self.0 = rest;
                    return Some(token);
                }
                _ => {}
            }
            at += 1;
        }
        None
    }
}

/// Whether what the parser makes of a number says all that `token` says; `shortest` writes a double so that it reads
/// back.
pub(crate) fn is_held(token: &str, shortest: impl Fn(f64) -> String) -> bool {
    let is_short = token.len() <= ALWAYS_HELD && !token.contains(['e', 'E']);
    if is_short || token.parse::<i64>().is_ok() || token.parse::<u64>().is_ok() {
        return true;
    }
    let number = serde_json::from_str::<Number>(token).ok();
    number.and_then(|number| number.as_f64()).is_some_and(|double| digits_beyond(token, &shortest(double)).is_none())
}

/// The digits of a number in a form of their own, where `held`, which the parser makes of it, is another number.
///
/// Two numbers have one form if they have one value, unless their exponents are beyond all measure. A fraction of up to 17
/// digits counts as the double that is nearest to it: writers that print doubles print as many.
pub(crate) fn digits_beyond(token: &str, held: &str) -> Option<String> {
    let (Some(written), Some(held)) = (Decimal::of(token), Decimal::of(held)) else { return Some(token.to_owned()) };
    let is_near = written.exponent < 0 && held.exponent < 0 && written.digits.len() <= MOST_DIGITS;
    (written != held && !is_near).then(|| written.text())
}

/// A number by its digits, without nulls at their ends, times ten to the power of `exponent`; null has none.
#[derive(Debug, PartialEq, Eq)]
struct Decimal {
    is_negative: bool,
    digits: String,
    exponent: i64,
}

impl Decimal {
    /// The number that `token` writes; `None` where its exponent cannot be counted.
    fn of(token: &str) -> Option<Self> {
        let (mantissa, exponent) = token.split_once(['e', 'E']).unwrap_or((token, "0"));
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let all = format!("{}{fraction}", whole.trim_start_matches('-'));
        let counted = all.trim_end_matches('0');
        let digits = counted.trim_start_matches('0').to_owned();
        if digits.is_empty() {
            return Some(Self { is_negative: false, digits, exponent: 0 });
        }
        let shift = i64::try_from(all.len() - counted.len()).ok()? - i64::try_from(fraction.len()).ok()?;
        let exponent = exponent.parse::<i64>().ok()?.checked_add(shift)?;
        Some(Self { is_negative: token.starts_with('-'), digits, exponent })
    }

    /// The number in plain digits where it is whole. What the parser takes has no more than 309.
    fn text(&self) -> String {
        let Self { is_negative, digits, exponent } = self;
        let sign = if *is_negative { "-" } else { "" };
        match usize::try_from(*exponent) {
            Ok(nulls) => format!("{sign}{digits}{}", "0".repeat(nulls)),
            Err(_) => format!("{sign}{digits}e{exponent}"),
        }
    }
}
