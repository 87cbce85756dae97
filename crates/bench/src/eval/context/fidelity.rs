//! How much of large results survives in their summaries, and what one view costs to get at the rest.
//!
//! Every result is asked the questions of [`super::probe`]; a summary at each cap, and for needles the view that an
//! informed reader would ask for, are searched for the answers. Shares are over probes, not means of shares, so that a
//! result with few probes weighs little. Beside the summaries stand [`Control`]s, which are asked the same at the same
//! caps. Where people wrote [questions](Question) about a result, all of that is done a second time with those.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use rayon::prelude::*;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::controls::Control;
use super::probe::{Class, Haystack, Kind, Probe, questions};
use super::question::{Asks, Plain, Question};
use crate::eval::statistics::{percentile, round6, sign_test};
use contextweaver_context::event::Selector;
use contextweaver_context::summary::Summarizer;
use contextweaver_core::text::Estimator;

/// The caps at which fidelity is recorded.
pub const CAPS: [usize; 3] = [150, 300, 600];

/// One result as text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Content {
    /// What it is called in reports, e.g. `4 git_diff`.
    pub name: String,
    /// What the source said that it is.
    pub media_type: String,
    /// The whole of it.
    pub text: String,
    /// What people ask about it.
    pub questions: Vec<Question>,
}

impl Content {
    /// A text of no known type, about which nobody asks.
    #[must_use]
    pub fn of(name: String, text: String) -> Self {
        Self { name, media_type: "text/plain".to_owned(), text, questions: Vec::new() }
    }
}

/// What turns a result and a selector into text, or says why not.
pub type View<'v> = dyn Fn(&Content, &Selector) -> Result<String, String> + Sync + 'v;

/// What was asked about one result and what survived.
#[derive(Debug, Clone, PartialEq)]
pub struct Measured {
    /// The name of the result.
    pub name: String,
    /// What the result is.
    pub kind: Kind,
    /// Its size.
    pub bytes: usize,
    /// What was asked.
    pub probes: Vec<Probe>,
    /// What people ask.
    pub questions: Vec<Question>,
    /// One for each cap.
    pub summaries: Vec<Summary>,
    /// What each control makes of the result, one for each cap.
    pub controls: Vec<(Control, Vec<Summary>)>,
    /// One for each needle; empty where no views were measured.
    pub views: Vec<Reached>,
}

/// What survived in one summary.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summary {
    /// Tokens allowed.
    pub cap: usize,
    /// The summary.
    pub text: String,
    /// Its tokens.
    pub tokens: usize,
    /// For each probe, whether it survives.
    pub survives: Vec<bool>,
    /// For each question, whether its answer does.
    pub answers: Vec<bool>,
}

impl Summary {
    /// What survives of `probes` and `questions` in `text`.
    #[must_use]
    pub fn of(text: String, cap: usize, asked: Asked<'_>, estimator: Estimator) -> Self {
        let (haystack, plain) = (Haystack::new(&text), Plain::new(&text));
        Self {
            cap,
            tokens: estimator.count(&text),
            survives: asked.probes.iter().map(|probe| probe.survives(&haystack)).collect(),
            answers: asked.questions.iter().map(|question| question.survives(&plain)).collect(),
            text,
        }
    }
}

/// What is asked about one result.
#[derive(Debug, Clone, Copy)]
pub struct Asked<'a> {
    /// What the result is.
    pub kind: Kind,
    /// By the program.
    pub probes: &'a [Probe],
    /// By people.
    pub questions: &'a [Question],
}

/// What the questions of a set are told apart by.
pub trait Label: Copy + Ord + Serialize + DeserializeOwned + 'static {
    /// All of them, in the order of tables.
    const LABELS: &'static [Self];

    /// The name in files and tables.
    fn label(self) -> &'static str;

    /// Whether it belongs to the core of its set.
    fn is_in_core(self) -> bool;

    /// The labels of what is asked about a result, each with whether `summary` answers it.
    fn answered<'a>(asked: Asked<'a>, summary: &'a Summary) -> impl Iterator<Item = (Self, bool)> + 'a;
}

impl Label for Class {
    const LABELS: &'static [Self] = &Self::ALL;

    fn label(self) -> &'static str {
        self.name()
    }

    fn is_in_core(self) -> bool {
        self.is_core()
    }

    fn answered<'a>(asked: Asked<'a>, summary: &'a Summary) -> impl Iterator<Item = (Self, bool)> + 'a {
        asked.probes.iter().map(|probe| probe.class).zip(summary.survives.iter().copied())
    }
}

impl Label for Asks {
    const LABELS: &'static [Self] = &Self::ALL;

