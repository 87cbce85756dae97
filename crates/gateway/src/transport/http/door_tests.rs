//! Who is let in: certificates of clients, and tokens of an authorization server.

use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsConnector;

use super::super::jwt::tests::Signer;
use super::tests::{Got, Served, UPSTREAM, call, initialize, request};
use super::*;
use crate::config::file::GatewayConfig;
use crate::config::oauth::{Algorithm, OAuthConfig};
use crate::upstream::config::{Confinement, Target};

const DATA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src/transport/http/testdata");

fn pem(name: &str) -> Vec<u8> {
    std::fs::read(format!("{DATA}/{name}")).unwrap()
}

/// A client that trusts the authority of the tests, and shows the certificate of that name.
fn connector(shown: Option<&str>) -> TlsConnector {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(&pem("authority.pem")).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let builder = builder.with_root_certificates(roots);
    let config = match shown {
        None => builder.with_no_client_auth(),
        Some(name) => {
            let chain = vec![CertificateDer::from_pem_slice(&pem(&format!("{name}.pem"))).unwrap()];
            let key = PrivateKeyDer::from_pem_slice(&pem(&format!("{name}.key"))).unwrap();
            builder.with_client_auth_cert(chain, key).unwrap()
        }
    };
    TlsConnector::from(Arc::new(config))
}

/// What a ping over TLS is answered with; `None` when the connection is refused.
async fn ping(address: SocketAddr, shown: Option<&str>, lines: &str) -> Option<Got> {
    let stream = TcpStream::connect(address).await.unwrap();
    let mut stream = connector(shown).connect(ServerName::try_from("localhost").unwrap(), stream).await.ok()?;
    let body = initialize(&json!({}));
    let head = format!(
        "POST /mcp HTTP/1.1\r\nhost: localhost\r\naccept: application/json, text/event-stream\r\ncontent-type: \
         application/json\r\nconnection: close\r\ncontent-length: {}\r\n{lines}\r\n{body}",
        body.len()
    );
    stream.write_all(head.as_bytes()).await.ok()?;
    let mut text = String::new();
    stream.read_to_string(&mut text).await.ok()?;
    Some(Got::of(&text))
}

fn tls(more: &str) -> String {
    format!("tls: {{cert: {DATA}/server.pem, key: {DATA}/server.key{more}}}")
}

#[tokio::test]
async fn a_connection_is_encrypted_and_one_in_clear_is_not_served() {
    let served = Served::start(&format!("{{{}}}", tls(""))).await;
    assert_eq!(ping(served.address, None, "").await.unwrap().status, 200);
    let mut clear = served.open("GET /livez", &[], "").await;
    let mut text = Vec::new();
    let _ = clear.read_to_end(&mut text).await;
    assert!(!text.starts_with(b"HTTP"), "{text:?}");
    // One that begins no handshake holds up nobody.
    let _silent = TcpStream::connect(served.address).await.unwrap();
    assert_eq!(ping(served.address, None, "").await.unwrap().status, 200);
}

#[tokio::test]
async fn a_caller_is_known_by_its_certificate() {
    let clients = [
        "{name: ann, dns: ANN.test.example}",
        "{name: ann, uri: 'spiffe://test.example/ann'}",
        "{name: ann, common_name: Ann}",
    ];
    for client in clients {
        let required = format!(
            "{{{}, tokens: [{{name: t, token: s3cret}}]}}",
            tls(&format!(", client_ca: {DATA}/authority.pem, clients: [{client}]"))
        );
        let served = Served::start(&required).await;
        let status = async |shown, lines| ping(served.address, shown, lines).await.map(|got| got.status);
        assert_eq!(status(Some("client"), "").await, Some(200), "{client}");
        assert_eq!(status(Some("unknown"), "").await, Some(401), "{client}");
        // A token goes before the certificate, and must be right.
        assert_eq!(status(Some("unknown"), "authorization: Bearer s3cret\r\n").await, Some(200));
        assert_eq!(status(Some("client"), "authorization: Bearer wrong\r\n").await, Some(401));
        for refused in [None, Some("forged")] {
            assert_eq!(status(refused, "authorization: Bearer s3cret\r\n").await, None, "{refused:?}");
        }
        served.stop().await;
    }
    let optional = format!(
        "{{{}}}",
        tls(&format!(", client_ca: {DATA}/authority.pem, client_certificates: optional, clients: [{}]", clients[0]))
    );
    let served = Served::start(&optional).await;
    let status = async |shown| ping(served.address, shown, "").await.map(|got| got.status);
    assert_eq!((status(Some("client")).await, status(None).await), (Some(200), Some(401)));
    assert_eq!(status(Some("forged")).await, None);
}

