//! The tables of fidelity: what survives in summaries, and beside it what survives in controls of the same length.

use std::fmt::Write as _;

use crate::eval::context::controls::Control;
use crate::eval::context::fidelity::{AtCap, Duel, Fidelity, Label, Survival, Survivors};
use crate::eval::context::probe::{Class, Kind};
use crate::eval::context::question::Asks;
use crate::eval::context::rival::RivalCap;
use crate::report::document::Figure;
use crate::report::number::{MISSING, count, counted, fixed, percent, share};
use crate::report::plot::{Line, LineChart, Point, Scale};
use crate::report::table::Table;

/// The cap of the default configuration, for which verdicts are given.
pub(super) const DEFAULT_CAP: usize = 300;

/// The control that a summariser has to beat.
const RIVAL: Control = Control::HeadTail;

/// The kinds that have no summariser: their size and the first error are said, then beginning and end follow.
const ENDS_ALONE: [Kind; 2] = [Kind::Keyvalue, Kind::Plain];

/// The probability of a difference by chance below which it counts as one.
const LEVEL: f64 = 0.05;

/// What survives in the summaries, by its name, and in each control.
fn sides<L: Label>(at: &AtCap<L>) -> impl Iterator<Item = (&'static str, &Survivors<L>)> {
    let controls = at.controls.iter().map(|(control, against)| (control.name(), &against.kept));
    std::iter::once(("summary", &at.kept)).chain(controls)
}

fn survival(survival: Option<&Survival>) -> String {
    let shown = survival.and_then(|one| Some(format!("{} ({} / {})", share(one.share()?), one.kept, one.asked)));
    shown.unwrap_or_else(|| MISSING.to_owned())
}

/// Both sets of questions over all results, cap by cap, and what others leave of the same results.
pub(super) struct Sums {
    /// The probes.
    pub(super) probes: Vec<AtCap>,
    /// What people ask.
    pub(super) people: Vec<AtCap<Asks>>,
    /// Engines of others by name.
    pub(super) others: Vec<(String, Vec<RivalCap>)>,
}

/// Survival by cap: of everything, of the core, of the other classes, and of what people ask.
pub(super) fn caps(sums: &Sums) -> Table {
    let titles =
        ["tokens at most", "what is shown", "tokens", "over", "all", "core", "outline", "needle", "people ask"];
    let mut table = Table::new(titles).words(&["what is shown"]);
    let mut row = |cap: usize, name: &str, over: String, kept: &Survivors, people: Option<&Survivors<Asks>>| {
        let class = |class| survival(kept.classes.get(&class));
        table.row([
            count(cap),
            name.to_owned(),
            count(kept.tokens),
            over,
            survival(Some(&kept.all)),
            survival(Some(&kept.core)),
            class(Class::Outline),
            class(Class::Needle),
            survival(people.map(|kept| &kept.all)),
        ]);
    };
    for at in &sums.probes {
        let people = sums.people.iter().find(|one| one.cap == at.cap);
        for (name, kept) in sides(at) {
            let asked = people.and_then(|at| sides(at).find(|(side, _)| *side == name)).map(|(_, kept)| kept);
            row(at.cap, name, count(0), kept, asked);
        }
        for (name, caps) in &sums.others {
            for theirs in caps.iter().filter(|theirs| theirs.cap == at.cap) {
                row(at.cap, name, count(theirs.over), &theirs.probes, Some(&theirs.questions));
            }
        }
    }
    table
}

/// What survives on each side: that of the summary with its counts, of the others the share.
fn cells<'a, L: Label>(
    at: &'a AtCap<L>,
    of: impl Fn(&'a Survivors<L>) -> Option<&'a Survival> + 'a,
) -> impl Iterator<Item = String> + 'a {
    sides(at).enumerate().map(move |(side, (_, kept))| match (side, of(kept)) {
        (0, one) => survival(one),
        (_, one) => one.and_then(|one| one.share()).map_or_else(|| MISSING.to_owned(), share),
    })
}

