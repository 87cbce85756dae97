//! Upstreams that are asked as their callers, against a server that shows whom it sees and a stand-in for a token endpoint.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::json;
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::http_tests::{Log, Reply, greeting, result, run, serve};
use super::*;
use crate::common::secret::Secret;
use crate::protocol::client_info::ClientInfo;
use crate::session::client::{Caller, Session};
use crate::session::identity::{Identity, Presented};
use crate::upstream::credentials::{ClientAuthentication, Exchange};
use crate::upstream::per_caller::GRUDGE;

const ISSUER: &str = "https://id.example";
const AUDIENCE: &str = "https://up.example/mcp";

/// A caller of that name that shows this token, if any, for these audiences.
fn caller(name: &str, token: Option<&str>, audiences: &[&str]) -> Caller {
    let identity = Identity { name: name.to_owned(), profile: None };
    let presented = token.map(|token| {
        Arc::new(Presented {
            token: Secret::new(token),
            issuer: ISSUER.to_owned(),
            audiences: audiences.iter().map(|&audience| audience.to_owned()).collect(),
            until: Instant::now() + Duration::from_secs(60),
        })
    });
    let session = Session::of("s", Arc::new(identity));
    Caller::new(session, ClientInfo::default(), mpsc::channel(8).0).presenting(presented)
}

/// A server that says whom it sees.
async fn echo() -> (String, Log) {
    serve(|asked| match greeting(asked) {
        Some(reply) => reply,
        None => result(asked, &json!({"sees": asked.header("authorization"), "tools": []})),
    })
    .await
}

fn asked_as(url: &str, credentials: Credentials) -> Upstream {
    let headers =
        BTreeMap::from([("Authorization".to_owned(), "Bearer own".to_owned()), ("x".to_owned(), "y".to_owned())]);
    let target = Target::Http { url: url.to_owned(), headers };
    let config = UpstreamConfig { era: Era::Legacy, credentials, ..UpstreamConfig::new(target) };
    Upstream::new("up", config, EventSender::channel().0)
}

fn exchanged_at(token_endpoint: &str, client_authentication: ClientAuthentication) -> Credentials {
    Credentials::Exchange(Exchange {
        token_endpoint: token_endpoint.parse().unwrap(),
        client_id: "gate way".to_owned(),
        client_secret: Secret::new("s3&cret"),
        client_authentication,
        audience: Some(AUDIENCE.to_owned()),
        resource: None,
        scope: Some("a b".to_owned()),
    })
}

/// What the upstream sees of a call of `caller`, or why it was not made.
async fn seen(upstream: &Upstream, caller: &Caller) -> Result<String, String> {
    let params = Raw::of(&json!({"name": "who", "arguments": {}}));
    let call = Call { caller: Some(caller), ..Call::own("tools/call", Some(&params)) };
    let answer = upstream.request(call).await;
    let answer = answer.map_err(|fault| format!("{} {}", fault.code().word(), fault))?;
    Ok(answer.read::<Value>().unwrap()["sees"].as_str().unwrap_or("nobody").to_owned())
}

/// A token endpoint that gives a caller a token of its own, for so many seconds.
async fn endpoint(seconds: f64) -> (String, Log) {
    let count = AtomicUsize::new(0);
    serve(move |asked| {
        let subject = asked.text.split("subject_token=").nth(1).and_then(|rest| rest.split('&').next()).unwrap_or("-");
        let number = count.fetch_add(1, Ordering::SeqCst);
        let body = match subject {
            "refused" => return Reply::Whole(400, "application/json", json!({"error": "invalid_target"}).to_string()),
            "broken" => return Reply::Whole(503, "text/plain", String::new()),
            "odd" => json!({"access_token": "t", "token_type": "N_A"}),
            subject => json!({"access_token": format!("for-{subject}-{number}"), "token_type": "bearer", "expires_in": seconds}),
        };
        Reply::Whole(200, "application/json", body.to_string())
    })
    .await
}

