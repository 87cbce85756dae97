//! What other text search libraries take for the same catalogs and queries, in the same run.
//!
//! `cargo run --release --manifest-path benches/rivals/Cargo.toml -- --out scorecard/timings/rivals.csv [SIZE…]`
//!
//! Every engine gets what suits it best. The texts come with identifiers split into words, as the project's own
//! analysis splits them, since the rivals' tokenizers would leave `createIssue` whole. tantivy has one field without
//! positions and stored values, stop words left out and words stemmed, one segment in memory, and a disjunction of
//! terms collected by score, which it prunes by block-max WAND; its document numbers are the item numbers, so nothing
//! is looked up afterwards. Engines take turns, one pass over all queries each, so that what the machine does besides
//! meets all of them; the first pass of each is not counted.
//!
//! What they find is compared, since a rival that finds something else would be no measure: the share of its ten
//! first that flat BM25 of this project has among its own ten.

use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use contextweaver::catalog::{Catalog, SelectableItem};
use contextweaver::eval::collection::Collection;
use contextweaver::eval::growth::{SEED, scaled};
use contextweaver::eval::record::Origin;
use contextweaver::eval::scaling::RivalRow;
use contextweaver::routing::{Router, RoutingConfig, Scorer, Scratch};
use contextweaver::text::for_each_word;
use tantivy::collector::TopDocs;
use tantivy::directory::RamDirectory;
use tantivy::indexer::SingleSegmentIndexWriter;
use tantivy::query::{BooleanQuery, Occur, Query, TermQuery};
use tantivy::schema::{Field, IndexRecordOption, Schema, TextFieldIndexing, TextOptions};
use tantivy::tokenizer::{
    Language, LowerCaser, RemoveLongFilter, SimpleTokenizer, Stemmer, StopWordFilter, TextAnalyzer, TokenStream,
    TokenizerManager,
};
use tantivy::{Index, Searcher, TantivyDocument, Term};

/// Tools returned by a search.
const TOP: usize = 10;

/// The engine that the others' first tools are compared with.
const CONTROL: &str = "bm25";

/// Beyond this size one pass of the `bm25` crate over the queries takes minutes.
const MOST_FOR_BM25: usize = 10_000;

/// Memory that tantivy may use to build its one segment.
const ARENA: usize = 2_000_000_000;

trait Engine {
    fn name(&self) -> &'static str;
    /// The item numbers of the best ten tools.
    fn top(&mut self, query: &str) -> Vec<u32>;
    /// Bytes of the index; `None` where the library cannot tell.
    fn bytes(&self) -> Option<usize>;
}

struct Own {
    name: &'static str,
    router: Router,
    scratch: Scratch,
}

impl Own {
    fn new(name: &'static str, catalog: &Arc<Catalog>, config: RoutingConfig) -> Result<Self> {
        Ok(Self { name, router: Router::build(Arc::clone(catalog), config)?, scratch: Scratch::default() })
    }
}

impl Engine for Own {
    fn name(&self) -> &'static str {
        self.name
    }

    fn top(&mut self, query: &str) -> Vec<u32> {
        self.router.search(query, TOP, &mut self.scratch).iter().map(|hit| hit.item).collect()
    }

    fn bytes(&self) -> Option<usize> {
        Some(self.router.index().bytes())
    }
}

struct Tantivy {
    searcher: Searcher,
    analyzer: TextAnalyzer,
    field: Field,
}

