//! Texts that came encoded: in base64, or as an address that begins with `data:`. Conversations carry files and drawings so.

use base64::alphabet::{Alphabet, STANDARD, URL_SAFE};
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig};
use base64::engine::{DecodePaddingMode, Engine};

use contextweaver_core::text::percent_decoded;

/// Base64 of fewer letters is a word.
const LEAST_CODE: usize = 4;

/// What an address says of data in base64, behind everything else.
const MARK: &str = ";base64";

/// A text, and how it was encoded.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Encoded {
    /// The text itself.
    pub(super) text: String,
    /// What stands before its base64: the beginning of an address, or nothing.
    head: String,
    is_url_safe: bool,
    is_padded: bool,
}

impl Encoded {
    /// The text for which `written` stands as a whole; `None` for what is not encoded, and for what is no text.
    pub(super) fn of(written: &str) -> Option<Self> {
        let Some((about, data)) = data_address(written) else {
            return (written.len() >= LEAST_CODE).then(|| Self::of_base64(String::new(), written)).flatten();
        };
        let is_base64 = about
            .len()
            .checked_sub(MARK.len())
            .and_then(|at| about.get(at..))
            .is_some_and(|end| end.eq_ignore_ascii_case(MARK));
        if is_base64 {
            return Self::of_base64(format!("{about},"), data);
        }
        // What has no escapes is there to be read as it is.
        let text = data.contains('%').then(|| String::from_utf8(percent_decoded(data)).ok()).flatten()?;
        Some(Self { text, head: format!("{about}{MARK},"), is_url_safe: false, is_padded: true })
    }

    fn of_base64(head: String, code: &str) -> Option<Self> {
        let code: String = code.split(['\r', '\n']).collect();
        let is_url_safe = code.contains(['-', '_']);
        let bytes = engine(is_url_safe, true).decode(&code).ok()?;
        let text = String::from_utf8(bytes).ok()?;
        Some(Self { text, head, is_url_safe, is_padded: code.len().is_multiple_of(4) })
    }

    /// Another text in the same form, in base64.
    pub(super) fn with(&self, text: &str) -> String {
        format!("{}{}", self.head, engine(self.is_url_safe, self.is_padded).encode(text))
    }
}

/// What an address that begins with `data:` says of its data, with that beginning, and the data.
fn data_address(written: &str) -> Option<(&str, &str)> {
    let is_data = written.get(..5).is_some_and(|scheme| scheme.eq_ignore_ascii_case("data:"));
    is_data.then(|| written.split_once(',')).flatten()
}

/// Reads base64 with padding and without it.
fn engine(is_url_safe: bool, is_padded: bool) -> impl Engine {
    let alphabet: &Alphabet = if is_url_safe { &URL_SAFE } else { &STANDARD };
    let config = GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);
    GeneralPurpose::new(alphabet, config.with_encode_padding(is_padded))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_encoded_is_read_and_written_in_its_form() {
        for (written, text, other) in [
            ("a2V5ID0gPz8_", "key = ???", "Pj4-"),
            ("a2V5ID0gPz8/", "key = ???", "Pj4+"),
            ("a2V5\nID0gMQ==", "key = 1", "Pj4+"),
            ("a2V5ID0gMQ", "key = 1", "Pj4+"),
            ("data:text/plain;base64,QQ==", "A", "data:text/plain;base64,Pj4+"),
            ("DATA:image/svg+xml;charset=utf-8;BASE64,QQ", "A", "DATA:image/svg+xml;charset=utf-8;BASE64,Pj4+"),
            ("data:text/plain,a%20b%zz%C3%A9", "a b%zzé", "data:text/plain;base64,Pj4+"),
        ] {
            let read = Encoded::of(written).unwrap_or_else(|| panic!("{written}"));
            assert_eq!((read.text.as_str(), read.with(">>>").as_str()), (text, other), "{written}");
        }
    }

    #[test]
    fn what_is_not_encoded_or_no_text_is_left() {
        for written in
            ["", "A", "QQ", "a plain text", "data:text/plain,plain", "data:image/png;base64,iVBORw0KGgo=", "/9j/4AAQ"]
        {
            assert_eq!(Encoded::of(written), None, "{written}");
        }
    }
}