/// Survival by class, or by what people ask for, at one cap.
pub(super) fn classes<L: Label>(at: &AtCap<L>, title: &str) -> Table {
    let titles = sides(at).map(|(name, _)| name.to_owned());
    let mut table = Table::new(std::iter::once(title.to_owned()).chain(titles));
    for label in L::LABELS {
        let shown = cells(at, move |kept| kept.classes.get(label));
        table.row(std::iter::once(label.label().to_owned()).chain(shown));
    }
    table
}

/// Survival by kind of content at one cap, all questions of a set, and how sure the difference from head + tail is.
pub(super) fn kinds<L: Label>(at: &AtCap<L>) -> Table {
    let titles = sides(at).map(|(name, _)| name.to_owned());
    let tested = ["results", "won : lost", "results won : lost", "p", "p by results"].map(str::to_owned);
    let mut table = Table::new(std::iter::once("kind".to_owned()).chain(titles).chain(tested));
    for (kind, duel, adjusted) in duels(at) {
        let shown = cells(at, move |kept| kept.kinds.get(&kind));
        let of = |won: usize, lost: usize| format!("{} : {}", count(won), count(lost));
        let tested = [
            count(duel.results_won + duel.results_lost + duel.results_even),
            of(duel.won, duel.lost),
            of(duel.results_won, duel.results_lost),
            probability(adjusted),
            probability(duel.by_results()),
        ];
        table.row(std::iter::once(kind.name().to_owned()).chain(shown).chain(tested));
    }
    table
}

fn probability(p: f64) -> String {
    if p < 0.001 { "≤ .001".to_owned() } else { fixed(p, 3).trim_start_matches('0').to_owned() }
}

/// The duels with [`RIVAL`] by kind, each with the probability of the test over probes, corrected for the number of
/// kinds (Holm, "A Simple Sequentially Rejective Multiple Test Procedure", Scandinavian Journal of Statistics 6(2), 1979).
fn duels<L: Label>(at: &AtCap<L>) -> Vec<(Kind, Duel, f64)> {
    let Some(against) = at.controls.get(&RIVAL) else { return Vec::new() };
    let mut all: Vec<(Kind, Duel, f64)> =
        against.duels.iter().map(|(kind, duel)| (*kind, *duel, duel.by_probes())).collect();
    all.sort_by(|left, right| left.2.total_cmp(&right.2));
    let (kinds, mut least) = (all.len(), 0.0f64);
    for (place, (.., p)) in all.iter_mut().enumerate() {
        least = least.max(((kinds - place) as f64 * *p).min(1.0));
        *p = least;
    }
    all.sort_by_key(|(kind, ..)| *kind);
    all
}

/// What has to be said of the kinds whose summarisers are not shown to be better than head + tail.
pub(super) fn unproven<L: Label>(at: &AtCap<L>) -> String {
    let named = |holds: &dyn Fn(&(Kind, Duel, f64)) -> bool| -> Vec<&'static str> {
        let duels = duels(at).into_iter().filter(|(kind, ..)| !ENDS_ALONE.contains(kind));
        duels.filter(|one| holds(one)).map(|(kind, ..)| kind.name()).collect()
    };
    let weak = named(&|(_, duel, p)| duel.won <= duel.lost || *p >= LEVEL);
    let few = named(&|(_, duel, p)| duel.won > duel.lost && *p < LEVEL && duel.by_results() >= LEVEL);
    let mut text = String::new();
    if !weak.is_empty() {
        let _ = write!(
            text,
            "**Not shown to be better than head + tail** at {} tokens: the summarisers of {}. ",
            count(at.cap),
            weak.join(", ")
        );
    }
    if !few.is_empty() {
        let _ =
            write!(text, "Better over questions, but with too few results to tell over results: {}.", few.join(", "));
    }
    if text.is_empty() {
        let _ = write!(text, "All summarisers are shown to be better than head + tail at {} tokens.", count(at.cap));
    }
    text.trim_end().to_owned()
}

