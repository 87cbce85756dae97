//! Packs statements of different rank into a token cap.
//!
//! An analyser of one kind of content says everything that it has to say as [`Piece`]s: the place of a statement in the
//! text, and its wordings, each with a rank. The packer takes wordings in the order of their ranks as long as they fit,
//! so the cap decides how much is said and never cuts a statement in the middle.

use std::rc::Rc;

use contextweaver_core::text::{Estimator, largest};

/// How often a list of [`Piece::grown`] doubles.
const DOUBLINGS: u32 = 6;
/// The length in bytes after which no further entry begins on a row of a grouped list.
const ROW: usize = 160;

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
    /// The text of this wording.
    pub text: Text,
}

/// The text of a wording.
#[derive(Debug, Clone)]
pub enum Text {
    /// These lines, whole or not at all.
    Whole(String),
    /// `head`, then as many of the first `most` entries as fit, then the number of entries left out.
    Entries {
        /// The text before the entries, e.g. `files: `.
        head: Rc<str>,
        /// The entries, the most important first.
        entries: Rc<[String]>,
        /// The text between two entries, e.g. `, `.
        separator: &'static str,
        /// The number of entries shown at most.
        most: usize,
    },
    /// `head`, then as many entries as fit, chosen by `order` but written in the order of the list, then the number of
    /// entries left out.
    Chosen {
        /// The text before the entries.
        head: Rc<str>,
        /// The entries in the order in which they are written.
        entries: Rc<[String]>,
        /// Positions of entries, the first to be shown at the front. Positions that do not exist are skipped.
        order: Rc<[usize]>,
        /// The text between two entries.
        separator: &'static str,
        /// The number of entries shown at most.
        most: usize,
    },
    /// Like [`Text::Chosen`], but every group of entries is on lines of its own.
    Grouped {
        /// The text before the first group.
        head: Rc<str>,
        /// The entries with their groups.
        list: Rc<Groups>,
        /// The number of entries shown at most.
        most: usize,
    },
}

impl Text {
    /// The number of entries of a list that are shown at most.
    fn most(&mut self) -> Option<&mut usize> {
        match self {
            Self::Whole(_) => None,
            Self::Entries { most, .. } | Self::Chosen { most, .. } | Self::Grouped { most, .. } => Some(most),
        }
    }
}

/// The entries of a list, in groups.
#[derive(Debug, Clone, Default)]
pub struct Groups {
    /// For each group the start of its first line and the start of its further lines.
    pub leads: Vec<[String; 2]>,
    /// For each entry the position of its group in `leads`, and its text; the entries of a group are together.
    pub entries: Vec<(usize, String)>,
    /// Positions of entries, the first to be shown at the front. Positions that do not exist are skipped.
    pub order: Vec<usize>,
    /// The text between two entries.
    pub separator: &'static str,
}

impl Groups {
    /// The first `shown` entries of the order under the leads of their groups, each line with a line break before it. A
    /// long group takes several lines, so that no entry is far from the name of its group.
    #[must_use]
    pub fn written(&self, shown: usize) -> String {
        let mut picked = self.order.get(..shown).unwrap_or(&self.order).to_vec();
        picked.sort_unstable();
        let mut text = String::new();
        let mut row = 0;
        let mut last = None;
        for (group, entry) in picked.into_iter().filter_map(|at| self.entries.get(at)) {
            let known = last == Some(*group);
            if known && text.len() - row < ROW {
                text.push_str(self.separator);
            } else {
                row = text.len();
                text.push('\n');
                text.push_str(self.leads.get(*group).map_or("", |lead| &lead[usize::from(known)]));
            }
            text.push_str(entry);
            last = Some(*group);
        }
        text
    }
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

    /// A statement that lists `entries`, chosen by `order` (positions, the most important first) and written in their
    /// own order: `least` of them at a rank, and as many as fit at `later`.
    #[must_use]
    pub fn chosen(
        place: u32,
        head: &str,
        entries: Vec<String>,
        order: Vec<usize>,
        separator: &'static str,
        least: (u32, usize),
        later: u32,
    ) -> Self {
        let (head, entries, order): (Rc<str>, Rc<[String]>, Rc<[usize]>) = (head.into(), entries.into(), order.into());
        let wording = |rank, most| Wording {
            rank,
            text: Text::Chosen {
                head: Rc::clone(&head),
                entries: Rc::clone(&entries),
                order: Rc::clone(&order),
                separator,
                most,
            },
        };
        Self { place, wordings: vec![wording(least.0, least.1), wording(later, usize::MAX)] }
    }

