//! Data files of the crate: TOML that is read strictly and then checked, with errors that name the file and the line.
//!
//! The files lie in `data/` of the crate and are built in, so that no result depends on a folder and a packaged crate
//! has them. What a file may say is the business of the type that it is read into.

use std::ops::Range;

use serde::de::DeserializeOwned;
use toml::Spanned;

/// A data file says something wrong.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}: {reason}")]
pub struct DataError {
    /// The name of the file.
    pub file: String,
    /// The line, counted from 1.
    pub line: usize,
    /// What is wrong there.
    pub reason: String,
}

/// The name and the text of a data file.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DataFile<'a> {
    /// The name that errors state.
    pub(crate) name: &'a str,
    /// The whole text.
    pub(crate) text: &'a str,
}

impl DataFile<'_> {
    /// The text as the wire type `T`.
    ///
    /// # Errors
    /// [`DataError`] for what is not TOML or does not fit `T`.
    pub(crate) fn read<T: DeserializeOwned>(&self) -> Result<T, DataError> {
        toml::from_str(self.text).map_err(|error| self.refuse(error.span().unwrap_or(0..0), error.message()))
    }

    /// That what stands at `place` is wrong for this reason.
    pub(crate) fn refuse(&self, place: Range<usize>, reason: impl Into<String>) -> DataError {
        let before = self.text.bytes().take(place.start);
        let line = 1 + before.filter(|byte| *byte == b'\n').count();
        DataError { file: self.name.to_owned(), line, reason: reason.into() }
    }

    /// A text of one line with something in it.
    ///
    /// # Errors
    /// [`DataError`] for a text that is empty, has spaces around it or control characters in it.
    pub(crate) fn text_of(&self, text: Spanned<String>) -> Result<String, DataError> {
        let place = text.span();
        let text = text.into_inner();
        let reason = match text.as_str() {
            "" => "the text is empty",
            text if text.trim() != text => "the text begins or ends with a space",
            text if text.contains(char::is_control) => "the text has a line break or another control character",
            _ => return Ok(text),
        };
        Err(self.refuse(place, reason))
    }

    /// What `check` makes of each of `texts`, of which there must be `least` or more, all different.
    ///
    /// # Errors
    /// [`DataError`] for too few texts, one that comes twice, or what `check` refuses.
    pub(crate) fn list_of<T>(
        &self,
        texts: Spanned<Vec<Spanned<String>>>,
        least: usize,
        check: impl Fn(&str) -> Result<T, String>,
    ) -> Result<Vec<T>, DataError> {
        let place = texts.span();
        let texts = texts.into_inner();
        if texts.len() < least {
            return Err(self.refuse(place, format!("the list has {} entries; {least} are needed", texts.len())));
        }
        let mut seen = std::collections::BTreeSet::new();
        let mut checked = Vec::with_capacity(texts.len());
        for text in texts {
            let place = text.span();
            let text = self.text_of(text)?;
            checked.push(check(&text).map_err(|reason| self.refuse(place.clone(), reason))?);
            if let Some(text) = seen.replace(text) {
                return Err(self.refuse(place, format!("`{text}` is in the list twice")));
            }
        }
        Ok(checked)
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Wire {
        name: Spanned<String>,
        list: Spanned<Vec<Spanned<String>>>,
    }

    fn read(text: &str) -> Result<(String, Vec<String>), DataError> {
        let file = DataFile { name: "words.toml", text };
        let wire: Wire = file.read()?;
        let name = file.text_of(wire.name)?;
        let short = |word: &str| if word.len() < 9 { Ok(word.to_owned()) } else { Err(format!("`{word}` is long")) };
        Ok((name, file.list_of(wire.list, 2, short)?))
    }

    #[test]
    fn errors_name_the_file_and_the_line() {
        let table = [
            ("name = \"a\"\nlist = [\"b\", \"c\"]", "Ok"),
            ("name = \"a\"\n\nlist = 3", "words.toml:3: invalid type: integer `3`, expected a sequence"),
            ("name = \"a\"\nlist = []\nlists = []", "words.toml:3: unknown field `lists`, expected `name` or `list`"),
            ("list = []", "words.toml:1: missing field `name`"),
            ("name = \"a\nlist = []", "words.toml:1: invalid basic string, expected `\"`"),
            ("\nname = \"\"\nlist = [\"b\", \"c\"]", "words.toml:2: the text is empty"),
            ("name = \"a \"\nlist = []", "words.toml:1: the text begins or ends with a space"),
            ("name = \"a\"\nlist = [\"b\"]", "words.toml:2: the list has 1 entries; 2 are needed"),
            ("name = \"a\"\nlist = [\n  \"b\",\n  \"b\"]", "words.toml:4: `b` is in the list twice"),
            ("name = \"a\"\nlist = [\n  \"much too long\", \"b\"]", "words.toml:3: `much too long` is long"),
            ("name = \"a\\nb\"\nlist = []", "words.toml:1: the text has a line break or another control character"),
        ];
        for (text, expected) in table {
            let found = read(text).map_or_else(|error| error.to_string(), |_| "Ok".to_owned());
            assert_eq!(found, expected, "{text}");
        }
    }
}
