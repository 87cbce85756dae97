//! Numbers as people write them: with a unit, with their digits in groups, with a comma before the decimals.

use crate::literal::Decimal;

/// The number of bytes of the longest text that is read as an amount.
const LONGEST: usize = 40;
/// The number of letters of the longest unit behind a number.
const UNIT: usize = 4;
/// The number of digits of a group.
const GROUP: usize = 3;
/// What may stand between two groups of digits, besides the point and the comma.
const BETWEEN: [char; 6] = [' ', '\u{a0}', '\u{2009}', '\u{202f}', '\'', '’'];

/// A text that is a number, with or without a unit.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Amount<'t> {
    /// The currency, measure or percent sign; empty if there is none.
    pub(super) unit: &'t str,
    /// The number if a point stands before the decimals, and if a comma does; `None` where that cannot be.
    pub(super) readings: [Option<Decimal>; 2],
}

/// The amount that `text` is, if it is one: `1,234.50`, `-1.234,50 €`, `($12)`, `USD 7`, `12 ms`, `3.5%`.
pub(super) fn parse(text: &str) -> Option<Amount<'_>> {
    if text.len() > LONGEST || text.starts_with(|first: char| first.is_ascii_lowercase()) {
        return None;
    }
    let inside = text.strip_prefix('(').and_then(|text| text.strip_suffix(')'));
    let (sign, rest) = signed(inside.unwrap_or(text));
    let (before, rest) = currency(rest);
    let (inner, rest) = if sign.is_none() { signed(rest) } else { (None, rest) };
    let is_inside = |c: char| c.is_ascii_digit() || matches!(c, '.' | ',') || BETWEEN.contains(&c);
    let (digits, behind) = rest.split_at(rest.find(|c| !is_inside(c)).unwrap_or(rest.len()));
    let digits = digits.trim_end();
    let unit = if before.is_empty() { behind } else { before };
    let one_unit = behind.is_empty() || (before.is_empty() && is_unit(behind));
    // A plus without a unit is more often part of a telephone number.
    let sign = sign.or(inner);
    if !one_unit || (sign == Some('+') && unit.is_empty()) || (sign.is_some() && inside.is_some()) {
        return None;
    }
    let negative = inside.is_some() || sign == Some('-');
    let readings = ['.', ','].map(|decimal| number(digits, decimal, negative));
    readings.iter().any(Option::is_some).then_some(Amount { unit, readings })
}

/// The sign before a number, and the rest.
fn signed(text: &str) -> (Option<char>, &str) {
    let mut rest = text.chars();
    match rest.next() {
        Some('-' | '−') => (Some('-'), rest.as_str()),
        Some('+') => (Some('+'), rest.as_str()),
        _ => (None, text),
    }
}

/// The currency before a number, and the rest: a sign, or three capitals and a blank.
fn currency(text: &str) -> (&str, &str) {
    let sign = text.chars().next().filter(|first| is_currency(*first)).map(char::len_utf8);
    let capitals = || text.bytes().take(GROUP).filter(u8::is_ascii_uppercase).count() == GROUP;
    let end = sign.or_else(|| (text.get(GROUP..)?.starts_with([' ', '\u{a0}']) && capitals()).then_some(GROUP));
    let (unit, rest) = text.split_at(end.unwrap_or(0));
    (unit, if unit.is_empty() { rest } else { rest.trim_start() })
}

fn is_currency(character: char) -> bool {
    matches!(character, '$' | '¢' | '£' | '¥' | '₿' | '\u{20a0}'..='\u{20bf}')
}

/// Whether a text behind a number is a unit: a sign, or a few letters.
fn is_unit(text: &str) -> bool {
    let mut characters = text.chars();
    let first = characters.next();
    let alone = characters.as_str().is_empty();
    (alone && first.is_some_and(|sign| is_currency(sign) || matches!(sign, '%' | '‰' | '°')))
        || (text.chars().count() <= UNIT && text.chars().all(|c| c.is_alphabetic() || c == '°'))
}

