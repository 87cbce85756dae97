//! The committed scenarios and catalogs: what the gateway may never break, whatever the figures of the scorecard are.

use std::path::Path;

use contextweaver::eval::gateway::case::{Case, Places, Source};
use contextweaver::eval::gateway::record::GatewayOutcome;
use contextweaver::eval::gateway::run::record;
use contextweaver::eval::record::Origin;

/// The cases that a checkout alone holds.
fn own_cases() -> Vec<Case> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let places = Places {
        scenarios: root.join("scenarios/gateway"),
        gold: root.join("gold"),
        catalogs: root.join("absent"),
        sessions: root.join("absent"),
    };
    let cases = places.cases().unwrap();
    assert!(cases.iter().all(|case| case.origin == Origin::Embedded));
    assert_eq!(places.absent(), ["surface", "session"]);
    cases
}

#[test]
fn every_step_of_the_scenarios_goes_as_written() {
    let scenarios: Vec<Case> =
        own_cases().into_iter().filter(|case| matches!(case.source, Source::Scenario(..))).collect();
    assert!(scenarios.len() >= 8, "{} scenarios", scenarios.len());
    for case in scenarios {
        let first = record(&case).unwrap();
        let GatewayOutcome::Scenario(facts) = &first.outcome else { panic!("{}: {:?}", case.name, first.outcome) };
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
        let GatewayOutcome::Surface(facts) = record(&case).unwrap().outcome else { panic!("{}", case.name) };
        assert_eq!(facts.left_out, 0, "{}", case.name);
        assert!(facts.page_tokens <= 450, "{}: {} tokens for {:?}", case.name, facts.page_tokens, facts.page_query);
        assert!(facts.gateway_tokens * 10 < facts.direct_tokens, "{}: {facts:?}", case.name);
        assert!(facts.proxy_tokens < facts.direct_tokens, "{}: {facts:?}", case.name);
    }
}