impl Tantivy {
    fn new(texts: &[String]) -> Result<Self> {
        let stop_words = StopWordFilter::new(Language::English).context("no English stop words")?;
        let analyzer = TextAnalyzer::builder(SimpleTokenizer::default())
            .filter(RemoveLongFilter::limit(40))
            .filter(LowerCaser)
            .filter(stop_words)
            .filter(Stemmer::new(Language::English))
            .build();
        let mut schema = Schema::builder();
        let indexing =
            TextFieldIndexing::default().set_tokenizer("english").set_index_option(IndexRecordOption::WithFreqs);
        let field = schema.add_text_field("text", TextOptions::default().set_indexing_options(indexing));
        let tokenizers = TokenizerManager::new();
        tokenizers.register("english", analyzer.clone());
        let builder = Index::builder().schema(schema.build()).tokenizers(tokenizers);
        let mut writer: SingleSegmentIndexWriter =
            builder.single_segment_index_writer(RamDirectory::create(), ARENA)?;
        for text in texts {
            let mut document = TantivyDocument::default();
            document.add_text(field, text);
            writer.add_document(document)?;
        }
        let searcher = writer.finalize()?.reader()?.searcher();
        if searcher.segment_readers().len() != 1 {
            bail!("tantivy has {} segments, not one", searcher.segment_readers().len());
        }
        Ok(Self { searcher, analyzer, field })
    }
}

impl Engine for Tantivy {
    fn name(&self) -> &'static str {
        "tantivy"
    }

    fn top(&mut self, query: &str) -> Vec<u32> {
        let mut words: Vec<Term> = Vec::new();
        self.analyzer.token_stream(query).process(&mut |token| {
            let term = Term::from_field_text(self.field, &token.text);
            if !words.contains(&term) {
                words.push(term);
            }
        });
        let clause = |term| -> (Occur, Box<dyn Query>) {
            (Occur::Should, Box::new(TermQuery::new(term, IndexRecordOption::WithFreqs)))
        };
        let query = BooleanQuery::new(words.into_iter().map(clause).collect());
        let found = self.searcher.search(&query, &TopDocs::with_limit(TOP).order_by_score()).unwrap_or_default();
        found.into_iter().map(|(_, address)| address.doc_id).collect()
    }

    fn bytes(&self) -> Option<usize> {
        self.searcher.space_usage().ok().map(|usage| usage.total().get_bytes() as usize)
    }
}

struct Bm25 {
    engine: bm25::SearchEngine<u32>,
}

impl Bm25 {
    fn new(texts: &[String]) -> Self {
        let documents: Vec<bm25::Document<u32>> =
            (0..).zip(texts).map(|(item, text)| bm25::Document::new(item, text)).collect();
        Self { engine: bm25::SearchEngineBuilder::with_documents(bm25::Language::English, documents).build() }
    }
}

impl Engine for Bm25 {
    fn name(&self) -> &'static str {
        "bm25 (crate)"
    }

    fn top(&mut self, query: &str) -> Vec<u32> {
        self.engine.search(query, TOP).into_iter().map(|result| result.document.id).collect()
    }

    fn bytes(&self) -> Option<usize> {
        None
    }
}

/// Everything of a tool that is searched, as one text of words.
fn text(item: &SelectableItem) -> String {
    let mut text = String::new();
    let mut add = |part: &str| {
        for_each_word(part, |word| {
            text.push_str(word);
            text.push(' ');
        });
    };
    add(&item.name);
    add(&item.description);
    item.for_each_parameter(|name, description| {
        add(name);
        add(description);
    });
    item.tags.iter().for_each(|tag| add(tag));
    add(item.server.as_deref().unwrap_or_default());
    add(item.server_description.as_deref().unwrap_or_default());
    text
}

fn timed<T>(build: impl FnOnce() -> Result<T>) -> Result<(T, f64)> {
    let start = Instant::now();
    let made = build()?;
    Ok((made, start.elapsed().as_secs_f64() * 1e3))
}

fn quantile(sorted: &[f64], share: f64) -> f64 {
    let place = ((sorted.len() as f64 * share) as usize).min(sorted.len().saturating_sub(1));
    sorted.get(place).copied().unwrap_or(f64::NAN)
}

