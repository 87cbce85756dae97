//! Decimal numbers as they are written, compared and added without rounding.

use std::cmp::Ordering;
use std::fmt;

/// An exact decimal number of at most 38 digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Decimal {
    /// The digits as an integer, with their sign.
    coefficient: i128,
    /// The power of ten to multiply the coefficient with. Above 0 only for numbers of more than 38 digits; otherwise
    /// the last digit is not 0 unless the power is 0.
    exponent: i32,
}

/// 10^38: coefficients are below it.
const LIMIT: i128 = 10_i128.pow(38);

impl Decimal {
    /// The number zero.
    pub const ZERO: Self = Self { coefficient: 0, exponent: 0 };

    /// Parses digits with an optional sign, fraction and power of ten. `None` for anything else, for more than 38
    /// digits and for powers beyond ±9999.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (negative, unsigned) = match text.as_bytes() {
            [b'-', rest @ ..] => (true, rest),
            [b'+', rest @ ..] => (false, rest),
            rest => (false, rest),
        };
        if let Some(whole) = short_integer(unsigned) {
            return Some(Self { coefficient: i128::from(if negative { -whole } else { whole }), exponent: 0 });
        }
        let (mut small, mut large, mut digits, mut fraction) = (0_u64, None, 0, None);
        let mut at = 0;
        while let Some(&byte) = unsigned.get(at) {
            match byte {
                b'0'..=b'9' => {
                    let digit = byte - b'0';
                    match large {
                        None if small < 100_000_000_000_000_000 => small = small * 10 + u64::from(digit),
                        _ => {
                            // Ten times what is below the limit can be more than an `i128` holds.
                            let before = large.unwrap_or(i128::from(small));
                            if before >= LIMIT / 10 {
                                return None;
                            }
                            large = Some(before * 10 + i128::from(digit));
                        }
                    }
                    digits += 1;
                    fraction = fraction.map(|places: i32| places + 1);
                }
                b'.' if fraction.is_none() => fraction = Some(0),
                b'e' | b'E' if digits > 0 => break,
                _ => return None,
            }
            at += 1;
        }
        if digits == 0 {
            return None;
        }
        let power = match unsigned.get(at + 1..) {
            Some(power) if at < unsigned.len() => std::str::from_utf8(power).ok()?.parse::<i32>().ok()?,
            _ => 0,
        };
        if power.unsigned_abs() > 9999 {
            return None;
        }
        let magnitude = large.unwrap_or(i128::from(small));
        let coefficient = if negative { -magnitude } else { magnitude };
        Some(Self { coefficient, exponent: power - fraction.unwrap_or(0) }.normal())
    }

    fn normal(mut self) -> Self {
        if self.coefficient == 0 {
            return Self::ZERO;
        }
        while self.exponent < 0 {
            let shorter = match i64::try_from(self.coefficient) {
                Ok(small) if small % 10 == 0 => i128::from(small / 10),
                Err(_) if self.coefficient % 10 == 0 => self.coefficient / 10,
                _ => break,
            };
            self.coefficient = shorter;
            self.exponent += 1;
        }
        if self.exponent > 0 {
            if let Some(coefficient) = self.scaled_to(0) {
                return Self { coefficient, exponent: 0 };
            }
            while self.coefficient % 10 == 0 {
                self.coefficient /= 10;
                self.exponent += 1;
            }
        }
        self
    }

    /// The coefficient at a power of ten that is not above the number's own, if it has at most 38 digits.
    fn scaled_to(self, exponent: i32) -> Option<i128> {
        let places = u32::try_from(self.exponent.checked_sub(exponent)?).ok()?;
        if places == 0 {
            return Some(self.coefficient);
        }
        if let (Ok(small), Some(&power)) = (i64::try_from(self.coefficient), SMALL_POWERS.get(places as usize)) {
            return Some(i128::from(small) * i128::from(power));
        }
        let scaled = self.coefficient.checked_mul(10_i128.checked_pow(places)?)?;
        (scaled.abs() < LIMIT).then_some(scaled)
    }
}

/// The powers of ten whose product with any `i64` is below [`LIMIT`].
const SMALL_POWERS: [i64; 19] = {
    let mut powers = [1; 19];
    let mut at = 1;
    while at < powers.len() {
        powers[at] = powers[at - 1] * 10;
        at += 1;
    }
    powers
};

/// The value of a text of at most 18 digits and nothing else, as most numbers are written.
fn short_integer(digits: &[u8]) -> Option<i64> {
    if digits.is_empty() || digits.len() > 18 {
        return None;
    }
    digits.iter().try_fold(0, |value: i64, byte| {
        let digit = byte.wrapping_sub(b'0');
        (digit < 10).then(|| value * 10 + i64::from(digit))
    })
}

impl Ord for Decimal {
    fn cmp(&self, other: &Self) -> Ordering {
        if self.exponent == other.exponent {
            return self.coefficient.cmp(&other.coefficient);
        }
        let sign = self.coefficient.signum().cmp(&other.coefficient.signum());
        if sign != Ordering::Equal {
            return sign;
        }
        let exponent = self.exponent.min(other.exponent);
        match (self.scaled_to(exponent), other.scaled_to(exponent)) {
            (Some(one), Some(other)) => one.cmp(&other),
            // One of them is so much larger that it does not fit.
            (None, _) => self.coefficient.signum().cmp(&0),
            (_, None) => 0.cmp(&other.coefficient.signum()),
        }
    }
}

impl PartialOrd for Decimal {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for Decimal {
    /// Writes all digits, without a power of ten up to 40 places on either side.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.coefficient < 0 { "-" } else { "" };
        let digits = self.coefficient.unsigned_abs().to_string();
        if !(-40..=2).contains(&self.exponent) {
            return write!(formatter, "{sign}{digits}e{}", self.exponent);
        }
        let places = usize::try_from(-self.exponent).unwrap_or(0);
        if places == 0 {
            let zeros = usize::try_from(self.exponent).unwrap_or(0);
            return write!(formatter, "{sign}{digits}{}", "0".repeat(zeros));
        }
        let padded = format!("{digits:0>width$}", width = places + 1);
        let (whole, fraction) = padded.split_at(padded.len() - places);
        write!(formatter, "{sign}{whole}.{fraction}")
    }
}

/// An exact sum, as long as it fits into a [`Decimal`].
#[derive(Debug, Clone, Copy)]
pub struct Sum(Option<Decimal>);

impl Default for Sum {
    fn default() -> Self {
        Self(Some(Decimal::ZERO))
    }
}

impl Sum {
    /// Adds `number`. A sum that needs more than 38 digits is lost.
    pub fn add(&mut self, number: Decimal) {
        self.0 = self.0.and_then(|sum| {
            let exponent = sum.exponent.min(number.exponent);
            let coefficient = sum.scaled_to(exponent)?.checked_add(number.scaled_to(exponent)?)?;
            (coefficient.abs() < LIMIT).then_some(Decimal { coefficient, exponent })
        });
    }

    /// The exact sum, unless it was lost.
    #[must_use]
    pub fn total(self) -> Option<Decimal> {
        self.0.map(Decimal::normal)
    }
}