/// What a kept connection is answered with.
async fn ping_again<S: AsyncRead + AsyncWrite + Unpin>(stream: &mut S) -> String {
    let head = "GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n";
    stream.write_all(head.as_bytes()).await.unwrap();
    let (mut text, mut chunk) = (String::new(), [0; 4096]);
    while !text.contains("\"live\"") {
        let length = stream.read(&mut chunk).await.unwrap();
        assert!(length > 0, "the connection ended: {text}");
        text.push_str(std::str::from_utf8(&chunk[..length]).unwrap());
    }
    text
}

#[tokio::test]
async fn a_certificate_that_was_taken_back_is_refused_also_on_an_open_connection() {
    let http = |list: &str| {
        let more = format!(", client_ca: {DATA}/authority.pem, client_crl: {DATA}/{list}.crl");
        GatewayConfig::parse(&format!("{{http: {{{}}}}}", tls(&more)), Path::new("/"), &|_| None).unwrap().http
    };
    let more = format!(", client_ca: {DATA}/authority.pem, client_crl: {DATA}/none.crl");
    let served = Served::start(&format!("{{{}}}", tls(&more))).await;
    let status = async |shown| ping(served.address, Some(shown), "").await.map(|got| got.status);
    assert_eq!(status("client").await, Some(200));
    let stream = TcpStream::connect(served.address).await.unwrap();
    let name = ServerName::try_from("localhost").unwrap();
    let mut open = connector(Some("client")).connect(name, stream).await.unwrap();
    assert!(ping_again(&mut open).await.contains("upstreams"), "an operator");
    for (list, expected) in [
        ("revoked", [None, Some(200)]),
        // Of what this authority has taken back nothing is known.
        ("stranger", [None, None]),
    ] {
        served.control.put(served.control.prepare(http(list)).unwrap());
        assert_eq!([status("client").await, status("unknown").await], expected, "{list}");
        if list == "revoked" {
            assert!(!ping_again(&mut open).await.contains("upstreams"), "its certificate counts no more");
        }
    }
    served.stop().await;
}

#[test]
fn files_that_cannot_be_used_are_named() {
    let cases = [
        (
            format!("{{cert: {DATA}/server.pem, key: {DATA}/server.key, client_crl: {DATA}/none.crl}}"),
            "http.tls.client_crl: ",
            "is missing",
        ),
        (
            format!(
                "{{cert: {DATA}/server.pem, key: {DATA}/server.key, client_ca: {DATA}/authority.pem, client_crl: {DATA}/server.pem}}"
            ),
            "http.tls.client_crl: ",
            "no certificate revocation list",
        ),
        (format!("{{cert: {DATA}/none.pem, key: {DATA}/server.key}}"), "http.tls.cert: ", "none.pem"),
        (
            format!("{{cert: {DATA}/server.key, key: {DATA}/server.key}}"),
            "http.tls.cert: ",
            "no certificate in PEM form",
        ),
        (
            format!("{{cert: {DATA}/server.pem, key: {DATA}/server.pem}}"),
            "http.tls.key: ",
            "not a private key in PEM form",
        ),
        (format!("{{cert: {DATA}/server.pem, key: {DATA}/client.key}}"), "http.tls.key: ", "does not match"),
        (
            format!("{{cert: {DATA}/server.pem, key: {DATA}/server.key, client_ca: {DATA}/make}}"),
            "http.tls.client_ca: ",
            "no certificate",
        ),
        (
            format!("{{cert: {DATA}/server.pem, key: {DATA}/server.key, clients: [{{name: a, dns: b}}]}}"),
            "http.tls.clients: ",
            "client_ca",
        ),
        (
            format!(
                "{{cert: {DATA}/server.pem, key: {DATA}/server.key, client_ca: {DATA}/authority.pem, clients: [{{name: a}}]}}"
            ),
            "http.tls.clients[0]: ",
            "`dns`",
        ),
        (
            format!(
                "{{cert: {DATA}/server.pem, key: {DATA}/server.key, client_ca: {DATA}/authority.pem, clients: [{{name: a, dns: b, profile: p}}]}}"
            ),
            "http.tls.clients: ",
            "`p`",
        ),
    ];
    for (tls, field, reason) in cases {
        let text = format!("{{http: {{tls: {tls}}}}}");
        let message = GatewayConfig::parse(&text, std::path::Path::new("/"), &|_| None).unwrap_err().to_string();
        assert!(message.starts_with(field) && message.contains(reason), "{tls}: {message}");
    }
}

