//! The hot functions of routing: search at three sizes, index building, cards, query analysis.

use std::hint::black_box;
use std::path::Path;
use std::sync::Arc;

use contextweaver::eval::collection::Collection;
use contextweaver::eval::record::{Grade, Growth, Origin};
use contextweaver::eval::run::grown;
use contextweaver::routing::{ChoiceCard, Index, Router, RoutingConfig, Scratch};
use criterion::{BatchSize, Criterion, criterion_group, criterion_main};

fn workbench(size: usize) -> Arc<Collection> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("gold/workbench");
    let base = Arc::new(Collection::load(&folder, Origin::Embedded).unwrap());
    grown(&base, Some(Growth { grade: Grade::Mixed, size })).unwrap()
}

fn search(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("search top 10, all queries of the collection");
    for size in [100, 1000, 10_000] {
        let collection = workbench(size);
        let router = Router::build(Arc::clone(&collection.catalog), RoutingConfig::default()).unwrap();
        let mut scratch = Scratch::default();
        group.throughput(criterion::Throughput::Elements(collection.queries.len() as u64));
        group.bench_function(format!("{size} tools"), |bencher| {
            bencher.iter(|| {
                for query in &collection.queries {
                    black_box(router.search(black_box(&query.text), 10, &mut scratch));
                }
            });
        });
    }
}

fn build(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("index build");
    group.sample_size(10);
    for size in [1000, 10_000] {
        let collection = workbench(size);
        let config = RoutingConfig::default();
        group.bench_function(format!("{size} tools"), |bencher| {
            bencher.iter_batched(|| (), |()| Index::build(&collection.catalog, &config), BatchSize::LargeInput);
        });
    }
}

fn analysis(criterion: &mut Criterion) {
    let collection = workbench(1000);
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
    let collection = workbench(250);
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
