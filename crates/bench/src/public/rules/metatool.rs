//! MetaTool: plugins that merged tools stand for, and requests for one of them or for two.
//!
//! The catalog of both collections holds the merged tools, and those plugins that a request of either file needs by
//! their own name.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use serde_json::{Map, Value};

use super::super::upstream::{RuleError, Upstream, refuse};
use super::super::written::{Asked, Draft};
use super::{object_schema, tool};

const MERGED: &str = "metatool/dataset/big_tool_des.json";
const PLUGINS: &str = "metatool/dataset/plugin_des.json";
const SINGLE: &str = "metatool/dataset/data/all_clean_data.csv";
const MULTI: &str = "metatool/dataset/data/multi_tool_query_golden.json";

/// How many of the requests for one tool are taken: those with the smallest SHA-1 of their id.
const SINGLE_TAKEN: usize = 3_000;

#[derive(Deserialize)]
struct Single {
    #[serde(rename = "Query")]
    query: String,
    #[serde(rename = "Tool")]
    tool: String,
}

#[derive(Deserialize)]
struct Multi {
    query: String,
    tool: Vec<String>,
}

pub(super) fn build_multi(upstream: &Upstream) -> Result<Draft, RuleError> {
    let Dataset { tools, multi, .. } = read(upstream)?;
    let queries = multi.into_iter().zip(0..);
    let queries = queries.map(|(asked, number)| Asked::new(format!("metatoolm-{number:04}"), &asked.query, asked.tool));
    Ok(Draft { tools, queries: queries.collect(), ..Draft::default() })
}

pub(super) fn build_single(upstream: &Upstream) -> Result<Draft, RuleError> {
    let Dataset { tools, single, .. } = read(upstream)?;
    let mut rows: Vec<([u32; 5], usize, Asked)> = single
        .into_iter()
        .zip(0..)
        .map(|(asked, number)| {
            let id = format!("metatool-{number:05}");
            (sha1(id.as_bytes()), number, Asked::new(id, &asked.query, [asked.tool]))
        })
        .collect();
    rows.sort_unstable_by_key(|(digest, ..)| *digest);
    rows.truncate(SINGLE_TAKEN);
    rows.sort_unstable_by_key(|(_, number, _)| *number);
    Ok(Draft { tools, queries: rows.into_iter().map(|(.., asked)| asked).collect(), ..Draft::default() })
}

/// What both collections are made of.
struct Dataset {
    tools: Vec<Map<String, Value>>,
    single: Vec<Single>,
    multi: Vec<Multi>,
}

fn read(upstream: &Upstream) -> Result<Dataset, RuleError> {
    let merged: Map<String, Value> = upstream.json(MERGED)?;
    let plugins: BTreeMap<String, String> = upstream.json(PLUGINS)?;
    let multi: Vec<Multi> = upstream.json(MULTI)?;
    let single: Result<Vec<Single>, csv::Error> =
        csv::Reader::from_reader(upstream.bytes(SINGLE)?).deserialize().collect();
    let single = single.map_err(|error| refuse(SINGLE, &error))?;
    let needed: BTreeSet<&String> =
        single.iter().map(|asked| &asked.tool).chain(multi.iter().flat_map(|asked| &asked.tool)).collect();
    let schema = || object_schema(Map::new(), &[]);
    let mut tools = Vec::new();
    for (name, description) in &merged {
        let description = description.as_str().ok_or_else(|| refuse(MERGED, &format!("`{name}` is not a text")))?;
        tools.push(tool(name, description, schema()));
    }
    let alone = plugins.iter().filter(|(name, _)| needed.contains(name) && !merged.contains_key(*name));
    tools.extend(alone.map(|(name, description)| tool(name, description, schema())));
    Ok(Dataset { tools, single, multi })
}