/// A server of keys, which can change.
pub(super) struct Issuer {
    address: SocketAddr,
    keys: Arc<Mutex<Value>>,
    asked: Arc<AtomicUsize>,
}

impl Issuer {
    pub(super) async fn start(keys: Value) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (keys, asked) = (Arc::new(Mutex::new(keys)), Arc::new(AtomicUsize::new(0)));
        let (shown, counted) = (Arc::clone(&keys), Arc::clone(&asked));
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let mut head = String::new();
                let mut reader = BufReader::new(&mut stream);
                while reader.read_line(&mut head).await.is_ok_and(|read| read > 2) {}
                let body = match head.split(' ').nth(1) {
                    Some("/.well-known/oauth-authorization-server") => {
                        let issuer = format!("http://{address}");
                        json!({"issuer": issuer, "jwks_uri": format!("{issuer}/keys")})
                    }
                    _ => {
                        counted.fetch_add(1, Ordering::SeqCst);
                        shown.lock().unwrap().clone()
                    }
                };
                let body = body.to_string();
                let answer =
                    format!("HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}", body.len());
                let _ = stream.write_all(answer.as_bytes()).await;
            }
        });
        Self { address, keys, asked }
    }

    pub(super) fn name(&self) -> String {
        format!("http://{}", self.address)
    }

    /// A token that is good for so many seconds.
    fn token(&self, (signer, key): (&Signer, &str), seconds: i64, scope: &str) -> String {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs_f64();
        let body = json!({"iss": self.name(), "aud": "http://gateway.test/mcp", "sub": "ann", "exp": now + seconds as f64,
            "scope": scope});
        signer.token(&json!({"alg": "ES256", "kid": key}), &body)
    }
}

async fn guarded(issuer: &Issuer) -> Served {
    let oauth = format!(
        "oauth: {{issuer: '{}', resource: 'http://gateway.test/mcp', leeway_seconds: 0, \
         scopes: [{{scope: 'tools:all'}}, {{scope: 'tools:none', profile: nothing}}]}}",
        issuer.name()
    );
    let more = "mode: proxy, visibility_profiles: {nothing: {exclude_tools: ['*']}}";
    Served::configured(more, &format!("{{tokens: [{{name: ann, token: s3cret}}], {oauth}}}")).await
}

async fn shown(served: &Served, token: &str) -> Got {
    let bearer = format!("Bearer {token}");
    served.exchange("POST", &[("authorization", &bearer)], &initialize(&json!({}))).await
}

