//! Writers are killed in the middle of their work: nothing is torn, and nothing that they reported is lost.
//!
//! This binary starts itself again as a writer. Two of them work on the same stores at the same time and report every
//! write behind which a store has returned; both are killed, and then everything that was reported must be there.
//! `CONTEXTWEAVER_KILLS` sets how many writers are killed (`scripts/crash-test` kills 200).

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use contextweaver::event::{ContextItem, Episode, Fact, Handle, ItemKind};
use contextweaver::store::{ArtifactStore, EpisodicStore, EventLog, FactStore, FileArtifacts, Session, SqliteStore};

const FOLDER: &str = "CONTEXTWEAVER_CRASH_FOLDER";
const WRITER: &str = "CONTEXTWEAVER_CRASH_WRITER";

/// Bytes that follow from their number: empty, small and large, some of them shared by the two writers.
fn content(number: usize) -> Vec<u8> {
    let size = [0, 1, 100, 5_000, 90_000, 400_000][number % 6];
    (0..size).map(|place| (place * 31 + number * 7 + place / 251) as u8).collect()
}

/// The role of the process that is killed. Without its folder there is nothing to write.
#[test]
#[ignore = "the writer that the crash test starts and kills"]
fn writer() {
    let (Ok(folder), Ok(name)) = (std::env::var(FOLDER), std::env::var(WRITER)) else { return };
    let folder = Path::new(&folder);
    let files = FileArtifacts::open(folder.join("artifacts")).unwrap();
    let database = SqliteStore::open(folder.join("stores.db")).unwrap();
    let mut out = std::io::stdout().lock();
    // A writer that comes after a killed one goes on behind what that one has stored.
    let events = database.events().transcript().unwrap();
    let mine = format!("{name}:");
    let start = events.items().iter().filter(|item| item.id.as_str().starts_with(&mine)).count();
    for number in start.. {
        let parent = number.checked_sub(1).map(|before| format!("{name}:{before}"));
        let mut item = ContextItem::new(format!("{name}:{number}"), ItemKind::AgentMsg, format!("text {number}"));
        item.parent_id = parent.map(Into::into);
        let own = Handle::new(format!("{name}:{number}"));
        let latest = Handle::new(format!("{name}:latest"));
        files.put(&own, &content(number), "application/octet-stream", "").unwrap();
        writeln!(out, "ack file {number}").unwrap();
        files.put(&latest, &content(number), "application/octet-stream", "").unwrap();
        database.artifacts().put(&latest, &content(number), "application/octet-stream", "").unwrap();
        writeln!(out, "ack latest {number}").unwrap();
        database.facts().put(Fact { key: name.clone(), value: number.to_string() }).unwrap();
        database.episodes().put(Episode { id: format!("{name}:{number}"), summary: String::new() }).unwrap();
        database.events().append(item).unwrap();
        writeln!(out, "ack event {number}").unwrap();
        if number % 4 == 0 {
            let session = Session { source: number.to_string(), ..Session::default() };
            session.artifacts.put(&own, &content(number), "", "").unwrap();
            session.save(&folder.join(format!("{name}.json"))).unwrap();
            writeln!(out, "ack session {number}").unwrap();
        }
        out.flush().unwrap();
    }
}

/// The highest number that a writer reported, by what it wrote.
type Reported = BTreeMap<String, usize>;