    fn label(self) -> &'static str {
        self.name()
    }

    /// What people ask has no core.
    fn is_in_core(self) -> bool {
        false
    }

    fn answered<'a>(asked: Asked<'a>, summary: &'a Summary) -> impl Iterator<Item = (Self, bool)> + 'a {
        asked.questions.iter().map(|question| question.asks).zip(summary.answers.iter().copied())
    }
}

/// What one view gave of a needle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reached {
    /// Whether the needle is in it.
    pub found: bool,
    /// Its tokens.
    pub tokens: usize,
}

/// Probes asked and kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Survival {
    /// Probes asked.
    pub asked: usize,
    /// Probes that survive.
    pub kept: usize,
}

impl Survival {
    /// The share that survives; `None` when nothing was asked.
    #[must_use]
    pub fn share(self) -> Option<f64> {
        (self.asked > 0).then(|| round6(self.kept as f64 / self.asked as f64))
    }

    fn is_empty(&self) -> bool {
        self.asked == 0
    }

    fn add(&mut self, kept: bool) {
        self.asked += 1;
        self.kept += usize::from(kept);
    }

    fn join(&mut self, other: Self) {
        self.asked += other.asked;
        self.kept += other.kept;
    }
}

/// What survives in one text for each result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, bound = "L: Label")]
pub struct Survivors<L: Label = Class> {
    /// Tokens of all texts.
    pub tokens: usize,
    /// All labels together.
    pub all: Survival,
    /// Those of the core together; empty in a set without one.
    #[serde(default, skip_serializing_if = "Survival::is_empty")]
    pub core: Survival,
    /// By label.
    pub classes: BTreeMap<L, Survival>,
    /// All labels by kind of content.
    pub kinds: BTreeMap<Kind, Survival>,
}

impl<L: Label> Default for Survivors<L> {
    fn default() -> Self {
        let (all, core, classes, kinds) = Default::default();
        Self { tokens: 0, all, core, classes, kinds }
    }
}

impl<L: Label> Survivors<L> {
    /// Adds what survives in a text for a result, about which `asked` was asked.
    pub fn add(&mut self, asked: Asked<'_>, summary: &Summary) {
        self.tokens += summary.tokens;
        for (label, survives) in L::answered(asked, summary) {
            self.all.add(survives);
            self.classes.entry(label).or_default().add(survives);
            self.kinds.entry(asked.kind).or_default().add(survives);
            if label.is_in_core() {
                self.core.add(survives);
            }
        }
    }

    /// Adds what survives in texts for other results.
    pub fn join(&mut self, other: &Self) {
        self.tokens += other.tokens;
        self.all.join(other.all);
        self.core.join(other.core);
        for (label, survival) in &other.classes {
            self.classes.entry(*label).or_default().join(*survival);
        }
        for (kind, survival) in &other.kinds {
            self.kinds.entry(*kind).or_default().join(*survival);
        }
    }
}

/// Probes and results on which summary and control differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Duel {
    /// Probes that survive in the summary alone.
    pub won: usize,
    /// Probes that survive in the control alone.
    pub lost: usize,
    /// Results of which the summary keeps more probes.
    pub results_won: usize,
    /// Results of which the control keeps more probes.
    pub results_lost: usize,
    /// Results of which both keep as many.
    pub results_even: usize,
}

impl Duel {
    fn add<L: Label>(&mut self, asked: Asked<'_>, summary: &Summary, control: &Summary) {
        let pairs = || L::answered(asked, summary).zip(L::answered(asked, control));
        let won = pairs().filter(|((_, ours), (_, theirs))| *ours && !*theirs).count();
        let lost = pairs().filter(|((_, ours), (_, theirs))| !*ours && *theirs).count();
        self.won += won;
        self.lost += lost;
        match won.cmp(&lost) {
            Ordering::Greater => self.results_won += 1,
            Ordering::Less => self.results_lost += 1,
            Ordering::Equal => self.results_even += 1,
        }
    }

    /// Adds a duel on other results.
    pub fn join(&mut self, other: Self) {
        self.won += other.won;
        self.lost += other.lost;
        self.results_won += other.results_won;
        self.results_lost += other.results_lost;
        self.results_even += other.results_even;
    }

    /// The probability of a difference at least as large, in either direction, if summary and control were equally good:
    /// the exact test of McNemar over probes. It takes the probes of a result for independent, which they are not.
    #[must_use]
    pub fn by_probes(self) -> f64 {
        sign_test(self.won, self.lost)
    }

    /// The same over results: the exact sign test, which needs at least six results that differ.
    #[must_use]
    pub fn by_results(self) -> f64 {
        sign_test(self.results_won, self.results_lost)
    }
}

