//! Cells: the units of work of a run, each of which gives one record.
//!
//! A cell says what its record depends on, and is stored under the digest of that: a run that was stopped goes on where it
//! was, and several runs, on several machines, share the work. A stored cell begins with the digest of the rest, so that
//! one which was torn or changed is seen and computed again. How cells come to other machines is not known here. Of the
//! code a cell names no more than the version of what is measured, as records do.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::measured::plans;
use crate::chapter::{AnyChapter, Fresh, Inputs, Plan, Planned, Step};
use crate::chapters::CHAPTERS;
use crate::eval::files::{ReadError, Unread, make_folder, read_file, replace_file};
use crate::eval::record::Outcome;
use crate::eval::workspace::Bench;
use contextweaver_core::text::sha256_hex;

/// What a record depends on.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cell {
    /// The name of the results file: the engine, or the chapter where engines are not compared.
    pub results: String,
    /// See [`crate::results::Record::case`].
    pub case: String,
    /// The version of what is measured.
    pub version: String,
    /// SHA-256 (hex) of the inputs.
    pub inputs_sha256: String,
    /// What else the facts depend on; empty for nothing.
    pub beside: String,
}

impl Cell {
    /// SHA-256 (hex) of the cell: what it is stored under, and what its result is known by.
    #[must_use]
    pub fn key(&self) -> String {
        // Texts, which JSON can always express.
        sha256_hex(serde_json::to_string(self).unwrap_or_default().as_bytes())
    }

    /// The results file and the case, for people.
    #[must_use]
    pub fn label(&self) -> String {
        format!("{} · {}", self.results, self.case)
    }
}

/// What came of a cell: a line of the filter, and the content of a stored cell.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CellResult {
    /// [`Cell::key`].
    pub key: String,
    /// The cell.
    pub cell: Cell,
    /// The facts, or why there are none.
    pub outcome: Outcome<Value>,
}

impl CellResult {
    /// Puts a cell and its outcome together.
    #[must_use]
    pub fn new(cell: Cell, outcome: Outcome<Value>) -> Self {
        Self { key: cell.key(), cell, outcome }
    }
}

/// Everything that can be measured here, as cells.
#[derive(Debug)]
pub struct Work<'b> {
    pub(super) bench: &'b Bench,
    /// The plans of every chapter.
    pub(super) plans: Vec<(&'static str, Vec<Plan>)>,
    /// In the order of the chapters.
    batches: Vec<Batch>,
}

/// The cells of one chapter on one case, which are measured together, since they share what is prepared for them.
#[derive(Debug, Clone)]
pub struct Batch {
    /// The place of the chapter in the list of all.
    chapter: usize,
    /// The plans of its results files, each with this one case.
    plans: Vec<Plan>,
    /// About how long it takes, in milliseconds.
    pub cost_ms: u64,
}

/// One of several equal shares of the work, written `1/4`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share {
    /// From 0.
    number: usize,
    of: usize,
}

impl FromStr for Share {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let numbers = text.split_once('/').and_then(|(number, of)| Some((number.parse().ok()?, of.parse().ok()?)));
        match numbers {
            Some((number, of)) if (1..=of).contains(&number) && of <= MOST_SHARES => {
                Ok(Self { number: number - 1, of })
            }
            _ => Err(format!("`{text}` is not a share; write 1/4 for the first of four, {MOST_SHARES} at most")),
        }
    }
}

/// More shares than there will ever be cells.
const MOST_SHARES: usize = 100_000;

impl<'b> Work<'b> {
    /// Plans all chapters.
    ///
    /// # Errors
    /// Inputs of the checkout that cannot be read.
    pub fn of(bench: &'b Bench) -> Result<Self> {
        Self::of_chapters(&CHAPTERS, bench)
    }

