//! Escapes such as `%20`, as addresses have them (RFC 3986, section 2.1).

use std::fmt::Write as _;

/// The bytes for which a text with escapes stands. A `%` without two hexadecimal digits behind it stands for itself.
#[must_use]
pub fn percent_decoded(text: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        let digit = |at: usize| tail.get(at).and_then(|byte| char::from(*byte).to_digit(16));
        match (first, digit(0), digit(1)) {
            (b'%', Some(high), Some(low)) => {
                bytes.push(u8::try_from(high * 16 + low).unwrap_or_default());
                rest = tail.get(2..).unwrap_or_default();
            }
            _ => {
                bytes.push(*first);
                rest = tail;
            }
        }
    }
    bytes
}

/// `text` with escapes for all bytes but letters, digits, `-`, `.`, `_`, `~` and those in `more`.
#[must_use]
pub fn percent_encoded(text: &[u8], more: &[u8]) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(byte) || more.contains(byte) {
            encoded.push(char::from(*byte));
        } else {
            let _ = write!(encoded, "%{byte:02X}");
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_stand_for_bytes_and_all_else_for_itself() {
        for (text, expected) in [
            ("", &b""[..]),
            ("a b", b"a b"),
            ("a%20b%C3%a9", b"a b\xc3\xa9"),
            ("%zz%2", b"%zz%2"),
            ("100%", b"100%"),
            ("%ff", b"\xff"),
        ] {
            assert_eq!(percent_decoded(text), expected, "{text}");
        }
    }

    #[test]
    fn escapes_are_read_back() {
        let all: Vec<u8> = (0..=255).collect();
        assert_eq!(percent_decoded(&percent_encoded(&all, b"")), all);
        for (text, more, expected) in
            [("a b/é", "", "a%20b%2F%C3%A9"), ("a b/é", "/", "a%20b/%C3%A9"), ("Az09-._~%", "", "Az09-._~%25")]
        {
            assert_eq!(percent_encoded(text.as_bytes(), more.as_bytes()), expected);
        }
    }
}
