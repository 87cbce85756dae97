//! Catalogs that real servers publish, where they lie beside the checkout.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use contextweaver::catalog::{LoadOptions, format_primitive_id, load, parse_primitive_id};
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