/// What a control keeps, and how the summary does against it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, bound = "L: Label")]
pub struct Against<L: Label = Class> {
    /// What survives in the control.
    pub kept: Survivors<L>,
    /// By kind of content.
    pub duels: BTreeMap<Kind, Duel>,
}

impl<L: Label> Default for Against<L> {
    fn default() -> Self {
        Self { kept: Survivors::default(), duels: BTreeMap::new() }
    }
}

/// Survival at one cap.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, bound = "L: Label")]
pub struct AtCap<L: Label = Class> {
    /// Tokens allowed for each summary.
    pub cap: usize,
    /// What survives in the summaries.
    pub kept: Survivors<L>,
    /// The controls.
    pub controls: BTreeMap<Control, Against<L>>,
}

impl<L: Label> Default for AtCap<L> {
    fn default() -> Self {
        Self { cap: 0, kept: Survivors::default(), controls: BTreeMap::new() }
    }
}

impl<L: Label> AtCap<L> {
    /// Survival at the cap with this number among those measured on `all`.
    fn of<'m>(all: impl Iterator<Item = &'m Measured>, at: usize) -> Self {
        let mut sum = Self::default();
        for (one, summary) in all.filter_map(|one| Some((one, one.summaries.get(at)?))) {
            let asked = one.asked();
            sum.cap = summary.cap;
            sum.kept.add(asked, summary);
            for (control, theirs) in &one.controls {
                let Some(theirs) = theirs.get(at) else { continue };
                let against = sum.controls.entry(*control).or_default();
                against.kept.add(asked, theirs);
                against.duels.entry(one.kind).or_default().add::<L>(asked, summary, theirs);
            }
        }
        sum
    }

    /// Adds what was measured on other results at the same cap.
    pub fn join(&mut self, other: &Self) {
        self.kept.join(&other.kept);
        for (control, against) in &other.controls {
            let sum = self.controls.entry(*control).or_default();
            sum.kept.join(&against.kept);
            for (kind, duel) in &against.duels {
                sum.duels.entry(*kind).or_default().join(*duel);
            }
        }
    }
}

/// What views of needles cost.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Views {
    /// Needles that one view reaches.
    pub reached: Survival,
    /// Median tokens of a view.
    pub median: f64,
    /// The 90th percentile.
    pub p90: f64,
    /// The most expensive one.
    pub most: usize,
}

/// The fidelity of a set of results.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fidelity {
    /// Results asked about.
    pub results: usize,
    /// Their bytes.
    pub bytes: usize,
    /// One for each cap, ascending.
    pub caps: Vec<AtCap>,
    /// The same for what people ask, over the results about which they ask; empty where there is none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub questions: Vec<AtCap<Asks>>,
    /// Needles through views; `None` without needles, or where views were not measured.
    pub views: Option<Views>,
}

/// Asks every one of `contents` and looks for the answers in summaries at `caps` and in views.
#[must_use]
pub fn measure(
    contents: &[Content],
    caps: &[usize],
    estimator: Estimator,
    summarizer: &dyn Summarizer,
    view: Option<&View>,
) -> Vec<Measured> {
    contents.par_iter().map(|content| measure_one(content, caps, estimator, summarizer, view)).collect()
}

fn measure_one(
    content: &Content,
    caps: &[usize],
    estimator: Estimator,
    summarizer: &dyn Summarizer,
    view: Option<&View>,
) -> Measured {
    let asked = questions(&content.text);
    let all = Asked { kind: asked.kind, probes: &asked.probes, questions: &content.questions };
    let summaries = |summarizer: &dyn Summarizer| -> Vec<Summary> {
        let summary = |&cap: &usize| {
            let text = summarizer.summarize(&content.text, &content.media_type, cap, estimator);
            Summary::of(text, cap, all, estimator)
        };
        caps.iter().map(summary).collect()
    };
    let reached = |probe: &Probe| {
        let (view, place) = (view?, probe.place.as_ref()?);
        let text = view(content, place).unwrap_or_default();
        Some(Reached { found: answers_through_view(probe, &text), tokens: estimator.count(&text) })
    };
    Measured {
        name: content.name.clone(),
        kind: asked.kind,
        bytes: content.text.len(),
        views: asked.probes.iter().filter_map(reached).collect(),
        summaries: summaries(summarizer),
        controls: Control::ALL.into_iter().map(|control| (control, summaries(&control))).collect(),
        probes: asked.probes,
        questions: content.questions.clone(),
    }
}

impl Measured {
    fn asked(&self) -> Asked<'_> {
        Asked { kind: self.kind, probes: &self.probes, questions: &self.questions }
    }
}

/// Whether a view holds the answer. Who asks by path or by line knows the label already, so the value is enough.
fn answers_through_view(probe: &Probe, text: &str) -> bool {
    Haystack::new(text).states(&[], &probe.answers)
}

