//! What a model that searches and calls is told: names that lead to a tool, arguments, several queries, nothing that fits,
//! and what calls teach.

use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};

use super::shop::{Scene, Who, run, scene, upstream};
use crate::protocol::message::Raw;
use crate::{Caller, Gateway, GatewayConfig};
use contextweaver_core::text::Estimator;

/// The text of an answer.
async fn text(scene: &Scene, caller: &Caller, tool: &str, arguments: Value) -> String {
    let answer = scene.call(caller, tool, arguments).await;
    answer["content"][0]["text"].as_str().unwrap_or_default().to_owned()
}

/// A gateway in front of an office with tools for many things.
async fn office(yaml: &str) -> (std::sync::Arc<Gateway>, Caller) {
    let mut config = GatewayConfig::parse(yaml, Path::new("."), &|_| None).unwrap();
    let tool = |name: &str, description: &str, properties: Value| json!({"name": name, "description": description, "inputSchema": {"type": "object", "properties": properties}});
    let tools = json!([
        tool(
            "create_issue",
            "Create an issue in the tracker",
            json!({"title": {"type": "string"}, "state": {"enum": ["open", "closed"]}})
        ),
        tool("search_issues", "Search the issues of the tracker", json!({"query": {"type": "string"}})),
        tool("send_mail", "Send a mail to somebody", json!({"to": {"type": "string"}})),
        tool("read_calendar", "Read the events of a day from the calendar", json!({"day": {"type": "string"}})),
        tool("get_weather", "Get the weather forecast of a city", json!({"city": {"type": "string"}})),
    ]);
    let answer = move |method: &str, params: Option<&Raw>| {
        let params: Value = params.and_then(|params| params.read().ok()).unwrap_or_default();
        Ok(Raw::of(&match method {
            "initialize" => {
                json!({"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "o", "version": "1"}})
            }
            "tools/list" => json!({"tools": tools}),
            _ => {
                json!({"content": [{"type": "text", "text": "done"}], "isError": params["arguments"]["to"] == "nobody"})
            }
        }))
    };
    config.upstreams.insert("office".to_owned(), upstream(answer));
    let gateway = Gateway::start(config).await.unwrap();
    let scene = Scene { shop: std::sync::Arc::default(), gateway: std::sync::Arc::clone(&gateway) };
    let caller = scene.client(Who::Mute);
    (gateway, caller)
}

async fn ask(gateway: &Gateway, caller: &Caller, tool: &str, arguments: Value) -> String {
    let params = Raw::of(&json!({"name": tool, "arguments": arguments}));
    let answer: Value = gateway.answer(caller, "tools/call", Some(&params)).await.unwrap().read().unwrap();
    answer["content"][0]["text"].as_str().unwrap_or_default().to_owned()
}

#[test]
fn names_as_models_write_them_lead_to_the_tool_or_to_the_nearest() {
    run(async {
        let scene = scene("").await;
        let caller = scene.client(Who::Mute);
        let id = scene.id("report");
        for name in [&id, "shop:report", "report", "REPORT", "shop__report", "shop.report", &crate::published_name(&id)]
        {
            let said = text(&scene, &caller, "tool_execute", json!({"tool_id": name})).await;
            assert!(said.starts_with("the salary"), "{name}: {said}");
        }
        let calls = scene.calls();
        for (name, part) in [
            ("reprot", format!("the nearest is {id}")),
            ("shop:report#00000000", format!("the nearest is {id}")),
            ("zebra", "no such tool is in the catalog now; find one with tool_browse".to_owned()),
        ] {
            let said = text(&scene, &caller, "tool_execute", json!({"tool_id": name})).await;
            assert!(said.contains("HYDRATE_FAILED") && said.contains(&part), "{name}: {said}");
        }
        assert_eq!(scene.calls(), calls, "nothing is guessed");
    });
}

#[test]
fn a_server_that_does_not_answer_is_not_searched_for_in_vain() {
    const DOWN: &str = "upstreams: {tickets: {command: /no/such/program}}";
    const SAID: &str = "not available now, since their servers do not answer: tickets";
    run(async {
        for cards in ["lines", "json"] {
            let (gateway, caller) = office(&format!("{{cards: {cards}, {DOWN}}}")).await;
            let found = async |arguments: Value| {
                let params = Raw::of(&json!({"name": "tool_browse", "arguments": arguments}));
                let answer = gateway.answer(&caller, "tools/call", Some(&params)).await.unwrap();
                let answer: Value = answer.read().unwrap();
                let parts = answer["content"].as_array().unwrap().iter();
                parts.filter_map(|part| part["text"].as_str()).collect::<Vec<_>>().join("\n")
            };
            for asked in [json!({"query": "xylophone"}), json!({"path": "/"}), json!({"query": "walk the dog"})] {
                let page = found(asked).await;
                assert!(page.ends_with(SAID), "{cards}: {page}");
            }
            let fits = found(json!({"query": "create an issue"})).await;
            assert!(!fits.contains("not available"), "{fits}");
        }
        let (gateway, caller) = office(&format!("{{{DOWN}}}")).await;
        for (tool, arguments) in [
            ("tool_execute", json!({"tool_id": "tickets:create_ticket"})),
            ("tool_execute", json!({"tool_id": "tickets__create_ticket__1a2b3c4d"})),
            ("tool_hydrate", json!({"tool_id": "tickets:create_ticket#1a2b3c4d"})),
            ("tool_browse", json!({"path": "/tickets"})),
            ("tool_browse", json!({"path": "/tickets/create"})),
        ] {
            let said: Value = serde_json::from_str(&ask(&gateway, &caller, tool, arguments.clone()).await).unwrap();
            assert_eq!(
                (&said["error"], &said["retryable"]),
                (&json!("UPSTREAM_UNAVAILABLE"), &json!(true)),
                "{arguments}"
            );
        }
        for (tool, arguments, code) in [
            ("tool_execute", json!({"tool_id": "tickettes:create_ticket"}), "HYDRATE_FAILED"),
            ("tool_browse", json!({"path": "/tickettes"}), "PATH_NOT_FOUND"),
        ] {
            let said = ask(&gateway, &caller, tool, arguments).await;
            assert!(said.contains(code), "{said}");
        }
    });
}

#[test]
fn a_profile_does_not_learn_of_servers_that_it_does_not_show() {
    run(async {
        let yaml = "{visibility_profiles: {narrow: {exclude_namespaces: [tickets]}, wide: {exclude_tools: [price]}}, \
                    upstreams: {tickets: {command: /no/such/program}}}";
        let scene = scene(yaml).await;
        for (who, is_told) in [(Who::With("narrow"), false), (Who::With("wide"), true), (Who::Mute, true)] {
            let caller = scene.client(who);
            let page = text(&scene, &caller, "tool_browse", json!({"path": "/"})).await;
            assert_eq!(page.contains("tickets"), is_told, "{who:?}: {page}");
            let said = text(&scene, &caller, "tool_execute", json!({"tool_id": "tickets:create_ticket"})).await;
            assert_eq!(said.contains("UPSTREAM_UNAVAILABLE"), is_told, "{who:?}: {said}");
        }
    });
}

#[test]
fn a_name_of_several_tools_is_answered_with_all_of_them() {
    run(async {
        let scene = super::shop::scene_of("", &["shop", "bank"]).await;
        let caller = scene.client(Who::Mute);
        let said = text(&scene, &caller, "tool_execute", json!({"tool_id": "report"})).await;
        assert!(said.contains("several tools are called so") && said.contains("bank:report#"), "{said}");
        let said = text(&scene, &caller, "tool_execute", json!({"tool_id": "bank:report"})).await;
        assert!(said.starts_with("the salary"), "{said}");
    });
}

#[test]
fn what_does_not_fit_is_answered_with_what_would() {
    run(async {
        let (gateway, caller) = office("").await;
        let wrong = json!({"tool_id": "create_issue", "args": {"title": "T", "state": "shut"}});
        let said: Value = serde_json::from_str(&ask(&gateway, &caller, "tool_execute", wrong).await).unwrap();
        assert_eq!(said["details"]["arguments"], r#"{title?: string, state?: "open"|"closed"}"#);
        assert_eq!(said["details"]["example"], json!({"title": "T"}));
        let again = json!({"tool_id": "create_issue", "args": said["details"]["example"]});
        assert_eq!(ask(&gateway, &caller, "tool_execute", again).await, "done");
        for (tool, arguments) in [
            ("tool_execute", json!({"args": {}})),
            ("tool_browse", json!({"query": "a", "path": "/"})),
            ("tool_browse", json!({"query": "a", "queries": ["b"]})),
            ("tool_browse", json!({"queries": []})),
            ("tool_browse", json!({"queries": ["a", "b", "c", "d", "e", "f"]})),
            ("tool_browse", json!({"query": 7})),
        ] {
            let said: Value = serde_json::from_str(&ask(&gateway, &caller, tool, arguments.clone()).await).unwrap();
            assert_eq!(said["error"], "ARGS_INVALID", "{arguments}");
            assert!(said["details"]["arguments"].as_str().unwrap().starts_with('{'), "{said}");
            assert!(said["details"]["example"].is_object(), "{said}");
        }
    });
}

#[test]
fn arguments_are_shown_on_request_and_a_page_stays_in_its_bound() {
    run(async {
        let (gateway, caller) = office("").await;
        let page = ask(&gateway, &caller, "tool_browse", json!({"query": "create an issue", "detail": true})).await;
        assert!(page.contains("\n  {title?: string, state?: \"open\"|\"closed\"}\n"), "{page}");
        assert!(Estimator::Cl100kBase.count(&page) <= 80 * 5 + 32, "{page}");
        let json = office("cards: json").await;
        let params =
            Raw::of(&json!({"name": "tool_browse", "arguments": {"query": "create an issue", "detail": true}}));
        let answer: Value = json.0.answer(&json.1, "tools/call", Some(&params)).await.unwrap().read().unwrap();
        let cards = answer["content"][0]["text"].as_str().unwrap();
        assert!(
            !cards.contains("open") && answer["content"][1]["text"].as_str().unwrap().contains("\\\"open\\\""),
            "{answer}"
        );
        // One tool that is named by its id or path is shown whole, and so is what is hydrated.
        for (tool, arguments) in [
            ("tool_browse", json!({"query": "office:create_issue", "detail": true})),
            ("tool_browse", json!({"path": "/office/create_issue", "detail": true})),
            ("tool_hydrate", json!({"tool_id": "create_issue"})),
        ] {
            let said: Value = serde_json::from_str(&ask(&gateway, &caller, tool, arguments.clone()).await).unwrap();
            assert_eq!((&said["name"], said["inputSchema"].is_object()), (&json!("create_issue"), true), "{arguments}");
        }
    });
}

#[test]
fn a_tool_with_a_long_name_costs_the_others_nothing() {
    run(async {
        let long = "Q9_xZ7-b".repeat(16);
        let tool =
            |name: &str| json!({"name": name, "description": "Open a ticket", "inputSchema": {"type": "object"}});
        let tools = json!([tool(&long), tool("open_ticket")]);
        for (yaml, budget) in [("", Some(80 * 5 + 32)), ("cards: json", None)] {
            let mut config = GatewayConfig::parse(yaml, Path::new("."), &|_| None).unwrap();
            let tools = tools.clone();
            let answer = move |method: &str, _: Option<&Raw>| {
                Ok(Raw::of(&match method {
                    "initialize" => json!({"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}}),
                    _ => json!({ "tools": tools }),
                }))
            };
            config.upstreams.insert("desk".to_owned(), upstream(answer));
            let gateway = Gateway::start(config).await.unwrap();
            let scene = Scene { shop: std::sync::Arc::default(), gateway: std::sync::Arc::clone(&gateway) };
            let caller = scene.client(Who::Mute);
            for arguments in [
                json!({"query": "open a ticket"}),
                json!({"query": "open a ticket", "detail": true}),
                json!({"path": "/desk"}),
            ] {
                let page = ask(&gateway, &caller, "tool_browse", arguments.clone()).await;
                assert!(page.contains("desk:open_ticket#") && page.contains(&long), "{arguments}: {page}");
                assert!(budget.is_none_or(|most| Estimator::Cl100kBase.count(&page) <= most), "{page}");
            }
        }
    });
}

#[test]
fn several_queries_are_one_search() {
    run(async {
        let (gateway, caller) = office("top_k: 3").await;
        let queries = json!({"queries": ["create issue", "send mail", "create an issue"]});
        let page = ask(&gateway, &caller, "tool_browse", queries).await;
        let ids: Vec<&str> = page.lines().filter_map(|line| line.split('#').next()).collect();
        assert_eq!(ids[..2], ["office:create_issue", "office:send_mail"], "{page}");
        assert_eq!(ids.iter().filter(|id| **id == "office:create_issue").count(), 1, "{page}");
        // A model that writes several under the name of one is understood.
        let same =
            ask(&gateway, &caller, "tool_browse", json!({"query": ["create issue", "send mail", "create an issue"]}));
        assert_eq!(same.await, page);
        let page = ask(&gateway, &caller, "tool_browse", json!({"queries": ["create issue", "walk the dog"]})).await;
        assert!(page.ends_with("(nothing fits `walk the dog` well)"), "{page}");
    });
}

#[test]
fn that_nothing_fits_is_said_and_how_to_ask_better() {
    run(async {
        let (gateway, caller) = office("").await;
        let page = ask(&gateway, &caller, "tool_browse", json!({"query": "order a pizza"})).await;
        assert!(page.starts_with("nothing fits well; the nearest are:\noffice:"), "{page}");
        assert!(
            page.ends_with(
                "(ask again in words that a tool's author would use, one step at a time, or list `path`: `/`)"
            )
        );
        let page = ask(&gateway, &caller, "tool_browse", json!({"query": "create an issue"})).await;
        assert!(page.starts_with("office:create_issue#") && !page.contains("nothing fits"), "{page}");
        let (always, caller) = office("routing: {abstain_below: 0}").await;
        let page = ask(&always, &caller, "tool_browse", json!({"query": "order a pizza"})).await;
        assert!(!page.contains("nothing fits"), "{page}");
    });
}

#[test]
fn calls_that_succeed_teach_searches_where_that_is_turned_on() {
    run(async {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("feedback.jsonl");
        let yaml = format!("feedback: '{}'", file.display());
        let (gateway, caller) = office(&yaml).await;
        let first = async |gateway: &Gateway, caller: &Caller| {
            ask(gateway, caller, "tool_browse", json!({"query": "tell the tracker forecast"})).await
        };
        let before = first(&gateway, &caller).await;
        assert!(!before.contains("send_mail") || !before.lines().nth(1).unwrap().contains("send_mail"), "{before}");
        // What fails teaches nothing, nor does what no search showed.
        ask(&gateway, &caller, "tool_execute", json!({"tool_id": "send_mail", "args": {"to": "nobody"}})).await;
        for _ in 0..30 {
            first(&gateway, &caller).await;
            ask(&gateway, &caller, "tool_execute", json!({"tool_id": "read_calendar", "args": {}})).await;
        }
        let lines = async |count: usize| {
            for _ in 0..200 {
                let text = std::fs::read_to_string(&file).unwrap_or_default();
                if text.lines().count() >= count {
                    return text;
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            panic!("{}", std::fs::read_to_string(&file).unwrap_or_default());
        };
        let kept = lines(30).await;
        assert!(
            !kept.contains("send_mail")
                && kept.contains(r#""query":"tell the tracker forecast","tool":"office:read_calendar#"#),
            "{kept}"
        );
        // The next gateway has learned it too.
        let (next, caller) = office(&yaml).await;
        let leads = async |gateway: &Gateway, caller: &Caller| {
            for _ in 0..200 {
                let page = first(gateway, caller).await;
                let lead = page.lines().find(|line| line.starts_with("office:")).unwrap_or_default().to_owned();
                if lead.contains("read_calendar") {
                    return true;
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            false
        };
        assert!(leads(&gateway, &caller).await && leads(&next, &caller).await);
    });
}