/// The number that `digits` are if `decimal` stands before the decimals. An identifier begins with zeros, and an address
/// has four parts.
fn number(digits: &str, decimal: char, negative: bool) -> Option<Decimal> {
    let (whole, decimals) = match digits.split_once(decimal) {
        Some((whole, decimals)) => (whole, Some(decimals)),
        None => (digits, None),
    };
    let is_digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !decimals.is_none_or(is_digits) {
        return None;
    }
    let between = whole.chars().find(|c| !c.is_ascii_digit());
    let mut plain = String::from(if negative { "-" } else { "" });
    match between {
        None if !is_digits(whole) || (whole.starts_with('0') && whole.len() > 1) => return None,
        None => plain.push_str(whole),
        Some(between) => {
            let groups: Vec<&str> = whole.split(between).collect();
            let [first, rest @ ..] = groups.as_slice() else { return None };
            let address = between == '.' && decimals.is_none() && groups.len() == 4;
            let grouped = is_digits(first) && first.len() <= GROUP && !first.starts_with('0') && !address;
            if !grouped || !rest.iter().all(|group| is_digits(group) && group.len() == GROUP) {
                return None;
            }
            plain.extend(groups);
        }
    }
    if let Some(decimals) = decimals {
        plain.push('.');
        plain.push_str(decimals);
    }
    Decimal::parse(&plain)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn amounts_are_read_in_every_notation_that_is_possible() {
        let shown = |text: &str| {
            let amount = parse(text)?;
            let [point, comma] =
                amount.readings.map(|reading| reading.map_or_else(|| "–".to_owned(), |number| number.to_string()));
            Some(format!("{text} [{}] {point} {comma}", amount.unit))
        };
        let texts = [
            "1,234.50",
            "1.234,50",
            "1937,49",
            "1,234",
            "12.5",
            "-$5",
            "$-1,200",
            "($12.00)",
            "−3,5 %",
            "+3.5%",
            "12 ms",
            "EUR 1'234.50",
            "1 234,50 €",
            "0,50",
            "9",
        ];
        let told: Vec<String> = texts.into_iter().filter_map(shown).collect();
        insta::assert_snapshot!(told.join("\n"), @r"
        1,234.50 [] 1234.5 –
        1.234,50 [] – 1234.5
        1937,49 [] – 1937.49
        1,234 [] 1234 1.234
        12.5 [] 12.5 –
        -$5 [$] -5 -5
        $-1,200 [$] -1200 -1.2
        ($12.00) [$] -12 –
        −3,5 % [%] – -3.5
        +3.5% [%] 3.5 –
        12 ms [ms] 12 12
        EUR 1'234.50 [EUR] 1234.5 –
        1 234,50 € [€] – 1234.5
        0,50 [] – 0.5
        9 [] 9 9
        ");
    }

    #[test]
    fn dates_addresses_identifiers_and_names_are_no_amounts() {
        for text in [
            "",
            "-",
            "$",
            "01.02.2026",
            "2026-01-02",
            "10:30",
            "192.168.100.200",
            "007",
            "00,5",
            "v12",
            "Q1",
            "Result 9",
            "1.2.3",
            "12,34,56",
            "+49 170 123",
            "1st place",
            "1,23,456",
            "5 items",
            "AB1 234",
            "1e5",
            "٣",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn a_number_is_read_as_it_was_written(cents in -99_999_999_999_i64..99_999_999_999, unit in "|%| €| EUR| ms") {
            let digits = (cents.unsigned_abs() / 100).to_string();
            let head = (digits.len() - 1) % GROUP + 1;
            let (first, rest) = digits.split_at(head);
            for (between, decimal, reading) in [(",", '.', 0), (".", ',', 1), ("’", '.', 0), ("\u{a0}", ',', 1), ("", ',', 1)] {
                let groups: String = rest.as_bytes().chunks(GROUP).map(|group| {
                    format!("{between}{}", String::from_utf8_lossy(group))
                }).collect();
                let sign = if cents < 0 { "-" } else { "" };
                let text = format!("{sign}{first}{groups}{decimal}{:02}{unit}", cents.unsigned_abs() % 100);
                let amount = parse(&text).expect("an amount");
                prop_assert_eq!(amount.readings[reading], Decimal::parse(&format!("{cents}e-2")), "{}", text);
                prop_assert_eq!(amount.unit, unit.trim());
            }
        }

        #[test]
        fn every_text_is_an_amount_or_not(text in "[-+(]?[$€A-Z]{0,3} ?[0-9.,' \u{a0}’]{0,12}\\PC{0,4}\\)?") {
            if let Some(amount) = parse(&text) {
                prop_assert!(text.contains(amount.unit));
            }
        }
    }
}