#[tokio::test]
async fn tokens_of_an_authorization_server_open_beside_those_of_the_configuration() {
    let signer = Signer::ec();
    let issuer = Issuer::start(json!({"keys": [signer.published("a")]})).await;
    let served = guarded(&issuer).await;
    let metadata = "http://gateway.test/.well-known/oauth-protected-resource/mcp";
    for path in ["/.well-known/oauth-protected-resource", "/.well-known/oauth-protected-resource/mcp"] {
        let got = served.exchange(&format!("GET {path}"), &[], "").await;
        let expected = json!({"resource": "http://gateway.test/mcp", "authorization_servers": [issuer.name()],
            "bearer_methods_supported": ["header"], "scopes_supported": ["tools:all", "tools:none"]});
        assert_eq!((got.status, &got.messages[0]), (200, &expected));
    }
    assert_eq!(served.exchange("GET /.well-known/oauth-protected-resource/x", &[], "").await.status, 404);

    let nothing = served.exchange("POST", &[], &initialize(&json!({}))).await;
    let hint = format!("bearer resource_metadata=\"{metadata}\", scope=\"tools:all tools:none\"");
    assert_eq!((nothing.status, nothing.header("www-authenticate")), (401, Some(hint.as_str())));

    let key = (&signer, "a");
    assert_eq!(shown(&served, "s3cret").await.status, 200);
    assert_eq!(shown(&served, &issuer.token(key, 60, "other tools:all")).await.status, 200);
    let expired = shown(&served, &issuer.token(key, -1, "tools:all")).await;
    let challenge = expired.header("www-authenticate").unwrap();
    assert!(expired.status == 401 && challenge.starts_with("bearer error=\"invalid_token\", "), "{challenge}");
    assert!(challenge.contains(metadata), "{challenge}");
    let poor = shown(&served, &issuer.token(key, 60, "other")).await;
    let challenge = poor.header("www-authenticate").unwrap();
    assert!(poor.status == 403 && challenge.contains("error=\"insufficient_scope\""), "{challenge}");
    assert!(challenge.contains("scope=\"tools:all tools:none\""), "{challenge}");
    for wrong in ["wrong", "a.b.c", "s3cre"] {
        assert_eq!(shown(&served, wrong).await.status, 401, "{wrong}");
    }

    // The user called like the holder of a token is not that one: its session is not there for the other.
    let session = shown(&served, &issuer.token(key, 60, "tools:all")).await;
    let id = session.header("mcp-session-id").unwrap().to_owned();
    let list = async |token: &str| {
        let bearer = format!("Bearer {token}");
        let lines = [("authorization", bearer.as_str()), ("mcp-session-id", id.as_str())];
        served.exchange("POST", &lines, &request("tools/list", &json!({}))).await.status
    };
    assert_eq!(list(&issuer.token(key, 60, "tools:all")).await, 200);
    assert_eq!(list("s3cret").await, 404);
    assert_eq!(list(&issuer.token(key, 60, "tools:none")).await, 404, "with another profile it is another");
    assert_eq!(
        served
            .exchange(
                "GET /metrics",
                &[("authorization", &format!("Bearer {}", issuer.token(key, 60, "tools:none")))],
                ""
            )
            .await
            .status,
        403
    );
}

/// Takes the tokens of this issuer, whose keys are where its metadata says or at this URL.
fn tokens_of(issuer: String, jwks_url: Option<String>) -> OAuthConfig {
    OAuthConfig {
        issuer,
        resource: "http://gateway.test/mcp".to_owned(),
        audience: "http://gateway.test/mcp".to_owned(),
        jwks_url,
        scopes: Vec::new(),
        algorithms: vec![Algorithm::Es256],
        leeway: Duration::ZERO,
    }
}

#[tokio::test]
async fn keys_are_fetched_again_when_a_token_names_another_and_not_for_every_token() {
    let (old, new) = (Signer::ec(), Signer::ec());
    let issuer = Issuer::start(json!({"keys": [old.published("a")]})).await;
    let config = tokens_of(issuer.name(), None);
    let pause = Duration::from_millis(200);
    let keys = super::super::keys::Keys::with_pause(&config, None, pause).unwrap();
    let oauth = super::super::oauth::OAuth::with_keys(&config, keys);
    assert!(oauth.permit(&issuer.token((&old, "a"), 60, "")).await.is_ok());
    *issuer.keys.lock().unwrap() = json!({"keys": [new.published("b")]});
    tokio::time::sleep(pause).await;
    let permitted = oauth.permit(&issuer.token((&new, "b"), 60, "")).await.unwrap();
    assert_eq!(permitted.identity.name, format!("{} ann", issuer.name()));
    assert!(oauth.permit(&issuer.token((&old, "a"), 60, "")).await.is_err(), "it is withdrawn");
    let before = issuer.asked.load(Ordering::SeqCst);
    for number in 0..200 {
        let key = if number % 2 == 0 { format!("made up {number}") } else { "b".to_owned() };
        let refused = oauth.permit(&issuer.token((&old, &key), 60, "")).await.unwrap_err();
        assert_eq!(refused.status(), StatusCode::UNAUTHORIZED);
    }
    let asked = issuer.asked.load(Ordering::SeqCst) - before;
    assert!(asked < 20, "{asked} fetches for 200 tokens");
    // What is too large is not taken, and those that are known stay.
    *issuer.keys.lock().unwrap() = json!({"keys": [old.published("a")], "padding": "x".repeat(300_000)});
    tokio::time::sleep(pause).await;
    assert!(oauth.permit(&issuer.token((&old, "a"), 60, "")).await.is_err());
    assert!(oauth.permit(&issuer.token((&new, "b"), 60, "")).await.is_ok());
}