#[test]
fn each_caller_is_seen_as_itself_also_side_by_side() {
    run(async {
        let ((url, log), (token_url, exchanges)) = (echo().await, endpoint(600.0).await);
        let upstream = Arc::new(asked_as(&url, exchanged_at(&token_url, ClientAuthentication::Basic)));
        // What the gateway asks for itself, it asks as itself.
        upstream.list(Duration::from_secs(5)).await.unwrap();
        let calls = (0..40).map(|number| {
            let upstream = Arc::clone(&upstream);
            tokio::spawn(async move {
                let name = ["ann", "bob"][number % 2];
                (name, seen(&upstream, &caller(name, Some(&format!("t0ken-{name}")), &["g"])).await.unwrap())
            })
        });
        let mut sights = BTreeSet::new();
        for call in calls.collect::<Vec<_>>() {
            let (name, sees) = call.await.unwrap();
            assert!(sees.starts_with(&format!("Bearer for-t0ken-{name}-")), "{name}: {sees}");
            sights.insert(sees);
        }
        assert_eq!(sights.len(), 2, "{sights:?}");
        {
            let exchanges = lock(&exchanges);
            assert_eq!(exchanges.len(), 2, "each token is exchanged once");
            let asked = exchanges.iter().find(|asked| asked.text.contains("t0ken-ann")).unwrap();
            assert_eq!(
                asked.text,
                "grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Atoken-exchange&subject_token=t0ken-ann&\
                 subject_token_type=urn%3Aietf%3Aparams%3Aoauth%3Atoken-type%3Aaccess_token&\
                 requested_token_type=urn%3Aietf%3Aparams%3Aoauth%3Atoken-type%3Aaccess_token&\
                 audience=https%3A%2F%2Fup.example%2Fmcp&scope=a+b"
            );
            // `gate+way:s3%26cret`.
            assert_eq!(asked.header("authorization"), Some("Basic Z2F0ZSt3YXk6czMlMjZjcmV0"));
        }
        {
            let log = lock(&log);
            let as_whom = |method: &str| {
                let of_method = log.iter().filter(|asked| asked.method() == method);
                of_method.map(|asked| asked.header("authorization").unwrap_or("-").to_owned()).collect::<Vec<_>>()
            };
            assert_eq!(as_whom("tools/list"), ["Bearer own"]);
            // A session each, and one of the gateway.
            assert_eq!(as_whom("initialize").len(), 3);
            assert!(log.iter().all(|asked| !format!("{:?}", asked.header("authorization")).contains("Bearer t0ken")));
            assert!(log.iter().all(|asked| asked.header("x") == Some("y")));
        }
        upstream.close().await;
        assert!(seen(&upstream, &caller("ann", Some("t"), &["g"])).await.is_err());
    });
}

#[test]
fn a_token_is_exchanged_anew_shortly_before_it_ends() {
    run(async {
        let ((url, _), (token_url, exchanges)) = (echo().await, endpoint(0.4).await);
        let upstream = asked_as(&url, exchanged_at(&token_url, ClientAuthentication::Post));
        let ann = caller("ann", Some("ann"), &["g"]);
        assert_eq!(seen(&upstream, &ann).await.unwrap(), "Bearer for-ann-0");
        assert_eq!(seen(&upstream, &ann).await.unwrap(), "Bearer for-ann-0");
        tokio::time::sleep(Duration::from_millis(350)).await;
        assert_eq!(seen(&upstream, &ann).await.unwrap(), "Bearer for-ann-1");
        let exchanges = lock(&exchanges);
        assert!(exchanges.iter().all(|asked| asked.text.ends_with("&client_id=gate+way&client_secret=s3%26cret")));
    });
}

