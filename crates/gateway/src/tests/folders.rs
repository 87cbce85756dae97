//! The structure of this crate: folders use only those before them, and no files import each other in a circle.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// The folders, each of which uses only itself and those before it.
const FOLDERS: [&str; 14] = [
    "protocol",
    "common",
    "surface",
    "session",
    "guard",
    "telemetry",
    "upstream",
    "results",
    "config",
    "catalog",
    "tools",
    "server",
    "transport",
    "operations",
];

/// The modules that each file names in its production code, both as `folder::…::file`.
fn imports() -> BTreeMap<String, BTreeSet<String>> {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    FOLDERS.iter().for_each(|folder| sources(&src.join(folder), &mut files));
    let module = |file: &PathBuf| {
        let path = file.strip_prefix(&src).unwrap().with_extension("");
        let parts: Vec<&str> = path.iter().map(|part| part.to_str().unwrap()).collect();
        parts.strip_suffix(&["mod"]).unwrap_or(&parts).join("::")
    };
    let modules: BTreeSet<String> = files.iter().map(module).collect();
    let mut imports = BTreeMap::new();
    for file in &files {
        let own = module(file);
        let text = fs::read_to_string(file).unwrap();
        let production = production(&text);
        // A link in a comment is not an import.
        let code: Vec<&str> = production.lines().filter(|line| !line.trim_start().starts_with("//")).collect();
        let production = code.join("\n");
        let is_folder = file.ends_with("mod.rs");
        let parent = if is_folder { own.as_str() } else { own.rsplit_once("::").unwrap().0 };
        let mut named = BTreeSet::new();
        for (start, folder) in [("crate::", ""), ("super::", parent), ("self::", own.as_str())] {
            for rest in production.split(start).skip(1) {
                let path: String = rest.chars().take_while(|c| c.is_alphanumeric() || matches!(c, '_' | ':')).collect();
                let path = if folder.is_empty() { path } else { format!("{folder}::{path}") };
                let mut prefix = path.as_str();
                while !modules.contains(prefix) {
                    let Some((shorter, _)) = prefix.rsplit_once("::") else { break };
                    prefix = shorter;
                }
                named.insert(prefix.to_owned());
            }
        }
        named.remove(&own);
        imports.insert(own, named);
    }
    imports
}

/// The code of a file before its tests, which stand at its end. Single items for tests may stand before them.
fn production(text: &str) -> &str {
    let is_module = |(at, _): &(usize, &str)| {
        text[*at..].lines().find(|line| !line.starts_with("#[")).is_some_and(|line| line.starts_with("mod "))
    };
    text.match_indices("#[cfg(test)]").find(is_module).map_or(text, |(at, _)| &text[..at])
}

fn sources(path: &Path, found: &mut Vec<PathBuf>) {
    if path.is_dir() {
        fs::read_dir(path).unwrap().for_each(|entry| sources(&entry.unwrap().path(), found));
    } else if path.extension().is_some_and(|ending| ending == "rs") && !path.ends_with("tests.rs") {
        found.push(path.to_owned());
    }
}

#[test]
fn folders_use_only_those_before_them() {
    let place = |module: &str| FOLDERS.iter().position(|folder| module.split("::").next() == Some(folder));
    let imports = imports();
    assert!(imports.values().map(BTreeSet::len).sum::<usize>() > 300, "the test no longer sees imports");
    for (file, named) in &imports {
        for other in named {
            let Some(theirs) = place(other) else { panic!("{file} names `{other}`, which no folder has") };
            assert!(place(file) >= Some(theirs), "{file} names {other}");
        }
    }
}

#[test]
fn no_files_import_each_other_in_a_circle() {
    let mut left = imports();
    // What imports nothing that is left is in no circle.
    while let Some(free) =
        left.iter().find(|(_, named)| !named.iter().any(|other| left.contains_key(other))).map(|(file, _)| file.clone())
    {
        left.remove(&free);
    }
    assert!(left.is_empty(), "in circles, or above one: {left:#?}");
}
