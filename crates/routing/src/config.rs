//! Every parameter of the routing engine, in one file format and one place.

use serde::{Deserialize, Serialize};

use super::feedback::FeedbackConfig;

/// The configuration of a [`Router`](super::Router). A file holds any subset of the fields; a field that it leaves out
/// keeps its default, and unknown fields are refused.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RoutingConfig {
    /// How a tool is scored against a query.
    pub scorer: Scorer,
    /// Term-frequency saturation of BM25 and BM25F, > 0.
    pub k1: f64,
    /// Length normalisation of flat BM25, 0 (none) to 1 (full). BM25F has one per field.
    pub b: f64,
    /// What each part of a tool contributes. Every scorer reads the fields whose weight is above zero; BM25F
    /// alone uses the values.
    pub fields: FieldWeights,
    /// What a tool's name adds beyond its field in BM25F.
    pub name: NameMatch,
    /// What two neighbouring words of the first sentence of a description count in BM25F, as a share of what they count in a
    /// name of mean length (`name.pairs`), in [0, 1]; 0 turns it off, and so does a weight of 0 of `name.pairs` or of the fields of name or
    /// description.
    pub description_pairs: f64,
    /// What two neighbouring words of the query count in BM25F where a name or a first sentence has them the other way round
    /// (`issues/create`), as a share of what they count in order, in [0, 1]; 0 turns it off, and so does `name.pairs`.
    pub reversed_pairs: f64,
    /// Saturation of repeated query words in BM25F (`k3`), at least 0: a word that occurs c times counts c · (k3 + 1) /
    /// (c + k3) times. 0 counts every word once; the larger, the closer to c.
    pub k3: f64,
    /// The weight of a known word that is one edit away from an unknown word of the query, in [0, 1]; 0 corrects
    /// nothing. For BM25F.
    pub spelling: f64,
    /// What the nearest tool by the semantic table gains, in words that no other tool has, from 0 to 100; 0 ranks by words
    /// alone. For BM25F with flat navigation; other scorers and navigations ignore it.
    pub semantic: f64,
    /// How candidates are reached.
    pub navigation: Navigation,
    /// The shape of the choice graph.
    pub tree: TreeConfig,
    /// The number of tools that a route returns.
    pub top_k: usize,
    /// A route is ambiguous when the second score is within this share of the first, in [0, 1].
    pub confidence_gap: f64,
    /// Whether copies of one tool share a place.
    #[serde(skip_serializing_if = "is_default")]
    pub copies: Copies,
    /// Below this confidence a route says that no tool fits well, in [0, 1]; 0 never says so. The default is
    /// [`NOTHING_FITS_BELOW`].
    #[serde(skip_serializing_if = "is_usual")]
    pub abstain_below: f64,
    /// What a sentence encoder adds, where a router is given one.
    #[serde(skip_serializing_if = "is_default")]
    pub model: ModelConfig,
    /// What feedback may add, where a router is given some.
    #[serde(skip_serializing_if = "is_default")]
    pub feedback: FeedbackConfig,
}

impl Default for RoutingConfig {
    fn default() -> Self {
        Self {
            scorer: Scorer::Bm25f,
            k1: 1.0,
            b: 0.75,
            fields: FieldWeights::default(),
            name: NameMatch::default(),
            description_pairs: 0.25,
            reversed_pairs: 0.5,
            k3: 2.0,
            spelling: 0.8,
            semantic: 0.5,
            navigation: Navigation::Flat,
            tree: TreeConfig::default(),
            top_k: 10,
            confidence_gap: 0.15,
            copies: Copies::default(),
            abstain_below: NOTHING_FITS_BELOW,
            model: ModelConfig::default(),
            feedback: FeedbackConfig::default(),
        }
    }
}

/// The confidence below which none of the first five tools is more likely than one of them, so that a route says that
/// nothing fits well. The nearest are shown all the same, so that what it costs is a line.
///
/// It is no value that was fitted, and catches few queries without a tool that sound like those of a model, since these have
/// words of tools. A right answer to people's own words may be marked: asking again in the words of tools then finds it. The
/// scorecard's pages on confidence and on everyday requests count both.
pub const NOTHING_FITS_BELOW: f64 = 0.5;

fn is_usual(threshold: &f64) -> bool {
    *threshold == NOTHING_FITS_BELOW
}

/// Whether a part of the configuration has its default values: parts that are rarely used are written only when they
/// differ.
fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// A parameter is out of its range.
#[derive(Debug, thiserror::Error)]
#[error("`{parameter}` is {value}; it must be {range}")]
pub struct ConfigError {
    parameter: &'static str,
    value: String,
    range: &'static str,
}