#[test]
fn an_exchange_that_takes_longer_than_a_call_is_there_for_the_next() {
    run(async {
        let (url, _) = echo().await;
        let slow = Duration::from_millis(900);
        let (token_url, exchanges) = serve(move |_| {
            std::thread::sleep(slow);
            let token = json!({"access_token": "late", "token_type": "bearer", "expires_in": 600});
            Reply::Whole(200, "application/json", token.to_string())
        })
        .await;
        let mut upstream = asked_as(&url, exchanged_at(&token_url, ClientAuthentication::Basic));
        upstream.config.timeout = slow / 3;
        let ann = caller("ann", Some("ann"), &["g"]);
        assert_eq!(
            seen(&upstream, &ann).await.unwrap_err(),
            "UPSTREAM_UNAVAILABLE no token for it within 0.3 s; it is still waited for, so try again"
        );
        tokio::time::sleep(slow).await;
        assert_eq!(seen(&upstream, &ann).await.unwrap(), "Bearer late");
        assert_eq!(lock(&exchanges).len(), 1);
    });
}

#[test]
fn a_token_that_the_server_refuses_is_exchanged_anew_and_not_for_every_call() {
    run(async {
        let good = Arc::new(Mutex::new("Bearer for-ann-0"));
        let taken = Arc::clone(&good);
        let (url, log) = serve(move |asked| match (asked.header("authorization"), greeting(asked)) {
            (sees, _) if sees != Some(*lock(&taken)) => Reply::Whole(401, "text/plain", String::new()),
            (_, Some(reply)) => reply,
            (sees, None) => result(asked, &json!({ "sees": sees })),
        })
        .await;
        let (token_url, exchanges) = endpoint(600.0).await;
        let exchanges = || lock(&exchanges).len();
        let upstream = asked_as(&url, exchanged_at(&token_url, ClientAuthentication::Basic));
        let ann = caller("ann", Some("ann"), &["g"]);
        assert_eq!(seen(&upstream, &ann).await.unwrap(), "Bearer for-ann-0");
        *lock(&good) = "Bearer for-ann-1";
        // One that was made a moment ago is used for a while, whatever the server says.
        let refused = seen(&upstream, &ann).await.unwrap_err();
        assert!(refused.starts_with("AUTH_FAILED") && exchanges() == 1, "{refused}");
        tokio::time::sleep(GRUDGE).await;
        assert_eq!(seen(&upstream, &ann).await.unwrap(), "Bearer for-ann-1");
        assert_eq!(exchanges(), 2);
        *lock(&good) = "Bearer of nobody";
        tokio::time::sleep(GRUDGE).await;
        for _ in 0..10 {
            assert!(seen(&upstream, &ann).await.is_err());
        }
        assert_eq!(exchanges(), 3);
        // The caller's own token is not another when it is asked for again.
        let rule = Passthrough { issuer: ISSUER.to_owned(), audience: AUDIENCE.to_owned() };
        let upstream = asked_as(&url, Credentials::Passthrough(rule));
        *lock(&good) = "Bearer own";
        let ann = caller("ann", Some("own"), &[AUDIENCE]);
        assert_eq!(seen(&upstream, &ann).await.unwrap(), "Bearer own");
        *lock(&good) = "Bearer of nobody";
        tokio::time::sleep(GRUDGE).await;
        let calls = || lock(&log).iter().filter(|asked| asked.method() == "tools/call").count();
        let before = calls();
        assert!(seen(&upstream, &ann).await.is_err());
        assert_eq!(calls() - before, 1);
    });
}