    /// Like [`Piece::chosen`], but between `least` and everything that fits the list doubles from rank to rank, from
    /// `later` on, so that lists with the same ranks grow side by side.
    #[must_use]
    pub fn grown(
        place: u32,
        head: &str,
        entries: Vec<String>,
        order: Vec<usize>,
        separator: &'static str,
        least: (u32, usize),
        later: u32,
    ) -> Self {
        Self::chosen(place, head, entries, order, separator, least, later).by_steps(later)
    }

    /// The same statement, but where a list would take all the remaining room at a rank up to `later`, it doubles from
    /// rank to rank instead, from `later` on.
    #[must_use]
    pub fn by_steps(mut self, later: u32) -> Self {
        let mut most = 1;
        for mut wording in std::mem::take(&mut self.wordings) {
            let unbounded = wording.text.most().is_some_and(|most| *most == usize::MAX);
            if unbounded && wording.rank <= later {
                for step in 0..DOUBLINGS {
                    most *= 2;
                    let mut wider = Wording { rank: later + step, text: wording.text.clone() };
                    wider.text.most().into_iter().for_each(|shown| *shown = most);
                    self.wordings.push(wider);
                }
                wording.rank = later + DOUBLINGS;
            }
            most = wording.text.most().map_or(most, |shown| (*shown).min(usize::MAX >> DOUBLINGS));
            // A wording that follows a list that grows later still comes after it.
            wording.rank = wording.rank.max(self.wordings.last().map_or(0, |before| before.rank));
            self.wordings.push(wording);
        }
        self
    }

    /// A statement that lists entries in groups: `least` of them at a rank, and as many as fit at `later`.
    #[must_use]
    pub fn grouped(place: u32, head: &str, list: Groups, least: (u32, usize), later: u32) -> Self {
        let (head, list): (Rc<str>, Rc<Groups>) = (head.into(), list.into());
        let wording =
            |rank, most| Wording { rank, text: Text::Grouped { head: Rc::clone(&head), list: Rc::clone(&list), most } };
        Self { place, wordings: vec![wording(least.0, least.1), wording(later, usize::MAX)] }
    }

    /// The same statement with a further wording, which replaces the earlier ones if it fits.
    #[must_use]
    pub fn or(mut self, rank: u32, text: impl Into<String>) -> Self {
        self.wordings.push(Wording { rank, text: Text::Whole(text.into()) });
        self
    }
}

/// The positions `0..count` in an order in which every prefix is spread over the whole: both ends first, then the
/// middles of the gaps, the widest gaps first.
#[must_use]
pub fn spread(count: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..count.min(1)).chain((count > 1).then(|| count - 1)).collect();
    let mut gaps = std::collections::VecDeque::from([(0, count.saturating_sub(1))]);
    while let Some((low, high)) = gaps.pop_front() {
        if high - low < 2 {
            continue;
        }
        let middle = low + (high - low) / 2;
        order.push(middle);
        gaps.extend([(low, middle), (middle, high)]);
    }
    order
}

/// What of the pieces was packed.
#[derive(Debug, Clone, Default)]
pub struct Packed {
    /// The pieces that fit, one below the other, without a line break at the end.
    pub text: String,
    /// For each piece how it is written; `None` where it is left out.
    pub shown: Vec<Option<Shown>>,
}

/// How a piece is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shown {
    /// The position of its wording.
    pub wording: usize,
    /// The number of entries of a list that are shown, the first of its order; 0 for a wording that is not a list.
    pub entries: usize,
}

/// The pieces that fit into `cap` tokens of `estimator`, one below the other, without a line break at the end.
#[must_use]
pub fn pack(pieces: &[Piece], cap: usize, estimator: Estimator) -> String {
    pack_shown(pieces, cap, estimator).text
}

/// As [`pack`], and says how each piece is written.
#[must_use]
pub fn pack_shown(pieces: &[Piece], cap: usize, estimator: Estimator) -> Packed {
    let mut order: Vec<(u32, usize, usize)> = Vec::new();
    for (piece, Piece { wordings, .. }) in pieces.iter().enumerate() {
        order.extend(wordings.iter().enumerate().map(|(number, wording)| (wording.rank, piece, number)));
    }
    order.sort_unstable();
    // The pre-tokeniser splits at line breaks, so the costs of lines add up to at least the cost of the whole; the last
    // line is counted with a break that is not written.
    let cost = |text: &str| estimator.count(&format!("{text}\n"));
    let mut chosen: Vec<Option<(String, usize)>> = vec![None; pieces.len()];
    let mut shown: Vec<Option<Shown>> = vec![None; pieces.len()];
    let mut used = 0;
    for &(_, piece, number) in &order {
        let before = chosen[piece].as_ref().map_or(0, |(_, cost)| *cost);
        let room = cap.saturating_sub(used - before);
        if let Some((text, cost, entries)) = fitted(&pieces[piece].wordings[number].text, room, &cost) {
            used = used - before + cost;
            chosen[piece] = Some((text, cost));
            shown[piece] = Some(Shown { wording: number, entries });
        }
    }
    let mut lines: Vec<(u32, usize, String)> = Vec::new();
    for (number, text) in chosen.into_iter().enumerate() {
        lines.extend(text.map(|(text, _)| (pieces[number].place, number, text)));
    }
    lines.sort();
    // Exact for the vocabularies in use as far as we know; the loop makes it certain for every estimator.
    loop {
        let texts: Vec<&str> = lines.iter().map(|(_, _, text)| text.as_str()).collect();
        let text = texts.join("\n");
        if estimator.count(&text) <= cap {
            return Packed { text, shown };
        }
        if let Some((_, piece, _)) = lines.pop() {
            shown[piece] = None;
        }
    }
}

