//! The committed scenarios and catalogs: what the gateway may never break, whatever the figures of the scorecard are.

use std::path::Path;

use contextweaver::eval::gateway::case::{Case, Places, Source};
use contextweaver::eval::gateway::record::GatewayFacts;
use contextweaver::eval::gateway::run::record;
use contextweaver::eval::record::{Origin, Outcome};

/// The cases that a checkout alone holds.
fn own_cases() -> Vec<Case> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let places = Places {
        scenarios: root.join("scenarios/gateway"),
        gold: root.join("gold"),
        catalogs: root.join("absent"),
        sessions: root.join("absent"),
    };
    let (own, public): (Vec<Case>, Vec<Case>) =
        places.cases().unwrap().into_iter().partition(|case| case.origin == Origin::Embedded);
    // Public ones are listed in the checkout, so that it is known what is not measured.
    assert!(public.len() > 50 && public.iter().all(|case| !case.is_here()));
    own
}

#[test]
fn every_step_of_the_scenarios_goes_as_written() {
    let scenarios: Vec<Case> =
        own_cases().into_iter().filter(|case| matches!(case.source, Source::Scenario(..))).collect();
    assert!(scenarios.len() >= 8, "{} scenarios", scenarios.len());
    for case in scenarios {
        let first = record(&case).unwrap();
        let Outcome::Measured(GatewayFacts::Scenario(facts)) = &first.1 else { panic!("{}: {:?}", case.name, first.1) };
        assert_eq!(facts.failures, Vec::<String>::new(), "{}", case.name);
        assert!(facts.steps > 0 && facts.passed() == facts.steps, "{}", case.name);
        assert_eq!(facts.injected.recovered, facts.injected.artifacts, "{}", case.name);
        assert_eq!(record(&case).unwrap(), first, "{} gives the same facts twice", case.name);
    }
}

#[test]
fn the_surface_stays_small_whatever_is_behind_it() {
    let surfaces: Vec<Case> = own_cases().into_iter().filter(|case| matches!(case.source, Source::Gold(_))).collect();
    assert_eq!(surfaces.len(), 2);
    for case in surfaces {
        let (_, Outcome::Measured(GatewayFacts::Surface(facts))) = record(&case).unwrap() else {
            panic!("{}", case.name)
        };
        assert_eq!(facts.unusable, 0, "{}", case.name);
        assert!(facts.page_tokens <= 450, "{}: {} tokens for {:?}", case.name, facts.page_tokens, facts.page_query);
        assert!(facts.gateway_tokens * 10 < facts.direct_tokens, "{}: {facts:?}", case.name);
        assert!(facts.proxy_tokens < facts.direct_tokens, "{}: {facts:?}", case.name);
    }
}

#[test]
fn each_kind_costs_less_to_search_than_to_list() {
    let cases: Vec<Case> = own_cases().into_iter().filter(|case| matches!(case.source, Source::Kinds(_))).collect();
    assert_eq!(cases.len(), 1);
    for case in cases {
        let (_, Outcome::Measured(GatewayFacts::Kinds(facts))) = record(&case).unwrap() else {
            panic!("{}", case.name)
        };
        assert_eq!(facts.kinds.len(), 3);
        for kind in &facts.kinds {
            let name = kind.kind.name();
            assert!(kind.largest_page <= 450, "{name}: {} tokens", kind.largest_page);
            assert!(kind.surface_tokens + kind.largest_page < kind.list_tokens, "{name}: {kind:?}");
            for search in [&kind.said, &kind.asked] {
                assert!(search.first_tools.len() >= 40, "{name}: {} requests", search.first_tools.len());
                assert!(search.ours.recall_at_1.mean <= search.ours.recall_at_5.mean, "{name}");
            }
        }
    }
}