    /// Plans some of the chapters.
    pub(super) fn of_chapters(chapters: &[&'static dyn AnyChapter], bench: &'b Bench) -> Result<Self> {
        let planned: Vec<_> = chapters.iter().map(|chapter| chapter.name()).zip(plans(chapters, bench)?).collect();
        let mut batches: BTreeMap<(usize, &str), Batch> = BTreeMap::new();
        for (name, plans) in &planned {
            let chapter = place(name)?;
            for plan in plans {
                for case in plan.cases.iter().filter(|case| case.absent.is_none()) {
                    let empty = || Batch { chapter, plans: Vec::new(), cost_ms: 0 };
                    let batch = batches.entry((chapter, &case.case)).or_insert_with(empty);
                    batch.cost_ms += CHAPTERS[chapter].cost_ms(bench, plan, case);
                    batch.plans.push(Plan { cases: vec![case.clone()], ..plan.clone() });
                }
            }
        }
        let batches = batches.into_values().collect();
        Ok(Self { bench, plans: planned, batches })
    }

    /// All batches, in the order of the chapters.
    #[must_use]
    pub fn batches(&self) -> Vec<&Batch> {
        self.batches.iter().collect()
    }

    /// The batches of a share: each of the longest first goes to the share that has least to do.
    #[must_use]
    pub fn share(&self, share: Share) -> Vec<&Batch> {
        let mut longest: Vec<&Batch> = self.batches();
        longest.sort_by_key(|batch| std::cmp::Reverse(batch.cost_ms));
        let mut loads = vec![0; share.of];
        let mut own = Vec::new();
        for batch in longest {
            let lightest = (0..share.of).min_by_key(|&number| loads[number]).unwrap_or_default();
            loads[lightest] += batch.cost_ms.max(1);
            if lightest == share.number {
                own.push(batch);
            }
        }
        own
    }

    /// The cells of a batch.
    ///
    /// # Errors
    /// Inputs that cannot be read.
    pub fn cells(&self, batch: &Batch) -> Result<Vec<Cell>> {
        batch.rows().map(|(plan, planned)| self.cell(batch, plan, planned)).collect()
    }

    fn cell(&self, batch: &Batch, plan: &Plan, planned: &Planned) -> Result<Cell> {
        let Inputs { sha256, beside } = CHAPTERS[batch.chapter].inputs(self.bench, planned)?;
        let (results, case) = (plan.name.clone(), planned.case.clone());
        Ok(Cell { results, case, version: plan.version.clone(), inputs_sha256: sha256, beside })
    }

    /// Measures a batch, with what `store` has of it, and stores the rest.
    ///
    /// # Errors
    /// Inputs that cannot be read or that change meanwhile, or a store that cannot be read or written.
    pub(super) fn measure(&self, batch: &Batch, store: Option<&Store>, step: Step<'_>) -> Result<Vec<Fresh>> {
        let chapter = CHAPTERS[batch.chapter];
        let Some(store) = store else { return chapter.measure(self.bench, &batch.plans, step) };
        let (mut fresh, mut wanted, mut cells) = (Vec::new(), Vec::new(), Vec::new());
        for plan in &batch.plans {
            for planned in &plan.cases {
                let cell = self.cell(batch, plan, planned)?;
                match store.read(&cell)? {
                    Some(outcome) => fresh.push(cell.fresh(outcome)),
                    None => {
                        wanted.push(plan.clone());
                        cells.push(cell);
                    }
                }
            }
        }
        if wanted.is_empty() {
            return Ok(fresh);
        }
        for measured in chapter.measure(self.bench, &wanted, step)? {
            let cell = cells.iter().find(|cell| (&cell.results, &cell.case) == (&measured.results, &measured.case));
            let cell = cell.with_context(|| format!("{} · {}: not asked for", measured.results, measured.case))?;
            cell.require(&measured)?;
            store.write(&CellResult::new(cell.clone(), measured.outcome.clone()))?;
            fresh.push(measured);
        }
        Ok(fresh)
    }

    /// Measures one cell, which anybody may have written.
    ///
    /// # Errors
    /// A cell that is not planned here, of another version or of other inputs, or inputs that cannot be read.
    pub fn answer(&self, cell: &Cell) -> Result<CellResult> {
        let mut rows = self.batches.iter().flat_map(|batch| batch.rows().map(move |(plan, row)| (batch, plan, row)));
        let found = rows.find(|(_, plan, row)| (&plan.name, &row.case) == (&cell.results, &cell.case));
        let (batch, plan, planned) =
            found.with_context(|| format!("{}: no such cell can be computed here", cell.label()))?;
        let own = self.cell(batch, plan, planned)?;
        for (what, own, asked) in [
            ("version", &own.version, &cell.version),
            ("inputs", &own.inputs_sha256, &cell.inputs_sha256),
            ("other engines", &own.beside, &cell.beside),
        ] {
            ensure!(own == asked, "{}: {what} mismatch: `{asked}` asked for, `{own}` here", cell.label());
        }
        let plan = Plan { cases: vec![planned.clone()], ..plan.clone() };
        let mut measured = CHAPTERS[batch.chapter].measure(self.bench, &[plan], &|_| ())?;
        let measured = measured.pop().with_context(|| format!("{}: not measured", cell.label()))?;
        cell.require(&measured)?;
        Ok(CellResult::new(own, measured.outcome))
    }
}

impl Cell {
    /// The inputs were read before and again while measuring.
    fn require(&self, measured: &Fresh) -> Result<()> {
        let is_same = measured.inputs_sha256 == self.inputs_sha256;
        ensure!(is_same, "{}: its inputs changed while they were read; run it again", self.label());
        Ok(())
    }

