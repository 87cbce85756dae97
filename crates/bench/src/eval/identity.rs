//! What must hold among recorded figures whatever was measured: a mean lies in its interval, shares sum to one, a verdict
//! is what its interval says. A record that breaks one of these was not written by a run.

use super::record::{Abstention, Estimate, Facts, Loss, NothingFits, Paired};
use super::statistics::{FEW, verdict_alone};

/// How far figures that were rounded to six decimals one by one may be from an identity.
const ROUNDING: f64 = 5e-6;

/// Whether two figures are the same but for their rounding.
#[must_use]
pub fn same(left: f64, right: f64) -> bool {
    (left - right).abs() <= ROUNDING
}

/// Collects what is broken, each with the name of the figure.
#[derive(Debug, Default)]
pub struct Broken(Vec<String>);

impl Broken {
    /// Notes `what` unless `holds`.
    pub fn unless(&mut self, holds: bool, what: impl Into<String>) {
        if !holds {
            self.0.push(what.into());
        }
    }

    /// `value` is a share.
    pub fn share(&mut self, name: &str, value: f64) {
        self.unless((0.0..=1.0).contains(&value), format!("{name} is {value}, which is not a share"));
    }

    /// A mean lies in its interval, and all of it is within [0, 1].
    pub fn estimate(&mut self, name: &str, value: &Estimate) {
        self.share(name, value.low);
        self.share(name, value.high);
        self.interval(name, value);
    }

    /// A mean lies in its interval.
    pub fn interval(&mut self, name: &str, Estimate { mean, low, high }: &Estimate) {
        let inside = *low <= mean + ROUNDING && *mean <= high + ROUNDING;
        self.unless(inside, format!("{name}: the mean {mean} is outside of its interval [{low}, {high}]"));
    }

    /// A difference lies in its interval and has the verdict that its probability and the interval give.
    pub fn paired(&mut self, name: &str, Paired { difference, differing, p, verdict, depends_on_seed, .. }: &Paired) {
        self.interval(name, difference);
        self.share(&format!("{name}: its probability"), *p);
        self.unless(
            verdict_alone(difference, *differing, *p) == *verdict,
            format!("{name}: the verdict is not that of its probability and its interval"),
        );
        self.unless(!depends_on_seed || *differing >= FEW, format!("{name}: an exact test depends on no seed"));
    }

    /// `default` − `control` is the mean of `difference`.
    pub fn difference(&mut self, name: &str, default: f64, control: f64, difference: f64) {
        let holds = same(default - control, difference);
        self.unless(holds, format!("{name}: {default} − {control} is not the difference {difference}"));
    }

    /// What was found and what was lost sum to one.
    pub fn loss(&mut self, name: &str, found: f64, loss: &Loss) {
        let parts = [loss.vocabulary, loss.pruning, loss.tie, loss.ranking];
        parts.into_iter().chain([loss.rescued]).for_each(|part| self.share(name, part));
        self.unless(loss.rescued <= found + ROUNDING, format!("{name}: more is rescued than found"));
        let sum = found + parts.into_iter().sum::<f64>();
        self.unless(same(sum, 1.0), format!("{name}: what was found and lost sums to {sum}"));
    }

    /// Areas and risks are shares, and the curve goes through the tenths.
    pub fn abstention(&mut self, Abstention { aurc, auroc, curve, ece }: &Abstention) {
        ece.iter().for_each(|error| self.share("ECE", *error));
        self.share("AURC", *aurc);
        self.share("AUROC", *auroc);
        for (tenth, point) in (1..).zip(curve) {
            self.unless(same(point.coverage, f64::from(tenth) / 10.0), "the curve does not go through the tenths");
            self.share("a risk", point.risk);
        }
    }

    /// `part` is a share of `whole`, rounded.
    pub fn ratio(&mut self, name: &str, ratio: f64, part: f64, whole: f64) {
        let holds = whole > 0.0 && same(ratio, part / whole);
        self.unless(holds, format!("{name}: {ratio} is not {part} / {whole}"));
    }

    /// Values that do not fall.
    pub fn ascending(&mut self, name: &str, values: &[f64]) {
        self.unless(values.windows(2).all(|pair| pair[0] <= pair[1] + ROUNDING), format!("{name} fall"));
    }

