//! Builds the lookup tables of the token vocabularies, which become part of the binary.
//!
//! `vocabularies/<name>.bin` holds the tokens that OpenAI publishes with tiktoken (MIT), in the order of their ranks: a
//! byte with the length of the token, then the token. A test compares each with the reference implementation.

use std::path::Path;

#[path = "src/text/ranks.rs"]
mod ranks;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=src/text/ranks.rs");
    println!("cargo::rerun-if-changed=vocabularies");
    let folder = std::env::var_os("OUT_DIR").expect("Cargo names the folder");
    for name in ["cl100k_base", "o200k_base"] {
        let source = format!("vocabularies/{name}.bin");
        let vocabulary = std::fs::read(&source).unwrap_or_else(|error| panic!("{source}: {error}"));
        let tokens = tokens_of(&vocabulary);
        let table: &'static [u8] = Vec::leak(table_of(&tokens));
        let ranks = ranks::Ranks::new(table);
        for (rank, token) in tokens.iter().enumerate() {
            assert_eq!(ranks.get(token), Some(rank as u32), "{name}: {token:?}");
        }
        let path = Path::new(&folder).join(format!("{name}.ranks"));
        std::fs::write(&path, table).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    }
}

/// The tokens of a file, in the order of their ranks.
fn tokens_of(mut vocabulary: &[u8]) -> Vec<&[u8]> {
    let mut tokens = Vec::new();
    while let Some((&length, rest)) = vocabulary.split_first() {
        let (token, rest) = rest.split_at(length.into());
        tokens.push(token);
        vocabulary = rest;
    }
    tokens
}

/// The table of tokens in the order of their ranks, in the form that `ranks` reads.
fn table_of(tokens: &[&[u8]]) -> Vec<u8> {
    let size = (tokens.len() * 2).next_power_of_two();
    assert!(tokens.len() + 1 < 1 << ranks::RANK_BITS, "the ranks fit into their bits");
    let mut slots = vec![0_u32; size];
    let mut starts = vec![0_u32];
    let mut bytes = Vec::new();
    for (rank, token) in tokens.iter().enumerate() {
        let hash = ranks::hash(token);
        let mut at = hash as usize & (size - 1);
        while slots[at] != 0 {
            at = (at + 1) & (size - 1);
        }
        slots[at] = ranks::mark(hash) << ranks::RANK_BITS | (rank as u32 + 1);
        bytes.extend_from_slice(token);
        starts.push(bytes.len() as u32);
    }
    // The reader only sees whole words.
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    let header = [tokens.len() as u32, size as u32];
    let words = header.iter().chain(&slots).chain(&starts);
    words.flat_map(|word| word.to_le_bytes()).chain(bytes).collect()
}