#[tokio::test]
async fn a_key_that_takes_the_name_of_another_is_fetched() {
    let (old, new) = (Signer::ec(), Signer::ec());
    let issuer = Issuer::start(json!({"keys": [old.published("a")]})).await;
    let config = tokens_of(issuer.name(), None);
    let keys = super::super::keys::Keys::with_pause(&config, None, Duration::ZERO).unwrap();
    let oauth = super::super::oauth::OAuth::with_keys(&config, keys);
    let (of_old, of_new) = (issuer.token((&old, "a"), 60, ""), issuer.token((&new, "a"), 60, ""));
    assert!(oauth.permit(&of_old).await.is_ok() && oauth.permit(&of_new).await.is_err());
    *issuer.keys.lock().unwrap() = json!({"keys": [new.published("a")]});
    assert!(oauth.permit(&of_new).await.is_ok() && oauth.permit(&of_old).await.is_err());
}

#[tokio::test]
async fn keys_of_an_issuer_are_good_until_those_of_its_other_address_are_there() {
    use super::super::oauth::OAuth;
    let (old, new) = (Signer::ec(), Signer::ec());
    let issuer = Issuer::start(json!({"keys": [old.published("a")]})).await;
    let elsewhere = Issuer::start(json!({"keys": [new.published("b")]})).await;
    let (of_old, of_new) = (issuer.token((&old, "a"), 60, ""), issuer.token((&new, "b"), 60, ""));
    let first = OAuth::new(&tokens_of(issuer.name(), None), None).unwrap();
    assert!(first.permit(&of_old).await.is_ok());
    // Nobody listens there.
    let nowhere = tokens_of(issuer.name(), Some("http://127.0.0.1:1/keys".to_owned()));
    let without = OAuth::new(&nowhere, Some(&first)).unwrap();
    assert!(without.permit(&of_old).await.is_ok() && without.permit(&of_new).await.is_err());
    let moved = tokens_of(issuer.name(), Some(format!("{}/keys", elsewhere.name())));
    let next = OAuth::new(&moved, Some(&without)).unwrap();
    assert!(next.permit(&of_new).await.is_ok() && next.permit(&of_old).await.is_err());
    let another = OAuthConfig { issuer: "http://127.0.0.1:2".to_owned(), ..nowhere };
    let refused = OAuth::new(&another, Some(&next)).unwrap().permit(&of_new).await.unwrap_err();
    assert_eq!(refused.status(), StatusCode::SERVICE_UNAVAILABLE);
}

#[tokio::test]
async fn callers_that_hang_up_do_not_have_keys_fetched_again_and_again() {
    let signer = Signer::ec();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/keys", listener.local_addr().unwrap());
    let asked = Arc::new(AtomicUsize::new(0));
    let (counted, published) = (Arc::clone(&asked), json!({"keys": [signer.published("a")]}).to_string());
    // The first answer comes at once, the others never.
    tokio::spawn(async move {
        let mut held = Vec::new();
        while let Ok((mut stream, _)) = listener.accept().await {
            if counted.fetch_add(1, Ordering::SeqCst) == 0 {
                let length = published.len();
                let answer =
                    format!("HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{published}");
                stream.write_all(answer.as_bytes()).await.unwrap();
            }
            held.push(stream);
        }
    });
    let config = tokens_of("http://issuer.test".to_owned(), Some(url));
    let keys = super::super::keys::Keys::with_pause(&config, None, Duration::ZERO).unwrap();
    let oauth = super::super::oauth::OAuth::with_keys(&config, Arc::clone(&keys));
    while keys.known().is_none() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let token = signer.token(&json!({"alg": "ES256", "kid": "made up"}), &json!({}));
    for _ in 0..5 {
        let hung_up = tokio::time::timeout(Duration::from_millis(50), oauth.permit(&token)).await;
        assert!(hung_up.is_err());
    }
    assert_eq!(asked.load(Ordering::SeqCst), 2, "the first caller's fetch is still under way");
}

#[tokio::test]
async fn a_gateway_without_the_keys_says_so_and_not_that_a_token_is_bad() {
    let issuer = Issuer::start(json!("no keys")).await;
    let served = guarded(&issuer).await;
    let got = shown(&served, &issuer.token((&Signer::ec(), "a"), 60, "tools:all")).await;
    assert_eq!((got.status, got.header("retry-after")), (503, Some("1")));
    assert_eq!(shown(&served, "s3cret").await.status, 200);
}

