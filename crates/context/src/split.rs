//! The lines of a text, found with wide instructions.
//!
//! [`str::lines`] looks at eight bytes at a time, and a large result is often one line. What a line is, is the same.

use memchr::memchr;

/// The lines of `text`, as [`str::lines`] gives them: without the line feed and a carriage return before it. A line feed
/// at the end begins no further line.
pub(crate) fn lines(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let (line, behind) = match memchr(b'\n', rest.as_bytes()).and_then(|at| rest.split_at_checked(at)) {
            Some((line, behind)) => (line.strip_suffix('\r').unwrap_or(line), behind.get(1..).unwrap_or_default()),
            None => (rest, ""),
        };
        rest = behind;
        Some(line)
    })
}

/// The number of [`lines`].
pub(crate) fn line_count(text: &str) -> usize {
    let feeds = memchr::memchr_iter(b'\n', text.as_bytes()).count();
    feeds + usize::from(!text.is_empty() && !text.ends_with('\n'))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn they_are_those_of_the_standard_library(text in "[\r\naé ]{0,40}") {
            let plain: Vec<&str> = text.lines().collect();
            prop_assert_eq!(line_count(&text), plain.len());
            prop_assert_eq!(lines(&text).collect::<Vec<_>>(), plain);
        }
    }
}
