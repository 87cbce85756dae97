//! Catalogs that real servers publish, where they lie beside the checkout.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use contextweaver::catalog::{LoadOptions, format_primitive_id, load, parse_primitive_id};
use contextweaver::routing::semantic::model::{Model, VectorCache, place};
use contextweaver::routing::{CARD_CAP, CardDeck, Navigation, Path, Router, RoutingConfig};
use contextweaver::text::Estimator;

use crate::support::checkout;

fn real_catalogs() -> Option<PathBuf> {
    let folder = checkout().join("../shared/data/catalogs");
    if !folder.is_dir() {
        println!("skipped: no real catalogs beside the checkout");
        return None;
    }
    Some(folder)
}

#[test]
fn all_servers_load_with_unique_ids_and_bounded_cards() {
    let Some(folder) = real_catalogs() else { return };
    let loaded = load(&[folder], LoadOptions::default()).unwrap();
    assert!(loaded.left_out.is_empty());
    let catalog = Arc::new(loaded.catalog);
    let tools = catalog.items().iter().filter(|item| item.kind.name() == "tool").count();
    assert_eq!((catalog.namespaces().len(), tools), (70, 1924));
    let ids: BTreeSet<&str> = catalog.items().iter().map(|item| item.id.as_str()).collect();
    assert_eq!(ids.len(), catalog.len());
    let deck = CardDeck::new(Arc::clone(&catalog));
    for (number, item) in catalog.items().iter().enumerate() {
        if !item.id.contains('~') {
            assert_eq!(format_primitive_id(&parse_primitive_id(&item.id).unwrap()), item.id);
        }
        let card = deck.card(number as u32).unwrap();
        let tokens = Estimator::Cl100kBase.count(&card.line(1, 1));
        assert!(tokens <= CARD_CAP, "{}: {tokens} tokens", item.id);
        assert_eq!(card.tokens(), tokens);
    }
}

#[test]
fn every_real_tool_is_found_by_its_name_and_reached_by_browsing() {
    let Some(folder) = real_catalogs() else { return };
    let catalog = Arc::new(load(&[folder], LoadOptions::default()).unwrap().catalog);
    let config = RoutingConfig { navigation: Navigation::Flat, ..RoutingConfig::default() };
    let router = Router::build(Arc::clone(&catalog), config).unwrap();
    let mut scratch = Default::default();
    for (number, item) in catalog.items().iter().enumerate() {
        let hits = router.search(&format!("{} {}", item.namespace, item.name), 200, &mut scratch);
        assert!(hits.iter().any(|hit| hit.item as usize == number), "{}", item.id);
    }
    let mut reached = BTreeSet::new();
    let mut open: Vec<String> = vec!["/".to_owned()];
    while let Some(path) = open.pop() {
        for card in router.browse(&path.parse::<Path>().unwrap()).unwrap() {
            match card.kind().name() {
                "internal" => open.push(card.id().to_owned()),
                _ => assert!(reached.insert(card.id().to_owned()), "{} is listed twice", card.id()),
            }
        }
    }
    assert_eq!(reached.len(), catalog.len());
}

#[test]
fn a_ticket_is_opened_by_a_tracker_among_eight_servers() {
    const SERVERS: [&str; 8] = [
        "mcp-atlassian",
        "modelcontextprotocol__server-github",
        "modelcontextprotocol__server-slack",
        "notionhq__notion-mcp-server",
        "office-powerpoint-mcp-server",
        "playwright__mcp",
        "winor30__mcp-server-datadog",
        "kubernetes-mcp-server",
    ];
    let Some(folder) = real_catalogs() else { return };
    let paths = SERVERS.map(|server| folder.join(format!("{server}.json")));
    let catalog = Arc::new(load(&paths, LoadOptions::default()).unwrap().catalog);
    let request = "open a ticket about the login bug";
    let first = |router: &Router| -> Vec<String> {
        let hits = router.search(request, 5, &mut Default::default());
        hits.iter().map(|hit| catalog.items()[hit.item as usize].name.clone()).collect()
    };
    let is_right = |name: &String| ["jira_create_issue", "create_issue"].contains(&name.as_str());
    let router = Router::build(Arc::clone(&catalog), RoutingConfig::default()).unwrap();
    assert!(first(&router).iter().any(is_right), "{:?}", first(&router));
    let Ok(encoder) = place::encoder() else {
        println!("skipped with the encoder: this program was built without one");
        return;
    };
    let model = Model::build(encoder, &catalog, &mut VectorCache::default());
    let found = first(&router.with_model(model));
    assert!(is_right(&found[0]), "{found:?}");
}
