//! Callers are tenants: nothing that one was given is of use to another, on any surface.

use std::path::Path;

use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::shop::{Scene, run, scene_of};
use crate::protocol::message::Raw;
use crate::{Caller, Gateway, GatewayConfig, Identity};
use contextweaver_context::event::ContentHash;

/// Results of any size are stored, and some are cached.
const STORES: &str =
    "{visibility_profiles: {narrow: {}}, firewall: {threshold_chars: 1}, cache: {read_only: true, allow: ['*']}}";

/// Three callers that differ in their names or in their profiles alone.
fn callers(scene: &Scene) -> Vec<Caller> {
    let known = |name: &str, profile: Option<&str>| {
        scene.known(Identity { name: name.to_owned(), profile: profile.map(str::to_owned) }, None)
    };
    vec![known("ann", None), known("bob", None), known("ann", Some("narrow"))]
}

/// The text of the first block of an answer, as JSON.
fn read(answer: &Value) -> Value {
    serde_json::from_str(answer["content"][0]["text"].as_str().unwrap()).unwrap_or_default()
}

/// Handles that a caller gets from a tool and from a resource.
async fn stored(scene: &Scene, caller: &Caller) -> Vec<String> {
    let of_tool = scene.call(caller, "tool_execute", json!({"tool_id": scene.id("report")})).await;
    let of_resource = scene.call(caller, "resource_read", json!({"resource_id": "shop:report"})).await;
    let handle = |answer: &Value| read(answer)["artifacts"][0]["handle"].as_str().unwrap_or_default().to_owned();
    vec![handle(&of_tool), handle(&of_resource)]
}

#[test]
fn no_name_of_one_caller_opens_anything_to_another() {
    run(async {
        let scene = scene_of(STORES, &["shop"]).await;
        let callers = callers(&scene);
        let mut names = Vec::new();
        for caller in &callers {
            names.push(stored(&scene, caller).await);
        }
        assert!(names.iter().flatten().all(|name| !name.is_empty()), "{names:?}");
        for (reader, caller) in callers.iter().enumerate() {
            for (owner, handles) in names.iter().enumerate() {
                for handle in handles {
                    let view = |handle: &str| json!({"handle": handle, "selector": "head:40"});
                    let answer = scene.call(caller, "tool_view", view(handle)).await;
                    assert_eq!(answer["isError"] == true, reader != owner, "{reader} reads {handle} of {owner}");
                    // Who has a handle reads it like a resource; for others it is one that nobody lists.
                    let read_as = scene.call(caller, "resource_read", json!({"resource_id": handle})).await;
                    if reader == owner {
                        assert!(read_as["isError"] == false, "{handle}: {read_as}");
                        continue;
                    }
                    assert_eq!(read(&read_as)["error"], "RESOURCE_NOT_FOUND", "{handle}");
                    // What is refused is refused as what was never there, but for the name itself.
                    let never = format!("{}0", &handle[..handle.len() - 1]);
                    let refused = |answer: &Value, name: &str| {
                        let text = answer["content"][0]["text"].as_str().unwrap().replace(name, "NAME");
                        let mut said: Value = serde_json::from_str(&text).unwrap();
                        // These are the caller's own.
                        said["details"].as_object_mut().unwrap().remove("nearest");
                        said
                    };
                    let unknown = scene.call(caller, "tool_view", view(&never)).await;
                    assert_eq!(refused(&answer, handle), refused(&unknown, &never));
                    for other in &names[owner] {
                        assert!(!answer["content"][0]["text"].as_str().unwrap().replace(handle, "").contains(other));
                    }
                }
            }
        }
    });
}

#[test]
fn a_handle_is_not_guessed_from_what_the_result_may_be() {
    run(async {
        let scene = scene_of(STORES, &["shop"]).await;
        let caller = &callers(&scene)[0];
        stored(&scene, caller).await;
        let text = super::shop::REPORT;
        let result = Raw::of(&json!({"content": [{"type": "text", "text": text}]}));
        let key = [scene.id("report").as_bytes(), b"{}", result.bytes()].join(&b'\n');
        let guess = format!("artifact:result:{}", &ContentHash::of(&key).as_str()[7..19]);
        let answer = scene.call(caller, "tool_view", json!({"handle": guess, "selector": "head:40"})).await;
        assert_eq!(read(&answer)["details"]["reason"], "unknown", "{guess}: {answer}");
    });
}

#[test]
fn what_is_stored_on_disk_keeps_its_handle_and_its_owner() {
    run(async {
        let folder = tempfile::tempdir().unwrap();
        for path in ["kept", "kept.sqlite"] {
            let path = folder.path().join(path);
            let yaml = format!("{{artifacts: {{path: {}}}, {}", path.display(), &STORES[1..]);
            let (before, after) = (scene_of(&yaml, &["shop"]).await, scene_of(&yaml, &["shop"]).await);
            let handle = &stored(&before, &callers(&before)[0]).await[0];
            assert_eq!(*handle, stored(&after, &callers(&after)[0]).await[0], "a restart uses no handle anew");
            let view = json!({"handle": handle, "selector": "head:40"});
            for (number, caller) in callers(&after).iter().enumerate() {
                let answer = after.call(caller, "tool_view", view.clone()).await;
                assert_eq!(answer["isError"] == true, number != 0, "{path:?}, caller {number}: {answer}");
            }
        }
        // Two stores in memory have two keys.
        let (one, two) = (scene_of(STORES, &["shop"]).await, scene_of(STORES, &["shop"]).await);
        assert_ne!(stored(&one, &callers(&one)[0]).await[0], stored(&two, &callers(&two)[0]).await[0]);
    });
}

