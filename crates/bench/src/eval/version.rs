//! What tells two versions of something that is measured apart.
//!
//! A version is the number of the crate and a digest of the configuration and of everything that is measured on a small
//! fixed probe ([`super::probe`]). It changes with any code, table or configuration that changes what the probe gives;
//! no one has to remember to count it up. That the probe gives the same is no proof that every collection would:
//! records that can be computed are computed again, and the version stands in for those that cannot.

use serde::Serialize;

use super::engine::{EncoderChoice, Engine, RouterEngine};
use super::probe;
use super::run::{PromptTokens, evaluate};
use super::statistics::round6;
use contextweaver_core::text::sha256_hex;
use contextweaver_encoder::PACKAGE_SHA256;

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

/// The version of an engine, computed once: its first hits with their scores, its confidence and its measures on the probe.
///
/// A sentence encoder is not run for it: it is what its checksum says, and whether a record is stale must be seen without
/// it.
#[must_use]
pub fn of_engine(engine: &RouterEngine) -> &str {
    engine.version_by(|engine| {
        let model = if engine.has_encoder() { PACKAGE_SHA256 } else { "" };
        let ranked = ranked(&engine.clone().with(EncoderChoice::None));
        of(&engine.configuration(), &(model, ranked))
    })
}

/// Every ranking as ids and scores with its confidence, and the facts; or why there are none.
fn ranked(engine: &RouterEngine) -> Result<impl Serialize + use<>, String> {
    let collection = probe::collection();
    let evaluation = evaluate(collection, engine, PromptTokens::Count).map_err(|error| error.to_string())?;
    let items = collection.catalog.items();
    let rankings: Vec<(Vec<(String, u64)>, f64)> = evaluation
        .rankings
        .iter()
        .map(|ranking| {
            let hits = ranking.hits.iter().take(TOP);
            let hits = hits.filter_map(|hit| Some((items.get(hit.item as usize)?.id.clone(), hit.score)));
            (hits.collect(), round6(ranking.confidence))
        })
        .collect();
    Ok((rankings, evaluation.facts))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::time::Instant;

    use super::*;
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
    fn a_version_is_computed_once() {
        let engine = RouterEngine::new("any", RoutingConfig::default());
        let first = of_engine(&engine).to_owned();
        let start = Instant::now();
        assert_eq!(of_engine(&engine), first);
        assert!(start.elapsed().as_millis() < 5);
    }
}
