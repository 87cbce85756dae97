//! The hot functions of routing: search at four sizes with and without meaning, index building, cards, query analysis.

use std::hint::black_box;
use std::path::Path;
use std::sync::Arc;

use contextweaver::catalog::Catalog;
use contextweaver::eval::collection::Collection;
use contextweaver::eval::growth::{SEED, scaled};
use contextweaver::eval::record::{Grade, Growth, Origin};
use contextweaver::eval::run::grown;
use contextweaver::routing::{ChoiceCard, Index, Router, RoutingConfig, Scratch};
use criterion::{BatchSize, Criterion, criterion_group, criterion_main};

fn workbench() -> Arc<Collection> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("gold/workbench");
    Arc::new(Collection::load(&folder, Origin::Embedded).unwrap())
}

fn mixed(size: usize) -> Arc<Collection> {
    grown(&workbench(), Some(Growth { grade: Grade::Mixed, size })).unwrap()
}

/// A catalog with the statistics of real ones, for sizes at which there are no sentences.
fn invented(base: &Collection, size: usize) -> Arc<Catalog> {
    Arc::new(scaled(base, size, SEED).unwrap())
}

fn lexical() -> RoutingConfig {
    RoutingConfig { semantic: 0.0, ..RoutingConfig::default() }
}

fn search(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("search top 10, all queries of the collection");
    group.sample_size(20);
    let base = workbench();
    group.throughput(criterion::Throughput::Elements(base.queries.len() as u64));
    for size in [100, 1000, 10_000, 100_000] {
        let catalog = invented(&base, size);
        for (name, config) in [("lexical", lexical()), ("default", RoutingConfig::default())] {
            let router = Router::build(Arc::clone(&catalog), config).unwrap();
            let mut scratch = Scratch::default();
            group.bench_function(format!("{size} tools, {name}"), |bencher| {
                bencher.iter(|| {
                    for query in &base.queries {
                        black_box(router.search(black_box(&query.text), 10, &mut scratch));
                    }
                });
            });
        }
    }
}

fn build(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("index build");
    group.sample_size(10);
    let base = workbench();
    for size in [1000, 10_000, 100_000] {
        let catalog = invented(&base, size);
        for (name, config) in [("lexical", lexical()), ("default", RoutingConfig::default())] {
            group.bench_function(format!("{size} tools, {name}"), |bencher| {
                bencher.iter_batched(|| (), |()| Index::build(&catalog, &config), BatchSize::LargeInput);
            });
        }
    }
}

fn analysis(criterion: &mut Criterion) {
    let collection = mixed(1000);
    let index = Index::build(&collection.catalog, &RoutingConfig::default());
    criterion.bench_function("query analysis, all queries of the collection", |bencher| {
        bencher.iter(|| {
            for query in &collection.queries {
                black_box(index.analyze(black_box(&query.text)));
            }
        });
    });
}

fn cards(criterion: &mut Criterion) {
    let collection = mixed(250);
    criterion.bench_function("250 cards", |bencher| {
        bencher.iter(|| {
            for item in collection.catalog.items() {
                let _ = black_box(ChoiceCard::of(black_box(item)));
            }
        });
    });
}

criterion_group!(benches, search, build, analysis, cards);
criterion_main!(benches);