fn start(folder: &Path, name: &str) -> Child {
    let role = format!("{}::writer", module_path!());
    let role = role.split_once("::").unwrap().1;
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", role, "--ignored", "--nocapture", "--test-threads=1"])
        .env(FOLDER, folder)
        .env(WRITER, name)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// Reads reports until there were `count`, waits a moment more, kills, and reads the rest.
fn kill_after(mut child: Child, count: usize, moment: Duration, reported: &mut Reported) {
    let mut reader = BufReader::new(child.stdout.take().unwrap());
    let mut read = 0;
    let mut line = String::new();
    loop {
        if read == count {
            std::thread::sleep(moment);
            child.kill().unwrap();
        }
        line.clear();
        // A line without its end was not reported.
        if reader.read_line(&mut line).unwrap() == 0 || !line.ends_with('\n') {
            break;
        }
        let mut words = line.split_whitespace().skip_while(|word| *word != "ack").skip(1);
        if let (Some(what), Some(number)) = (words.next(), words.next()) {
            read += 1;
            reported.insert(what.to_owned(), number.parse().unwrap());
        }
    }
    child.wait().unwrap();
    assert!(read >= count, "a writer ended by itself after {read} reports");
}

fn check(folder: &Path, reported: &BTreeMap<&str, Reported>) {
    let files = FileArtifacts::open(folder.join("artifacts")).unwrap();
    let database = SqliteStore::open(folder.join("stores.db")).unwrap();
    // Nothing is torn: everything that is there can be read, and what is half written is gone.
    for reference in files.list().unwrap() {
        files.get(&reference.handle).unwrap();
    }
    for reference in database.artifacts().list().unwrap() {
        database.artifacts().get(&reference.handle).unwrap();
    }
    let events = database.events().transcript().unwrap();
    assert_eq!(std::fs::read_dir(folder.join("artifacts/tmp")).unwrap().count(), 0);
    for (name, reported) in reported {
        // Nothing that was reported is lost, and order is kept.
        let prefix = format!("{name}:");
        let mine: Vec<&str> =
            events.items().iter().map(|item| item.id.as_str()).filter(|id| id.starts_with(&prefix)).collect();
        assert_eq!(mine, (0..mine.len()).map(|number| format!("{prefix}{number}")).collect::<Vec<_>>());
        let last = |what: &str| reported.get(what).copied();
        assert!(mine.len() >= last("event").map_or(0, |number| number + 1), "{name}: an event is lost");
        for number in 0..last("file").map_or(0, |number| number + 1) {
            let found = files.get(&Handle::new(format!("{prefix}{number}"))).unwrap();
            assert!(found[..] == content(number)[..], "{name}: artifact {number} is another");
        }
        if let Some(number) = last("latest") {
            let latest = Handle::new(format!("{prefix}latest"));
            // One more may have been stored than was reported.
            for bytes in [files.get(&latest).unwrap(), database.artifacts().get(&latest).unwrap()] {
                let next = [number, number + 1].map(content);
                assert!(
                    next.iter().any(|content| content[..] == bytes[..]),
                    "{name}: not {number}, but {} bytes",
                    bytes.len()
                );
            }
        }
        if let Some(number) = last("event") {
            let fact: usize = database.facts().get(name).unwrap().unwrap().value.parse().unwrap();
            let episodes = database.episodes().all().unwrap();
            let episodes = episodes.iter().filter(|episode| episode.id.starts_with(&prefix)).count();
            assert!(fact >= number && episodes > number, "{name}: {number}, {fact}, {episodes}");
        }
        if let Some(number) = last("session") {
            let session = Session::load(&folder.join(format!("{name}.json"))).unwrap();
            assert!(session.source.parse::<usize>().unwrap() >= number);
        }
    }
}

#[test]
fn nothing_is_torn_and_nothing_reported_is_lost_when_writers_are_killed() {
    let kills: usize = std::env::var("CONTEXTWEAVER_KILLS").map_or(10, |text| text.parse().unwrap());
    let folder = tempfile::tempdir().unwrap();
    let mut reported = BTreeMap::from([("one", Reported::new()), ("two", Reported::new())]);
    for round in 0..kills.div_ceil(2) {
        // Varied moments: after some reports, and somewhere on the way to the next.
        std::thread::scope(|scope| {
            for (place, (name, reported)) in reported.iter_mut().enumerate() {
                let child = start(folder.path(), name);
                let seed = round * 2 + place;
                let moment = Duration::from_micros((seed * 7_919 % 4_000) as u64);
                scope.spawn(move || kill_after(child, 1 + seed * 5 % 17, moment, reported));
            }
        });
        check(folder.path(), &reported);
    }
    assert!(reported.values().all(|one| one.contains_key("session")), "{reported:?}");
}
