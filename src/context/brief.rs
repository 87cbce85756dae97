//! Packs statements of different worth into a token cap.
//!
//! An analyser of some kind of content says everything that it has to say as [`Piece`]s: where the statement stands,
//! and in which wordings, each with a rank. The packer takes wordings in the order of their ranks as long as they
//! fit, so the cap decides how much is said and never cuts a statement in the middle.

use std::rc::Rc;

use crate::text::Estimator;

/// One statement, a line or a few, at its place in the text.
#[derive(Debug, Clone)]
pub struct Piece {
    /// Pieces are written in ascending order of their places; equal places keep the order of the list.
    pub place: u32,
    /// Wordings of the statement, each of which replaces the ones before it. Ranks ascend.
    pub wordings: Vec<Wording>,
}

/// One way of making a statement.
#[derive(Debug, Clone)]
pub struct Wording {
    /// Wordings of lower rank are admitted first.
    pub rank: u32,
    /// What is written.
    pub text: Text,
}

/// What is written.
#[derive(Debug, Clone)]
pub enum Text {
    /// These lines.
    Whole(String),
    /// `head`, then as many of the first `most` entries as fit, then how many are left out.
    Entries {
        /// Stands before the entries, e.g. `files: `.
        head: Rc<str>,
        /// The entries, the most important first.
        entries: Rc<[String]>,
        /// Stands between entries, e.g. `, `.
        separator: &'static str,
        /// Entries shown at most.
        most: usize,
    },
}

impl Piece {
    /// A statement with one wording.
    #[must_use]
    pub fn line(place: u32, rank: u32, text: impl Into<String>) -> Self {
        Self { place, wordings: vec![Wording { rank, text: Text::Whole(text.into()) }] }
    }

    /// A statement that lists `entries`: `least` of them at `rank`, and as many as fit at `later`.
    #[must_use]
    pub fn list(
        place: u32,
        head: &str,
        entries: Vec<String>,
        separator: &'static str,
        least: (u32, usize),
        later: u32,
    ) -> Self {
        let (head, entries): (Rc<str>, Rc<[String]>) = (head.into(), entries.into());
        let wording = |rank, most| Wording {
            rank,
            text: Text::Entries { head: Rc::clone(&head), entries: Rc::clone(&entries), separator, most },
        };
        Self { place, wordings: vec![wording(least.0, least.1), wording(later, usize::MAX)] }
    }
}

/// The pieces that fit into `cap` tokens of `estimator`, one below the other, without a line break at the end.
#[must_use]
pub fn pack(pieces: &[Piece], cap: usize, estimator: Estimator) -> String {
    let mut order: Vec<(u32, usize, usize)> = Vec::new();
    for (piece, Piece { wordings, .. }) in pieces.iter().enumerate() {
        order.extend(wordings.iter().enumerate().map(|(number, wording)| (wording.rank, piece, number)));
    }
    order.sort_unstable();
    // A line break is where the pre-tokeniser splits, so the costs of lines add up to no less than the cost of the
    // whole; the last line is counted with a break that is not written.
    let cost = |text: &str| estimator.count(&format!("{text}\n"));
    let mut chosen: Vec<Option<(String, usize)>> = vec![None; pieces.len()];
    let mut used = 0;
    for &(_, piece, number) in &order {
        let before = chosen[piece].as_ref().map_or(0, |(_, cost)| *cost);
        let room = cap.saturating_sub(used - before);
        if let Some((text, cost)) = fitted(&pieces[piece].wordings[number].text, room, &cost) {
            used = used - before + cost;
            chosen[piece] = Some((text, cost));
        }
    }
    let mut lines: Vec<(u32, usize, String)> = Vec::new();
    for (number, text) in chosen.into_iter().enumerate() {
        lines.extend(text.map(|(text, _)| (pieces[number].place, number, text)));
    }
    lines.sort();
    let mut lines: Vec<String> = lines.into_iter().map(|(_, _, text)| text).collect();
    // Exact for the vocabularies in use as far as we know; the loop makes it certain for every estimator.
    loop {
        let text = lines.join("\n");
        if estimator.count(&text) <= cap {
            return text;
        }
        lines.pop();
    }
}

/// The text and its cost, if it fits into `room`.
fn fitted(text: &Text, room: usize, cost: &impl Fn(&str) -> usize) -> Option<(String, usize)> {
    match text {
        Text::Whole(text) => {
            let tokens = cost(text);
            (tokens <= room).then(|| (text.clone(), tokens))
        }
        Text::Entries { head, entries, separator, most } => {
            let written = |shown: usize| {
                let mut text = format!("{head}{}", entries[..shown].join(separator));
                if shown < entries.len() {
                    text.push_str(&format!("{separator}… +{}", entries.len() - shown));
                }
                text
            };
            // Longer lists cost more, so the most that fits is found by halving.
            let (mut low, mut high) = (0, entries.len().min(*most).min(room));
            while low < high {
                let middle = (low + high).div_ceil(2);
                if cost(&written(middle)) <= room { low = middle } else { high = middle - 1 }
            }
            let text = written(low);
            let tokens = cost(&text);
            (low > 0 && tokens <= room).then_some((text, tokens))
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_cap_decides_how_much_is_said() {
        let names = ["alpha", "beta", "gamma", "delta"].map(str::to_owned).to_vec();
        let pieces = [
            Piece::list(2, "names: ", names, ", ", (1, 1), 3),
            Piece::line(1, 0, "4 names"),
            Piece::line(3, 2, "the first is alpha"),
        ];
        let shown: Vec<String> = [2, 4, 12, 17, 40].map(|cap| pack(&pieces, cap, Estimator::Cl100kBase)).to_vec();
        insta::assert_snapshot!(shown.join("\n\n"), @r"


        4 names

        4 names
        names: alpha, … +3

        4 names
        names: alpha, … +3
        the first is alpha

        4 names
        names: alpha, beta, gamma, delta
        the first is alpha
        ");
    }

    proptest! {
        #[test]
        fn the_cap_is_never_exceeded(
            texts in prop::collection::vec(("[a-z .,{}\\[\\]:\"/\\n]{0,40}", 0u32..4, 0u32..4), 0..12),
            entries in prop::collection::vec("[a-z/. ]{0,12}", 0..20),
            cap in 0usize..80,
        ) {
            let mut pieces: Vec<Piece> =
                texts.into_iter().map(|(text, place, rank)| Piece::line(place, rank, text)).collect();
            pieces.push(Piece::list(2, "list: ", entries, ", ", (1, 3), 3));
            for estimator in Estimator::ALL {
                prop_assert!(estimator.count(&pack(&pieces, cap, estimator)) <= cap);
            }
        }
    }
}