#[tokio::test]
async fn a_stream_ends_when_its_token_expires() {
    let signer = Signer::ec();
    let issuer = Issuer::start(json!({"keys": [signer.published("a")]})).await;
    let served = guarded(&issuer).await;
    let session = shown(&served, &issuer.token((&signer, "a"), 60, "tools:all")).await;
    let id = session.header("mcp-session-id").unwrap();
    let listen = async |seconds| {
        let bearer = format!("Bearer {}", issuer.token((&signer, "a"), seconds, "tools:all"));
        let lines = [("authorization", bearer.as_str()), ("mcp-session-id", id), ("connection", "keep-alive")];
        let mut stream = served.open("GET", &lines, "").await;
        let mut text = Vec::new();
        let read = async { while !text.ends_with(b"0\r\n\r\n") && stream.read_buf(&mut text).await.unwrap() > 0 {} };
        let ended = tokio::time::timeout(Duration::from_secs(4), read).await.is_ok();
        (ended, String::from_utf8(text).unwrap())
    };
    let (ended, text) = listen(2).await;
    assert!(ended && text.starts_with("HTTP/1.1 200"), "{text}");
    let (ended, text) = listen(60).await;
    assert!(!ended && text.starts_with("HTTP/1.1 200"), "{text}");
}

/// A configuration with these upstreams, all of them the script.
fn configured(upstreams: &[&str], http: &str) -> GatewayConfig {
    let script = serde_json::to_string(UPSTREAM).unwrap();
    let upstream = |name: &&str| format!("{name}: {{command: sh, args: [-c, {script}], era: legacy}}");
    let upstreams: Vec<String> = upstreams.iter().map(upstream).collect();
    let text = format!("{{mode: passthrough, upstreams: {{{}}}, http: {http}}}", upstreams.join(", "));
    GatewayConfig::parse(&text, std::path::Path::new("/"), &|_| None).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_configuration_takes_its_place_during_calls_and_none_fails() {
    let served = Arc::new(Served::start("{}").await);
    let before = served.live.now();
    let id = served.session().await;
    let mut stream = served.open("GET", &[("mcp-session-id", &id), ("connection", "keep-alive")], "").await;
    let is_over = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let callers: Vec<_> = (0..4)
        .map(|number| {
            let (served, is_over) = (Arc::clone(&served), Arc::clone(&is_over));
            tokio::spawn(async move {
                let id = served.session().await;
                let mut answers = 0;
                while !is_over.load(Ordering::SeqCst) {
                    let name = if number % 2 == 0 { "echo" } else { "nap" };
                    let got = served.exchange("POST", &[("mcp-session-id", &id)], &call(name)).await;
                    let answer = got.messages.last().unwrap_or(&Value::Null);
                    assert_eq!(answer["result"]["content"][0]["text"], "done", "{got:?}");
                    answers += 1;
                }
                answers
            })
        })
        .collect();
    for _ in 0..5 {
        tokio::time::sleep(Duration::from_millis(100)).await;
        assert_eq!(served.live.replace(configured(&["u"], "{}")).await.unwrap(), ["http.listen"; 0]);
    }
    is_over.store(true, Ordering::SeqCst);
    for caller in callers {
        assert!(caller.await.unwrap() > 0);
    }
    let after = served.live.now();
    let same = |name: &str| (before.upstreams().get(name).cloned(), after.upstreams().get(name).cloned());
    assert!(matches!(same("u"), (Some(old), Some(new)) if Arc::ptr_eq(&old, &new)), "its connection stays");

    // One that does not start changes nothing.
    let mut broken = configured(&["u"], "{}");
    let mut absent = broken.upstreams["u"].clone();
    absent.required = true;
    absent.target = Target::Stdio {
        command: "/no/such/program".to_owned(),
        args: Vec::new(),
        env: std::collections::BTreeMap::default(),
        confinement: Confinement::default(),
    };
    broken.upstreams.insert("w".to_owned(), absent);
    assert!(served.live.replace(broken).await.is_err());
    assert!(Arc::ptr_eq(&after, &served.live.now()));

    // A server more, in the session of before; its client has heard of it.
    let names = async || {
        let got = served.exchange("POST", &[("mcp-session-id", &id)], &request("tools/list", &json!({}))).await;
        got.messages.last().unwrap()["result"]["tools"].as_array().unwrap().len()
    };
    assert_eq!(names().await, 1);
    let mut text = vec![0; 100_000];
    let _ = stream.try_read(&mut text);
    served.live.replace(configured(&["u", "v"], "{}")).await.unwrap();
    let read = tokio::time::timeout(Duration::from_secs(5), stream.read(&mut text)).await.unwrap().unwrap();
    assert!(String::from_utf8_lossy(&text[..read]).contains("tools/list_changed"));
    assert_eq!(names().await, 2);

    // And one less, which is ended.
    let gone = served.live.now().upstreams().get("u").cloned().unwrap();
    served.live.replace(configured(&["v"], "{}")).await.unwrap();
    assert_eq!(names().await, 1);
    drop((before, after));
    let ended = async {
        while gone.server().is_some() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), ended).await.expect("it is ended when nobody needs it");
}