fn measure(base: &Collection, size: usize, rows: &mut Vec<RivalRow>) -> Result<()> {
    let catalog = Arc::new(scaled(base, size, SEED)?);
    let texts: Vec<String> = catalog.items().iter().map(text).collect();
    let lexical = RoutingConfig { semantic: 0.0, ..RoutingConfig::default() };
    let flat = RoutingConfig { scorer: Scorer::Bm25, k1: 1.2, b: 0.75, ..RoutingConfig::default() };
    let mut engines: Vec<(Box<dyn Engine>, f64)> = Vec::new();
    for (name, config) in [("default", RoutingConfig::default()), ("lexical", lexical), (CONTROL, flat)] {
        let (engine, time) = timed(|| Own::new(name, &catalog, config))?;
        engines.push((Box::new(engine), time));
    }
    let (engine, time) = timed(|| Tantivy::new(&texts))?;
    engines.push((Box::new(engine), time));
    if size <= MOST_FOR_BM25 {
        let (engine, time) = timed(|| Ok(Bm25::new(&texts)))?;
        engines.push((Box::new(engine), time));
    }
    drop(texts);
    let rounds = (2_000_000 / size).clamp(3, 20);
    let mut times = vec![Vec::new(); engines.len()];
    for round in 0..=rounds {
        for (place, (engine, _)) in engines.iter_mut().enumerate() {
            for query in &base.queries {
                let start = Instant::now();
                black_box(engine.top(black_box(&query.text)));
                if round > 0 {
                    times[place].push(start.elapsed().as_secs_f64() * 1e6);
                }
            }
        }
    }
    let found: Vec<Vec<Vec<u32>>> = engines
        .iter_mut()
        .map(|(engine, _)| base.queries.iter().map(|query| engine.top(&query.text)).collect())
        .collect();
    let control = engines.iter().position(|(engine, _)| engine.name() == CONTROL).context("no control")?;
    for (place, (engine, build)) in engines.iter().enumerate() {
        times[place].sort_by(f64::total_cmp);
        let mut row = |measure: &str, value: f64, unit: &str| {
            let value = (value * 1e3).round() / 1e3;
            eprintln!("{size} {} {measure} {value} {unit}", engine.name());
            rows.push(RivalRow {
                engine: engine.name().to_owned(),
                tools: size,
                measure: measure.to_owned(),
                value,
                unit: unit.to_owned(),
            });
        };
        row("search p50", quantile(&times[place], 0.5), "us");
        row("search p95", quantile(&times[place], 0.95), "us");
        row("index build", *build, "ms");
        if let Some(bytes) = engine.bytes() {
            row("index bytes", bytes as f64, "B");
        }
        row("top 10 shared", shared(&found[place], &found[control]), "share");
    }
    Ok(())
}

/// The mean share of what the control found that the other one found too, over the queries for which it found
/// anything.
fn shared(found: &[Vec<u32>], control: &[Vec<u32>]) -> f64 {
    let pairs: Vec<(&Vec<u32>, &Vec<u32>)> = found.iter().zip(control).filter(|(_, own)| !own.is_empty()).collect();
    let share = |(found, own): &(&Vec<u32>, &Vec<u32>)| {
        own.iter().filter(|item| found.contains(item)).count() as f64 / own.len() as f64
    };
    pairs.iter().map(share).sum::<f64>() / pairs.len().max(1) as f64
}

fn main() -> Result<()> {
    let mut out: Option<PathBuf> = None;
    let mut sizes: Vec<usize> = Vec::new();
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--out" => out = Some(arguments.next().context("--out FILE")?.into()),
            size => sizes.push(size.parse().with_context(|| format!("`{size}`: not --out FILE and not a size"))?),
        }
    }
    if sizes.is_empty() {
        sizes = vec![1_000, 10_000, 100_000, 1_000_000];
    }
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../gold/workbench");
    let base = Collection::load(&folder, Origin::Embedded)?;
    let mut rows = Vec::new();
    for size in sizes {
        measure(&base, size, &mut rows)?;
    }
    let mut writer = csv::Writer::from_writer(Vec::new());
    rows.iter().try_for_each(|row| writer.serialize(row))?;
    let bytes = writer.into_inner().map_err(|error| error.into_error())?;
    match out {
        Some(path) => {
            std::fs::write(&path, bytes).with_context(|| path.display().to_string())?;
            // Where it is the table of the scorecard, its list is told of it.
            contextweaver::eval::tables::accept_written(&path).map(|_| ())
        }
        None => Ok(print!("{}", String::from_utf8(bytes)?)),
    }
}
