//! The part of `README.md` that is spliced from the results.
//!
//! The rest of the file belongs to its authors: [`splice`] replaces what stands between two markers and leaves every
//! other byte as it is.

/// The line before the spliced block.
pub const BEGIN: &str = "<!-- scorecard:begin -->";
/// The line after the spliced block.
pub const END: &str = "<!-- scorecard:end -->";

/// Where the pages lie, seen from the file.
pub const FOLDER: &str = "scorecard/";

/// The text has no place for the block.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("{0}; put the lines `{BEGIN}` and `{END}` once each, in this order, where the table belongs")]
pub struct SpliceError(&'static str);

/// `readme` with `block` between the markers instead of what stood there.
///
/// # Errors
/// [`SpliceError`] when a marker is absent or repeated, or when the end stands before the beginning.
pub fn splice(readme: &str, block: &str) -> Result<String, SpliceError> {
    let (before, rest) = readme.split_once(BEGIN).ok_or(SpliceError("the beginning of the block is not marked"))?;
    let (_, after) =
        rest.split_once(END).ok_or(SpliceError("the beginning of the block is marked and its end is not"))?;
    if rest.contains(BEGIN) || after.contains(END) {
        return Err(SpliceError("a marker of the block is repeated"));
    }
    Ok(format!("{before}{BEGIN}\n{}\n{END}{after}", block.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_stands_between_the_markers_is_replaced() {
        let readme = format!("a\r\n{BEGIN}\nold\n{END}\n\nb");
        let spliced = splice(&readme, "new\n").unwrap();
        assert_eq!(spliced, format!("a\r\n{BEGIN}\nnew\n{END}\n\nb"));
        assert_eq!(splice(&spliced, "new").unwrap(), spliced);
    }

    #[test]
    fn missing_reversed_and_repeated_markers_are_refused() {
        for readme in [
            String::new(),
            format!("{END} {BEGIN}"),
            BEGIN.to_owned(),
            format!("{BEGIN}{BEGIN}{END}"),
            format!("{BEGIN}{END}{END}"),
            format!("{BEGIN}{END}{BEGIN}"),
        ] {
            assert!(splice(&readme, "x").unwrap_err().to_string().contains(BEGIN), "{readme}");
        }
    }
}
