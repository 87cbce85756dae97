//! Inputs that nobody meant: seeds of every kind of foreign input are mutated and given to what reads them.
//!
//! Each parser is a target, and so is a whole conversation: the lines of a client, with what the upstream answers. What
//! has a checksum gets a right one after it was changed, and what is signed a right signature, so that what lies behind
//! is reached. Every run of the tests tries inputs for a moment; `scripts/fuzz-test SECONDS` does it for as long as one
//! likes, with other seeds each time, and reports inputs tried, panics, the longest input and the highest memory of the
//! process. The inputs follow from the number that the report names, target by target.

mod targets;

use std::cell::Cell;
use std::fmt::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use self::targets::{Conversing, indexed, kept_session, targets, with_checksum, with_hashes};
use contextweaver_context::store::Session;
use contextweaver_routing::{RoutingConfig, load as load_router};

/// The longest that one input may take, on a machine that does other things as well.
const LONGEST: Duration = Duration::from_secs(10);

/// Bytes of an input, at most.
const MOST_BYTES: usize = 64 * 1024;

/// Numbers that look random, from a number.
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// A number below `most`, which is not 0.
    fn below(&mut self, most: usize) -> usize {
        usize::try_from(self.next() % most as u64).unwrap_or(0)
    }

    fn one_of<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.below(all.len())]
    }
}

/// What parsers trip over.
const PIECES: [&[u8]; 40] = [
    b"{",
    b"}",
    b"[",
    b"]",
    b"\"",
    b"\\",
    b",",
    b":",
    b"null",
    b"true",
    b"-0",
    b"1e999",
    b"9223372036854775808",
    b"0.1",
    b"\\ud800",
    b"\\u0000",
    b"\n",
    b"\r\n",
    b"\n\n",
    b"\0",
    b"\xc0\xae",
    b"\xff",
    "\u{feff}".as_bytes(),
    "\u{202e}".as_bytes(),
    b"${env:",
    b"}",
    b"&a",
    b"*a",
    b"<<: ",
    b"- ",
    b"$ref",
    b"$..",
    b"[*]",
    b"/",
    b"..",
    b"%25",
    b"(a|a)*b",
    b"data: ",
    b"[[",
    b"!!",
];

/// Changes an input in a few places.
fn mutated(dice: &mut Dice, seeds: &[Vec<u8>]) -> Vec<u8> {
    let mut input = dice.one_of(seeds).clone();
    for _ in 0..1 + dice.below(6) {
        let at = dice.below(input.len() + 1);
        let end = (at + dice.below(64)).min(input.len());
        match dice.below(9) {
            0 => drop(input.splice(at..end, [])),
            1 => {
                let piece = input[at..end].to_vec();
                drop(input.splice(at..at, piece.repeat(1 + dice.below(40))));
            }
            2 if at < input.len() => input[at] ^= 1 << dice.below(8),
            3 => input.truncate(at),
            4 => {
                let other = dice.one_of(seeds);
                let from = dice.below(other.len() + 1);
                let piece = other[from..(from + dice.below(200)).min(other.len())].to_vec();
                drop(input.splice(at..end, piece));
            }
            5 => {
                let depth = 1 + dice.below(300);
                let piece = dice.one_of(&[&b"["[..], b"{\"a\":", b"- ", b"(", b"&x [", b"..a"]).repeat(depth);
                drop(input.splice(at..at, piece));
            }
            6 => {
                let digits = dice.next().to_string().into_bytes();
                drop(input.splice(at..end.min(at + 3), digits));
            }
            _ => {
                let piece = dice.one_of(&PIECES).to_vec();
                drop(input.splice(at..at, piece));
            }
        }
        input.truncate(MOST_BYTES);
    }
    input
}

/// What came of the inputs of a target.
#[derive(Default)]
struct Tally {
    tried: u64,
    panics: u64,
    longest: Duration,
}

/// The most memory that the process had, in bytes, as far as the system says it.
fn highest_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok()).unwrap_or(0) * 1024
}

/// Panics of the process, on whatever thread: tasks of a conversation take theirs with them.
static PANICS: AtomicU64 = AtomicU64::new(0);

thread_local! {
    /// The number that the inputs follow from.
    static FIRST: Cell<u64> = const { Cell::new(0x9E37_79B9_7F4A_7C15) };
}

#[test]
fn no_input_panics_hangs_or_grows() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let asked = number("FUZZ_SECONDS");
    if asked.is_some() {
        // No other test runs then.
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            PANICS.fetch_add(1, Ordering::Relaxed);
            before(panic);
        }));
    }
    if let Some(first) = number("FUZZ_FIRST").filter(|first| *first != 0) {
        FIRST.set(first);
    }
    let (conversing, guarded, indexed) = (Conversing::open(), Conversing::guarded(), indexed());
    // What is mended is taken: changes are not lost behind a checksum.
    let mended = with_checksum(&indexed.1).unwrap();
    assert!(load_router(mended, Arc::clone(&indexed.0), RoutingConfig::default()).is_ok());
    let kept = with_hashes(kept_session().replace("one", "two").as_bytes()).unwrap();
    Session::parse(&kept, Path::new("s")).unwrap();
    let targets = targets((&conversing, &guarded), &indexed);
    let each = asked.map_or(Duration::from_millis(150), Duration::from_secs) / u32::try_from(targets.len()).unwrap();
    let mut report = format!("inputs follow from FUZZ_FIRST={}\n\n", FIRST.get());
    report += "| input | tried | panics | longest |\n|---|---|---|---|\n";
    let (mut all, mut failed) = (Tally::default(), Vec::new());
    for target in &targets {
        // The seeds themselves are read first: what is wrong with them is wrong with the test.
        target.seeds.iter().for_each(|seed| (target.read)(seed));
        let (mut dice, mut tally, end) = (Dice(FIRST.get()), Tally::default(), Instant::now() + each);
        while Instant::now() < end {
            let input = mutated(&mut dice, &target.seeds);
            let (start, panics) = (Instant::now(), PANICS.load(Ordering::Relaxed));
            let outcome = catch_unwind(AssertUnwindSafe(|| (target.read)(&input)));
            let took = start.elapsed();
            tally.tried += 1;
            tally.longest = tally.longest.max(took);
            let panicked = outcome.is_err() || PANICS.load(Ordering::Relaxed) > panics;
            if panicked || took > LONGEST {
                tally.panics += u64::from(panicked);
                failed.push(format!("{}: {:.1000}", target.name, input.escape_ascii().to_string()));
            }
        }
        let Tally { tried, panics, longest } = tally;
        let _ = writeln!(report, "| {} | {tried} | {panics} | {} ms |", target.name, longest.as_millis());
        all = Tally { tried: all.tried + tried, panics: all.panics + panics, longest: all.longest.max(longest) };
    }
    let _ = writeln!(report, "| all | {} | {} | {} ms |", all.tried, all.panics, all.longest.as_millis());
    let _ = writeln!(report, "\nhighest memory: {} MB", highest_memory() >> 20);
    println!("{report}");
    assert!(failed.is_empty(), "{failed:#?}");
    assert!(asked.is_none() || highest_memory() < 1 << 30, "too much memory");
}