    pub(super) fn fresh(&self, outcome: Outcome<Value>) -> Fresh {
        let Self { results, case, inputs_sha256, .. } = self.clone();
        Fresh { results, case, inputs_sha256, outcome }
    }
}

impl Batch {
    fn rows(&self) -> impl Iterator<Item = (&Plan, &Planned)> {
        self.plans.iter().flat_map(|plan| plan.cases.iter().map(move |planned| (plan, planned)))
    }

    /// How many cells it has.
    #[must_use]
    pub fn len(&self) -> usize {
        self.rows().count()
    }

    /// Whether it has none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The chapter and the case, for people.
    #[must_use]
    pub fn label(&self) -> String {
        let case = self.rows().next().map_or("", |(_, planned)| planned.case.as_str());
        format!("{} of {case}", CHAPTERS[self.chapter].name())
    }

    /// Whether a record of this results file on this case is in it.
    pub(super) fn has(&self, results: &str, case: &str) -> bool {
        self.rows().any(|(plan, planned)| plan.name == results && planned.case == case)
    }
}

fn place(name: &str) -> Result<usize> {
    CHAPTERS.iter().position(|chapter| chapter.name() == name).with_context(|| format!("no chapter `{name}`"))
}

/// A folder of stored cells, one file each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Store {
    folder: PathBuf,
}

/// The most bytes of a stored cell; more were not written by this program.
const MOST_BYTES: u64 = 64 << 20;

impl Store {
    /// The store in `folder`, which is made where it is not there.
    ///
    /// # Errors
    /// The folder cannot be made.
    pub fn create(folder: &Path) -> Result<Self> {
        make_folder(folder)?;
        Ok(Self { folder: folder.to_owned() })
    }

    /// The store in `folder`.
    ///
    /// # Errors
    /// There is no such folder.
    pub fn open(folder: &Path) -> Result<Self> {
        ensure!(
            folder.is_dir(),
            "{}: no folder of cells; `contextweaver bench run --cells` makes one",
            folder.display()
        );
        Ok(Self { folder: folder.to_owned() })
    }

