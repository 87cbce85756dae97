//! Inside a crate of several rooms, a room names only earlier ones and those of its row. Between crates the compiler holds
//! that. Tests name what they need.

use std::fs;
use std::path::{Path, PathBuf};

/// The rooms of each such crate, in the rows of its table in `docs/architecture.md`. What lies beside them in a crate comes
/// after all of them.
const ROOMS: [(&str, &[&[&str]]); 3] = [
    ("core", &[&["files", "json", "names", "sync"], &["text"], &["catalog"]]),
    (
        "context",
        &[
            &["event", "literal"],
            &["adapters"],
            &["store"],
            &["brief", "clean", "split", "xml", "config", "stats"],
            &["summary", "view"],
            &["firewall"],
            &["compile"],
            &["handoff", "memory", "hooks"],
            &["intake", "prompt", "manager"],
        ],
    ),
    (
        "bench",
        &[
            &["data"],
            &["eval"],
            &["public"],
            &["report"],
            &["results"],
            &["comparison"],
            &["chapter"],
            &["chapters"],
            &["scorecard"],
            &["own"],
        ],
    ),
];

fn sources(path: &Path, found: &mut Vec<PathBuf>) {
    if path.is_dir() {
        fs::read_dir(path).unwrap().for_each(|entry| sources(&entry.unwrap().path(), found));
    } else if path.extension().is_some_and(|ending| ending == "rs") && !path.ends_with("tests.rs") {
        found.push(path.to_owned());
    }
}

/// What the code of a file names at the root of its crate: what stands behind `crate::`, and behind as many `super::` as
/// the file, which is below the root, lies deep.
fn named_at_root<'t>(file: &Path, text: &'t str) -> Vec<&'t str> {
    let code = text.split("\nmod tests").next().unwrap();
    let depth = file.components().count() - usize::from(file.ends_with("mod.rs"));
    let behind = |root: &str| code.match_indices(root).map(|(at, _)| &code[at + root.len()..]).collect::<Vec<_>>();
    let is_name = |letter: char| letter.is_alphanumeric() || letter == '_';
    let up = "super::".repeat(depth);
    let named = ["crate::", &up].into_iter().flat_map(behind);
    named.map(|rest| rest.split(|letter| !is_name(letter)).next().unwrap()).collect()
}

#[test]
fn a_room_names_only_earlier_rooms() {
    let (mut broken, mut read) = (Vec::new(), 0);
    for (name, rows) in ROOMS {
        let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("crates").join(name).join("src");
        for (place, row) in rows.iter().enumerate() {
            let mut files = Vec::new();
            for room in *row {
                let before = files.len();
                let places = [src.join(room), src.join(room).with_extension("rs")];
                places.iter().filter(|path| path.exists()).for_each(|path| sources(path, &mut files));
                assert!(files.len() > before, "the room `{room}` of `{name}` is nowhere");
            }
            for file in files {
                let text = fs::read_to_string(&file).unwrap();
                let file = file.strip_prefix(&src).unwrap();
                let named = named_at_root(file, &text);
                read += named.len();
                let later = named.into_iter().filter(|named| !rows[..=place].iter().any(|row| row.contains(named)));
                broken.extend(later.map(|later| format!("{name}/{}: `{later}`", file.display())));
            }
        }
    }
    assert!(read > 20, "the test no longer sees how rooms are named");
    assert!(broken.is_empty(), "these name what comes after them: {}", broken.join(", "));
}