/// The kinds that have no summariser, in a sentence.
pub(super) fn ends_alone() -> String {
    format!(
        "The kinds {} have **no summariser**: the text gives their size and first error, and the rest is beginning and \
         end. What they win over head + tail is due to the size.",
        ENDS_ALONE.map(Kind::name).join(" and ")
    )
}

/// What the two sets say of the summaries of each kind, beside head + tail.
pub(super) fn verdicts(probes: &AtCap, people: &AtCap<Asks>) -> Table {
    let titles = ["kind", "results", "by probes", "by what people ask", "why not shown"];
    let mut table = Table::new(titles).words(&["by probes", "by what people ask", "why not shown"]);
    let second = duels(people);
    for (kind, duel, p) in duels(probes) {
        let asked = second.iter().find(|(other, ..)| *other == kind).map(|(_, duel, p)| (*duel, *p));
        let sets = [Some((duel, p)), asked];
        table.row([
            kind.name().to_owned(),
            count(met(duel)),
            word(duel, p),
            asked.map_or_else(|| "not asked".to_owned(), |(duel, p)| word(duel, p)),
            match ENDS_ALONE.contains(&kind) {
                true => "no summariser".to_owned(),
                false => reason(&sets.into_iter().flatten().collect::<Vec<_>>()),
            },
        ]);
    }
    table
}

/// Results that were compared.
fn met(duel: Duel) -> usize {
    duel.results_won + duel.results_lost + duel.results_even
}

/// The fewest results of which the test over results can tell a difference.
const ENOUGH: usize = 6;

/// Why the summaries of a kind are not shown to be better by every set.
fn reason(sets: &[(Duel, f64)]) -> String {
    let is_shown = |(duel, p): &(Duel, f64)| *p < LEVEL && duel.won > duel.lost && duel.by_results() < LEVEL;
    let open: Vec<&(Duel, f64)> = sets.iter().filter(|set| !is_shown(set)).collect();
    if open.is_empty() {
        return MISSING.to_owned();
    }
    let mut reasons = Vec::new();
    if open.iter().any(|(duel, _)| duel.won <= duel.lost) {
        reasons.push("beginning and end answer as much");
    }
    if open.iter().any(|(duel, _)| met(*duel) < ENOUGH) {
        reasons.push("fewer than six results");
    }
    if reasons.is_empty() { "too few questions on which they differ".to_owned() } else { reasons.join("; ") }
}

/// What a duel says, in words.
fn word(duel: Duel, p: f64) -> String {
    let shown = match (p < LEVEL, duel.won > duel.lost) {
        (true, true) if duel.by_results() < LEVEL => "better",
        (true, true) => "better by questions",
        (true, false) => "worse",
        (false, _) => "not shown",
    };
    format!("{shown} ({} : {})", count(duel.won), count(duel.lost))
}

/// The classes of probes of which a control keeps more than the summary, in a sentence.
pub(super) fn beaten(at: &AtCap) -> Option<String> {
    let of = |kept: &Survivors, class: Class| kept.classes.get(&class).and_then(|one| one.share());
    let worse = Class::ALL.into_iter().filter_map(|class| {
        let own = of(&at.kept, class)?;
        let best =
            at.controls.iter().filter_map(|(control, against)| Some((of(&against.kept, class)?, control.name())));
        let (share_of, name) = best.max_by(|left, right| left.0.total_cmp(&right.0))?;
        let shown = format!("{}: {} against {} of {name}", class.name(), percent(own), percent(share_of));
        (share_of > own).then_some(shown)
    });
    let worse: Vec<String> = worse.collect();
    (!worse.is_empty()).then(|| {
        format!(
            "Controls beat summaries of {} tokens at {} ([fidelity](context-fidelity.md)).",
            count(at.cap),
            worse.join(", ")
        )
    })
}

