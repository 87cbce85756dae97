//! The firewall as a whole, with a summariser that keeps its cap and shows which content it was given.

use proptest::prelude::{any, prop, prop_assert, prop_assert_eq, prop_oneof, proptest};
use proptest::strategy::Strategy as Generator;
use serde_json::json;

use super::*;
use crate::event::{ItemKind, Part, PartBody, ResultEnvelope, Sensitivity, Status, Strategy, ToolOutput};
use crate::store::MemoryArtifacts;

/// As many of the first words as fit.
struct FirstWords;

impl Summarizer for FirstWords {
    fn summarize(&self, content: &str, _: &str, cap: usize, estimator: Estimator) -> String {
        let mut text = String::new();
        for word in content.split_whitespace().take(cap) {
            let longer = format!("{text}{}{word}", if text.is_empty() { "" } else { " " });
            if estimator.count(&longer) > cap {
                break;
            }
            text = longer;
        }
        text
    }
}

/// A firewall over stores in memory, and a conversation.
#[derive(Default)]
struct Bench {
    config: FirewallConfig,
    artifacts: MemoryArtifacts,
    seen: Seen,
}

impl Bench {
    fn with(config: FirewallConfig) -> Self {
        Self { config, ..Self::default() }
    }

    fn firewall(&self) -> Firewall<'_> {
        Firewall::new(&self.config, Estimator::Cl100kBase, &FirstWords, &self.artifacts)
    }

    fn screen(&mut self, result: &ContextItem) -> Screened {
        let firewall = Firewall::new(&self.config, Estimator::Cl100kBase, &FirstWords, &self.artifacts);
        firewall.screen(None, result, &mut self.seen).unwrap()
    }

    fn ingest(&mut self, call: &ContextItem, output: &ToolOutput) -> (ContextItem, ResultEnvelope) {
        let firewall = Firewall::new(&self.config, Estimator::Cl100kBase, &FirstWords, &self.artifacts);
        firewall.ingest(call, output, &mut self.seen).unwrap()
    }

    /// A result of a call of `tool` as it is shown and recorded.
    fn shown(&mut self, tool: &str, output: &ToolOutput) -> String {
        let (item, envelope) = self.ingest(&call(tool, tool, "{}"), output);
        let artifacts: Vec<String> = envelope
            .artifacts
            .iter()
            .map(|artifact| format!("{} {} {}", artifact.handle, artifact.media_type, artifact.size_bytes))
            .collect();
        format!(
            "{}\n-- {:?} {:?}, {} -- facts {:?} -- {}",
            item.text,
            envelope.status,
            envelope.firewall.unwrap().strategy,
            artifacts.join(", "),
            envelope.facts,
            Value::Object(envelope.provenance),
        )
    }
}

fn call(id: &str, tool: &str, arguments: &str) -> ContextItem {
    let mut call = ContextItem::new(id, ItemKind::ToolCall, arguments);
    call.metadata.insert("function_name".to_owned(), tool.into());
    call
}

fn result(id: &str, text: impl Into<String>) -> ContextItem {
    ContextItem::new(id, ItemKind::ToolResult, text)
}

fn text(text: &str) -> Part {
    Part::new(PartBody::Text(text.to_owned()))
}

fn log(lines: usize) -> String {
    (0..lines).map(|number| format!("2024-05-01 request {number} answered in {} ms\n", number * 7 % 13)).collect()
}

