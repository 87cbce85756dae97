//! The files that `bench init` writes.

use std::path::Path;

use super::workspace::{FEWEST_QUERIES, GATE_FILE};
use contextweaver_gateway::quoted;

/// The file of the catalog in a new workspace.
pub const CATALOG: &str = "catalog.json";

/// The file of the queries in a new workspace.
pub const QUERIES: &str = "queries.jsonl";

/// What a workspace is for, and its commands.
pub const README: &str = "README.md";

/// The schema of the gate in a new workspace, which its first line names.
pub const SCHEMA: &str = "gate.schema.json";

/// What a new workspace begins with.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Start {
    /// recall@5 of the default engine; `None` while the queries are drafts.
    pub recall_at_5: Option<f64>,
    /// Tokens of all definitions.
    pub tokens: usize,
}

/// The text of `gate.toml`, with a paragraph for each threshold. The thresholds hold today, with some room.
#[must_use]
pub fn gate(start: Start) -> String {
    let recall = match start.recall_at_5 {
        Some(recall) => format!("\"recall@5\" = {:.2}", ((recall - 0.05).max(0.0) * 100.0).floor() / 100.0),
        None => "# \"recall@5\" = 0.80".to_owned(),
    };
    let tokens = rounded_up(start.tokens);
    format!(
        r#"#:schema {SCHEMA}
# For completion in editors; `contextweaver schema gate` prints that file.

# The gate of your catalog, for `contextweaver bench run` and `bench check`. Paths are relative to this file.

# The tools: a file, or a list of files and folders. Any form of docs/formats.md will do.
catalog = "{CATALOG}"

# What users ask, one JSON object per line, and the tools that answer it.
queries = "{QUERIES}"

# What ranks the tools. The first engine is judged, the others are shown beside it: default, lexical, bm25 and others.
engines = ["default"]

# A configuration of the router (TOML) that is judged instead of the first engine.
# configuration = "routing.toml"

# The command that writes the catalog again when your servers change. It is shown where the catalog is missing; nothing runs
# it for you.
# snapshot = "contextweaver mcp capture --force --out catalog.json -- uvx mcp-server-git"

# The least value of a measure: recall@5 is the mean share of the tools that a query needs among the first five. Below it the
# gate fails, whatever it was before. Choose a value that users would notice, and keep some distance from what is measured
# today: otherwise the gate fails for reasons that are no one's fault. Others: recall@1, hit@1, nDCG@10, full@5 and so on.
[least]
{recall}

# The most tokens that the definitions of all tools may take together. They are in every prompt of a client that shows a
# model all tools, so a long description has a price.
[tokens]
most = {tokens}

# A change regresses when recall@5 falls, query by query, so that chance explains it in fewer than one case in twenty. A change
# within `margin` counts as none even then: 0.01 is one query in a hundred. What is neither shown to be worse nor to be
# the same is called inconclusive and does not fail.
#
# A gate needs queries. With {FEWEST_QUERIES} it sees a loss of about one tool in five; with 200, one in sixteen; a loss of one in a
# hundred takes about 8,000. Every report says what it could have seen. Below `fewest_queries` it says that it can hardly fail.
[change]
margin = 0.01
fewest_queries = {FEWEST_QUERIES}
"#
    )
}

/// At least a tenth above, with two digits that are not 0.
fn rounded_up(tokens: usize) -> usize {
    let above = tokens + tokens.div_ceil(10);
    let step = 10usize.pow(above.max(1).ilog10().saturating_sub(1));
    above.div_ceil(step) * step
}

/// The text of the README of a workspace in `folder`.
#[must_use]
pub fn readme(folder: &Path, drafts: bool) -> String {
    let folder = quoted(&folder.display().to_string());
    let review = if drafts {
        format!(
            "`{QUERIES}` holds drafts. Make each line what a user would say, and remove `\"draft\": true`; until then nothing is \
             measured.\n\n"
        )
    } else {
        String::new()
    };
    format!(
        "# The gate of a tool catalog\n\n\
         `{GATE_FILE}` says what must hold of `{CATALOG}` for the queries in `{QUERIES}`.\n\n{review}\
         ```sh\n\
         contextweaver bench run --root {folder}     # measure and judge; write results.json where the gate holds\n\
         contextweaver bench check --root {folder}   # does results.json still hold? for CI\n\
         contextweaver bench sweep --root {folder}   # would another configuration of the router do better?\n\
         contextweaver bench run --root {folder} --html report.html   # and a report: failures first, query by query\n\
         ```\n\n\
         Commit all files of this folder, `results.json` too: it is what later changes are compared with.\n"
    )
}

#[cfg(test)]
mod tests {
    use super::super::OwnWorkspace;
    use super::*;

    #[test]
    fn a_new_gate_is_a_valid_one() {
        for (recall_at_5, least) in [(Some(0.871), vec![0.82]), (Some(0.0), vec![0.0]), (None, vec![])] {
            let text = gate(Start { recall_at_5, tokens: 4_321 });
            assert!(text.starts_with("#:schema gate.schema.json\n"), "{text}");
            let own = OwnWorkspace::parse(Path::new(""), &text).unwrap();
            assert_eq!(own.limits.least.iter().map(|(_, value)| *value).collect::<Vec<_>>(), least);
            assert_eq!((own.limits.most_tokens, own.limits.fewest_queries), (Some(4_800), 20));
        }
    }

    #[test]
    fn a_folder_is_one_word_of_a_command() {
        let text = readme(Path::new("my gate"), false);
        assert_eq!(text.matches("--root 'my gate' ").count(), 4, "{text}");
    }

    #[test]
    fn thresholds_of_tokens_are_round_and_above() {
        for (tokens, most) in [(0, 0), (1, 2), (95, 110), (1_000, 1_100), (856_643, 950_000)] {
            assert_eq!(rounded_up(tokens), most, "{tokens}");
        }
    }
}