/// The kinds of content of which head + tail answers more that people ask, with the questions that the summary alone and
/// head + tail alone answers, in a sentence.
pub(super) fn behind(at: &AtCap<Asks>) -> Option<String> {
    const QUESTIONS: &str = "[questions](context-fidelity.md#what-people-ask)";
    let lost: Vec<_> = duels(at).into_iter().filter(|(_, duel, _)| duel.lost > duel.won).collect();
    let is_shown = lost.iter().any(|(_, _, p)| *p < LEVEL);
    let kinds = lost.iter().filter(|(_, _, p)| !is_shown || *p < LEVEL);
    let kinds: Vec<String> =
        kinds.map(|(kind, duel, _)| format!("{} ({}:{})", kind.name(), count(duel.won), count(duel.lost))).collect();
    let kinds = kinds.join(", ");
    match is_shown {
        _ if lost.is_empty() => None,
        true => Some(format!("Beginning and end are better at {QUESTIONS} about {kinds}.")),
        false => Some(format!("Beginning and end lead, within chance, at {QUESTIONS} about {kinds}.")),
    }
}

/// Survival against the tokens that a text may cost.
pub(super) fn figure(sums: &[AtCap], mark: &str) -> Option<Figure> {
    let title = format!("Survival of probes by tokens, all classes and core, in summaries and in head + tail{mark}");
    let line = |name: &str, color: usize, of: &dyn Fn(&AtCap) -> Option<f64>| Line {
        name: name.to_owned(),
        color,
        points: sums.iter().filter_map(|sum| Some(Point { tools: sum.cap, value: of(sum)?, band: None })).collect(),
        control: Vec::new(),
    };
    let rival = |sum: &AtCap| sum.controls.get(&RIVAL).map(|against| against.kept.clone());
    let chart = LineChart {
        title: title.clone(),
        x_title: "tokens at most (logarithmic)".to_owned(),
        y_title: "share of probes that survive".to_owned(),
        y_scale: Scale::Share,
        lines: vec![
            line("summary, all", 0, &|sum| sum.kept.all.share()),
            line("summary, core", 3, &|sum| sum.kept.core.share()),
            line("head + tail, all", 1, &|sum| rival(sum)?.all.share()),
            line("head + tail, core", 4, &|sum| rival(sum)?.core.share()),
        ],
    };
    chart.svg().map(|svg| Figure { path: "context-fidelity.svg".to_owned(), alt: title, svg })
}

/// Shares at the default's cap.
pub(super) struct Headline {
    /// Of all probes that survive in summaries.
    all: f64,
    /// Of the core.
    core: f64,
    /// Of all, and of the core, in the control that keeps most of it.
    rival: [f64; 2],
    /// Of what people ask, in summaries and in that control; `None` where nobody asks.
    people: Option<[f64; 2]>,
}

/// The most that a control keeps.
fn best<L: Label>(at: &AtCap<L>, share: impl Fn(&Survivors<L>) -> Option<f64>) -> Option<f64> {
    at.controls.values().filter_map(|control| share(&control.kept)).max_by(f64::total_cmp)
}

impl Headline {
    /// `None` where nothing was measured.
    pub(super) fn of(probes: &[AtCap], people: &[AtCap<Asks>]) -> Option<Self> {
        let at = probes.iter().find(|sum| sum.cap == DEFAULT_CAP)?;
        let asked = || {
            let at = people.iter().find(|sum| sum.cap == DEFAULT_CAP)?;
            Some([at.kept.all.share()?, best(at, |kept| kept.all.share())?])
        };
        let rival = [best(at, |kept| kept.all.share())?, best(at, |kept| kept.core.share())?];
        Some(Self { all: at.kept.all.share()?, core: at.kept.core.share()?, rival, people: asked() })
    }

    /// What summaries keep, as the end of a sentence without its full stop.
    pub(super) fn text(&self) -> String {
        let Self { all, core, rival, people } = self;
        let people = people.map_or_else(String::new, |[own, rival]| {
            format!("; of people's questions {} ({})", percent(own), percent(rival))
        });
        format!(
            "keep {} of all probes of large results (the best control of the same length {}), {} of the core ({}){people}",
            percent(*all),
            percent(rival[0]),
            percent(*core),
            percent(rival[1])
        )
    }
}