    /// What was noted.
    #[must_use]
    pub fn reasons(self) -> Vec<String> {
        self.0
    }
}

/// What is broken in the facts of an engine on a case, looked at alone.
#[must_use]
pub fn of_facts(facts: &Facts) -> Vec<String> {
    let mut broken = Broken::default();
    for (kind, measures) in [("", &facts.measures), (", strict", &facts.strict)] {
        for (name, value) in measures {
            broken.estimate(&format!("{name}{kind}"), value);
        }
        let recall = |k: usize| measures.get(&format!("recall@{k}")).map_or(0.0, |one| one.mean);
        broken.ascending(&format!("recall at 1, 3, 5 and 10{kind}"), &[1, 3, 5, 10].map(recall));
    }
    for (name, strict) in &facts.strict {
        let aware = facts.measures.get(name).map_or(0.0, |one| one.mean);
        let is_recall = name.starts_with("recall");
        broken.unless(!is_recall || strict.mean <= aware + ROUNDING, format!("{name}: strict is above the other"));
    }
    let recall = facts.measures.get("recall@5").map(|one| one.mean);
    if let Some(recall) = recall {
        broken.loss("recall@5", recall, &facts.loss);
        broken.ascending("ties from worst to recall@5 to best", &[facts.ties.worst, recall, facts.ties.best]);
        for (kind, slices) in [("registers", &facts.by_register), ("languages", &facts.by_language)] {
            let asked: usize = slices.values().map(|slice| slice.queries).sum();
            if asked == facts.answerable && asked > 0 {
                let sum: f64 = slices.values().map(|slice| slice.recall_at_5 * slice.queries as f64).sum();
                broken.unless(same(sum / asked as f64, recall), format!("recall@5: the mean of its {kind} is another"));
            } else {
                broken.unless(slices.is_empty(), format!("the {kind} are not of all queries"));
            }
        }
    }
    for (kind, measures) in [("", &facts.measures), (", strict", &facts.strict)] {
        let mean = |name: &str| measures.get(name).map(|one| one.mean);
        // Of one query each is at most the next, whatever was ranked.
        for (less, more) in [("full@5", "recall@5"), ("recall@1", "hit@1"), ("hit@1", "RR")] {
            let holds = mean(less).zip(mean(more)).is_none_or(|(less, more)| less <= more + ROUNDING);
            broken.unless(holds, format!("{less} is above {more}{kind}"));
        }
    }
    let ties = &facts.ties;
    [ties.worst, ties.expected, ties.best].into_iter().for_each(|share| broken.share("ties", share));
    broken.ascending("ties from worst to best", &[ties.worst, ties.expected, ties.best]);
    for (name, slice) in facts.by_namespace.iter().chain(&facts.by_register).chain(&facts.by_language) {
        broken.share(name, slice.recall_at_5);
        broken.unless(slice.queries <= facts.answerable, format!("{name} has more queries than the case"));
    }
    if let Some(abstention) = &facts.abstention {
        broken.abstention(abstention);
    }
    if let Some(NothingFits { right, wrong, unanswerable, .. }) = &facts.nothing_fits {
        let of = (right.of + wrong.of, unanswerable.of);
        broken.unless(
            of == (facts.answerable, facts.unanswerable),
            "what is told that nothing fits is not of all queries",
        );
        for part in [right, wrong, unanswerable] {
            broken.unless(part.queries <= part.of, "more queries are told that nothing fits than there are");
        }
    }
    if let Some(tokens) = &facts.tokens {
        broken.ratio("tokens saved", 1.0 - tokens.reduction, tokens.cards_mean, tokens.naive as f64);
        broken
            .unless(tokens.cards_mean <= tokens.cards_max as f64 + ROUNDING, "cards cost more on average than at most");
    }
    if let Some(paired) = &facts.versus_control {
        broken.paired("difference from the control", paired);
    }
    broken.unless(facts.ranks.queries() == facts.answerable, "ranks of another number of queries");
    broken.unless(facts.ranks.measures() == facts.measures, "the measures are not those of the ranks");
    broken.unless(facts.namespaces <= facts.tools, "more namespaces than tools");
    broken.reasons()
}