/// Has the configuration read again, with this section about HTTP.
async fn reload(served: &Served, http: &str) {
    let config = configured(&["u"], http);
    let prepared = served.control.prepare(config.http.clone()).unwrap();
    served.live.replace(config).await.unwrap();
    served.control.put(prepared);
    // What is said to all wakes the streams.
    served.live.now().tell_of_changes();
}

/// Whether a stream ends within a second.
async fn has_ended(stream: &mut TcpStream) -> bool {
    let mut text = Vec::new();
    let read = async { while !text.ends_with(b"0\r\n\r\n") && stream.read_buf(&mut text).await.unwrap() > 0 {} };
    tokio::time::timeout(Duration::from_secs(1), read).await.is_ok()
}

#[tokio::test]
async fn who_is_let_in_changes_at_once_and_open_streams_of_others_end() {
    let one = "{name: one, token: first}";
    let served = Served::start(&format!("{{tokens: [{one}, {{name: two, token: second}}]}}")).await;
    let listening = async |token: &str| {
        let bearer = format!("Bearer {token}");
        let opened = served.exchange("POST", &[("authorization", &bearer)], &initialize(&json!({}))).await;
        let id = opened.header("mcp-session-id").unwrap().to_owned();
        let lines = [("authorization", bearer.as_str()), ("mcp-session-id", &id), ("connection", "keep-alive")];
        served.open("GET", &lines, "").await
    };
    let (mut first, mut second) = (listening("first").await, listening("second").await);
    tokio::time::sleep(Duration::from_millis(50)).await;
    reload(&served, &format!("{{tokens: [{one}, {{name: three, token: third}}]}}")).await;
    assert_eq!((has_ended(&mut first).await, has_ended(&mut second).await), (false, true));
    for (token, status) in [("first", 200), ("second", 401), ("third", 200)] {
        assert_eq!(shown(&served, token).await.status, status, "{token}");
    }
    // Nobody opens the gateway to everybody by mistake.
    let open = HttpConfig { listen: "0.0.0.0:1".parse().unwrap(), ..HttpConfig::default() };
    assert!(served.control.prepare(open).is_ok(), "the address stays the one of this machine");
}

#[tokio::test]
async fn a_request_that_does_not_arrive_keeps_no_stream_of_another_caller_open() {
    let one = "{name: one, token: first}";
    let served = Served::start(&format!("{{tokens: [{one}, {{name: two, token: second}}]}}")).await;
    let opened = shown(&served, "second").await;
    let id = opened.header("mcp-session-id").unwrap();
    let lines = [("authorization", "Bearer second"), ("mcp-session-id", id), ("connection", "keep-alive")];
    let mut stream = served.open("GET", &lines, "").await;
    // Half of a request of a caller that stays.
    let half = [("authorization", "Bearer first"), ("content-length", "1000")];
    let _open = served.open("POST", &half, &initialize(&json!({}))).await;
    tokio::time::sleep(Duration::from_millis(50)).await;
    reload(&served, &format!("{{tokens: [{one}]}}")).await;
    assert!(has_ended(&mut stream).await);
}

