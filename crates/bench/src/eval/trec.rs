//! Rankings and judgements as text that other tools read.
//!
//! TREC form is for evaluation tools such as trec_eval; the tab-separated form is for people and scripts. No
//! measure is computed here.
//!
//! TREC tools know documents, not equivalents. The [`View::Aware`] form therefore writes each needed tool with its
//! equivalents as one document: the item that finds the group is written under the group's name, `NAME%gN` for the
//! N-th group, and all others under their own. trec_eval then computes our equivalence-aware measures.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::{self, Write};

use super::measure::{Found, Judgement};
use contextweaver_routing::Hit;

/// Whether declared equivalents count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum View {
    /// An equivalent counts as the tool that it stands for.
    Aware,
    /// Only the named tools count.
    Strict,
}

/// One query with what it asks for and what an engine made of it.
#[derive(Debug, Clone, Copy)]
pub struct Ranked<'a> {
    /// The query's id.
    pub query: &'a str,
    /// What it asks for.
    pub judgement: &'a Judgement,
    /// What the engine ranked, best first.
    pub ranking: &'a [Hit],
}

/// Writes TREC judgements, `query_id 0 doc 1`, one line per needed tool. Unanswerable queries have no line, so that
/// tools leave them out of their means. `name_of` gives the unique name of an item.
///
/// # Errors
/// Those of `out`.
pub fn write_qrels(
    out: &mut dyn Write,
    queries: &[Ranked<'_>],
    name_of: &dyn Fn(u32) -> String,
    view: View,
) -> io::Result<()> {
    for ranked in queries {
        let query = word(ranked.query);
        for document in needed_documents(ranked.judgement, name_of, view) {
            writeln!(out, "{query} 0 {document} 1")?;
        }
    }
    Ok(())
}

/// Writes a TREC run, `query_id Q0 doc rank score tag`. The score is the number of ranks still to come plus one, not
/// the engine's: tools order a run by score and break ties in their own ways. A query without hits has no line, so a
/// tool must be told to count it as 0 (`trec_eval -c`).
///
/// # Errors
/// Those of `out`.
pub fn write_run(
    out: &mut dyn Write,
    queries: &[Ranked<'_>],
    name_of: &dyn Fn(u32) -> String,
    view: View,
    tag: &str,
) -> io::Result<()> {
    let tag = word(tag);
    for ranked in queries {
        let query = word(ranked.query);
        let found = match view {
            View::Aware => Found::of(ranked.ranking, ranked.judgement),
            View::Strict => None,
        };
        let mut documents: Vec<String> =
            ranked.ranking.iter().map(|hit| word(&name_of(hit.item)).into_owned()).collect();
        let needed = needed_documents(ranked.judgement, name_of, view);
        for (rank, document) in found.iter().flat_map(Found::ranks).zip(needed) {
            if let Some(place) = rank.and_then(|rank| documents.get_mut(rank - 1)) {
                *place = document;
            }
        }
        for (place, document) in documents.iter().enumerate() {
            writeln!(out, "{query} Q0 {document} {} {} {tag}", place + 1, documents.len() - place)?;
        }
    }
    Ok(())
}

/// The document of each needed tool, in the order of the judgement (of its strict form in the strict view).
fn needed_documents(judgement: &Judgement, name_of: &dyn Fn(u32) -> String, view: View) -> Vec<String> {
    let name_of_group = |group: &Vec<u32>| group.first().map_or_else(String::new, |item| name_of(*item));
    match view {
        // No encoded name ends in `%g` and a number: this neither meets the tool itself, when it is ranked below an
        // equivalent, nor another group that begins with the same tool.
        View::Aware => {
            let document = |(number, group)| format!("{}%g{number}", word(&name_of_group(group)));
            (1..).zip(&judgement.groups).map(document).collect()
        }
        View::Strict => {
            judgement.strict().groups.iter().map(|group| word(&name_of_group(group)).into_owned()).collect()
        }
    }
}

/// `text` as one word: white space, control characters and `%` are percent-encoded (UTF-8 bytes); an empty text
/// becomes a lone `%`. Different texts give different words.
pub(super) fn word(text: &str) -> Cow<'_, str> {
    let plain = |character: char| !character.is_whitespace() && !character.is_control() && character != '%';
    if text.is_empty() {
        return Cow::Borrowed("%");
    }
    if text.chars().all(plain) {
        return Cow::Borrowed(text);
    }
    let mut encoded = String::with_capacity(text.len() + 8);
    for character in text.chars() {
        if plain(character) {
            encoded.push(character);
        } else {
            for byte in character.encode_utf8(&mut [0; 4]).bytes() {
                // Writing to a string cannot fail.
                let _ = write!(encoded, "%{byte:02X}");
            }
        }
    }
    Cow::Owned(encoded)
}

/// Writes rankings as `query_id<TAB>rank<TAB>tool name<TAB>score<TAB>tool id`, ranks from 1, names and ids as they are.
///
/// # Errors
/// Those of `out`, and [`io::ErrorKind::InvalidData`] for a query id or a name that would break its line.
pub fn write_tab_run<'i>(
    out: &mut dyn Write,
    queries: &[Ranked<'_>],
    name_of: &dyn Fn(u32) -> String,
    id_of: &dyn Fn(u32) -> &'i str,
) -> io::Result<()> {
    for ranked in queries {
        refuse(ranked.query, "query id", &['\t', '\n', '\r'])?;
        for (place, hit) in ranked.ranking.iter().enumerate() {
            let name = name_of(hit.item);
            refuse(&name, "tool name", &['\t', '\n', '\r'])?;
            writeln!(out, "{}\t{}\t{name}\t{}\t{}", ranked.query, place + 1, hit.score, id_of(hit.item))?;
        }
    }
    Ok(())
}

fn refuse(text: &str, what: &str, characters: &[char]) -> io::Result<()> {
    if text.contains(characters) {
        let message = format!("the {what} {text:?} does not fit on a line of a tab-separated run; rename it");
        return Err(io::Error::new(io::ErrorKind::InvalidData, message));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const NAMES: [&str; 5] = ["fs:read file", "fs:cat", "100%", "日本 語", "web:get"];

    fn name_of(item: u32) -> String {
        NAMES.get(item as usize).map_or_else(|| format!("tool {item}"), |name| (*name).to_owned())
    }

    fn ranking(items: &[u32]) -> Vec<Hit> {
        items.iter().map(|item| Hit { item: *item, score: 7 }).collect()
    }

    fn written(write: impl Fn(&mut dyn Write) -> io::Result<()>) -> String {
        let mut out = Vec::new();
        write(&mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn qrels_and_runs_in_both_views() {
        // Found by the equivalent 1, then the named tool itself, then the second group.
        let answerable = Judgement { groups: vec![vec![0, 1], vec![2]] };
        let unanswerable = Judgement::default();
        let (hits, other) = (ranking(&[1, 3, 0, 2]), ranking(&[4]));
        let queries = [
            Ranked { query: "q 1", judgement: &answerable, ranking: &hits },
            Ranked { query: "q2", judgement: &answerable, ranking: &[] },
            Ranked { query: "none", judgement: &unanswerable, ranking: &other },
        ];
        let text = [View::Aware, View::Strict].map(|view| {
            let qrels = written(|out| write_qrels(out, &queries, &name_of, view));
            let run = written(|out| write_run(out, &queries, &name_of, view, "bm25f flat"));
            format!("{view:?}\n{qrels}\n{run}")
        });
        insta::assert_snapshot!(text.join("\n"), @r"
        Aware
        q%201 0 fs:read%20file%g1 1
        q%201 0 100%25%g2 1
        q2 0 fs:read%20file%g1 1
        q2 0 100%25%g2 1

        q%201 Q0 fs:read%20file%g1 1 4 bm25f%20flat
        q%201 Q0 日本%20語 2 3 bm25f%20flat
        q%201 Q0 fs:read%20file 3 2 bm25f%20flat
        q%201 Q0 100%25%g2 4 1 bm25f%20flat
        none Q0 web:get 1 1 bm25f%20flat

        Strict
        q%201 0 fs:read%20file 1
        q%201 0 100%25 1
        q2 0 fs:read%20file 1
        q2 0 100%25 1

        q%201 Q0 fs:cat 1 4 bm25f%20flat
        q%201 Q0 日本%20語 2 3 bm25f%20flat
        q%201 Q0 fs:read%20file 3 2 bm25f%20flat
        q%201 Q0 100%25 4 1 bm25f%20flat
        none Q0 web:get 1 1 bm25f%20flat
        ");
    }

    #[test]
    fn two_groups_of_one_tool_stay_two_documents() {
        let judgement = Judgement { groups: vec![vec![4, 1], vec![4, 3]] };
        let hits = ranking(&[4, 1, 3]);
        let queries = [Ranked { query: "q", judgement: &judgement, ranking: &hits }];
        insta::assert_snapshot!(written(|out| write_run(out, &queries, &name_of, View::Aware, "t")), @r"
        q Q0 web:get%g1 1 3 t
        q Q0 fs:cat 2 2 t
        q Q0 web:get%g2 3 1 t
        ");
        assert_eq!(written(|out| write_qrels(out, &queries, &name_of, View::Strict)), "q 0 web:get 1\n");
    }

    #[test]
    fn names_that_break_a_line_are_refused() {
        let judgement = Judgement::default();
        let hits = ranking(&[0]);
        let write = |query: &str, name: &str| {
            let queries = [Ranked { query, judgement: &judgement, ranking: &hits }];
            let name = name.to_owned();
            write_tab_run(&mut Vec::new(), &queries, &move |_| name.clone(), &|_| "id")
                .map_err(|error| error.to_string())
        };
        assert!(write("q\t1", "a").is_err() && write("q", "a\nb").is_err() && write("q", "a\tb").is_err());
        assert_eq!(
            write("q\n", "a").unwrap_err(),
            "the query id \"q\\n\" does not fit on a line of a tab-separated run; rename it"
        );
    }

    proptest! {
        #[test]
        fn words_are_single_and_different(left in any::<String>(), right in any::<String>()) {
            prop_assert_eq!(word(&left).split_whitespace().count(), 1);
            prop_assert_eq!(left == right, word(&left) == word(&right));
        }

    }
}