    /// The outcome of a cell; `None` where it is not stored, or not as this program wrote it.
    ///
    /// # Errors
    /// A file that is there and cannot be read.
    pub fn read(&self, cell: &Cell) -> Result<Option<Outcome<Value>>> {
        let path = self.path(&cell.key());
        let bytes = match read_file(&path, MOST_BYTES) {
            Ok(bytes) => bytes,
            Err(ReadError { reason: Unread::System(error), .. }) if error.kind() == ErrorKind::NotFound => {
                return Ok(None);
            }
            // This program writes none so large.
            Err(ReadError { reason: Unread::TooLarge { .. }, .. }) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        Ok(sealed(&bytes).filter(|result| result.cell == *cell).map(|result| result.outcome))
    }

    /// Stores what came of a cell, whole or not at all.
    ///
    /// # Errors
    /// What the file system says.
    pub fn write(&self, result: &CellResult) -> Result<()> {
        let text = serde_json::to_string(result)? + "\n";
        let sealed = format!("{}\n{text}", sha256_hex(text.as_bytes()));
        Ok(replace_file(&self.path(&result.key), sealed.as_bytes())?)
    }

    fn path(&self, key: &str) -> PathBuf {
        self.folder.join(format!("{key}.cell"))
    }
}

/// The result in the bytes of a stored cell; `None` where its first line is not the digest of the rest.
fn sealed(bytes: &[u8]) -> Option<CellResult> {
    let (digest, rest) = bytes.split_at_checked(64)?;
    let rest = rest.strip_prefix(b"\n")?;
    let result: CellResult = serde_json::from_slice(rest).ok()?;
    (sha256_hex(rest).as_bytes() == digest && result.key == result.cell.key()).then_some(result)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(case: &str) -> Cell {
        let [results, version, inputs_sha256] = ["bm25", "0.1.0+ab", "cd"].map(str::to_owned);
        Cell { results, case: case.to_owned(), version, inputs_sha256, beside: String::new() }
    }

    #[test]
    fn everything_that_a_cell_depends_on_is_in_its_key() {
        let one = cell("workbench");
        let others = [
            cell("household"),
            Cell { results: "tfidf".to_owned(), ..one.clone() },
            Cell { version: "0.1.0+ac".to_owned(), ..one.clone() },
            Cell { inputs_sha256: "ce".to_owned(), ..one.clone() },
            Cell { beside: "tokens".to_owned(), ..one.clone() },
        ];
        assert!(others.iter().all(|other| other.key() != one.key()));
    }

    #[test]
    fn a_stored_cell_is_given_back_as_it_was_or_not_at_all() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::create(&folder.path().join("cells")).unwrap();
        let outcome = Outcome::Measured(serde_json::json!({"b": -0.0, "a": [0.1, 1]}));
        store.write(&CellResult::new(cell("a"), outcome)).unwrap();
        let path = store.path(&cell("a").key());
        let whole = std::fs::read(&path).unwrap();
        assert_eq!(
            serde_json::to_string(&store.read(&cell("a")).unwrap().unwrap()).unwrap(),
            "{\"measured\":{\"b\":-0.0,\"a\":[0.1,1]}}"
        );
        assert_eq!(store.read(&cell("b")).unwrap(), None);
        // Cut off anywhere, changed anywhere, or another cell's file.
        for length in 0..whole.len() {
            std::fs::write(&path, &whole[..length]).unwrap();
            assert_eq!(store.read(&cell("a")).unwrap(), None, "{length}");
        }
        for at in 0..whole.len() {
            let mut changed = whole.clone();
            changed[at] ^= 1;
            std::fs::write(&path, changed).unwrap();
            assert_eq!(store.read(&cell("a")).unwrap(), None, "{at}");
        }
        std::fs::write(store.path(&cell("b").key()), &whole).unwrap();
        assert_eq!(store.read(&cell("b")).unwrap(), None);
    }

    #[test]
    fn a_share_is_a_number_of_several() {
        assert_eq!("2/3".parse(), Ok(Share { number: 1, of: 3 }));
        for wrong in ["", "0/3", "4/3", "1", "1/0", "-1/2", "1/2/3", "1/1000000"] {
            assert!(wrong.parse::<Share>().unwrap_err().contains("write 1/4"), "{wrong}");
        }
    }
}