#[tokio::test]
async fn a_token_that_was_replaced_in_its_file_is_refused_once_the_configuration_is_read_again() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("token");
    for http in ["{token_file: FILE}", "{tokens: [{name: ann, token_file: FILE}, {name: bob, token: b}]}"] {
        std::fs::write(&file, "first\n").unwrap();
        let http = http.replace("FILE", &file.display().to_string());
        let served = Served::start(&http).await;
        let id = shown(&served, "first").await.header("mcp-session-id").unwrap().to_owned();
        let lines = |bearer| [("authorization", bearer), ("mcp-session-id", id.as_str()), ("connection", "keep-alive")];
        let mut stream = served.open("GET", &lines("Bearer first"), "").await;
        // By each token: a new session, and the one that was opened with the first.
        let statuses = async || {
            let mut statuses = Vec::new();
            for (token, bearer) in [("first", "Bearer first"), ("second", "Bearer second")] {
                let in_session = served.exchange("POST", &lines(bearer)[..2], &request("ping", &json!({}))).await;
                statuses.push((shown(&served, token).await.status, in_session.status));
            }
            statuses
        };
        assert_eq!(statuses().await, [(200, 200), (401, 401)], "{http}");
        std::fs::write(&file, "second\n").unwrap();
        assert_eq!(statuses().await, [(200, 200), (401, 401)], "{http}: it is not read yet");
        reload(&served, &http).await;
        // The session is the caller's, who has another token now.
        assert_eq!(statuses().await, [(401, 401), (200, 200)], "{http}");
        assert!(has_ended(&mut stream).await, "{http}: it was opened with a token that is none any more");
    }
}

#[tokio::test]
async fn a_renewed_certificate_is_shown_from_then_on() {
    let served = Served::start(&format!("{{{}}}", tls(""))).await;
    let certificate = async || {
        let stream = TcpStream::connect(served.address).await.unwrap();
        let stream = connector(None).connect(ServerName::try_from("localhost").unwrap(), stream).await.unwrap();
        stream.get_ref().1.peer_certificates().unwrap()[0].to_vec()
    };
    let of_file = |name: &str| CertificateDer::from_pem_slice(&pem(name)).unwrap().to_vec();
    assert_eq!(certificate().await, of_file("server.pem"));
    let renewed = configured(&["u"], &format!("{{tls: {{cert: {DATA}/renewed.pem, key: {DATA}/renewed.key}}}}"));
    let prepared = served.control.prepare(renewed.http).unwrap();
    served.control.put(prepared);
    assert_eq!(certificate().await, of_file("renewed.pem"));
}

#[tokio::test]
async fn bytes_in_flight_are_bounded_for_one_and_for_all() {
    let tokens: Vec<String> = ["a", "b", "c", "d"].map(|name| format!("{{name: {name}, token: t{name}}}")).into();
    let served = Served::start(&format!(
        "{{tokens: [{}], body_limit_bytes: 1000, max_bytes_in_flight: 3000}}",
        tokens.join(", ")
    ))
    .await;
    let long = request("tools/call", &json!({"name": "hold", "arguments": {"x": "x".repeat(750)}}));
    let mut held = Vec::new();
    let mut sessions = std::collections::BTreeMap::new();
    for name in ["a", "b", "c", "d"] {
        let bearer = format!("Bearer t{name}");
        let opened = served.exchange("POST", &[("authorization", &bearer)], &initialize(&json!({}))).await;
        sessions.insert(name, (bearer, opened.header("mcp-session-id").unwrap().to_owned()));
    }
    let lines = |name: &str| {
        let (bearer, id) = &sessions[name];
        [("authorization", bearer.as_str()), ("mcp-session-id", id.as_str())]
    };
    for name in ["a", "b", "c"] {
        held.push(served.open("POST", &lines(name), &long).await);
    }
    // They have arrived when the upstream has heard of them.
    tokio::time::sleep(Duration::from_millis(300)).await;
    let own = served.exchange("POST", &lines("a"), &long).await;
    assert_eq!((own.status, own.header("retry-after")), (429, Some("1")), "{own:?}");
    let all = served.exchange("POST", &lines("d"), &long).await;
    assert_eq!((all.status, all.header("retry-after")), (503, Some("1")), "{all:?}");
    let small = served.exchange("POST", &lines("d"), &request("ping", &json!({}))).await;
    assert_eq!(small.status, 200, "what is small is served");
    assert_eq!(held.len(), 3);
}

#[tokio::test]
async fn a_request_ends_with_its_deadline() {
    let served = Served::start("{}").await;
    let mut config = configured(&["u"], "{}");
    config.deadline = Duration::from_millis(300);
    served.live.replace(config).await.unwrap();
    let id = served.session().await;
    let got = served.exchange("POST", &[("mcp-session-id", &id)], &call("hold")).await;
    let message = got.messages.last().unwrap()["error"]["message"].as_str().unwrap();
    assert!(message.contains("`deadline_seconds`"), "{message}");
    let got = served.exchange("POST", &[("mcp-session-id", &id)], &call("echo")).await;
    assert_eq!(got.messages.last().unwrap()["result"]["content"][0]["text"], "done");
}