#[test]
fn small_results_are_shown_as_they_are_and_further_parts_are_named() {
    let image = |annotations: Value| Part {
        annotations: annotations.as_object().cloned().unwrap_or_default(),
        ..Part::new(PartBody::Image { bytes: vec![1, 2, 3], media_type: "image/png".to_owned() })
    };
    let outputs = [
        ("nothing", ToolOutput::default()),
        ("status", ToolOutput::text("On branch main\nstate: clean")),
        ("failing", ToolOutput { is_error: true, ..ToolOutput::text("Error: no such file") }),
        (
            "picture",
            ToolOutput {
                parts: vec![text("Here it is:"), image(json!({"audience": ["user"], "priority": 0.5})), text("Done.")],
                ..ToolOutput::default()
            },
        ),
        (
            "weather",
            ToolOutput {
                structured: Some(r#"{"temperature":36,"sky":"rain"}"#.to_owned()),
                ..ToolOutput::text("{\n  \"sky\": \"rain\",\n  \"temperature\": 36.0\n}")
            },
        ),
        (
            "wrapped",
            ToolOutput { structured: Some(r#"{"result":"two\nlines"}"#.to_owned()), ..ToolOutput::text("two\nlines") },
        ),
        (
            "items",
            ToolOutput {
                parts: vec![text("a"), text("{'b': 1}")],
                structured: Some(r#"{"result":["a",{"b":1}]}"#.to_owned()),
                ..ToolOutput::default()
            },
        ),
        (
            "query",
            ToolOutput {
                structured: Some(r#"{"count":42,"status":"done"}"#.to_owned()),
                ..ToolOutput::text("query done")
            },
        ),
        ("only-structured", ToolOutput { structured: Some(r#"{"count":42}"#.to_owned()), ..ToolOutput::default() }),
        (
            "resources",
            ToolOutput {
                parts: vec![
                    Part::new(PartBody::ResourceText {
                        uri: "demo://3".to_owned(),
                        media_type: None,
                        text: "the text".to_owned(),
                    }),
                    Part::new(PartBody::ResourceBlob {
                        uri: "demo://]\n[4".to_owned(),
                        media_type: Some("application/gzip".to_owned()),
                        bytes: vec![0xFF; 5],
                    }),
                    Part::new(PartBody::ResourceLink {
                        uri: "demo://5".to_owned(),
                        name: "Five".to_owned(),
                        about: json!({"title": "No. 5"}).as_object().cloned().unwrap(),
                    }),
                    Part::new(PartBody::Unknown(json!({"type": "hologram", "data": 1}))),
                ],
                ..ToolOutput::default()
            },
        ),
    ];
    let mut bench = Bench::default();
    let shown: Vec<String> = outputs.iter().map(|(tool, output)| bench.shown(tool, output)).collect();
    insta::assert_snapshot!(shown.join("\n\n"), @r#"
    (no content)
    -- Ok Passthrough,  -- facts [] -- {"source_item_id":"result:nothing","tool":"nothing"}

    On branch main
    state: clean
    -- Ok Passthrough,  -- facts ["state: clean"] -- {"source_item_id":"result:status","tool":"status"}

    Error: no such file
    -- Error Passthrough,  -- facts ["Error: no such file"] -- {"source_item_id":"result:failing","tool":"failing"}

    Here it is:
    [image/png, 3 bytes: mcp:picture:image:0]
    Done.
    -- Ok Passthrough, mcp:picture:image:0 image/png 3 -- facts [] -- {"source_item_id":"result:picture","tool":"picture","content_annotations":[{"part_index":1,"audience":["user"],"priority":0.5}]}

    {
      "sky": "rain",
      "temperature": 36.0
    }
    -- Ok Passthrough,  -- facts ["sky: rain", "temperature: 36.0"] -- {"source_item_id":"result:weather","tool":"weather"}

    two
    lines
    -- Ok Passthrough,  -- facts [] -- {"source_item_id":"result:wrapped","tool":"wrapped"}

    a
    {'b': 1}
    -- Ok Passthrough,  -- facts [] -- {"source_item_id":"result:items","tool":"items"}

    query done
    [structured content: mcp:query:structured_content]
    {"count":42,"status":"done"}
    -- Ok Passthrough, mcp:query:structured_content application/json 28 -- facts ["count: 42", "status: done"] -- {"source_item_id":"result:query","tool":"query"}

    {"count":42}
    -- Ok Passthrough,  -- facts ["count: 42"] -- {"source_item_id":"result:only-structured","tool":"only-structured"}

    [resource demo://3, text/plain, 8 bytes: mcp:resources:resource:0]
    the text
    [resource demo:// 4, application/gzip, 5 bytes: mcp:resources:resource:1]
    [link Five, demo://5: mcp:resources:resource_link:0]
    [unknown part hologram, 28 bytes: mcp:resources:unknown:0]
    -- Partial Passthrough, mcp:resources:resource:0 text/plain 8, mcp:resources:resource:1 application/gzip 5, mcp:resources:resource_link:0 text/uri-list 8, mcp:resources:unknown:0 application/json 28 -- facts [] -- {"source_item_id":"result:resources","tool":"resources","resource_links":[{"handle":"mcp:resources:resource_link:0","uri":"demo://5","name":"Five","about":{"title":"No. 5"}}]}
    "#);
}

#[test]
fn a_message_in_colour_is_shown_once() {
    let config = FirewallConfig { summary_tokens: 200, ..FirewallConfig::default() };
    let artifacts = MemoryArtifacts::default();
    let firewall = Firewall::new(&config, Estimator::Cl100kBase, &StructureSummarizer, &artifacts);
    let text = format!("\u{1b}[31mError: Disk is full\u{1b}[0m\n\n{}", log(100));
    let output = ToolOutput { is_error: true, ..ToolOutput::text(text) };
    let (item, _) = firewall.ingest(&call("tc", "query", "{}"), &output, &mut Seen::default()).unwrap();
    assert_eq!(item.text.matches("Disk is full").count(), 1, "{}", item.text);
    assert!(item.text.starts_with("Error: Disk is full\n"), "{}", item.text);
}

#[test]
fn a_message_ends_at_the_first_empty_line() {
    assert_eq!(first_paragraph("\r\na\r\nb\r\n\r\nc\n\nd"), "a\r\nb");
    assert_eq!(first_paragraph("a\n\nb\r\n\r\nc"), "a");
}

#[test]
fn large_results_are_stored_whole_and_shown_within_the_cap() {
    let mut bench = Bench::with(FirewallConfig { summary_tokens: 60, ..FirewallConfig::default() });
    let rows: Vec<Value> = (0..200).map(|id| json!({"id": id, "name": format!("row {id}")})).collect();
    let json = json!({"total": 200, "rows": rows}).to_string();
    let picture = Part::new(PartBody::Image { bytes: vec![0; 9], media_type: "image/png".to_owned() });
    let outputs = [
        ToolOutput::text(log(80)),
        ToolOutput { is_error: true, ..ToolOutput::text(format!("Disk is full\n\n{}", log(60))) },
        ToolOutput { structured: Some(json.clone()), ..ToolOutput::text(json.clone()) },
        ToolOutput { structured: Some(json.clone()), ..ToolOutput::text("200 rows found") },
        ToolOutput { parts: vec![text(&log(90)), picture.clone(), picture.clone()], ..ToolOutput::default() },
        ToolOutput { parts: vec![picture; 60], ..ToolOutput::default() },
        ToolOutput::text("a ".repeat(1001)),
    ];
    let mut shown = Vec::new();
    for (number, output) in outputs.iter().enumerate() {
        let (item, envelope) = bench.ingest(&call(&format!("tc{number}"), "query", "{}"), output);
        assert!(Estimator::Cl100kBase.count(&item.text) <= 60, "{}", item.text);
        let handles: Vec<&str> = envelope.artifacts.iter().map(|artifact| artifact.handle.as_str()).take(3).collect();
        shown.push(format!("{}\n-- {:?}: {}", item.text, envelope.firewall.unwrap().strategy, handles.join(", ")));
    }
    insta::assert_snapshot!(shown.join("\n\n"), @r#"
    2024-05-01 request 0 answered in 0 ms 2024-05-01 request 1 answered in 7 ms 2024-05-01 request 2 answered in 1 ms 2024-05-01 request 3 answered in 8 ms
    -- Summary: artifact:result:tc0

    Disk is full 2024-05-01 request 0 answered in 0 ms 2024-05-01 request 1 answered in 7 ms 2024-05-01 request 2 answered in 1 ms 2024-05-01 request 3 answered in
    -- Summary: artifact:result:tc1

    {"total":200,"rows":[{"id":0,"name":"row 0"},{"id":1,"name":"row 1"},{"id":2,"name":"row 2"},{"id":3,"name":"row 3"},{"id":4,"name":"row
    -- Summary: artifact:result:tc2

    200 rows found
    [structured content: mcp:query:structured_content]
    (same as artifact:result:tc2: 5402 characters)
    -- Compact: artifact:result:tc3, mcp:query:structured_content

    2024-05-01 request 0 answered in 0 ms 2024-05-01 request 1 answered in 7 ms 2024-05-01 request 2 answered in
    [image/png, 9 bytes: mcp:query:image:0]
    … +1
    -- Summary: artifact:result:tc4, mcp:query:image:0, mcp:query:image:1

    [image/png, 9 bytes: mcp:query:image:2]
    [image/png, 9 bytes: mcp:query:image:3]
    [image/png, 9 bytes: mcp:query:image:4]
    … +57
    -- Summary: mcp:query:image:2, mcp:query:image:3, mcp:query:image:4

    a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a
    -- Summary: artifact:result:tc6
    "#);
    let kept = bench.artifacts.get(&Handle::new("artifact:result:tc2")).unwrap();
    assert_eq!(*kept, *json.as_bytes());
}

#[test]
fn what_was_shown_or_sent_before_is_a_line() {
    let mut bench = Bench::default();
    let rows = |count: usize| {
        json!((0..count).map(|id| json!({"id": id, "name": format!("row {id}")})).collect::<Vec<_>>()).to_string()
    };
    let prose = log(100);
    let calls = [
        (call("tc1", "read", "{}"), log(200)),
        (call("tc2", "read", "{}"), log(200)),
        (call("tc3", "head", "{}"), log(100)),
        (call("tc4", "query", "{}"), rows(300)),
        (call("tc5", "query", "{}"), rows(150)),
        (call("tc6", "write", &json!({"text": prose.replace("ms", "s")}).to_string()), prose.replace("ms", "s")),
    ];
    let shown: Vec<String> = calls
        .iter()
        .map(|(call, text)| {
            let (item, envelope) = bench.ingest(call, &ToolOutput::text(text.clone()));
            assert_eq!(*bench.artifacts.get(&item.artifact.unwrap().handle).unwrap(), *text.as_bytes());
            let text: String = item.text.chars().take(160).collect();
            format!("{:?} {text}", envelope.firewall.unwrap().strategy)
        })
        .collect();
    insta::assert_snapshot!(shown.join("\n"), @r#"
    Summary 2024-05-01 request 0 answered in 0 ms 2024-05-01 request 1 answered in 7 ms 2024-05-01 request 2 answered in 1 ms 2024-05-01 request 3 answered in 8 ms 2024-05-
    Repeat (same as artifact:result:tc1: 200 lines, 7935 characters)
    Repeat (part of artifact:result:tc1, lines 0–99 (from 0): 100 lines, 3912 characters)
    first: 2024-05-01 request 0 answered in 0 ms
    last: 2024-05-01 request 99 answered
    Summary [{"id":0,"name":"row 0"},{"id":1,"name":"row 1"},{"id":2,"name":"row 2"},{"id":3,"name":"row 3"},{"id":4,"name":"row 4"},{"id":5,"name":"row 5"},{"id":6,"name":
    Repeat (part of artifact:result:tc4, rows 0–149 (from 0): 3981 characters)
    first: {"id":0,"name":"row 0"}
    last: {"id":149,"name":"row 149"}
    Echo (echo of the argument `text`, 3812 characters)
    "#);
}

#[test]
fn a_handle_keeps_its_content() {
    let mut bench = Bench::default();
    let picture = |byte: u8| ToolOutput {
        parts: vec![Part::new(PartBody::Image { bytes: vec![byte; 4], media_type: "image/png".to_owned() })],
        ..ToolOutput::default()
    };
    let handle = |bench: &mut Bench, byte| {
        bench.ingest(&call("tc", "draw", "{}"), &picture(byte)).1.artifacts[0].handle.to_string()
    };
    assert_eq!(handle(&mut bench, 1), "mcp:draw:image:0");
    assert_eq!(handle(&mut bench, 2), "mcp:draw:image:1");
    // A session that is resumed does not know what was counted before.
    bench.seen = Seen::default();
    assert_eq!(handle(&mut bench, 2), "mcp:draw:image:1");
    assert_eq!(handle(&mut bench, 3), "mcp:draw:image:2");
}

#[test]
fn a_part_that_cannot_be_stored_is_named_and_the_rest_survives() {
    struct NoPictures(MemoryArtifacts);
    impl ArtifactStore for NoPictures {
        fn put(&self, handle: &Handle, bytes: &[u8], media_type: &str, label: &str) -> Result<ArtifactRef, StoreError> {
            if media_type.starts_with("image/") {
                return Err(StoreError::TooLarge { handle: handle.clone(), size: bytes.len() as u64, limit: 1 });
            }
            self.0.put(handle, bytes, media_type, label)
        }
        fn get(&self, handle: &Handle) -> Result<std::sync::Arc<[u8]>, StoreError> {
            self.0.get(handle)
        }
        fn reference(&self, handle: &Handle) -> Result<ArtifactRef, StoreError> {
            self.0.reference(handle)
        }
        fn list(&self) -> Result<Vec<ArtifactRef>, StoreError> {
            self.0.list()
        }
        fn delete(&self, handle: &Handle) -> Result<bool, StoreError> {
            self.0.delete(handle)
        }
    }
    let (config, artifacts) = (FirewallConfig::default(), NoPictures(MemoryArtifacts::default()));
    let firewall = Firewall::new(&config, Estimator::Cl100kBase, &FirstWords, &artifacts);
    let picture = Part::new(PartBody::Image { bytes: vec![0; 9], media_type: "image/png".to_owned() });
    let output = ToolOutput { parts: vec![text("Here:"), picture], ..ToolOutput::default() };
    let (item, envelope) = firewall.ingest(&call("tc1", "draw", "{}"), &output, &mut Seen::default()).unwrap();
    assert_eq!(envelope.status, Status::Partial);
    insta::assert_snapshot!(item.text, @r"
    Here:
    [image/png, 9 bytes: not stored: the artifact `mcp:draw:image:0` has 9 bytes; the store holds at most 1]
    ");
}

#[test]
fn condensing_returns_what_fits_and_else_a_summary_of_the_whole() {
    let mut bench = Bench::with(FirewallConfig { summary_tokens: 40, ..FirewallConfig::default() });
    let large = bench.screen(&result("r1", log(100))).item;
    let small = result("r2", "one two three four five six");
    let failed = ContextItem {
        metadata: serde_json::Map::from_iter([("is_error".to_owned(), Value::Bool(true))]),
        ..result("r3", format!("Out of memory\n\n{}", log(5)))
    };
    let condensed = |item: &ContextItem, cap| bench.firewall().condense(item, cap).unwrap();
    assert_eq!(condensed(&large, 40), large.text);
    assert_eq!(condensed(&small, 10), small.text);
    insta::assert_snapshot!(
        [condensed(&large, 12), condensed(&small, 3), condensed(&failed, 12), condensed(&failed, 0)].join("\n"),
        @r"
    2024-05-01 request 0 answered in
    one two …
    Out of memory 2024-05-01 request
    "
    );
}

#[test]
fn secrets_are_neither_stored_nor_shown_when_the_configuration_says_so() {
    let key = format!("ghp_{}", "Qz7Lm2Xv9Rt4Kp8Wd3Nh6Yb1Fc5Gj0SaTuVe");
    let texts = [format!("the key is {key}"), format!("the key is {key}\n{}", log(100))];
    for (number, text) in texts.iter().enumerate() {
        let mut bench = Bench::with(FirewallConfig { secrets: Secrets::Redact, ..FirewallConfig::default() });
        let structured = Some(json!({"key": key}).to_string());
        let output = ToolOutput { structured, ..ToolOutput::text(text.as_str()) };
        let (item, _) = bench.ingest(&call("tc1", "t", "{}"), &output);
        // The same text again would be a repeat.
        bench.seen = Seen::default();
        let screened = bench.screen(&result(&format!("r{number}"), text.as_str())).item;
        let stored = bench.artifacts.list().unwrap();
        assert_eq!(stored.len(), 1 + 2 * number);
        for artifact in stored {
            let bytes = bench.artifacts.get(&artifact.handle).unwrap();
            assert!(!String::from_utf8_lossy(&bytes).contains(&key), "{}", artifact.handle);
        }
        for shown in [item.text, screened.text, bench.firewall().condense(&result("r", text.as_str()), 500).unwrap()] {
            assert!(shown.contains("[REDACTED: ") && !shown.contains(&key), "{shown}");
        }
    }
    assert!(Bench::default().screen(&result("r", texts[0].as_str())).item.text.contains(&key));
}

#[test]
fn raw_results_are_counted_only_when_asked() {
    let large = result("r1", log(100));
    assert_eq!(Bench::default().screen(&large).stats.original_tokens, None);
    let config = FirewallConfig { raw_count: RawCount::Exact, ..FirewallConfig::default() };
    let counted = Bench::with(config).screen(&large).stats.original_tokens;
    assert_eq!(counted, Some(Estimator::Cl100kBase.count(&large.text)));
}

fn content() -> impl Generator<Value = String> {
    prop_oneof![
        "(\\PC|[\\n\\t {}\\[\\],:'\"]|[a-z]{1,8} ){0,400}",
        prop::collection::vec("[a-z]{3,12}: [0-9]{1,5}", 0..80).prop_map(|lines| lines.join("\n")),
        prop::collection::vec((any::<u16>(), "[a-z \"\\\\]{0,20}"), 0..60).prop_map(|rows| json!(rows).to_string()),
    ]
}

proptest! {
    #[test]
    fn nothing_is_lost_and_the_cap_holds(
        contents in prop::collection::vec(content(), 1..4),
        threshold_chars in 0usize..300,
        summary_tokens in 0usize..80,
    ) {
        let config = FirewallConfig { threshold_chars, summary_tokens, ..FirewallConfig::default() };
        let (mut bench, mut again) = (Bench::with(config), Bench::with(config));
        for (number, content) in contents.iter().enumerate() {
            let item = result(&format!("r{number}"), content.clone()).with_sensitivity(Sensitivity::Internal);
            let screened = bench.screen(&item);
            prop_assert_eq!(&again.screen(&item), &screened, "deterministic");
            prop_assert_eq!(screened.item.sensitivity, Sensitivity::Internal);
            match &screened.item.artifact {
                None => prop_assert_eq!(&screened.item.text, content),
                Some(artifact) => {
                    prop_assert!(content.chars().count() > threshold_chars);
                    prop_assert!(Estimator::Cl100kBase.count(&screened.item.text) <= summary_tokens);
                    prop_assert_eq!(&*bench.artifacts.get(&artifact.handle).unwrap(), content.as_bytes());
                }
            }
            let twice = bench.screen(&screened.item);
            prop_assert_eq!(&twice.item, &screened.item, "screening twice");
            prop_assert_eq!(twice.stats.strategy, screened.stats.strategy);
            let condensed = bench.firewall().condense(&screened.item, summary_tokens / 2).unwrap();
            prop_assert!(Estimator::Cl100kBase.count(&condensed) <= summary_tokens / 2);
        }
    }

    #[test]
    fn every_part_is_stored_and_the_cap_holds(
        texts in prop::collection::vec(content(), 0..3),
        pictures in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..20), 0..40),
        structured in prop::option::of(content().prop_map(|text| json!({"text": text}).to_string())),
        is_error in any::<bool>(),
        summary_tokens in 0usize..120,
    ) {
        let config = FirewallConfig { threshold_chars: 400, summary_tokens, ..FirewallConfig::default() };
        let mut bench = Bench::with(config);
        let mut parts: Vec<Part> = texts.iter().map(|one| text(one)).collect();
        let picture = |bytes: &Vec<u8>| {
            Part::new(PartBody::Audio { bytes: bytes.clone(), media_type: "audio/wav".to_owned() })
        };
        parts.extend(pictures.iter().map(picture));
        let call = call("tc1", "t", "{}").with_sensitivity(Sensitivity::Confidential);
        let (item, envelope) = bench.ingest(&call, &ToolOutput { parts, structured, is_error, ..ToolOutput::default() });
        prop_assert_eq!(item.sensitivity, Sensitivity::Confidential);
        prop_assert_eq!(&item.text, &envelope.summary);
        match envelope.firewall.unwrap().strategy {
            Strategy::Passthrough => prop_assert!(item.text.chars().count() <= 400),
            _ => prop_assert!(Estimator::Cl100kBase.count(&item.text) <= summary_tokens, "{}", item.text),
        }
        for artifact in &envelope.artifacts {
            prop_assert_eq!(&bench.artifacts.reference(&artifact.handle).unwrap(), artifact);
        }
        for (number, bytes) in pictures.iter().enumerate() {
            let kept = bench.artifacts.get(&Handle::new(format!("mcp:t:audio:{number}"))).unwrap();
            prop_assert_eq!(&*kept, bytes.as_slice());
        }
    }
}
