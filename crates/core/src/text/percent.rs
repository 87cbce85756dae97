//! Escapes such as `%20`, as addresses have them (RFC 3986, section 2.1).

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
}
