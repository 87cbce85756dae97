//! The chapters of the scorecard, one file or folder each, and the list of them.

pub mod collections;
pub mod confidence;
pub mod context;
pub mod copies;
pub mod everyday;
pub mod feedback;
pub mod gateway;
pub mod meaning;
pub mod rivals;
pub mod routing;
pub mod scaling;
pub mod seeds;
pub mod sweep;

use crate::chapter::AnyChapter;
use collections::PerCollection;

/// Every chapter, in the order of the page.
pub const CHAPTERS: [&dyn AnyChapter; 12] = [
    &everyday::Everyday,
    &PerCollection(meaning::Meaning),
    &rivals::Rivals,
    &routing::Routing,
    &seeds::Seeds,
    &PerCollection(copies::CopiesChapter),
    &PerCollection(confidence::Confidence),
    &PerCollection(feedback::Feedback),
    &scaling::Scaling,
    &context::ContextChapter,
    &gateway::GatewayChapter,
    &sweep::Sweep,
];

/// The chapter called `name`.
#[must_use]
pub fn find(name: &str) -> Option<&'static dyn AnyChapter> {
    CHAPTERS.into_iter().find(|chapter| chapter.name() == name)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use super::*;
    use crate::eval::engine::RouterEngine;
    use crate::eval::matrix::{CONTROL, DEFAULT, Matrix};
    use crate::eval::record::Origin;
    use crate::eval::workspace::{Bench, Scope, Workspace};
    use crate::public::Manifest;
    use contextweaver_routing::{RoutingConfig, Scorer};

    fn workspace() -> Workspace {
        Workspace::find(Some(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")), None).unwrap()
    }

    fn matrix() -> Matrix {
        workspace().matrix().unwrap()
    }

    #[test]
    fn every_module_of_a_chapter_is_on_the_list() {
        let modules =
            include_str!("mod.rs").lines().filter_map(|line| line.strip_prefix("pub mod ")?.strip_suffix(';'));
        let modules: BTreeSet<&str> = modules.filter(|module| *module != "collections").collect();
        assert_eq!(CHAPTERS.map(AnyChapter::name).into_iter().collect::<BTreeSet<_>>(), modules);
    }

    #[test]
    fn what_figures_are_read_against_is_what_it_is_said_to_be() {
        let matrix = matrix();
        let engine = |name: &str| -> &RouterEngine { matrix.engine(name).unwrap() };
        assert_eq!(engine(DEFAULT).config(), &RoutingConfig::default());
        let flat = RoutingConfig { scorer: Scorer::Bm25, k1: 1.2, b: 0.75, ..RoutingConfig::default() };
        assert_eq!(engine(CONTROL).config(), &flat);
        assert!(!engine(DEFAULT).has_encoder() && !engine(CONTROL).has_encoder());
    }

    #[test]
    fn every_public_collection_is_measured() {
        let stated: BTreeSet<String> =
            Manifest::builtin().unwrap().collections().map(|collection| collection.name.clone()).collect();
        let matrix = matrix();
        let public = matrix.cases.iter().filter(|case| case.origin == Origin::Public && case.growth.is_none());
        assert_eq!(public.map(|case| case.id.clone()).collect::<BTreeSet<_>>(), stated);
    }

    #[test]
    fn nothing_that_was_ever_measured_has_left_the_lists() {
        // These have no manifest of their own: one that is to go is taken out here too.
        let bench = Bench::open(workspace(), Scope::Usual).unwrap();
        let cases = |chapter: &str| -> Vec<String> {
            let plans = find(chapter).unwrap().plan(&bench).unwrap();
            plans.into_iter().flat_map(|plan| plan.cases).map(|planned| planned.case).collect()
        };
        let gateway = cases("gateway");
        let of = |kind: &str| gateway.iter().filter(|case| case.starts_with(kind)).count();
        assert_eq!((of("surface/"), of("session/"), of("scenario/")), (73, 4, 9));
        // Ours, five of others on as many scenarios, and those that rest on more than one log.
        assert_eq!(cases("context").len(), 27 + 5 * 27 + 8);
    }
}
