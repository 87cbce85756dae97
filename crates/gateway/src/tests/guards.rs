//! Whole calls through the guards, in front of an upstream that counts what reaches it.
//!
//! The tables have one row a case. The name of a row begins with the guard that it is about.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::shop::Who::{Mute, No, Other, With, Yes};
use super::shop::{Scene, Shop, Who, run, scene, scene_of, upstream};
use crate::common::sync::lock;
use crate::guard::approval::QUESTION;
use crate::guard::config::Access;
use crate::guard::pins::{NewTools, digest};
use crate::guard::pipeline::Guards;
use crate::guard::sign::{self, Incoming, Signature, SignatureError, SigningConfig};
use crate::upstream::Fault;
use crate::wire::Raw;
use crate::{Caller, Gateway, GatewayConfig, Identity};
use contextweaver_context::store::{Clock, SystemClock};
use contextweaver_core::catalog::SelectableItem;

/// A call of a tool of the shop, and what comes of it: who calls, the tool, its arguments, the status or error code.
type Step = (Who, &'static str, &'static str, &'static str);

/// A case: its name, the configuration, the calls in their order, and how many of them reach the upstream.
type Case = (&'static str, &'static str, &'static [Step], usize);

/// Denies, asks, and demands a scope.
const RULES: &str = "policy: {rules: [{action: deny, tool: delete}, {action: require_approval, tool: price}], \
                     tools: {liar: {required_scopes: [x]}}}";

/// Shows all but one tool.
const PROFILES: &str =
    "{visibility_profiles: {shown: {exclude_tools: [delete]}, other: {}}, visibility_profile: shown}";

const ONE: &str = r#"{"id": 1}"#;

#[rustfmt::skip]
const TOOLS: &[Case] = &[
    ("visibility: a hidden tool does not exist", PROFILES, &[(Mute, "delete", "{}", "HYDRATE_FAILED")], 0),
    ("visibility: another profile shows it", PROFILES, &[(With("other"), "delete", "{}", "error")], 1),
    ("visibility: an unknown profile shows nothing", PROFILES, &[(With("no such"), "price", ONE, "HYDRATE_FAILED")], 0),
    ("policy: a rule denies", RULES, &[(Mute, "delete", "{}", "POLICY_DENIED")], 0),
    ("policy: a scope is missing", RULES, &[(Mute, "liar", "{}", "POLICY_DENIED")], 0),
    ("policy: an approval from a client that cannot ask", RULES, &[(Mute, "price", ONE, "APPROVAL_REQUIRED")], 0),
    ("arguments: a name twice in one object", "{}", &[(Mute, "price", r#"{"id": 1, "of": "a", "of": "b"}"#, "ARGS_INVALID")], 0),
    ("arguments: no object", "{}", &[(Mute, "price", "[1]", "ARGS_INVALID")], 0),
    ("repairs: off unless configured", "{}", &[(Mute, "price", r#"{"id": "7"}"#, "ARGS_INVALID")], 0),
    ("repairs: a number as a string", "tolerant_args: true", &[(Mute, "price", r#"{"id": "7"}"#, "ok")], 1),
    ("argument schema: checked before the person is asked", RULES, &[(Yes, "price", r#"{"id": "x"}"#, "ARGS_INVALID")], 0),
    ("argument schema: an invalid schema", RULES, &[(Mute, "broken", "{}", "SCHEMA_INVALID")], 0),
    ("result schema: an invalid schema", RULES, &[(Mute, "vague", "{}", "SCHEMA_INVALID")], 0),
    ("result schema: an invalid schema that is not enforced", "schemas: {output: warn}", &[(Mute, "vague", "{}", "error")], 1),
    ("result schema: a result that breaks it", "{}", &[(Mute, "liar", "{}", "UPSTREAM_ERROR")], 1),
    ("result schema: off", "schemas: {output: 'off'}", &[(Mute, "liar", "{}", "ok")], 1),
    ("approval: the person declines", RULES, &[(No, "price", ONE, "APPROVAL_REQUIRED")], 0),
    ("approval: the person accepts", RULES, &[(Yes, "price", ONE, "ok")], 1),
    ("quota: counted by client and not by session", "rate_limits: {tool_execute: {max_calls_per_minute: 1}}", &[
        (Mute, "price", ONE, "ok"), (Mute, "price", ONE, "RATE_LIMITED"), (Other, "price", ONE, "ok"),
    ], 2),
    ("quota: a refused argument costs nothing", "rate_limits: {tool_execute: {max_calls_per_minute: 1}}", &[
        (Mute, "price", "{}", "ARGS_INVALID"), (Mute, "price", ONE, "ok"),
    ], 1),
    ("cache: off unless configured", "cache: {allow: [price]}", &[(Mute, "price", ONE, "ok"), (Mute, "price", ONE, "ok")], 2),
    ("cache: a listed tool, for each caller", "cache: {read_only: true, allow: [price]}", &[
        (Mute, "price", ONE, "ok"), (Mute, "price", ONE, "ok"), (Other, "price", ONE, "ok"),
        (Mute, "price", r#"{"id": 2}"#, "ok"),
    ], 3),
    ("cache: numbers that 64 bits do not hold are not one", "cache: {read_only: true, allow: [price]}", &[
        (Mute, "price", r#"{"id": 20000000000000000001}"#, "ok"), (Mute, "price", r#"{"id": 20000000000000000002}"#, "ok"),
        (Mute, "price", r#"{"id": 2.0000000000000000001e19}"#, "ok"),
    ], 2),
    ("cache: failures are not kept", "cache: {read_only: true, allow: ['*']}", &[
        (Mute, "delete", "{}", "error"), (Mute, "delete", "{}", "error"),
    ], 2),
    ("cache: unlisted tools are not kept", "cache: {read_only: true}", &[(Mute, "price", ONE, "ok"), (Mute, "price", ONE, "ok")], 2),
];

#[test]
fn calls_of_tools() {
    run(async {
        for (name, yaml, steps, reached) in TOOLS {
            let scene = scene(yaml).await;
            for (number, (who, tool, args, expected)) in steps.iter().enumerate() {
                let outcome = scene.outcome(&scene.client(*who), tool, args).await;
                assert_eq!(outcome, *expected, "{name}, call {number}");
            }
            assert_eq!(scene.calls(), *reached, "{name}: calls that reach the upstream");
        }
    });
}

/// A request in the mode proxy, and what comes of it: who asks, the method, its parameters, `ok` or the error.
type Request = (Who, &'static str, &'static str, &'static str);

/// Denies what ends in `keys`, asks about the prompt, and limits reads to two a minute.
const READS: &str = "{mode: proxy, sanitize: {scope: all}, rate_limits: {resource_read: {max_calls_per_minute: 2}}, \
                     policy: {rules: [{action: deny, tool: '*:*keys'}, {action: require_approval, tool: greet}]}}";

/// Two profiles that hide namespaces or resources, and one that hides what no list names.
const VIEWS: &str = "{mode: proxy, visibility_profiles: {clerk: {include_namespaces: [shop]}, \
                     guest: {exclude_tools: [keys]}, shy: {exclude_tools: ['*draft*']}}}";

const DENIED: &str = "-32000 POLICY_DENIED";
const UNAPPROVED: &str = "-32000 APPROVAL_REQUIRED";
const LIMITED: &str = "-32000 RATE_LIMITED";
const MISSING: &str = "-32002 ";

const TERMS: &str = r#"{"uri": "shop:terms"}"#;
const KEYS: &str = r#"{"uri": "shop:keys"}"#;
const PAGE: &str = r#"{"uri": "shop:page/1"}"#;
const BANK: &str = r#"{"uri": "bank:terms"}"#;
const GREET: &str = r#"{"name": "{greet}", "arguments": {"who": "Ann"}}"#;

/// Cases of resources and prompts: name, configuration, requests in their order, how many reach the first upstream.
#[rustfmt::skip]
const RESOURCES_AND_PROMPTS: &[(&str, &str, &[Request], usize)] = &[
    ("policy: a read", READS, &[(Mute, "resources/read", KEYS, DENIED)], 0),
    ("policy: a subscription", READS, &[(Mute, "resources/subscribe", KEYS, DENIED)], 0),
    ("policy: a completion for a resource", READS, &[
        (Mute, "completion/complete", r#"{"ref": {"type": "ref/resource", "uri": "shop:keys"}, "argument": {"name": "who", "value": ""}}"#, DENIED),
    ], 0),
    ("no approval: a completion for a prompt", READS, &[
        (Mute, "completion/complete", r#"{"ref": {"type": "ref/prompt", "name": "{greet}"}, "argument": {"name": "who", "value": ""}}"#, UNAPPROVED),
        (Yes, "completion/complete", r#"{"ref": {"type": "ref/prompt", "name": "{greet}"}, "argument": {"name": "who", "value": ""}}"#, UNAPPROVED),
    ], 0),
    ("arguments: a name twice in one object", READS, &[(Mute, "resources/read", r#"{"uri": "shop:terms", "uri": "shop:keys"}"#, "-32602 ")], 0),
    ("approval: a prompt", READS, &[(Mute, "prompts/get", GREET, UNAPPROVED), (Yes, "prompts/get", GREET, "ok")], 1),
    ("quota: reads and subscriptions count together, ends do not", READS, &[
        (Yes, "resources/read", TERMS, "ok"), (Yes, "resources/subscribe", TERMS, "ok"),
        (Yes, "resources/read", TERMS, LIMITED), (Yes, "resources/subscribe", TERMS, LIMITED),
        (Yes, "resources/unsubscribe", TERMS, "ok"),
    ], 3),
    ("visibility: another namespace", VIEWS, &[
        (With("clerk"), "resources/read", BANK, MISSING), (With("clerk"), "resources/subscribe", BANK, MISSING),
        (With("clerk"), "resources/read", KEYS, "ok"), (With("clerk"), "resources/read", PAGE, "ok"),
    ], 2),
    ("visibility: a hidden resource, and addresses that could lead to it", VIEWS, &[
        (With("guest"), "resources/read", KEYS, MISSING), (With("guest"), "resources/subscribe", KEYS, MISSING),
        (With("guest"), "resources/read", PAGE, MISSING), (With("guest"), "resources/subscribe", PAGE, MISSING),
        (With("guest"), "resources/read", TERMS, "ok"),
    ], 1),
    ("visibility: an address that no list names", VIEWS, &[(With("shy"), "resources/read", r#"{"uri": "shop:page/draft"}"#, DENIED)], 0),
];

#[test]
fn requests_for_resources_and_prompts() {
    run(async {
        for (name, yaml, requests, reached) in RESOURCES_AND_PROMPTS {
            let scene = scene_of(yaml, &["shop", "bank"]).await;
            let greet = greeting(&scene).await;
            // One session a client: a subscription belongs to the session that made it.
            let mut clients: Vec<(Who, Caller)> = Vec::new();
            for (number, (who, method, params, expected)) in requests.iter().enumerate() {
                if !clients.iter().any(|(known, _)| known == who) {
                    clients.push((*who, scene.client(*who)));
                }
                let (_, client) = clients.iter().find(|(known, _)| known == who).unwrap();
                let params = params.replace("{greet}", &greet);
                let params = Raw::of(&serde_json::from_str::<Box<RawValue>>(&params).unwrap());
                let answer = scene.ask_raw(client, method, &params).await;
                let outcome = answer.map_or_else(|error| error, |_| "ok".to_owned());
                assert_eq!(outcome, *expected, "{name}, request {number}");
            }
            assert_eq!(scene.calls(), *reached, "{name}: requests that reach the upstream");
        }
    });
}

/// The published name of the shop's prompt.
async fn greeting(scene: &Scene) -> String {
    let prompts = scene.ask(&scene.client(Mute), "prompts/list", json!({})).await.unwrap();
    let names = prompts["prompts"].as_array().unwrap().iter().map(|prompt| prompt["name"].as_str().unwrap());
    names.into_iter().find(|name| name.starts_with("shop__greet")).unwrap().to_owned()
}

/// Texts that pass to a client: the configuration, the number of upstreams, the method, its parameters, where the text
/// is, and the text.
#[rustfmt::skip]
const TEXTS: &[(&str, usize, &str, &str, &str, &str)] = &[
    ("mode: passthrough", 2, "resources/read", KEYS, "/contents/0/text", "a text <|im_start|>"),
    ("mode: passthrough", 1, "resources/read", KEYS, "/contents/0/text", "a text <|im_start|>"),
    ("{mode: passthrough, sanitize: {scope: all}}", 1, "resources/read", KEYS, "/contents/0/text", "a text "),
    ("{mode: proxy, sanitize: {scope: all}}", 2, "resources/read", TERMS, "/contents/0/text", "a text "),
    ("{mode: proxy, sanitize: {scope: all}}", 2, "prompts/get", GREET, "/messages/0/content/text", "hello "),
];

#[test]
fn sanitize_cleans_what_passes_only_where_that_is_configured() {
    run(async {
        for (yaml, upstreams, method, params, place, expected) in TEXTS {
            let scene = scene_of(yaml, &["shop", "bank"][..*upstreams]).await;
            let greet = if params.contains("{greet}") { greeting(&scene).await } else { String::new() };
            let params = serde_json::from_str(&params.replace("{greet}", &greet)).unwrap();
            let answer = scene.ask(&scene.client(Mute), method, params).await.unwrap();
            assert_eq!(answer.pointer(place), Some(&json!(expected)), "{yaml} {upstreams} {method}");
        }
    });
}

#[test]
fn address_leads_out_of_no_allow_list_however_it_is_encoded() {
    run(async {
        let rules = "policy: {default: deny, rules: [{action: allow, tool: 'shop:shop:page/public/*'}]}";
        let scene = scene(&format!("{{{rules}}}")).await;
        let caller = scene.client(Mute);
        let read = async |page: &str| {
            let address = format!("shop:page/public/{page}");
            scene.call(&caller, "resource_read", json!({ "resource_id": address })).await.to_string()
        };
        let ways = [
            "../secret",
            "%2e%2e/secret",
            "%252e%252e/secret",
            "%25252e%25252e/secret",
            "..;/secret",
            "..;x/secret",
            "%2e%2e%3b/secret",
            "..%2fsecret",
            "..%252fsecret",
            "..%5csecret",
            "%c0%ae%c0%ae/secret",
            "%e0%80%ae%e0%80%ae/secret",
            "%2525252525252e%2525252525252e/secret",
            "x%00/secret",
        ];
        for way in ways {
            let answer = read(way).await;
            assert!(answer.contains("POLICY_DENIED"), "{way}: {answer}");
        }
        assert_eq!(scene.calls(), 0);
        for way in ["1", "a%20b", "caf%C3%A9", "v;1"] {
            let answer = read(way).await;
            assert!(!answer.contains("POLICY_DENIED"), "{way}: {answer}");
        }
    });
}

#[test]
fn listening_hears_nothing_of_what_may_not_be_read() {
    run(async {
        let scene = scene_of(READS, &["shop", "bank"]).await;
        let listener = scene.modern("b");
        for (uri, expected) in [("shop:terms", true), ("shop:keys", false), ("shop:no/such", true)] {
            let hears = scene.gateway.dispatcher().passthrough.may_hear_of(&listener, uri);
            assert_eq!(hears, expected, "{uri}");
        }
    });
}

/// Spellings of one address that a rule denies.
const SPELLINGS: [&str; 8] =
    ["secret", "./secret", "x/../secret", "%2e/secret", "x/%2E./secret", "%73ecret", "sec\tret", "a\0b"];

#[test]
fn address_denies_every_spelling_in_every_request() {
    run(async {
        let rules = "policy: {rules: [{action: deny, tool: 'shop:shop:page/secret'}]}";
        let proxy = scene_of(&format!("mode: proxy\n{rules}"), &["shop", "bank"]).await;
        let models = scene_of(rules, &["shop", "bank"]).await;
        let (caller, model, listener) = (proxy.client(Mute), models.client(Mute), proxy.modern("m"));
        for page in SPELLINGS {
            let uri = format!("shop:page/{page}");
            let reference =
                json!({"ref": {"type": "ref/resource", "uri": uri}, "argument": {"name": "n", "value": ""}});
            for (method, params) in [
                ("resources/read", json!({ "uri": uri })),
                ("resources/subscribe", json!({ "uri": uri })),
                ("completion/complete", reference),
            ] {
                assert_eq!(proxy.ask(&caller, method, params).await, Err(DENIED.to_owned()), "{method} {uri}");
            }
            let answer = models.call(&model, "resource_read", json!({ "resource_id": uri })).await;
            assert!(answer.to_string().contains("POLICY_DENIED"), "resource_read {uri}: {answer}");
            assert!(!proxy.gateway.dispatcher().passthrough.may_hear_of(&listener, &uri), "listen {uri}");
        }
        assert_eq!((proxy.calls(), models.calls()), (0, 0));
        for (uri, why) in [
            ("shop:page/1", "the rule is about another page"),
            ("bank:page/./1", "the rule is about another namespace"),
        ] {
            let answer = proxy.ask(&caller, "resources/read", json!({ "uri": uri })).await;
            assert!(answer.is_ok(), "{uri}, {why}: {answer:?}");
        }
    });
}

#[test]
fn visibility_hides_tools_from_lists() {
    run(async {
        let scene = scene(PROFILES).await;
        for (who, shows_delete) in [(Mute, false), (With("other"), true)] {
            let shown = scene.call(&scene.client(who), "tool_browse", json!({"path": "/shop"})).await.to_string();
            assert!(shown.contains("price"), "{who:?}: {shown}");
            assert_eq!(shown.contains("delete"), shows_delete, "{who:?}: {shown}");
            assert!(!shown.contains("im_end"), "a description is cleaned: {shown}");
        }
    });
}

/// The lists of a profile: its name, the method, the member with the entries, the member of an entry, what it shows.
#[rustfmt::skip]
const LISTS: &[(&str, &str, &str, &str, &[&str])] = &[
    ("clerk", "resources/list", "resources", "uri", &["shop:terms", "shop:keys"]),
    ("guest", "resources/list", "resources", "uri", &["bank:terms", "shop:terms"]),
    ("clerk", "resources/templates/list", "resourceTemplates", "uriTemplate", &["shop:page/{n}"]),
    ("clerk", "prompts/list", "prompts", "name", &["shop__greet"]),
];

#[test]
fn visibility_hides_resources_and_prompts_from_lists() {
    run(async {
        let scene = scene_of(VIEWS, &["shop", "bank"]).await;
        for (profile, method, key, member, expected) in LISTS {
            let list = scene.ask(&scene.client(With(profile)), method, json!({})).await.unwrap();
            let entries = list[key].as_array().unwrap().iter().map(|entry| entry[member].as_str().unwrap());
            // A published name ends in a hash.
            let entries: Vec<&str> =
                entries.map(|entry| entry.rsplit_once("__").map_or(entry, |(name, _)| name)).collect();
            assert_eq!(entries, *expected, "{profile} {method}");
        }
    });
}

/// A read by a model: who reads, the resource, and a part of the answer.
type ModelRead = (Who, &'static str, &'static str);

/// Reads by a model: the configuration, the reads in their order, how many reach the upstream.
#[rustfmt::skip]
const MODEL_READS: &[(&str, &[ModelRead], usize)] = &[
    ("{rate_limits: {resource_read: {max_calls_per_minute: 1}}, policy: {rules: [{action: require_approval, tool: '*:*terms'}]}}", &[
        (Mute, "shop:terms", "APPROVAL_REQUIRED"), (Yes, "shop:terms", "a text"), (Yes, "shop:keys", "RATE_LIMITED"),
    ], 1),
    ("visibility_profiles: {clerk: {include_namespaces: [shop]}}", &[
        (With("clerk"), "bank:terms", "RESOURCE_NOT_FOUND"), (With("clerk"), "shop:page/1", r#""text":"a text ""#),
    ], 1),
];

#[test]
fn reads_by_a_model_pass_the_guards() {
    run(async {
        for (yaml, reads, reached) in MODEL_READS {
            let scene = scene_of(yaml, &["shop", "bank"]).await;
            for (who, id, part) in *reads {
                let answer = scene.call(&scene.client(*who), "resource_read", json!({ "resource_id": id })).await;
                assert!(answer.to_string().contains(part), "{yaml} {who:?} {id}: {answer}");
            }
            assert_eq!(scene.calls(), *reached, "{yaml}");
        }
    });
}

#[test]
fn a_dry_run_reports_each_check_and_uses_nothing_up() {
    run(async {
        let scene = scene("rate_limits: {tool_execute: {max_calls_per_minute: 1}}").await;
        let caller = scene.client(Mute);
        let dry = || async {
            let arguments = json!({"tool_id": scene.id("price"), "args": {"id": 1}, "dry_run": true});
            let result = scene.call(&caller, "tool_execute", arguments).await;
            serde_json::from_str::<Value>(result["content"][0]["text"].as_str().unwrap()).unwrap()
        };
        for _ in 0..3 {
            let report = dry().await;
            let names: Vec<&str> =
                report["checks"].as_array().unwrap().iter().map(|check| check["name"].as_str().unwrap()).collect();
            assert_eq!(names, ["policy", "schema_validation", "rate_limit"]);
            assert_eq!(report["checks"][2], json!({"name": "rate_limit", "status": "pass"}));
            assert_eq!(report["annotations"], json!({"readOnlyHint": true, "verified": false}));
        }
        assert_eq!(scene.calls(), 0);
        assert_eq!(scene.outcome(&caller, "price", ONE).await, "ok");
        assert_eq!(dry().await["checks"][2]["status"], "fail");
        assert_eq!(scene.calls(), 1);
    });
}

#[test]
fn a_result_says_how_long_its_upstream_took_where_that_is_wanted() {
    run(async {
        let cached = "cache: {read_only: true, allow: [price]}\n";
        let scene_with = scene(&format!("{cached}durations: true\n")).await;
        let caller = scene_with.client(Mute);
        let first = scene_with.execute(&caller, "price", json!({"id": 7})).await;
        let took = first["_meta"]["contextweaver/duration_ms"].as_f64().unwrap();
        assert!((0.0..30_000.0).contains(&took), "{took}");
        let second = scene_with.execute(&caller, "price", json!({"id": 7})).await;
        assert_eq!((scene_with.calls(), second.get("_meta")), (1, None), "what is cached has no time in it");
        assert_eq!(second["content"], first["content"]);
        let without = scene(cached).await;
        let plain = without.execute(&without.client(Mute), "price", json!({"id": 7})).await;
        assert_eq!((plain.get("_meta"), &plain["content"]), (None, &first["content"]));
    });
}

#[test]
fn a_result_says_how_it_came_about() {
    run(async {
        let scene = scene("cache: {read_only: true, allow: [price]}\ntolerant_args: true\n").await;
        let caller = scene.client(Mute);
        let first = scene.execute(&caller, "price", json!({"id": "7", "of": "5"})).await;
        assert_eq!(scene.arguments(), r#"{"id":7,"of":"5"}"#);
        let envelope = &first["structuredContent"];
        assert_eq!(envelope["summary"], "0", "it is cleaned");
        assert_eq!(envelope["provenance"]["arg_repairs"], json!([{"rule": "str_to_integer", "path": "/id"}]));
        let second = scene.execute(&caller, "price", json!({"of": "5", "id": 7})).await;
        assert_eq!(second["structuredContent"]["provenance"]["cache_hit"], true);
        assert_eq!(scene.calls(), 1);
        scene.gateway.refresh().await.unwrap();
        scene.execute(&caller, "price", json!({"of": "5", "id": 7})).await;
        assert_eq!(scene.calls(), 2, "cached results are forgotten when the upstreams list anew");
    });
}

#[test]
fn what_another_process_approves_is_served_and_a_look_writes_nothing() {
    run(async {
        let folder = tempfile::tempdir().unwrap();
        let place = |name: &str| folder.path().join(name);
        let text =
            format!("{{pins: {{mode: strict, file: '{}'}}, state: '{}'}}", place("p").display(), place("s").display());
        let scene = scene(&text).await;
        scene.change_definition().await;
        let waits = || scene.gateway.catalog().quarantined.len();
        assert_eq!(waits(), 1);
        let before = std::fs::read(place("p")).unwrap();
        // What is looked at is held against the same pins, and leaves them as they are.
        let mut guards = scene.gateway.config().guards.clone();
        guards.access = Access::Look;
        guards.pins.new_tools = NewTools::Quarantine;
        let look = Guards::new(guards, false).unwrap();
        let snapshot = scene.gateway.catalog();
        let mut items: Vec<SelectableItem> = snapshot
            .tools
            .as_ref()
            .unwrap()
            .router
            .catalog()
            .items()
            .iter()
            .map(|item| SelectableItem { name: "other".to_owned(), ..item.clone() })
            .collect();
        assert!(!look.vet(&mut items).unwrap().is_empty());
        assert_eq!(std::fs::read(place("p")).unwrap(), before);
        let pins = scene.gateway.config().guards.open_pins().unwrap();
        pins.approve(None, None, &digest(&pins.waiting(None, None).unwrap())).unwrap();
        while waits() > 0 {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
        assert!(scene.id("price").contains(":price"));
    });
}

#[test]
fn a_definition_that_changes_is_quarantined() {
    run(async {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pins.json");
        let scene = scene(&format!("pins: {{mode: strict, file: '{}'}}", path.display())).await;
        let (caller, id) = (scene.client(Mute), scene.id("price"));
        scene.change_definition().await;
        let call = |id: String| scene.call(&caller, "tool_execute", json!({"tool_id": id, "args": {"id": 1}}));
        let refused = call(id.clone()).await["content"][0]["text"].to_string();
        assert!(refused.contains("QUARANTINED") && refused.contains("changed (description)"), "{refused}");
        let browsed = scene.call(&caller, "tool_browse", json!({"query": "price of a thing"})).await.to_string();
        assert!(!browsed.contains("keys") && !browsed.contains(&id), "{browsed}");
        assert_eq!(scene.calls(), 0);
        let pins = scene.gateway.config().guards.open_pins().unwrap();
        let hash = digest(&pins.waiting(Some("shop"), Some("price")).unwrap());
        assert_eq!(pins.approve(Some("shop"), Some("price"), &hash).unwrap().len(), 1);
        scene.gateway.refresh().await.unwrap();
        call(id).await;
        assert_eq!(scene.calls(), 1);
    });
}

#[test]
fn a_signed_call_is_taken_once() {
    run(async {
        let yaml = "signing: {keys: {peer: 0123456789abcdef0123456789abcdef}, incoming: required}";
        let scene = scene(yaml).await;
        let caller = scene.client(Mute);
        let signing = scene.gateway.config().guards.signing.clone().unwrap();
        let arguments = json!({"tool_id": scene.id("price"), "args": {"id": 1}});
        let now = SystemClock.now();
        let signature = signing.sign_call("peer", "tool_execute", &Raw::of(&arguments).to_raw_value(), now).unwrap();
        let send = |arguments: Value, signature: Option<Signature>| {
            let meta = signature.map(|signature| json!({ (sign::SIGNATURE): signature })).unwrap_or(json!({}));
            let params = Raw::of(&json!({"name": "tool_execute", "arguments": arguments, "_meta": meta}));
            let (gateway, caller) = (Arc::clone(&scene.gateway), caller.clone());
            async move { gateway.answer(&caller, "tools/call", Some(&params)).await.unwrap() }
        };
        let text = |raw: &Raw| String::from_utf8(raw.bytes().to_vec()).unwrap();
        let unsigned = send(arguments.clone(), None).await;
        assert!(text(&unsigned).contains("AUTH_FAILED"));
        let altered = send(json!({"tool_id": scene.id("delete"), "args": {}}), Some(signature.clone())).await;
        assert!(text(&altered).contains("not valid"));
        assert_eq!(scene.calls(), 0);
        let answer = send(arguments.clone(), Some(signature.clone())).await;
        assert!(signing.verify_result(&answer, &signature, now).is_ok(), "{answer:?}");
        assert_eq!(scene.calls(), 1);
        let again = send(arguments.clone(), Some(signature)).await;
        assert!(text(&again).contains("used before"), "{again:?}");
        assert_eq!(scene.calls(), 1);
        let metrics = scene.gateway.metrics_text();
        for reason in ["missing", "invalid", "replayed"] {
            let line = format!("signatures_refused_total{{signed=\"call\",reason=\"{reason}\"}} 1");
            assert!(metrics.contains(&line), "{metrics}");
        }
    });
}

#[test]
fn a_question_is_for_those_who_can_answer_and_carries_nothing_else() {
    run(async {
        for mode in ["gateway", "proxy"] {
            let scene = scene(&format!("mode: {mode}")).await;
            let call = |caller: Caller, name: &str, more: Value| {
                let mut params = json!({"name": "tool_execute", "arguments": {"tool_id": scene.id(name)}});
                params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
                let scene = &scene;
                async move { scene.ask(&caller, "tools/call", params).await.unwrap() }
            };
            let legacy =
                call(scene.known(Identity { name: "a".to_owned(), profile: None }, Some(json!({}))), "ask", json!({}))
                    .await
                    .to_string();
            assert!(legacy.contains("UPSTREAM_ERROR") && legacy.contains("no way to give it"), "{legacy}");
            let smuggled = call(scene.modern("a"), "smuggle", json!({})).await.to_string();
            assert!(smuggled.contains("UPSTREAM_ERROR") && !smuggled.contains("obey"), "{smuggled}");
            let question = call(scene.modern("a"), "ask", json!({})).await;
            let message = &question["inputRequests"]["who"]["params"]["message"];
            let expected =
                if mode == "gateway" { "shop asks: who are you?" } else { "shop asks: who <|im_start|>are you?" };
            assert_eq!((message, &question["requestState"]), (&json!(expected), &json!("own state")));
            let answers = json!({"inputResponses": {"who": {"content": "Ann"}}, "requestState": "own state"});
            let answer = call(scene.modern("a"), "ask", answers).await.to_string();
            assert!(answer.contains("Ann") && answer.contains("own state"), "{answer}");
        }
    });
}

#[test]
fn a_client_without_a_session_approves_by_a_second_call() {
    run(async {
        let yaml = "{policy: {rules: [{action: require_approval, tool: '*', reason: why}]}, \
                    rate_limits: {tool_execute: {max_calls_per_minute: 5}}}";
        let scene = scene(yaml).await;
        let call = |who: &str, name: &str, args: Value, more: &Value| {
            let mut params = json!({"name": "tool_execute", "arguments": {"tool_id": scene.id(name), "args": args}});
            params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            let (scene, caller) = (&scene, scene.modern(who));
            async move { scene.ask(&caller, "tools/call", params).await.unwrap() }
        };
        let answer = |question: &Value, action: &str| {
            let name = QUESTION;
            assert_eq!(question["inputRequests"][name]["method"], "elicitation/create", "{question}");
            let content = json!({"action": action, "content": {"approve": true}});
            json!({"inputResponses": {(name): content}, "requestState": question["requestState"]})
        };
        let (one, nothing) = (json!({"id": 1}), json!({}));
        let question = call("a", "price", one.clone(), &nothing).await;
        let message = question["inputRequests"][QUESTION]["params"]["message"].to_string();
        assert!(
            message.contains("Allow a call to") && message.contains("why") && message.contains("id = 1"),
            "{message}"
        );
        let yes = answer(&question, "accept");
        // A yes is for its own call and caller, with the gateway's own state, and once.
        assert!(call("a", "price", json!({"id": 2}), &yes).await["inputRequests"].is_object());
        assert!(call("b", "price", one.clone(), &yes).await["inputRequests"].is_object());
        let unasked = json!({"inputResponses": yes["inputResponses"], "requestState": "mine"});
        assert!(call("a", "price", one.clone(), &unasked).await["inputRequests"].is_object());
        assert_eq!(scene.calls(), 0);
        assert_eq!(call("a", "price", one.clone(), &yes).await["isError"], false);
        assert_eq!(scene.calls(), 1);
        assert!(call("a", "price", one.clone(), &yes).await["inputRequests"].is_object());
        let no = answer(&call("a", "price", one.clone(), &nothing).await, "decline");
        assert!(call("a", "price", one.clone(), &no).await.to_string().contains("APPROVAL_REQUIRED"));
        assert_eq!(scene.calls(), 1);
        // What the upstream asks after the approval is answered under the same approval.
        let yes = answer(&call("c", "ask", nothing.clone(), &nothing).await, "accept");
        let asked = call("c", "ask", nothing.clone(), &yes).await;
        assert_eq!(asked["inputRequests"]["who"]["params"]["message"], "shop asks: who are you?");
        let more = json!({"inputResponses": {"who": {"content": "Ann"}}, "requestState": asked["requestState"]});
        let done = call("c", "ask", nothing.clone(), &more).await["structuredContent"]["summary"].to_string();
        assert!(done.contains("Ann") && done.contains("own state"), "{done}");
        assert_eq!(scene.calls(), 3);
        assert!(call("c", "ask", nothing.clone(), &more).await["inputRequests"][QUESTION].is_object());
        // A question uses nothing up, and is not put where the call would be refused.
        for _ in 0..9 {
            assert!(call("d", "price", one.clone(), &nothing).await["inputRequests"].is_object());
        }
        for _ in 0..5 {
            let yes = answer(&call("d", "price", one.clone(), &nothing).await, "accept");
            assert_eq!(call("d", "price", one.clone(), &yes).await["isError"], false);
        }
        assert!(call("d", "price", one, &nothing).await.to_string().contains("RATE_LIMITED"));
    });
}

#[test]
fn each_attempt_is_signed_anew_and_each_answer_must_be() {
    const KEYS: &str = "0123456789abcdef0123456789abcdef";
    run(async {
        let signing = SigningConfig {
            keys: [("k".to_owned(), sign::Key::new(KEYS).unwrap())].into(),
            upstreams: [("shop".to_owned(), "k".to_owned())].into(),
            incoming: Incoming::Optional,
            window: Duration::from_secs(300),
            max_nonces: 10,
        };
        // A peer that knows the key: it fails once, then signs, forges, leaves out, and refuses.
        let nonces: Arc<Mutex<Vec<String>>> = Arc::default();
        let (peer, seen) = (signing.clone(), Arc::clone(&nonces));
        let answer = move |method: &str, params: Option<&Raw>| {
            let params: Value = params.and_then(|params| params.read().ok()).unwrap_or_default();
            match method {
                "tools/list" => {
                    return Ok(Raw::of(&json!({"tools": [{"name": "t", "inputSchema": {"type": "object"}}]})));
                }
                "tools/call" => {}
                _ => return Shop::default().answer(method, None),
            }
            let signature: Signature = serde_json::from_value(params["_meta"][sign::SIGNATURE].clone()).unwrap();
            let now = SystemClock.now();
            peer.verify_call(&signature, "t", &Raw::of(&params["arguments"]).to_raw_value(), now).unwrap();
            lock(&seen).push(signature.nonce.clone());
            let result = Raw::of(&json!({"content": [{"type": "text", "text": "right"}]}));
            let signed = peer.sign_result(&result, &signature, now).unwrap();
            Ok(match lock(&seen).len() {
                1 => return Err(Fault::Timeout(Duration::from_secs(1))),
                2 => signed,
                3 => Raw::of_text(String::from_utf8(signed.bytes().to_vec()).unwrap().replace("right", "wrong")),
                4 => result,
                _ => SignatureError::Time { seconds: 400, window: 300 }.of_call().to_result(),
            })
        };
        let mut config =
            GatewayConfig::parse("retry: {max_attempts: 2, base_delay: 0}", Path::new("."), &|_| None).unwrap();
        config.upstreams.insert("shop".to_owned(), upstream(answer));
        config.guards.signing = Some(signing);
        let scene = Scene { shop: Arc::default(), gateway: Gateway::start(config).await.unwrap() };
        let caller = scene.client(Mute);
        let text = || async {
            let result = scene.execute(&caller, "t", json!({})).await;
            result["content"][0]["text"].as_str().unwrap().to_owned()
        };
        assert!(text().await.contains("right"), "the second attempt has its own nonce");
        assert!(text().await.contains("its signature is not valid"));
        assert!(text().await.contains("it is not signed\""));
        let refused = text().await;
        assert!(refused.contains("unsigned, it says: the call is refused: its time is 400 s from ours"), "{refused}");
        let seen: BTreeSet<String> = lock(&nonces).iter().cloned().collect();
        assert_eq!(seen.len(), 5);
        let metrics = scene.gateway.metrics_text();
        for line in [r#"{signed="answer",reason="invalid"} 1"#, r#"{signed="answer",reason="missing"} 2"#] {
            assert!(metrics.contains(&format!("contextweaver_signatures_refused_total{line}")), "{metrics}");
        }
    });
}

#[test]
fn what_does_not_go_together_is_refused() {
    let cases = [
        ("mode: passthrough\npolicy_preset: safe\n", "mode: is `passthrough`"),
        ("visibility_profile: none", "visibility_profile: there is no `none`"),
        ("visibility_profiles: {a: {exclude_tags: [b]}}", "visibility_profiles.a.exclude_tags: `b` is not in"),
        ("policy: {rules: [{action: deny, tags: [b]}]}", "policy.rules[0].tags: `b` is not in"),
        ("policy: {tools_file: none.yaml}", "policy.tools_file: "),
        ("cache: {ttl_seconds: 0}", "cache.ttl_seconds: is 0"),
        ("cache: {max_entries: 0}", "`cache`: the value is not a nonzero usize"),
        ("signing: {keys: {a: '${env:NONE}'}}", "signing.keys.a: the variable `NONE` is not set"),
        ("pins: {mode: on}", "`mode`: the value is not one of off, warn, strict"),
        ("schemas: {max_size: 1}", "unknown field"),
        ("sanitize: {scope: some}", "`scope`: the value is not one of off, shown, all"),
    ];
    for (yaml, expected) in cases {
        let message = GatewayConfig::parse(yaml, Path::new("."), &|_| None).unwrap_err().to_string();
        assert!(message.contains(expected), "{yaml}: {message}");
    }
}

#[test]
fn a_preset_is_a_policy_with_all_it_needs_and_gives_way() {
    let shown = |yaml: &str| {
        let guards = GatewayConfig::parse(yaml, Path::new("."), &|_| None).unwrap().guards;
        let minute = guards.rate_limits.tool_execute.max_calls_per_minute;
        format!("{:?} {minute:?} {}", guards.policy.default, guards.cache.read_only)
    };
    assert_eq!(shown("policy_preset: safe"), "Some(RequireApproval) Some(30) false");
    assert_eq!(shown("policy_preset: balanced"), "Some(Allow) Some(120) false");
    assert_eq!(shown("policy_preset: throughput"), "Some(Allow) None true");
    let own = "policy_preset: safe\npolicy: {default: deny}\nrate_limits: {tool_execute: {max_calls_per_minute: 5}}\n";
    assert_eq!(shown(own), "Some(Deny) Some(5) false");
    assert_eq!(shown("{}"), "None None false");
}
