//! Inside a crate of several rooms, a room names only earlier ones. Between crates the compiler holds that.

use std::fs;
use std::path::{Path, PathBuf};

/// The rooms of each such crate, in their order. What lies beside the folders of a crate comes after all of them.
const ROOMS: [(&str, &[&str]); 3] = [
    ("core", &["files", "text", "catalog"]),
    ("context", &["event", "adapters", "store"]),
    (
        "bench",
        &["data", "eval", "public", "report", "results", "comparison", "chapter", "chapters", "scorecard", "own"],
    ),
];

fn sources(path: &Path, found: &mut Vec<PathBuf>) {
    if path.is_dir() {
        fs::read_dir(path).unwrap().for_each(|entry| sources(&entry.unwrap().path(), found));
    } else if path.extension().is_some_and(|ending| ending == "rs") {
        found.push(path.to_owned());
    }
}

#[test]
fn a_room_names_only_earlier_rooms() {
    let (mut broken, mut read) = (Vec::new(), 0);
    for (name, rooms) in ROOMS {
        let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("crates").join(name).join("src");
        for (place, room) in rooms.iter().enumerate() {
            let mut files = Vec::new();
            sources(
                &[src.join(room), src.join(room).with_extension("rs")].into_iter().find(|path| path.exists()).unwrap(),
                &mut files,
            );
            for file in files {
                let text = fs::read_to_string(&file).unwrap();
                let named: Vec<&str> = text.split("crate::").skip(1).collect();
                read += named.len();
                let is_name = |letter: char| letter.is_alphanumeric() || letter == '_';
                let earlier = |rest: &&str| {
                    let after = rooms[..=place].iter().filter_map(|room| rest.strip_prefix(room));
                    after.into_iter().any(|after| !after.starts_with(is_name))
                };
                if !named.iter().all(earlier) || text.contains("super::super::super::") {
                    broken.push(file.strip_prefix(&src).unwrap().display().to_string());
                }
            }
        }
    }
    assert!(read > 20, "the test no longer sees how rooms are named");
    assert!(broken.is_empty(), "these name what comes after them: {}", broken.join(", "));
}
