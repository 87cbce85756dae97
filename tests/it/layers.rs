//! A room names only rooms above it.

use std::fs;
use std::path::{Path, PathBuf};

const ROOMS: [&str; 11] =
    ["text", "catalog", "event", "adapters", "store", "routing", "context", "gateway", "eval", "report", "cli"];

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            found.push(path);
        }
    }
}

#[test]
fn a_room_names_only_earlier_rooms() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut broken = Vec::new();
    let mut read = 0;
    for (place, room) in ROOMS.iter().enumerate() {
        let mut files = Vec::new();
        sources(&src.join(room), &mut files);
        assert!(!files.is_empty(), "the room `{room}` is empty");
        for file in files {
            let text = fs::read_to_string(&file).unwrap();
            read += text.matches("crate::").count();
            for later in &ROOMS[place + 1..] {
                let grouped = text.contains("crate::{") || text.contains("super::super::super::");
                if grouped || text.contains(&format!("crate::{later}")) {
                    broken.push(format!("{} names {later}", file.strip_prefix(&src).unwrap().display()));
                }
            }
        }
    }
    assert!(read > 20, "the test no longer sees how rooms are named");
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

#[test]
fn every_folder_of_src_is_a_room_of_this_test() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let folders = fs::read_dir(src).unwrap().map(|entry| entry.unwrap()).filter(|entry| entry.path().is_dir());
    let mut names: Vec<String> = folders.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    let mut rooms = ROOMS.map(str::to_owned).to_vec();
    rooms.sort();
    assert_eq!(names, rooms);
}
