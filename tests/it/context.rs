//! The committed scenarios: what no prompt may break, whatever the figures of the scorecard are.

use std::path::Path;

use contextweaver::context::ContextConfig;
use contextweaver::context::summary::StructureSummarizer;
use contextweaver::eval::context::run::facts;
use contextweaver::eval::context::scenario::load_all;
use contextweaver::eval::record::Origin;
use contextweaver::event::Phase;

#[test]
fn the_committed_scenarios_keep_every_promise() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let scenarios = load_all(&root.join("scenarios/context"), &root.join("absent")).unwrap();
    let plain = scenarios.iter().filter(|scenario| scenario.way.is_none());
    let embedded: Vec<_> = plain.filter(|scenario| scenario.origin == Origin::Embedded).collect();
    assert!(embedded.len() >= 10, "{} scenarios", embedded.len());
    for scenario in embedded {
        let (_, conversation) = scenario.log().unwrap();
        let facts = facts(scenario, &conversation, None, &ContextConfig::default(), &StructureSummarizer).unwrap();
        let name = &scenario.name;
        assert!(facts.prompt_tokens <= facts.budget, "{name}: {} of {}", facts.prompt_tokens, facts.budget);
        assert_eq!(facts.included + facts.dropped.values().sum::<usize>(), facts.candidates, "{name}");
        assert_eq!(facts.kept.forbidden, Vec::<String>::new(), "{name}");
        assert_eq!(facts.kept.lost, Vec::<String>::new(), "{name}");
        // Earlier phases read no calls, so they have none to account for.
        if facts.phase == Phase::Answer {
            assert_eq!(facts.kept.calls_accounted, facts.kept.calls, "{name}");
        }
        assert_eq!(facts.firewall.recovered, facts.firewall.contents, "{name}");
        assert!(facts.kept.in_order, "{name}");
    }
}