#[test]
fn results_of_one_caller_are_not_answers_to_another() {
    run(async {
        let scene = scene_of(STORES, &["shop"]).await;
        let callers = callers(&scene);
        for expected in [3, 3] {
            for caller in &callers {
                scene.execute(caller, "price", json!({"id": 1})).await;
            }
            assert_eq!(scene.calls(), expected, "each is answered from what it was given itself");
        }
    });
}

#[test]
fn an_approval_is_for_the_caller_and_profile_that_were_asked() {
    run(async {
        let yaml = "{visibility_profiles: {narrow: {}}, policy: {rules: [{action: require_approval, tool: price}]}}";
        let scene = scene_of(yaml, &["shop"]).await;
        let asked = |name: &str, profile: Option<&str>| {
            scene.modern_of(Identity { name: name.to_owned(), profile: profile.map(str::to_owned) })
        };
        let arguments = json!({"tool_id": scene.id("price"), "args": {"id": 1}});
        let call = |more: Value| {
            let mut params = json!({"name": "tool_execute", "arguments": arguments});
            params.as_object_mut().unwrap().extend(more.as_object().cloned().unwrap());
            params
        };
        let question = scene.ask(&asked("ann", None), "tools/call", call(json!({}))).await.unwrap();
        let yes = json!({"action": "accept", "content": {"approve": true}});
        let brought = call(json!({
            "requestState": question["requestState"],
            "inputResponses": {(crate::guard::approval::QUESTION): yes},
        }));
        for (name, profile) in [("bob", None), ("ann", Some("narrow"))] {
            let answer = scene.ask(&asked(name, profile), "tools/call", brought.clone()).await.unwrap();
            assert!(answer["resultType"] == "input_required" || answer["isError"] == true, "{name}: {answer}");
        }
        assert_eq!(scene.calls(), 0);
        scene.ask(&asked("ann", None), "tools/call", brought).await.unwrap();
        assert_eq!(scene.calls(), 1);
    });
}

#[test]
fn subscriptions_of_one_caller_are_neither_ended_nor_crowded_out_by_another() {
    run(async {
        let scene = scene_of("{mode: proxy, visibility_profiles: {narrow: {}}}", &["shop", "bank"]).await;
        let callers = callers(&scene);
        let terms = json!({"uri": "shop:terms"});
        scene.ask(&callers[0], "resources/subscribe", terms.clone()).await.unwrap();
        let reached = scene.calls();
        scene.ask(&callers[1], "resources/unsubscribe", terms.clone()).await.unwrap();
        assert_eq!(scene.calls(), reached, "the upstream still tells of it");
        let mut refused = None;
        for number in 0..crate::session::subscriptions::MOST_OF_ONE + 1 {
            let answer =
                scene.ask(&callers[1], "resources/subscribe", json!({"uri": format!("shop:page/{number}")})).await;
            refused = answer.err();
        }
        assert!(refused.is_some(), "the resources that one caller watches are bounded");
        scene.ask(&callers[2], "resources/subscribe", json!({"uri": "shop:keys"})).await.unwrap();
    });
}

#[test]
fn a_key_that_cannot_be_kept_is_an_error_and_not_a_weaker_handle() {
    run(async {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("key"), b"short").unwrap();
        let yaml = format!("artifacts: {{path: {}}}", folder.path().display());
        let config = GatewayConfig::parse(&yaml, Path::new("."), &|_| None).unwrap();
        let error = Gateway::start(config).await.unwrap_err().to_string();
        assert!(error.contains("key"), "{error}");
    });
}

#[test]
fn a_progress_token_that_cannot_be_read_reaches_no_upstream() {
    run(async {
        let scene = scene_of("{mode: passthrough}", &["shop"]).await;
        let caller = &callers(&scene)[0];
        let ask = async |meta: &str| {
            let text = format!(r#"{{"name": "price", "arguments": {{"id": 1}}, "_meta": {meta}}}"#);
            let params = Raw::of(&serde_json::from_str::<Box<RawValue>>(&text).unwrap());
            scene.ask_raw(caller, "tools/call", &params).await.map(drop)
        };
        let long = format!(r#"{{"progressToken": "{}"}}"#, "x".repeat(300));
        for meta in [
            r#"{"progressToken": 1, "progressToken": 2}"#,
            r#"{}, "_meta": {"progressToken": 2}"#,
            r#"{"progressToken": {"a": 1}}"#,
            &long,
            "7",
        ] {
            assert_eq!(ask(meta).await, Err("-32602 ".to_owned()), "{meta}");
        }
        assert_eq!(scene.calls(), 0);
        assert_eq!(ask(r#"{"progressToken": 1}"#).await, Ok(()));
    });
}