/// What `bench fidelity` prints: survival by cap, class and kind, beside the controls, and what views of needles cost.
#[must_use]
pub fn fidelity(fidelity: &Fidelity) -> String {
    let mut text = format!("{}, {} bytes\n\n", counted(fidelity.results, "result", "results"), count(fidelity.bytes));
    let sums = Sums { probes: fidelity.caps.clone(), people: fidelity.questions.clone(), others: Vec::new() };
    text.push_str(&caps(&sums).plain());
    for at in &fidelity.caps {
        let _ = write!(text, "\nat {} tokens, by class\n{}", count(at.cap), classes(at, "class").plain());
        let _ = write!(text, "\nat {} tokens, by kind of content\n{}", count(at.cap), kinds(at).plain());
    }
    if let Some(views) = fidelity.views {
        let (kept, asked) = (count(views.reached.kept), count(views.reached.asked));
        let (median, p90, most) = (fixed(views.median, 0), fixed(views.p90, 0), count(views.most));
        let _ = writeln!(
            text,
            "\nneedles through one view: {kept} of {asked}; tokens median {median}, p90 {p90}, most {most}"
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::eval::context::fidelity::Against;

    #[test]
    fn both_sets_speak_and_what_is_not_shown_has_a_reason() {
        let duel = |[won, lost]: [usize; 2], [results_won, results_lost, results_even]: [usize; 3]| Duel {
            won,
            lost,
            results_won,
            results_lost,
            results_even,
        };
        fn at<L: Label>(duels: [Duel; 4]) -> AtCap<L> {
            let kinds = [Kind::Rows, Kind::Csv, Kind::Log, Kind::Html];
            let against = Against { duels: kinds.into_iter().zip(duels).collect(), ..Against::default() };
            AtCap { cap: 300, controls: [(RIVAL, against)].into(), ..AtCap::default() }
        }
        let probes =
            [duel([30, 1], [9, 0, 0]), duel([20, 0], [3, 0, 0]), duel([7, 1], [7, 1, 0]), duel([0, 12], [0, 1, 0])];
        let mut people = at::<Asks>([duel([20, 2], [8, 0, 1]), duel([0, 1], [0, 1, 2]), probes[2], probes[0]]);
        people.controls.get_mut(&RIVAL).unwrap().duels.remove(&Kind::Html);
        let shown = verdicts(&at::<Class>(probes), &people).plain();
        insta::assert_snapshot!(shown, @"
        kind  results  by probes                     by what people ask  why not shown
        rows        9  better (30 : 1)               better (20 : 2)     –
        csv         3  better by questions (20 : 0)  not shown (0 : 1)   beginning and end answer as much; fewer than six results
        log         8  not shown (7 : 1)             not shown (7 : 1)   too few questions on which they differ
        html        1  worse (0 : 12)                not asked           beginning and end answer as much; fewer than six results
        ");
    }

    #[test]
    fn kinds_without_a_proof_are_named() {
        let duel = |won, lost, results_won| Duel { won, lost, results_won, results_lost: 0, results_even: 0 };
        let against: Against = Against {
            duels: [(Kind::Rows, duel(30, 1, 9)), (Kind::Csv, duel(20, 0, 3)), (Kind::Log, duel(7, 1, 3))].into(),
            ..Against::default()
        };
        let at = AtCap { cap: 300, controls: [(RIVAL, against)].into(), ..AtCap::default() };
        // The log alone would have p = .070; the others stay below .05 after the correction for three kinds.
        assert_eq!(
            unproven(&at),
            "**Not shown to be better than head + tail** at 300 tokens: the summarisers of log. Better over questions, but with \
             too few results to tell over results: csv."
        );
        let shown: Vec<String> = duels(&at).iter().map(|(kind, _, p)| format!("{kind} {}", probability(*p))).collect();
        assert_eq!(shown, ["rows ≤ .001", "csv ≤ .001", "log .070"]);
        let mut plain = at;
        plain.controls.get_mut(&RIVAL).unwrap().duels =
            [(Kind::Rows, duel(30, 1, 9)), (Kind::Plain, duel(1, 7, 3))].into();
        assert_eq!(unproven(&plain), "All summarisers are shown to be better than head + tail at 300 tokens.");
    }
}