#[test]
fn what_is_refused_is_said_with_what_to_do_and_without_tokens() {
    run(async {
        let ((url, log), (token_url, exchanges)) = (echo().await, endpoint(60.0).await);
        let upstream = asked_as(&url, exchanged_at(&token_url, ClientAuthentication::Basic));
        let mut shown = Vec::new();
        for token in [Some("refused"), Some("broken"), Some("odd"), None] {
            shown.push(seen(&upstream, &caller("ann", token, &["g"])).await.unwrap_err());
        }
        insta::assert_snapshot!(shown.join("\n"), @r"
        AUTH_FAILED the authorization server gives no token for it (`invalid_target`); the operator must check `audience` and `resource` of the rule
        UPSTREAM_UNAVAILABLE the token endpoint answers with status 503; try again later
        AUTH_FAILED the token endpoint gives a token that is not a bearer token; the operator must check `credentials.exchange`
        AUTH_FAILED it is asked as the caller, and this one has shown no token of the authorization server; sign in there, and do not use a fixed token
        ");
        // A refusal stands for a moment, and for nobody else.
        assert!(seen(&upstream, &caller("ann", Some("refused"), &["g"])).await.is_err());
        assert_eq!(lock(&exchanges).len(), 3);
        assert!(seen(&upstream, &caller("bob", Some("bob"), &["g"])).await.is_ok());
        assert!(lock(&log).iter().all(|asked| asked.header("authorization") == Some("Bearer for-bob-3")));
        let params = Raw::of(&json!({"uri": "x://y"}));
        let bob = caller("bob", Some("bob"), &["g"]);
        let watch = Call { caller: Some(&bob), ..Call::own("resources/subscribe", Some(&params)) };
        assert!(matches!(upstream.request(watch).await, Err(Fault::Rpc(error)) if error.code == METHOD_NOT_FOUND));
    });
}

#[test]
fn a_token_is_sent_on_to_whom_it_is_for() {
    run(async {
        let (url, log) = echo().await;
        let rule = |issuer: &str| {
            Credentials::Passthrough(Passthrough { issuer: issuer.to_owned(), audience: AUDIENCE.to_owned() })
        };
        let upstream = asked_as(&url, rule(ISSUER));
        assert_eq!(seen(&upstream, &caller("ann", Some("both"), &["g", AUDIENCE])).await.unwrap(), "Bearer both");
        let mut shown = Vec::new();
        for (token, audiences) in
            [(Some("gateway's"), vec!["g"]), (Some("prefix"), vec!["https://up.example"]), (None, vec![])]
        {
            shown.push(seen(&upstream, &caller("ann", token, &audiences)).await.unwrap_err());
        }
        shown.push(
            seen(&asked_as(&url, rule("https://other")), &caller("ann", Some("t"), &[AUDIENCE])).await.unwrap_err(),
        );
        insta::assert_snapshot!(shown.join("\n"), @r"
        AUTH_FAILED the token of the caller is not for it, since its `aud` lacks `https://up.example/mcp`; ask for a token that is for both
        AUTH_FAILED the token of the caller is not for it, since its `aud` lacks `https://up.example/mcp`; ask for a token that is for both
        AUTH_FAILED it is asked as the caller, and this one has shown no token of the authorization server; sign in there, and do not use a fixed token
        AUTH_FAILED the token of the caller is not of `https://other`, whose tokens it takes; sign in there
        ");
        assert!(lock(&log).iter().all(|asked| asked.header("authorization") == Some("Bearer both")));
        // The same name with another token has another session.
        assert_eq!(seen(&upstream, &caller("ann", Some("new"), &[AUDIENCE])).await.unwrap(), "Bearer new");
        assert_eq!(lock(&log).iter().filter(|asked| asked.method() == "initialize").count(), 2);
    });
}

#[test]
fn nothing_that_is_printed_has_a_token() {
    let ann = caller("ann", Some("t0ken-of-ann"), &["g"]);
    let rule = exchanged_at("https://id.example/token", ClientAuthentication::Basic);
    let upstream = asked_as("http://127.0.0.1:1/mcp", rule);
    let own = upstream.on_behalf()(&Secret::new("t0ken-exchanged"));
    let shown = format!("{ann:?} {upstream:?} {own:?}");
    for secret in ["t0ken", "s3&cret", "Bearer"] {
        assert!(!shown.contains(secret), "{secret}: {shown}");
    }
}
