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
    if !before.is_empty() && !before.ends_with('\n') {
        return Err(SpliceError("the beginning of the block is not at the beginning of a line"));
    }
    if !is_shown_after(before) {
        return Err(SpliceError("the block is in a comment or a code block, where readers do not see it"));
    }
    Ok(format!("{before}{BEGIN}\n{}\n{END}{after}", block.trim()))
}

/// Whether what follows `before` is shown as Markdown: no comment and no fence of code is open at its end.
fn is_shown_after(before: &str) -> bool {
    let mut fence: Option<(char, usize)> = None;
    let mut in_comment = false;
    for line in before.lines() {
        let text = line.trim_start();
        let mark = text.chars().next().filter(|mark| matches!(mark, '`' | '~'));
        let run = mark.map_or(0, |mark| text.chars().take_while(|letter| *letter == mark).count());
        match fence {
            Some((open, least)) => {
                let closes = mark == Some(open) && run >= least && text.trim_end().chars().count() == run;
                fence = fence.filter(|_| !closes);
            }
            None if !in_comment && run >= 3 => fence = mark.map(|mark| (mark, run)),
            None => {
                let mut rest = line;
                while let Some((_, after)) = rest.split_once(if in_comment { "-->" } else { "<!--" }) {
                    (in_comment, rest) = (!in_comment, after);
                }
            }
        }
    }
    fence.is_none() && !in_comment
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
    fn a_block_that_nobody_sees_is_refused() {
        let block = format!("{BEGIN}\n{END}\n");
        for hidden in ["<!--\n", "<!-- a --><!-- b\n", "```\n", "~~~ text\n```\n", "````\n```\n", "a ", "    "] {
            assert!(splice(&format!("{hidden}{block}-->\n```\n"), "x").is_err(), "{hidden}");
        }
        for shown in ["", "<!-- a -->\n", "```\n<!--\n```\n", "<!--\n```\n-->\n", "~~~\na\n~~~~\n", "`a`\n"] {
            assert!(splice(&format!("{shown}{block}"), "x").is_ok(), "{shown}");
        }
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