/// SHA-1 (FIPS 180-4) as five words: it only has to give everybody the same sample.
fn sha1(message: &[u8]) -> [u32; 5] {
    let mut padded = message.to_vec();
    padded.push(0x80);
    padded.resize((padded.len() + 8).next_multiple_of(64) - 8, 0);
    padded.extend((message.len() as u64 * 8).to_be_bytes());
    let mut state: [u32; 5] = [0x6745_2301, 0xEFCD_AB89, 0x98BA_DCFE, 0x1032_5476, 0xC3D2_E1F0];
    for block in padded.chunks_exact(64) {
        let mut words = [0; 80];
        for (word, bytes) in words.iter_mut().zip(block.chunks_exact(4)) {
            *word = bytes.iter().fold(0, |word: u32, byte| word << 8 | u32::from(*byte));
        }
        for at in 16..80 {
            words[at] = (words[at - 3] ^ words[at - 8] ^ words[at - 14] ^ words[at - 16]).rotate_left(1);
        }
        let [mut a, mut b, mut c, mut d, mut e] = state;
        for (at, word) in words.into_iter().enumerate() {
            let (mixed, constant) = match at / 20 {
                0 => (b & c | !b & d, 0x5A82_7999),
                1 => (b ^ c ^ d, 0x6ED9_EBA1),
                2 => (b & c | b & d | c & d, 0x8F1B_BCDC),
                _ => (b ^ c ^ d, 0xCA62_C1D6_u32),
            };
            let next = [mixed, e, constant, word].into_iter().fold(a.rotate_left(5), u32::wrapping_add);
            (a, b, c, d, e) = (next, a, b.rotate_left(30), c, d);
        }
        for (whole, part) in state.iter_mut().zip([a, b, c, d, e]) {
            *whole = whole.wrapping_add(part);
        }
    }
    state
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn sha1_is_that_of_the_standard() {
        // The examples that NIST gives with FIPS 180-4.
        assert_eq!(sha1(b"abc"), [0xA999_3E36, 0x4706_816A, 0xBA3E_2571, 0x7850_C26C, 0x9CD0_D89D]);
        let long = b"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";
        assert_eq!(sha1(long), [0x8498_3E44, 0x1C3B_D26E, 0xBAAE_4AA1, 0xF951_29E5, 0xE546_70F1]);
    }

    #[test]
    fn merged_tools_come_first_and_only_needed_plugins_follow() {
        let mut upstream = Upstream::default();
        let files = [
            (MERGED, json!({"NewsTool": "News.", "BookTool": "Books."}).to_string()),
            (PLUGINS, json!({"zoo": "Zoo.", "art": "Art.", "idle": "Idle."}).to_string()),
            (SINGLE, "Query,Tool\n\"A zoo, please \",zoo\nRead,BookTool\nRead,BookTool\n".to_owned()),
            (MULTI, json!([{"query": "News of art", "tool": ["NewsTool", "art"]}]).to_string()),
        ];
        for (file, text) in files {
            let (source, path) = file.split_once('/').unwrap();
            upstream.insert(source, path, text.into_bytes());
        }
        let multi = build_multi(&upstream).unwrap().files().unwrap();
        let single = build_single(&upstream).unwrap().files().unwrap();
        assert_eq!(multi.catalog, single.catalog);
        insta::assert_snapshot!(format!("{}{}{}", multi.catalog, multi.queries, single.queries), @r#"
        [
        {"name": "NewsTool", "description": "News.", "inputSchema": {"type": "object", "properties": {}}},
        {"name": "BookTool", "description": "Books.", "inputSchema": {"type": "object", "properties": {}}},
        {"name": "art", "description": "Art.", "inputSchema": {"type": "object", "properties": {}}},
        {"name": "zoo", "description": "Zoo.", "inputSchema": {"type": "object", "properties": {}}}
        ]
        {"id": "metatoolm-0000", "query": "News of art", "relevant": ["NewsTool", "art"]}
        {"id": "metatool-00000", "query": "A zoo, please", "relevant": ["zoo"]}
        {"id": "metatool-00001", "query": "Read", "relevant": ["BookTool"]}
        "#);
    }
}