/// The measurements of several results as one.
#[must_use]
pub fn fidelity(measured: &[Measured]) -> Fidelity {
    let caps = measured.first().map_or(0, |first| first.summaries.len());
    let with_questions = || measured.iter().filter(|one| !one.questions.is_empty());
    let asked_twice = with_questions().next().map_or(0, |_| caps);
    Fidelity {
        results: measured.len(),
        bytes: measured.iter().map(|one| one.bytes).sum(),
        caps: (0..caps).map(|at| AtCap::of(measured.iter(), at)).collect(),
        questions: (0..asked_twice).map(|at| AtCap::of(with_questions(), at)).collect(),
        views: views(measured),
    }
}

fn views(measured: &[Measured]) -> Option<Views> {
    let all: Vec<Reached> = measured.iter().flat_map(|one| one.views.iter().copied()).collect();
    let mut tokens: Vec<f64> = all.iter().map(|view| view.tokens as f64).collect();
    tokens.sort_by(f64::total_cmp);
    let most = all.iter().map(|view| view.tokens).max()?;
    let reached = Survival { asked: all.len(), kept: all.iter().filter(|view| view.found).count() };
    Some(Views { reached, median: round6(percentile(&tokens, 50.0)), p90: round6(percentile(&tokens, 90.0)), most })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A summariser that shows the first words only.
    struct Head;

    impl Summarizer for Head {
        fn summarize(&self, content: &str, _: &str, cap: usize, _: Estimator) -> String {
            content.chars().take(cap).collect()
        }
    }

    fn content(text: &str) -> Content {
        Content::of("one".to_owned(), text.to_owned())
    }

    #[test]
    fn survival_is_counted_by_class_kind_and_cap() {
        let contents = [
            content("size: 225570\ncreated: Saturday\nowner: root\n"),
            content("# Guide to widgets\n\nWords about them.\n\n## Support contacts\n\nWrite to the help desk.\n"),
        ];
        let view = |content: &Content, place: &Selector| match place {
            Selector::Lines { start, .. } => {
                Ok(content.text.lines().nth(*start as usize).unwrap_or_default().to_owned())
            }
            _ => Err("no such view".to_owned()),
        };
        let measured = measure(&contents, &[20, 1000], Estimator::Cl100kBase, &Head, Some(&view));
        let fidelity = fidelity(&measured);
        let shares: Vec<String> = fidelity
            .caps
            .iter()
            .map(|at| {
                let at_cap = at.cap;
                let at = &at.kept;
                let kinds: Vec<String> =
                    at.kinds.iter().map(|(kind, one)| format!("{kind} {}/{}", one.kept, one.asked)).collect();
                let classes: Vec<String> =
                    at.classes.iter().map(|(class, one)| format!("{class} {}/{}", one.kept, one.asked)).collect();
                format!(
                    "{}: all {}/{}, core {}/{}, {}, {}",
                    at_cap,
                    at.all.kept,
                    at.all.asked,
                    at.core.kept,
                    at.core.asked,
                    classes.join(" "),
                    kinds.join(" ")
                )
            })
            .collect();
        insta::assert_snapshot!(shares.join("\n"), @r"
        20: all 4/15, core 3/8, shape 0/2 ends 2/4 leaf 1/2 outline 1/2 needle 0/5, markdown 2/8 keyvalue 2/7
        1000: all 13/15, core 6/8, shape 0/2 ends 4/4 leaf 2/2 outline 2/2 needle 5/5, markdown 7/8 keyvalue 6/7
        ");
        // The whole of both texts fits into 1000 tokens, for the controls as for this summariser; only one counts.
        let against = |control: Control| fidelity.caps.get(1).and_then(|at| at.controls.get(&control)).unwrap();
        let first = against(Control::First);
        assert_eq!((first.kept.all.kept, first.duels[&Kind::Markdown].results_even), (13, 1));
        assert_eq!(against(Control::CountHeadTail).kept.all.kept, 13);
        let duel = Duel { won: 9, lost: 1, results_won: 3, results_lost: 0, results_even: 1 };
        assert_eq!((round6(duel.by_probes()), round6(duel.by_results())), (0.021484, 0.25));
        let views = fidelity.views.unwrap();
        assert_eq!(views.reached.asked, views.reached.kept);
        assert!(views.median > 0.0 && views.most < 20);
    }

    #[test]
    fn nothing_measured_has_no_shares() {
        let fidelity = fidelity(&[]);
        assert_eq!((fidelity.results, fidelity.caps.len(), fidelity.views), (0, 0, None));
        assert_eq!(Survival::default().share(), None);
    }
}
