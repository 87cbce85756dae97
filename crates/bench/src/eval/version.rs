//! What tells two versions of something that is measured apart.
//!
//! A version is the number of the crate and a digest of the configuration and of everything that is measured on a small
//! fixed probe ([`super::probe`]). It changes with any code, table or configuration that changes what the probe gives;
//! no one has to remember to count it up. That the probe gives the same is no proof that every collection would:
//! records that can be computed are computed again, and the version stands in for those that cannot.

use std::sync::{Arc, LazyLock};

use rayon::prelude::*;
use serde::Serialize;

use super::engine::{Engine, Ranking, RouterEngine};
use super::probe;
use super::run::{PromptTokens, evaluate};
use super::statistics::round6;
use contextweaver_core::catalog::Catalog;
use contextweaver_core::text::sha256_hex;
use contextweaver_routing::semantic::Table;

/// Hits of a ranking that a version depends on.
const TOP: usize = 10;

/// The version of what gives `measured` on a probe under `configuration`.
#[must_use]
pub fn of(configuration: &str, measured: &impl Serialize) -> String {
    // Facts are plain data, which JSON can always express.
    let text = serde_json::to_string(&(configuration, measured)).unwrap_or_default();
    let digest = sha256_hex(text.as_bytes());
    format!("{}+{}", env!("CARGO_PKG_VERSION"), digest.get(..12).unwrap_or_default())
}

/// The version of an engine, computed once: its first hits with their scores, its confidence and its measures on the
/// probe, its first hits on a larger catalog around it, and the digest of the semantic table where that counts.
///
/// The sentence encoder is not run for it, since whether a record is stale must be seen without it. Its weights are what
/// their checksum says, and what the router makes of an encoder's vectors is run with one that is part of the program.
/// What turns a text into the vectors of the real one is held by its own tests alone.
#[must_use]
pub fn of_engine(engine: &RouterEngine) -> &str {
    engine.version_by(|engine| {
        let (model, probed) = match engine.has_encoder() {
            true => (contextweaver_encoder::version(), engine.clone().with_encoder(Arc::new(probe::encoder::Words))),
            false => (String::new(), engine.clone()),
        };
        of(&engine.configuration(), &(model, table(engine), ranked(&probed), ranked_among_many(&probed)))
    })
}

/// The digest of the semantic table; empty for an engine that does without.
fn table(engine: &RouterEngine) -> &'static str {
    static DIGEST: LazyLock<String> = LazyLock::new(Table::builtin_sha256);
    if engine.config().semantic > 0.0 { &DIGEST } else { "" }
}

/// Every ranking as ids and scores with its confidence, and the facts; or why there are none.
fn ranked(engine: &RouterEngine) -> Result<impl Serialize + use<>, String> {
    let collection = probe::collection();
    let evaluation = evaluate(collection, engine, PromptTokens::Count).map_err(|error| error.to_string())?;
    let rankings: Vec<(Hits, f64)> = evaluation
        .rankings
        .iter()
        .map(|ranking| (hits(&collection.catalog, ranking), round6(ranking.confidence)))
        .collect();
    Ok((rankings, evaluation.facts))
}

/// The first hits among many tools, most of which are invented: what a small catalog does not reach, such as words that
/// hundreds of tools share, and places that many compete for.
fn ranked_among_many(engine: &RouterEngine) -> Result<Vec<Hits>, String> {
    let catalog = probe::many();
    let prepared = engine.prepare(catalog).map_err(|error| error.to_string())?;
    let queries = probe::collection().queries.par_iter();
    Ok(queries.map(|query| hits(catalog, &prepared.rank(&query.text, TOP))).collect())
}

/// Ids and scores.
type Hits = Vec<(String, u64)>;

fn hits(catalog: &Catalog, ranking: &Ranking) -> Hits {
    let first = ranking.hits.iter().take(TOP);
    first.filter_map(|hit| Some((catalog.items().get(hit.item as usize)?.id.clone(), hit.score))).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::time::Instant;

    use super::*;
    use crate::eval::engine::EncoderChoice;
    use contextweaver_routing::RoutingConfig;

    fn version(config: RoutingConfig) -> String {
        of_engine(&RouterEngine::new("any", config)).to_owned()
    }

    #[test]
    fn whatever_ranks_otherwise_has_another_version() {
        let default = RoutingConfig::default();
        let configs = [
            default.clone(),
            RoutingConfig { semantic: 0.0, ..default.clone() },
            RoutingConfig { semantic: 0.26, ..default.clone() },
            RoutingConfig { spelling: 0.0, ..default.clone() },
            RoutingConfig { k1: 0.3, ..default },
        ];
        let versions: BTreeSet<String> = configs.iter().cloned().map(version).collect();
        assert_eq!(versions.len(), configs.len(), "{versions:?}");
        // The rankings differ, not only the configurations.
        let rankings: BTreeSet<String> =
            configs.into_iter().map(|config| of("", &ranked(&RouterEngine::new("any", config)).unwrap())).collect();
        assert_eq!(rankings.len(), versions.len());
    }

    #[test]
    fn the_encoder_counts_by_its_checksum_and_is_not_needed() {
        let plain = RouterEngine::new("any", RoutingConfig::default());
        let best = plain.clone().with(EncoderChoice::MiniLm);
        assert_ne!(of_engine(&plain), of_engine(&best));
        assert_eq!(of_engine(&best), of_engine(&best.clone()));
    }

    #[test]
    fn what_an_encoder_adds_to_rankings_is_part_of_the_version() {
        let plain = RouterEngine::new("any", RoutingConfig::default());
        let probed = plain.clone().with_encoder(Arc::new(probe::encoder::Words));
        assert_ne!(of("", &ranked(&plain).unwrap()), of("", &ranked(&probed).unwrap()));
        assert_ne!(ranked_among_many(&plain).unwrap(), ranked_among_many(&probed).unwrap());
    }

    #[test]
    fn the_table_counts_where_it_is_used() {
        let words = RouterEngine::new("any", RoutingConfig { semantic: 0.0, ..RoutingConfig::default() });
        assert_eq!((table(&words), table(&RouterEngine::new("any", RoutingConfig::default())).len()), ("", 64));
    }

    #[test]
    fn a_version_is_computed_once() {
        let engine = RouterEngine::new("any", RoutingConfig::default());
        let first = of_engine(&engine).to_owned();
        let start = Instant::now();
        assert_eq!(of_engine(&engine), first);
        assert!(start.elapsed().as_millis() < 5);
    }
}