impl RoutingConfig {
    /// Whether the semantic table takes part: it has a weight, the scorer is not one of the plain formulas, and
    /// navigation does not follow words.
    #[must_use]
    pub fn is_semantic(&self) -> bool {
        self.semantic > 0.0 && self.has_meaning()
    }

    /// Whether anything but words can take part, table or encoder.
    pub(super) fn has_meaning(&self) -> bool {
        self.scorer == Scorer::Bm25f && self.navigation == Navigation::Flat
    }

    /// Checks that every parameter is within its documented range.
    ///
    /// # Errors
    /// [`ConfigError`] for the first one that is not.
    pub fn validate(&self) -> Result<(), ConfigError> {
        let unit = 0.0..=1.0;
        let real = |parameter, value: f64, fits: bool, range| {
            let error = ConfigError { parameter, value: value.to_string(), range };
            if fits { Ok(()) } else { Err(error) }
        };
        real("k1", self.k1, self.k1 > 0.0 && self.k1 <= 100.0, "above 0 and at most 100")?;
        real("b", self.b, unit.contains(&self.b), "from 0 to 1")?;
        real("name.share", self.name.share, (0.0..=8.0).contains(&self.name.share), "from 0 to 8")?;
        real("name.prior", self.name.prior, (0.0..=1000.0).contains(&self.name.prior), "from 0 to 1000")?;
        real("name.pairs", self.name.pairs, (0.0..=1.0).contains(&self.name.pairs), "from 0 to 1")?;
        real("description_pairs", self.description_pairs, unit.contains(&self.description_pairs), "from 0 to 1")?;
        real("reversed_pairs", self.reversed_pairs, unit.contains(&self.reversed_pairs), "from 0 to 1")?;
        real("k3", self.k3, (0.0..=1000.0).contains(&self.k3), "from 0 to 1000")?;
        real("spelling", self.spelling, unit.contains(&self.spelling), "from 0 to 1")?;
        real("semantic", self.semantic, (0.0..=100.0).contains(&self.semantic), "from 0 to 100")?;
        real("confidence_gap", self.confidence_gap, unit.contains(&self.confidence_gap), "from 0 to 1")?;
        real("abstain_below", self.abstain_below, unit.contains(&self.abstain_below), "from 0 to 1")?;
        real("model.weight", self.model.weight, (0.0..=100.0).contains(&self.model.weight), "from 0 to 100")?;
        let FeedbackConfig { half_life, most } = self.feedback;
        real("feedback.half_life", half_life, half_life > 0.0, "above 0")?;
        real("feedback.most", most, unit.contains(&most), "from 0 to 1")?;
        let fields = &self.fields;
        let all = [
            ("fields.name", fields.name),
            ("fields.description", fields.description),
            ("fields.parameters", fields.parameters),
            ("fields.tags", fields.tags),
            ("fields.server", fields.server),
        ];
        for (parameter, field) in all {
            real(parameter, field.weight, (0.0..=1000.0).contains(&field.weight), "a weight from 0 to 1000")?;
            real(parameter, field.b, unit.contains(&field.b), "a `b` from 0 to 1")?;
        }
        let count = |parameter, value: usize, least: usize, range| {
            let error = ConfigError { parameter, value: value.to_string(), range };
            if value >= least { Ok(()) } else { Err(error) }
        };
        real("fields", 0.0, all.iter().any(|(_, field)| field.weight > 0.0), "above 0 for one field at least")?;
        count("top_k", self.top_k, 1, "at least 1")?;
        count("tree.max_children", self.tree.max_children, 2, "at least 2")?;
        if let Navigation::Beam(beam) = self.navigation {
            count("navigation.beam.width", beam.width, 1, "at least 1")?;
            count("navigation.beam.max_depth", beam.max_depth, 1, "at least 1")?;
        }
        Ok(())
    }
}

/// How a tool is scored against a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scorer {
    /// Cosine of log-frequency TF-IDF vectors over the flat text.
    TfIdf,
    /// BM25 over the flat text of all fields, without weights.
    Bm25,
    /// BM25F: per-field weights and length normalisation before one common saturation, with what [`NameMatch`] adds.
    #[default]
    Bm25f,
    /// BM25F where a query word that the catalog does not know stands for similar words that it knows.
    Fuzzy,
}

/// What a tool's name adds to a BM25F score. A name is short and chosen with care, so how much of it the query says
/// tells more than how often its words occur.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct NameMatch {
    /// What the score gains when the query has every word of the name, in units of idf; 0 turns it off.
    pub share: f64,
    /// Information that every name is assumed to have beyond its words, in units of idf, at least 0: keeps the only
    /// word of a short name from earning the whole share.
    pub prior: f64,
    /// The weight of two neighbouring words of the name that are neighbours in the query too, as a share of what a word
    /// of the same rarity would add by the name alone, in [0, 1]; 0 turns it off.
    pub pairs: f64,
}