/// The text, its cost and the number of its entries, if it fits into `room`.
fn fitted(text: &Text, room: usize, cost: &impl Fn(&str) -> usize) -> Option<(String, usize, usize)> {
    match text {
        Text::Whole(text) => {
            let tokens = cost(text);
            (tokens <= room).then(|| (text.clone(), tokens, 0))
        }
        Text::Entries { head, entries, separator, most } => {
            let body = |shown: usize| entries[..shown].join(separator);
            longest(head, entries.len(), entries.len().min(*most).min(room), separator, body, room, cost)
        }
        Text::Chosen { head, entries, order, separator, most } => {
            let body = |shown: usize| {
                let mut picked = order[..shown].to_vec();
                picked.sort_unstable();
                let texts: Vec<&str> = picked.iter().filter_map(|&at| entries.get(at)).map(String::as_str).collect();
                texts.join(separator)
            };
            longest(head, entries.len(), order.len().min(*most).min(room), separator, body, room, cost)
        }
        Text::Grouped { head, list, most } => {
            let (all, most) = (list.entries.len(), list.order.len().min(*most).min(room));
            longest(head, all, most, " ", |shown| list.written(shown), room, cost)
        }
    }
}

/// The longest list with at most `most` of `all` entries that fits into `room`, its cost and the number of entries in it.
/// `body` writes the given number of entries.
fn longest(
    head: &str,
    all: usize,
    most: usize,
    separator: &str,
    body: impl Fn(usize) -> String,
    room: usize,
    cost: &impl Fn(&str) -> usize,
) -> Option<(String, usize, usize)> {
    let written = |shown: usize| {
        let mut text = format!("{head}{}", body(shown));
        if shown < all {
            text.push_str(&format!("{separator}… +{}", all - shown));
        }
        text
    };
    // Longer lists cost more, so a binary search finds the longest that fits. The whole list is tried first: without
    // the note about what is left out it may cost less than a part.
    let fits = |shown: usize| cost(&written(shown)) <= room;
    let shown = if most == all && fits(all) { all } else { largest(most, fits) };
    let text = written(shown);
    let tokens = cost(&text);
    (shown > 0 && tokens <= room).then_some((text, tokens, shown))
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

    #[test]
    fn chosen_entries_are_written_in_their_own_order() {
        let entries: Vec<String> = (0..9).map(|number| format!("n{number}")).collect();
        let piece = Piece::chosen(0, "", entries, spread(9), " ", (0, 1), 1);
        let shown: Vec<String> =
            [9, 12, 40].map(|cap| pack(std::slice::from_ref(&piece), cap, Estimator::Cl100kBase)).to_vec();
        assert_eq!(shown, ["n0 n8 … +7", "n0 n2 n4 n8 … +5", "n0 n1 n2 n3 n4 n5 n6 n7 n8"]);
    }

    #[test]
    fn spread_positions_cover_the_whole() {
        assert_eq!(spread(0), Vec::<usize>::new());
        assert_eq!(spread(1), [0]);
        assert_eq!(spread(2), [0, 1]);
        assert_eq!(spread(9), [0, 8, 4, 2, 6, 1, 3, 5, 7]);
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
            let order = spread(entries.len() + 1);
            pieces.push(Piece::chosen(1, "spread: ", entries.clone(), order, " ", (1, 2), 2));
            pieces.push(Piece::list(2, "list: ", entries, ", ", (1, 3), 3).or(3, "all of it"));
            for estimator in Estimator::ALL {
                let packed = pack_shown(&pieces, cap, estimator);
                prop_assert!(estimator.count(&packed.text) <= cap);
                for (piece, shown) in pieces.iter().zip(&packed.shown) {
                    if let (Some(shown), Some(Wording { text: Text::Whole(text), .. })) =
                        (shown, shown.and_then(|shown| piece.wordings.get(shown.wording)))
                    {
                        prop_assert!(packed.text.contains(text.as_str()) && shown.entries == 0);
                    }
                }
            }
        }
    }
}
