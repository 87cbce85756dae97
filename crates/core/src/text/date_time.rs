//! Moments as text: what contracts of others call a date-time.

/// Whether `text` is a moment as RFC 3339 writes it (`2026-11-27T10:00:00Z`), with a day that the calendar has.
#[must_use]
pub fn is_date_time(text: &str) -> bool {
    parse(text.as_bytes()).is_some()
}

fn parse(text: &[u8]) -> Option<()> {
    let (year, rest) = digits(text, 4)?;
    let (month, rest) = digits(rest.strip_prefix(b"-")?, 2)?;
    let (day, rest) = digits(rest.strip_prefix(b"-")?, 2)?;
    let rest = rest.strip_prefix(b"T").or_else(|| rest.strip_prefix(b"t"))?;
    let ((hour, minute), rest) = clock(rest)?;
    let (second, mut rest) = digits(rest.strip_prefix(b":")?, 2)?;
    if let Some(fraction) = rest.strip_prefix(b".") {
        let length = fraction.iter().take_while(|byte| byte.is_ascii_digit()).count();
        rest = fraction.get(length..).filter(|_| length > 0)?;
    }
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days = match month {
        2 => 28 + u32::from(leap),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    };
    let of_calendar = (1..=12).contains(&month) && (1..=days).contains(&day);
    // A minute may have a second 60, where one was put in.
    let of_day = hour < 24 && minute < 60 && second <= 60;
    let offset = match rest {
        b"Z" | b"z" => true,
        [b'+' | b'-', offset @ ..] => {
            let ((hour, minute), rest) = clock(offset)?;
            hour < 24 && minute < 60 && rest.is_empty()
        }
        _ => false,
    };
    (of_calendar && of_day && offset).then_some(())
}

/// Hours and minutes, and what follows.
fn clock(text: &[u8]) -> Option<((u32, u32), &[u8])> {
    let (hour, rest) = digits(text, 2)?;
    let (minute, rest) = digits(rest.strip_prefix(b":")?, 2)?;
    Some(((hour, minute), rest))
}

/// The number in the first `count` bytes, all digits, and what follows.
fn digits(text: &[u8], count: usize) -> Option<(u32, &[u8])> {
    let (number, rest) = text.split_at_checked(count)?;
    let number = number
        .iter()
        .try_fold(0, |number, byte| byte.is_ascii_digit().then(|| number * 10 + u32::from(byte - b'0')))?;
    Some((number, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_has_a_day_of_the_calendar_and_an_offset() {
        for right in
            ["2026-11-27T10:00:00Z", "2026-11-27t10:00:00.5z", "2024-02-29T23:59:60+05:30", "2000-02-29T00:00:00-00:00"]
        {
            assert!(is_date_time(right), "{right}");
        }
        for wrong in [
            "",
            "2026-11-27",
            "2026-11-27 10:00:00Z",
            "2026-11-27T10:00:00",
            "2026-11-27T10:00:00.Z",
            "2026-11-27T10:00:00+0530",
            "2026-11-27T24:00:00Z",
            "2026-13-27T10:00:00Z",
            "2026-02-29T10:00:00Z",
            "2100-02-29T10:00:00Z",
            "2026-00-01T10:00:00Z",
            "2026-11-27T10:00:00Zx",
            "２026-11-27T10:00:00Z",
        ] {
            assert!(!is_date_time(wrong), "{wrong}");
        }
    }
}
