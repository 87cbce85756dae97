//! Which tools are taken for which: for every query whose first tool is not needed, the needed tool and the one in front.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::eval::collection::Collection;
use crate::eval::measure::FIRST;
use crate::eval::run::Evaluation;
use crate::report::markup::escaped_xml;
use crate::report::number::count;
use contextweaver_core::text::percent_encoded;

/// Rows and columns of the matrix, at most.
const SIDE: usize = 10;

/// Pairs of the list, at most.
const PAIRS: usize = 15;

/// How often each tool stands first in place of another.
#[derive(Debug, Default)]
pub(super) struct Confusion {
    /// The needed tool and the one that stands first, with the number of queries; the most frequent first.
    pairs: Vec<((u32, u32), usize)>,
}

impl Confusion {
    /// What an evaluation takes for what.
    pub(super) fn of(collection: &Collection, evaluation: &Evaluation) -> Self {
        let mut pairs: BTreeMap<(u32, u32), usize> = BTreeMap::new();
        for (query, ranking) in collection.queries.iter().zip(&evaluation.rankings) {
            let Some(first) = ranking.hits.first() else { continue };
            if query.groups.iter().flatten().any(|item| *item == first.item) {
                continue;
            }
            for needed in query.groups.iter().filter_map(|group| group.first()) {
                *pairs.entry((*needed, first.item)).or_default() += 1;
            }
        }
        let mut pairs: Vec<_> = pairs.into_iter().collect();
        pairs.sort_by_key(|(pair, times)| (std::cmp::Reverse(*times), *pair));
        Self { pairs }
    }

    /// The matrix of the most frequent tools, and the pairs as a list.
    pub(super) fn html(&self, collection: &Collection) -> String {
        if self.pairs.is_empty() {
            return "<p>Whenever a tool is found, the first one is a needed one.</p>\n".to_owned();
        }
        let name = |item: u32| format!("<bdi>{}</bdi>", escaped_xml(collection.tool_handle(item)));
        let mut text = self.matrix(name);
        text.push_str(
            "<div class=\"scroll\" role=\"region\" aria-label=\"Pairs of tools\" tabindex=\"0\">\n<table>\n\
             <caption>The most frequent pairs</caption>\n<thead><tr><th scope=\"col\">needed</th><th \
             scope=\"col\">ranked first</th><th scope=\"col\" class=\"n\">queries</th></tr></thead>\n<tbody>\n",
        );
        for ((needed, taken), times) in self.pairs.iter().take(PAIRS) {
            let filter = |word: &str, item: u32| format!("{word}:{}", quoted(collection.tool_handle(item)));
            let link =
                percent_encoded(format!("{} {}", filter("tool", *needed), filter("took", *taken)).as_bytes(), b"");
            let _ = writeln!(
                text,
                "<tr><th scope=\"row\">{}</th><td>{}</td><td class=\"n\"><a href=\"#f={link}\">{}</a></td></tr>",
                name(*needed),
                name(*taken),
                count(*times)
            );
        }
        text.push_str("</tbody>\n</table>\n</div>\n");
        text
    }

    fn matrix(&self, name: impl Fn(u32) -> String) -> String {
        let rows = most(self.pairs.iter().map(|((needed, _), times)| (*needed, *times)));
        let columns = most(self.pairs.iter().map(|((_, taken), times)| (*taken, *times)));
        let top = self.pairs.first().map_or(1, |(_, times)| *times);
        let mut text = "<div class=\"scroll\" role=\"region\" aria-label=\"Matrix of tools\" tabindex=\"0\">\n<table \
                        class=\"matrix\">\n<caption>Needed (down) and ranked first instead (across), in queries; the \
                        tools most often missed and most often ranked first instead</caption>\n<thead><tr><td></td>"
            .to_owned();
        for column in &columns {
            let _ = write!(text, "<th scope=\"col\"><span>{}</span></th>", name(*column));
        }
        text.push_str("</tr></thead>\n<tbody>\n");
        for row in &rows {
            let _ = write!(text, "<tr><th scope=\"row\">{}</th>", name(*row));
            for column in &columns {
                let times = self.pairs.iter().find(|(pair, _)| *pair == (*row, *column)).map_or(0, |(_, times)| *times);
                match times {
                    0 => text.push_str("<td></td>"),
                    times => {
                        let depth = 1 + 4 * times.saturating_sub(1) / top.max(1);
                        let _ = write!(text, "<td class=\"n d{depth}\">{}</td>", count(times));
                    }
                }
            }
            text.push_str("</tr>\n");
        }
        text.push_str("</tbody>\n</table>\n</div>\n");
        text
    }
}

/// The tools with the highest sums.
fn most(counted: impl Iterator<Item = (u32, usize)>) -> Vec<u32> {
    let mut sums: BTreeMap<u32, usize> = BTreeMap::new();
    for (item, times) in counted {
        *sums.entry(item).or_default() += times;
    }
    let mut sums: Vec<(u32, usize)> = sums.into_iter().collect();
    sums.sort_by_key(|(item, times)| (std::cmp::Reverse(*times), *item));
    sums.into_iter().take(SIDE).map(|(item, _)| item).collect()
}

/// The tool that most queries lack among the first five, with their number.
pub(super) fn worst_tool(collection: &Collection, evaluation: &Evaluation) -> Option<(u32, usize)> {
    let mut missed: BTreeMap<u32, usize> = BTreeMap::new();
    for (query, outcome) in collection.queries.iter().zip(&evaluation.outcomes) {
        let Some(outcome) = outcome else { continue };
        for (group, rank) in query.groups.iter().zip(outcome.found.ranks()) {
            if rank.is_none_or(|rank| rank > FIRST)
                && let Some(item) = group.first()
            {
                *missed.entry(*item).or_default() += 1;
            }
        }
    }
    missed.into_iter().max_by_key(|(item, times)| (*times, std::cmp::Reverse(*item)))
}

/// A word of the filter: in quotes, without the quotes that it has itself.
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('"', ""))
}