impl Default for NameMatch {
    fn default() -> Self {
        Self { share: 2.5, prior: 2.0, pairs: 0.7 }
    }
}

/// What a sentence encoder adds to a score. For BM25F with flat navigation, as the semantic table.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ModelConfig {
    /// What the nearest tool by the encoder gains, in words that no other tool has, from 0 to 100; 0 turns the encoder
    /// off.
    pub weight: f64,
}

impl Default for ModelConfig {
    fn default() -> Self {
        Self { weight: 1.0 }
    }
}

/// The parts of a tool that can be searched.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(from = "WrittenFields")]
pub struct FieldWeights {
    /// The tool's name.
    pub name: Field,
    /// The tool's description.
    pub description: Field,
    /// Names and descriptions of its arguments.
    pub parameters: Field,
    /// The tool's tags.
    pub tags: Field,
    /// The server's name and description.
    pub server: Field,
}

/// One field's share in BM25F.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Field {
    /// Multiplies the term frequency; 0 leaves the field out of the index.
    pub weight: f64,
    /// Length normalisation, 0 (none) to 1 (full).
    pub b: f64,
}

impl Default for FieldWeights {
    fn default() -> Self {
        let whole = Field { weight: 1.0, b: 0.75 };
        let parameters = Field { weight: 0.6, ..whole };
        Self { name: whole, description: whole, parameters, tags: whole, server: whole }
    }
}

/// The fields as a file writes them: any of them, and any part of each. Every field has its own defaults, so the
/// default of a missing part is known only here and not in [`Field`].
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct WrittenFields {
    name: WrittenField,
    description: WrittenField,
    parameters: WrittenField,
    tags: WrittenField,
    server: WrittenField,
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct WrittenField {
    weight: Option<f64>,
    b: Option<f64>,
}

impl WrittenField {
    fn or(self, default: Field) -> Field {
        Field { weight: self.weight.unwrap_or(default.weight), b: self.b.unwrap_or(default.b) }
    }
}

impl From<WrittenFields> for FieldWeights {
    fn from(written: WrittenFields) -> Self {
        let default = Self::default();
        Self {
            name: written.name.or(default.name),
            description: written.description.or(default.description),
            parameters: written.parameters.or(default.parameters),
            tags: written.tags.or(default.tags),
            server: written.server.or(default.server),
        }
    }
}

/// What happens to tools that are copies of one another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Copies {
    /// Each has a place of its own.
    #[default]
    Apart,
    /// The best copy for the query stands for all, and its card names the others.
    Together,
}

/// How candidates are reached.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, Default)]
#[serde(rename_all = "lowercase")]
pub enum Navigation {
    /// Every tool is scored: nothing is lost to pruning.
    #[default]
    Flat,
    /// Beam search down the choice graph.
    Beam(BeamConfig),
    /// Best-first search down the choice graph until no remaining branch can belong to the answer: the ranking of
    /// [`Navigation::Flat`] by words, with the unopened branches and the bounds that excluded them.
    Exact,
}

/// The parameters of beam search.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct BeamConfig {
    /// Nodes kept per level, at least 1.
    pub width: usize,
    /// The number of levels descended at most, at least 1.
    pub max_depth: usize,
}

impl Default for BeamConfig {
    fn default() -> Self {
        Self { width: 2, max_depth: 8 }
    }
}

/// The shape of the choice graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TreeConfig {
    /// The number of children of a node at most, at least 2.
    pub max_children: usize,
}

impl Default for TreeConfig {
    fn default() -> Self {
        Self { max_children: 20 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_subset_of_the_fields_keeps_the_other_defaults() {
        let default = RoutingConfig::default();
        let fields = FieldWeights {
            name: Field { weight: 3.0, ..default.fields.name },
            server: Field { b: 0.1, ..default.fields.server },
            ..default.fields
        };
        let table = [
            ("", default.clone()),
            ("k1 = 2.0", RoutingConfig { k1: 2.0, ..default.clone() }),
            ("[fields]", default.clone()),
            ("[fields.name]\nweight = 3.0\n[fields.server]\nb = 0.1", RoutingConfig { fields, ..default }),
        ];
        for (text, expected) in table {
            assert_eq!(toml::from_str::<RoutingConfig>(text).unwrap(), expected, "{text}");
            assert_eq!(toml::from_str::<RoutingConfig>(&toml::to_string(&expected).unwrap()).unwrap(), expected);
        }
        for text in ["k2 = 1.0", "[fields]\ntitle = 1", "[fields.name]\nboost = 1.0"] {
            assert!(toml::from_str::<RoutingConfig>(text).is_err(), "{text}");
        }
    }
}
