//! The part of `README.md` that is spliced from the results.
//!
//! The rest of the file belongs to its authors: [`splice`] replaces what stands between two markers and leaves every
//! other byte as it is.

use crate::eval::left_out::LeftOutResults;

use super::Records;
use super::figures;
use super::number::{MISSING, count, estimate, percent};
use super::scores::{CONTROL, DEFAULT, RECALL, Scores, recall};
use super::table::Table;

/// The line before the spliced block.
pub const BEGIN: &str = "<!-- scorecard:begin -->";
/// The line after the spliced block.
pub const END: &str = "<!-- scorecard:end -->";

/// Where the pages lie, seen from the file.
const FOLDER: &str = "scorecard/";

/// The text has no place for the block.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("{0}; put the lines `{BEGIN}` and `{END}` once each, in this order, where the table belongs")]
pub struct SpliceError(&'static str);

/// The block: the headline picture, the means over collections that the semantic table has not seen, and recall@5 of
/// the default engine and of the control with the tokens saved, one row per collection.
#[must_use]
pub fn block(records: &Records<'_>) -> String {
    let scores = Scores::new(records.results);
    let headline = scores.grown_collections().into_iter().find_map(|name| figures::recall_by_size(&scores, name));
    let mut blocks: Vec<String> = headline.iter().map(|figure| figure.link(FOLDER)).collect();
    blocks.extend(records.left_out.and_then(super::left_out::sentence));
    let table = headline_table(&scores, records.left_out);
    if table.is_empty() {
        blocks.push("No results are recorded yet.".to_owned());
    } else {
        blocks.push(table.markdown().trim_end().to_owned());
        blocks.push(format!(
            "{RECALL} is the mean share of the relevant tools among the first five, with its 95 % interval; tokens saved \
             is the share of the prompt that the first ten cards spare against all definitions. The \
             [scorecard]({FOLDER}SCORECARD.md) has every other figure and the definitions.",
        ));
        if records.left_out.is_some() {
            blocks.push(
                "The default has here, for each collection, a semantic table that was made without it. The table in \
                 the binary was trained on pairs of some public collections; the scorecard has both."
                    .to_owned(),
            );
        }
    }
    blocks.extend(records.context.and_then(super::context::sentence));
    blocks.extend(records.gateway.and_then(super::gateway::sentence));
    blocks.join("\n\n")
}

/// With `left_out` the default's figures are those of tables that have not seen the collection.
fn headline_table(scores: &Scores<'_>, left_out: Option<&LeftOutResults>) -> Table {
    let (control, default) = (format!("{RECALL}, flat BM25"), format!("{RECALL}, {DEFAULT}"));
    let mut table = Table::new(["collection", "tools", "queries", &control, &default, "tokens saved"]);
    let default = |case: &str| match left_out {
        Some(left_out) => {
            super::left_out::recall_of(left_out, case).map_or_else(|| MISSING.to_owned(), |one| estimate(&one))
        }
        None => scores.cell(DEFAULT, case, |facts| recall(facts).map(estimate)),
    };
    for case in scores.cases(|case| case.growth.is_none()) {
        let facts = scores.any_facts(case.name);
        let cells = [
            case.name.to_owned(),
            facts.map_or_else(|| MISSING.to_owned(), |facts| count(facts.tools)),
            facts.map_or_else(|| MISSING.to_owned(), |facts| count(facts.answerable)),
            scores.cell(CONTROL, case.name, |facts| recall(facts).map(estimate)),
            default(case.name),
            scores.cell(DEFAULT, case.name, |facts| Some(percent(facts.tokens.as_ref()?.reduction))),
        ];
        table.row(cells);
    }
    table
}

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
    use crate::eval::record::Results;
    use crate::report::sample;

    fn block(results: &[Results]) -> String {
        super::block(&Records { results, ..Records::default() })
    }

    #[test]
    fn the_block_has_one_row_per_collection() {
        insta::assert_snapshot!(block(&sample::few_results()), @r"
        | collection | tools | queries | recall@5, flat BM25 | recall@5, default | tokens saved |
        | ---------- | ----: | ------: | ------------------: | ----------------: | -----------: |
        | household  |    96 |     164 |     .850 [.78, .92] |   .880 [.81, .95] |       97.0 % |
        | toolbench  | 3,912 |     764 |     .476 [.44, .51] |            failed |       failed |

        recall@5 is the mean share of the relevant tools among the first five, with its 95 % interval; tokens saved is the share of the prompt that the first ten cards spare against all definitions. The [scorecard](scorecard/SCORECARD.md) has every other figure and the definitions.
        ");
    }

    #[test]
    fn the_block_shows_the_headline_picture() {
        let shown = block(&sample::results());
        assert!(shown.starts_with("![recall@5 by catalog size and engine: workbench, mixed distractors](scorecard/workbench-recall-by-size.svg)\n\n|"));
        assert_eq!(block(&[]), "No results are recorded yet.");
    }

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
