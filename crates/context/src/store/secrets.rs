//! Finds secrets by their form, and removes them before anything is stored.
//!
//! One pass looks for places where a secret may begin (fixed prefixes such as those of cloud keys, names such as
//! `password`, the `://` of an address); the rules are tried only there. A rule looks no further than the secret that
//! it describes, so the time grows with the text alone.
//!
//! Keys with a form of their own are found anywhere. Others (passwords, most API keys) look like any other text and are
//! found by the name before them: `password=`, `"client_secret": `, `Authorization: `, `{"name": "DB_PASSWORD", "value": `,
//! `<password>`. Digests, UUIDs, page tokens, encoded pictures, placeholders, names of types, ports, and calls and names
//! of code are left alone. A secret with neither a form nor a name is not found: this is a safety net, not a guarantee.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::LazyLock;

use regex::Regex;
use serde_json::Value as Json;

macro_rules! families {
    ($($(#[$about:meta])+ $family:ident = $name:literal),+ $(,)?) => {
        /// A kind of secret.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Family { $($(#[$about])+ $family),+ }

        impl Family {
            /// All families, in ascending order.
            pub const ALL: &'static [Self] = &[$(Self::$family),+];

            /// The name of the family as it is written in marks.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self { $(Self::$family => $name),+ }
            }
        }
    };
}

families! {
    /// The id of an access key of AWS.
    AwsAccessKey = "aws_access_key",
    /// The secret of an access key of AWS.
    AwsSecretKey = "aws_secret_key",
    /// A session token of AWS.
    AwsSessionToken = "aws_session_token",
    /// A token of GitHub, classic or fine-grained.
    GithubToken = "github_token",
    /// A token of GitLab.
    GitlabToken = "gitlab_token",
    /// A token of Slack.
    SlackToken = "slack_token",
    /// The address of an incoming webhook of Slack.
    SlackWebhook = "slack_webhook",
    /// A secret or restricted key, or the secret of a webhook, of Stripe.
    StripeKey = "stripe_key",
    /// An API key of Google.
    GoogleApiKey = "google_api_key",
    /// A client secret or an access token of Google.
    GoogleOauth = "google_oauth",
    /// A key of OpenAI.
    OpenAiKey = "openai_key",
    /// A key of Anthropic.
    AnthropicKey = "anthropic_key",
    /// The key of a storage account, a service bus or an event hub of Azure.
    AzureKey = "azure_key",
    /// The signature of a shared access address of Azure.
    AzureSignature = "azure_signature",
    /// A token of npm.
    NpmToken = "npm_token",
    /// A token of PyPI.
    PypiToken = "pypi_token",
    /// A JSON Web Token.
    Jwt = "jwt",
    /// A private key in PEM, OpenSSH or PGP form.
    PrivateKey = "private_key",
    /// The password in the address of a database or a queue.
    DatabasePassword = "database_password",
    /// The password in any other address.
    UrlPassword = "url_password",
    /// A password by its name.
    Password = "password",
    /// A key, a token or a secret by its name.
    Secret = "secret",
    /// The credentials of an `Authorization` header.
    Authorization = "authorization",
    /// An API key of Twilio.
    TwilioKey = "twilio_key",
    /// A key of SendGrid.
    SendgridKey = "sendgrid_key",
    /// A token of Hugging Face.
    HuggingFaceToken = "huggingface_token",
    /// The token of a bot of Discord.
    DiscordToken = "discord_token",
    /// The address of a webhook of Discord.
    DiscordWebhook = "discord_webhook",
    /// The token of a bot of Telegram.
    TelegramToken = "telegram_token",
    /// A token of DigitalOcean.
    DigitalOceanToken = "digitalocean_token",
    /// A token of Shopify.
    ShopifyToken = "shopify_token",
    /// A token of Databricks.
    DatabricksToken = "databricks_token",
    /// A token of HashiCorp Vault.
    VaultToken = "vault_token",
    /// A token of Docker Hub.
    DockerToken = "docker_token",
    /// A key of Linear.
    LinearKey = "linear_key",
    /// A token of a service account of Grafana.
    GrafanaToken = "grafana_token",
    /// A token of Atlassian.
    AtlassianToken = "atlassian_token",
    /// A key of Mailgun.
    MailgunKey = "mailgun_key",
    /// An identity of age.
    AgeKey = "age_key",
}

impl fmt::Display for Family {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.name())
    }
}

/// A text without its secrets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Redacted<'t> {
    /// The text, with a mark such as `[REDACTED: jwt]` in place of each secret; borrowed when there was none.
    pub text: Cow<'t, str>,
    /// The number of secrets of each family that were removed.
    pub found: BTreeMap<Family, usize>,
}

/// Removes secrets from a text. Redacting a redacted text again changes nothing.
#[must_use]
pub fn redact(text: &str) -> Redacted<'_> {
    let mut out = String::new();
    let mut found = BTreeMap::new();
    // Everything before `done` is in `out`; everything before `at` was looked at.
    let (mut done, mut at) = (0, 0);
    while let Some(anchor) = SCANNER.anchors.find_at(text, at) {
        match SCANNER.secret(text, anchor.start()).filter(|secret| secret.start >= done) {
            Some(Secret { family, start, end }) => {
                out.push_str(text.get(done..start).unwrap_or_default());
                out.push_str(&mark(family));
                *found.entry(family).or_insert(0) += 1;
                (done, at) = (end, end);
            }
            // The first byte of an anchor is ASCII.
            None => at = anchor.start() + 1,
        }
    }
    if found.is_empty() {
        return Redacted { text: Cow::Borrowed(text), found };
    }
    out.push_str(text.get(done..).unwrap_or_default());
    Redacted { text: Cow::Owned(out), found }
}

/// The value of a member without the secret that its name tells of, as `redact` would find it in `"name": value`. `None`
/// where the name tells of none. The mark in place of a number is a text.
pub(crate) fn redact_member(name: &str, value: &Json) -> Option<Json> {
    if !SCANNER.anchors.is_match(name) || value.is_array() || value.is_object() {
        return None;
    }
    let before = format!("{}: ", Json::from(name));
    let whole = format!("{before}{value}");
    let Cow::Owned(clean) = redact(&whole).text else { return None };
    let value = clean.strip_prefix(&before)?;
    Some(serde_json::from_str(value).unwrap_or_else(|_| value.into()))
}

/// The bytes of a key that are looked at, from its end: longer than any name of a secret.
const LONGEST_NAME: usize = 64;

/// Removes secrets from the value of a key: those that [`redact`] finds in it, and what the key tells to be one, as if they
/// stood together as `key: "value"`. Redacting a redacted value again changes nothing.
#[must_use]
pub fn redact_named<'t>(key: &str, value: &'t str) -> Cow<'t, str> {
    let value = redact(value).text;
    if let Some(Json::String(masked)) = redact_member(key, &Json::from(&*value)) {
        return Cow::Owned(masked);
    }
    // Names of secrets are written with `_` or `-`, and what a secret is for stands behind its name.
    let lower = key.to_lowercase();
    let behind = [" for ", " of ", " in ", " on ", " at ", " to ", " from ", " ("];
    let head = behind.into_iter().filter_map(|word| lower.find(word)).min().and_then(|end| lower.get(..end));
    let words = || value.split_whitespace();
    // A value of one word is the secret itself. In a text only what looks like one is.
    let quote = if words().nth(1).is_none() { "\"" } else { "" };
    for name in [Some(lower.as_str()), head].into_iter().flatten() {
        let name = name.trim_end_matches(|c: char| !c.is_ascii_alphabetic());
        let from = name.ceil_char_boundary(name.len().saturating_sub(LONGEST_NAME));
        let name = name.get(from..).unwrap_or_default();
        let name: String = name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
        let family = |word: &str| {
            let escaped = if quote.is_empty() { word.into() } else { word.replace('\\', "\\\\").replace('"', "\\\"") };
            let shown = format!("{name}: {quote}{escaped}{quote}");
            let mut at = 0;
            while let Some(anchor) = SCANNER.anchors.find_at(&shown, at).filter(|anchor| anchor.start() < name.len()) {
                let secret = SCANNER.secret(&shown, anchor.start()).filter(|secret| secret.start > name.len());
                if let Some(secret) = secret {
                    return Some(secret.family);
                }
                at = anchor.start() + 1;
            }
            None
        };
        if SCANNER.anchors.is_match(&name) && words().any(|word| family(word).is_some()) {
            let masked = words().map(|word| match family(word) {
                Some(family) => Cow::Owned(mark(family)),
                None => Cow::Borrowed(word),
            });
            return Cow::Owned(masked.collect::<Vec<_>>().join(" "));
        }
    }
    value
}

/// The position of a secret, in bytes.
struct Secret {
    family: Family,
    start: usize,
    end: usize,
}

/// What must come before the place where a rule applies.
#[derive(Clone, Copy)]
enum Before {
    /// Anything may come before it.
    Any,
    /// No letter and no digit: the key is a word.
    Word,
    /// No letter, digit, `-` or `_`: the key is not the end of another token.
    Token,
    /// Digits, which belong to the secret.
    Digits,
    /// Letters, digits, `-` and `_`, which belong to the secret.
    TokenPart,
    /// As [`Self::Token`], and no other word before it on the line: `next token:` names a place in a list.
    Alone,
    /// A member `name` or `key` whose value the word ends: `"name": "DB_`.
    Member,
    /// The beginning of an element of XML: `<db.`.
    Element,
}

/// What a secret must look like, beyond its form.
#[derive(Clone, Copy, PartialEq)]
enum Value {
    /// A key with a form of its own; no letter and no digit follows it.
    Key,
    /// Any form; it is known by its name or its place.
    Named,
    /// Not a placeholder; without quotes it must have a digit or a sign in it, or it would be a word.
    Password,
    /// Not a placeholder; letters and digits.
    Mixed,
    /// As [`Self::Mixed`], and made up by no person: with enough digits, and without words.
    Random,
}

struct Rule {
    family: Family,
    before: Before,
    /// The whole match, or its first group that matched, is the secret.
    pattern: Regex,
    value: Value,
}

struct Scanner {
    /// Every place where a rule may apply.
    anchors: Regex,
    rules: Vec<Rule>,
    /// The rules that may apply at a place, by its first byte in lower case.
    by_byte: Vec<Vec<usize>>,
}

/// Names that are followed by a key, a token or a secret, as a pattern.
const SECRET_NAMES: &str = "api[_ -]?key|secret[_ -]?access[_ -]?key|access[_ -]?key|secret[_ -]?key|\
    client[_ -]?secret|(?:api|auth|access|refresh|private)[_ -]?token|secret";

/// Names that are followed by a password, as a pattern. `pass` alone is too common a word.
const PASSWORD_NAMES: &str = "password|passwd|passphrase|pwd|\
    (?:db|database|sql|mysql|pg|postgres|redis|mongo|smtp|imap|mail|email|ftp|ssh|ldap|mqtt|rabbitmq|amqp|user|admin|root|\
    login|proxy|auth|wifi|jdbc|keystore)[_-]?pass";

/// The first letters of [`PASSWORD_NAMES`].
const PASSWORD_FIRSTS: &str = "pdsmrieflauwjk";

/// The text between a name and its value, as a pattern. In Markdown the name may be marked as code or as important.
const ASSIGNS: &str = r#"(?:\\*["'])?[`*_~]{0,5}[ \t]{0,8}(?:=>|:=|[:=])(?:[`*_~]{1,5}[ \t]{1,8}|\*{1,3}|[ \t]{0,8})"#;

/// The text between a name that is a value and what it names, as a pattern: `"name": "DB_PASSWORD", "value": …` in JSON, and
/// the same on two lines of YAML.
const IS_NAME_OF: &str = r#"(?:\\*["'](?:\s|\\[nrt]){0,64},(?:\s|\\[nrt]){0,64}\\*["'](?i-u:value)\\*["'][ \t]{0,8}:[ \t]{0,8}|["']?[ \t]{0,8}\r?\n[ \t]{0,64}value:[ \t]{1,8})"#;

/// What is in an element of XML, behind its name. Its end shows that it is one.
const CONTENT: &str = r"[ \t]{0,8}>[ \t\r\n]{0,64}([^<>\s]{4,400})[ \t\r\n]{0,64}<\\?/";

/// The value of a name: in quotes (plain, or those of JSON within JSON), as code in Markdown, or up to a delimiter. Its first 40
/// bytes decide, so that names that follow each other without a delimiter are not read again and again.
const ASSIGNED: &str = r#"(?:\\+"([^"\\\s]{4,})\\+"|"((?:[^"\\\s]|\\[^\s]){4,})"|'([^'\\\s]{4,})'|`{1,2}([^`\s]{4,})`|([!-~&&[^"'`,;&<>(){}\[\]\\]]{6,40}))"#;

/// A value in quotes that has blanks in it, on one line: a pass phrase.
const PHRASE: &str =
    r#"(?:\\+"([^"\\\r\n]{4,128})\\+"|"((?:[^"\\\r\n]|\\(?:["\\/]|u[0-9a-fA-F]{4})){4,128})"|'([^'\\\r\n]{4,128})')"#;

/// Family, anchors (patterns), their first bytes, what comes before, the whole pattern, and what the secret looks like.
/// Where two rules apply at one place, the first counts.
type Row = (Family, &'static str, &'static str, Before, &'static str, Value);

const ROWS: &[Row] = &[
    (Family::AwsAccessKey, "A(?:KI|SI|BI|CC)A", "a", Before::Word, "A(?:KI|SI|BI|CC)A[A-Z2-7]{16}", Value::Key),
    (Family::GithubToken, "gh[pousr]_", "g", Before::Word, "gh[pousr]_[A-Za-z0-9]{36,}", Value::Key),
    (Family::GithubToken, "github_pat_", "g", Before::Word, "github_pat_[A-Za-z0-9]{22}_[A-Za-z0-9]{59}", Value::Key),
    (
        Family::GitlabToken,
        "gl(?:pat|dt|rt|ptt|cbt|oas|ft|soat|agent|imt)-",
        "g",
        Before::Word,
        r"gl(?:pat|dt|rt|ptt|cbt|oas|ft|soat|agent|imt)-[A-Za-z0-9_-]{20,}(?:\.[0-9a-z]{2}\.?[0-9a-z]{7,9})?",
        Value::Key,
    ),
    (
        Family::SlackToken,
        "xox[a-eoprs][.-]|xapp-",
        "x",
        Before::Word,
        r"(?:xox[a-ceoprs](?:\.xox[bp])?-(?:[0-9]+-)+|xapp-[0-9]-(?:[A-Z0-9]+-[0-9]+-)?)[A-Za-z0-9_-]{16,}|xoxd-[A-Za-z0-9%+/_-]{20,}=*",
        Value::Key,
    ),
    (
        Family::SlackWebhook,
        r"hooks\.slack\.com/",
        "h",
        Before::Any,
        r"hooks\.slack\.com/(?:services|workflows|triggers)/([A-Za-z0-9_/-]{20,})",
        Value::Key,
    ),
    (
        Family::StripeKey,
        "[sr]k_(?:live|test)_|whsec_",
        "srw",
        Before::Word,
        "(?:[sr]k_(?:live|test)_[A-Za-z0-9]{16,}|whsec_[A-Za-z0-9+/]{32,}=*)",
        Value::Key,
    ),
    (Family::GoogleApiKey, "AIza", "a", Before::Word, "AIza[A-Za-z0-9_-]{35}", Value::Key),
    (
        Family::GoogleOauth,
        r"GOCSPX-|ya29\.",
        "gy",
        Before::Word,
        r"(?:GOCSPX-[A-Za-z0-9_-]{28}|ya29\.[A-Za-z0-9_-]{20,})",
        Value::Key,
    ),
    (Family::AnthropicKey, "sk-", "s", Before::Word, "sk-ant-[a-z]{2,8}[0-9]{2}-[A-Za-z0-9_-]{20,}", Value::Key),
    (
        Family::OpenAiKey,
        "sk-",
        "s",
        Before::Token,
        "sk-(?:(?:proj|svcacct|admin)-[A-Za-z0-9_-]{20,}|[A-Za-z0-9]{32,})",
        Value::Key,
    ),
    (
        Family::AzureKey,
        "(?i-u:accountkey|sharedaccesskey)",
        "as",
        Before::Any,
        r#"(?i-u:accountkey|sharedaccesskey){ASSIGNS}(?:\\*["'])?([A-Za-z0-9+/]{43,86}={1,2})"#,
        Value::Key,
    ),
    (Family::AzureSignature, "sig=", "s", Before::Word, "sig=([A-Za-z0-9%+/_-]{40,}=*)", Value::Key),
    (Family::NpmToken, "npm_", "n", Before::Word, "npm_[A-Za-z0-9]{36}", Value::Key),
    (Family::PypiToken, "pypi-AgE", "p", Before::Word, "pypi-AgE[A-Za-z0-9_-]{50,}", Value::Key),
    (
        Family::Jwt,
        "eyJ",
        "e",
        Before::Token,
        r"eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{16,}(?:\.[A-Za-z0-9_-]+){0,2}",
        Value::Key,
    ),
    (
        Family::PrivateKey,
        "-----BEGIN ",
        "-",
        Before::Any,
        r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----(?:(?:[^-]|-[^-]){32,}-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----|(?:(?:\s|\\[nr])*[A-Za-z0-9+/=]{32,})+)",
        Value::Named,
    ),
    (
        Family::DatabasePassword,
        "(?i-u:postgres|mysql|mariadb|mongodb|redis|amqp|mssql|sqlserver|clickhouse|cockroachdb)",
        "pmracs",
        Before::Word,
        "(?i-u:postgres|postgresql|mysql|mariadb|mongodb|rediss?|amqps?|mssql|sqlserver|clickhouse|cockroachdb)(?:[+][a-z0-9]+)?://[!-~&&[^:/?#@\"'\\\\]]*:([!-~&&[^/\"'\\\\<>]]+)@[A-Za-z0-9\\[]",
        Value::Mixed,
    ),
    (
        Family::UrlPassword,
        "://",
        ":",
        Before::Any,
        "://[!-~&&[^:/?#@\"'\\\\]]*:([!-~&&[^/?#\"'\\\\<>]]+)@[A-Za-z0-9\\[]",
        Value::Mixed,
    ),
    (
        Family::AwsSecretKey,
        "(?i-u:aws[_-]?secret|secret[_-]?access)",
        "as",
        Before::Any,
        r#"(?i-u:(?:aws[_-]?)?secret[_-]?(?:access[_-]?)?key){ASSIGNS}(?:\\*["'])?([A-Za-z0-9/+]{40})"#,
        Value::Key,
    ),
    (
        Family::AwsSessionToken,
        "(?i-u:session[_-]?token)",
        "s",
        Before::Any,
        r#"(?i-u:session[_-]?token){ASSIGNS}(?:\\*["'])?([A-Za-z0-9/+]{100,}=*)"#,
        Value::Key,
    ),
    (
        Family::Password,
        "(?i-u:{PASSWORD_NAMES})",
        PASSWORD_FIRSTS,
        Before::Any,
        "(?i-u:{PASSWORD_NAMES}){ASSIGNS}(?:{ASSIGNED}|{PHRASE})",
        Value::Password,
    ),
    (
        Family::Password,
        "(?i-u:{PASSWORD_NAMES})",
        PASSWORD_FIRSTS,
        Before::Member,
        "(?i-u:{PASSWORD_NAMES}){IS_NAME_OF}(?:{ASSIGNED}|{PHRASE})",
        Value::Password,
    ),
    (
        Family::Password,
        "(?i-u:{PASSWORD_NAMES})",
        PASSWORD_FIRSTS,
        Before::Element,
        "(?i-u:{PASSWORD_NAMES}){CONTENT}",
        Value::Password,
    ),
    (
        Family::Secret,
        "(?i-u:{SECRET_NAMES})",
        "ascrp",
        Before::Any,
        "(?i-u:{SECRET_NAMES}){ASSIGNS}{ASSIGNED}",
        Value::Mixed,
    ),
    (
        Family::Secret,
        "(?i-u:{SECRET_NAMES})",
        "ascrp",
        Before::Member,
        "(?i-u:{SECRET_NAMES}){IS_NAME_OF}{ASSIGNED}",
        Value::Mixed,
    ),
    (Family::Secret, "(?i-u:{SECRET_NAMES})", "ascrp", Before::Element, "(?i-u:{SECRET_NAMES}){CONTENT}", Value::Mixed),
    (Family::Secret, "(?i-u:token)", "t", Before::Alone, "(?i-u:token){ASSIGNS}{ASSIGNED}", Value::Random),
    (
        Family::Authorization,
        "(?i-u:authorization|bearer)",
        "ab",
        Before::Word,
        r#"(?i-u:bearer|authorization{ASSIGNS}(?:\\*["'])?(?:basic|token|bot|apikey))[ ]{1,4}([A-Za-z0-9._~+/-]{12,}=*)"#,
        Value::Mixed,
    ),
    (Family::TwilioKey, "SK[0-9a-f]{4}", "s", Before::Word, "SK[0-9a-f]{32}", Value::Key),
    (Family::SendgridKey, r"SG\.", "s", Before::Word, r"SG\.[A-Za-z0-9_-]{22}\.[A-Za-z0-9_-]{43}", Value::Key),
    (Family::HuggingFaceToken, "hf_", "h", Before::Word, "hf_[A-Za-z0-9]{30,}", Value::Key),
    (
        Family::DiscordToken,
        r"\.[A-Za-z0-9_-]{6}\.",
        ".",
        Before::TokenPart,
        r"[MNO][A-Za-z0-9_-]{23,27}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,}",
        Value::Key,
    ),
    (
        Family::DiscordWebhook,
        "/api/webhooks/",
        "/",
        Before::Any,
        "/api/webhooks/[0-9]{17,20}/([A-Za-z0-9_-]{60,})",
        Value::Key,
    ),
    (Family::TelegramToken, ":AA[A-Za-z0-9_-]{4}", ":", Before::Digits, "[0-9]{8,10}:AA[A-Za-z0-9_-]{33}", Value::Key),
    (Family::DigitalOceanToken, "do[opr]_v1_", "d", Before::Word, "do[opr]_v1_[a-f0-9]{64}", Value::Key),
    (Family::ShopifyToken, "shp(?:at|ca|pa|ss)_", "s", Before::Word, "shp(?:at|ca|pa|ss)_[a-fA-F0-9]{32}", Value::Key),
    (Family::DatabricksToken, "dapi[a-f0-9]{4}", "d", Before::Word, "dapi[a-f0-9]{32}", Value::Key),
    (Family::VaultToken, r"hv[sbr]\.", "h", Before::Word, r"hv[sbr]\.[A-Za-z0-9_-]{24,}", Value::Key),
    (Family::DockerToken, "dckr_[po]at_", "d", Before::Word, "dckr_[po]at_[A-Za-z0-9_-]{27,}", Value::Key),
    (Family::LinearKey, "lin_api_", "l", Before::Word, "lin_api_[A-Za-z0-9]{40}", Value::Key),
    (Family::GrafanaToken, "glsa_", "g", Before::Word, "glsa_[A-Za-z0-9]{32}_[A-Fa-f0-9]{8}", Value::Key),
    (Family::AtlassianToken, "ATATT3", "a", Before::Word, "ATATT3[A-Za-z0-9_=-]{100,}", Value::Key),
    (Family::MailgunKey, "key-[0-9a-f]{4}", "k", Before::Token, "key-[0-9a-f]{32}", Value::Key),
    (Family::AgeKey, "AGE-SECRET-KEY-1", "a", Before::Word, "AGE-SECRET-KEY-1[A-Z0-9]{58}", Value::Key),
];

/// Values in the place of a secret that are not secrets: references, words for a type or for nothing, words that Markdown
/// stresses, paths.
static PLACEHOLDER: LazyLock<Regex> = LazyLock::new(|| {
    compiled(
        r"\A(?:\$[({]|\$[A-Za-z_]+\z|\{|<|\*+[A-Za-z]*\*{0,3}\z|%[({]|\[|[xX.]{4}|/|~/|arn:|https?://|(?i-u:null|none|nil|true|false|undefined|string|password|passwd|secret|token|required|optional|redacted|hidden|changeme|example|placeholder|unknown|your[_-][!-~]*|(?:env|process|os|config|settings|self|this)\.[!-~]*)\z)",
    )
});

/// Patterns are constants that the tests compile.
fn compiled(pattern: &str) -> Regex {
    Regex::new(pattern).expect("a pattern of this file")
}

static SCANNER: LazyLock<Scanner> = LazyLock::new(|| {
    let mut by_byte = vec![Vec::new(); 256];
    let mut rules = Vec::new();
    let mut anchors = Vec::new();
    for (place, &(family, anchor, firsts, before, pattern, value)) in ROWS.iter().enumerate() {
        let whole = |text: &str| {
            let text = text.replace("{SECRET_NAMES}", SECRET_NAMES).replace("{PASSWORD_NAMES}", PASSWORD_NAMES);
            let text = text.replace("{ASSIGNS}", ASSIGNS).replace("{IS_NAME_OF}", IS_NAME_OF);
            text.replace("{CONTENT}", CONTENT).replace("{ASSIGNED}", ASSIGNED).replace("{PHRASE}", PHRASE)
        };
        for first in firsts.bytes() {
            by_byte[usize::from(first)].push(place);
        }
        anchors.push(whole(anchor));
        rules.push(Rule { family, before, pattern: compiled(&format!(r"\A(?:{})", whole(pattern))), value });
    }
    Scanner { anchors: compiled(&anchors.join("|")), rules, by_byte }
});

impl Scanner {
    /// The secret that begins at the anchor at `place`.
    fn secret(&self, text: &str, place: usize) -> Option<Secret> {
        let secret = self.rules_at(text, place).find_map(|rule| rule.apply(text, place))?;
        // A named secret that has a form of its own is called by that.
        let own = match secret.family {
            Family::Password | Family::Secret | Family::Authorization => self
                .rules_at(text, secret.start)
                .filter(|rule| rule.value == Value::Key)
                .find_map(|rule| rule.apply(text, secret.start)),
            _ => None,
        };
        Some(own.unwrap_or(secret))
    }

    fn rules_at(&self, text: &str, place: usize) -> impl Iterator<Item = &Rule> {
        let first = text.as_bytes().get(place).map(u8::to_ascii_lowercase);
        let rules = first.and_then(|first| self.by_byte.get(usize::from(first)));
        rules.into_iter().flatten().filter_map(|&rule| self.rules.get(rule))
    }
}

impl Rule {
    fn apply(&self, text: &str, place: usize) -> Option<Secret> {
        let start = self.before.start(text.as_bytes(), place)?;
        let rest = text.get(start..)?;
        // Most places are none: the cheap questions first, as groups cost far more than the end of a match.
        let whole = self.pattern.find(rest)?;
        let plain = |byte: u8| byte.is_ascii_alphabetic() || b"_-:=>\\\"' \t".contains(&byte);
        let is_quoted = whole.as_str().ends_with(['"', '\'']);
        let must_not_be_plain = match self.family {
            Family::Secret => true,
            Family::Password => !is_quoted,
            _ => false,
        };
        if must_not_be_plain && whole.as_str().bytes().all(plain) {
            return None;
        }
        let (from, to) = match self.pattern.captures_len() {
            1 => (0, whole.end()),
            _ => {
                let group = self.pattern.captures(rest)?.iter().skip(1).flatten().next()?;
                (group.start(), group.end())
            }
        };
        let secret = rest.get(from..to)?;
        let before = rest.get(..from)?;
        let quoted = before.ends_with(['"', '\'']) || matches!(self.before, Before::Element);
        let next = rest.as_bytes().get(to);
        let fits = match self.value {
            Value::Key => !next.is_some_and(u8::is_ascii_alphanumeric),
            Value::Named => true,
            Value::Password if secret.contains(char::is_whitespace) => {
                !PLACEHOLDER.is_match(secret) && secret.trim() == secret && is_phrase(secret)
            }
            Value::Password => !PLACEHOLDER.is_match(secret) && (quoted || secret.bytes().any(unlike_a_name)),
            Value::Mixed => !PLACEHOLDER.is_match(secret) && self.mixed(secret),
            Value::Random => !PLACEHOLDER.is_match(secret) && self.mixed(secret) && is_random(secret),
        };
        if !fits {
            return None;
        }
        let is_bare = !quoted && matches!(self.family, Family::Password | Family::Secret);
        if is_bare && is_code(rest.get(from..)?, self.family) {
            return None;
        }
        let rest_of_it = match is_bare {
            true => rest.bytes().skip(to).take_while(|&byte| of_a_bare_value(byte)).count(),
            false => 0,
        };
        Some(Secret { family: self.family, start: start + from, end: start + to + rest_of_it })
    }

    /// Whether a named secret is long and mixed enough. Passwords in addresses may be anything.
    fn mixed(&self, secret: &str) -> bool {
        let bytes = || secret.bytes();
        match self.family {
            Family::DatabasePassword | Family::UrlPassword => !PORT.is_match(secret),
            Family::Authorization => {
                bytes().any(|byte| byte.is_ascii_digit())
                    || secret
                        .as_bytes()
                        .windows(2)
                        .any(|pair| matches!(pair, [a, b] if a.is_ascii_lowercase() && b.is_ascii_uppercase()))
            }
            _ => {
                secret.len() >= 8
                    && bytes().any(|byte| byte.is_ascii_digit())
                    && bytes().any(|byte| byte.is_ascii_alphabetic())
            }
        }
    }
}

/// Whether a value of several words is a pass phrase, and no sentence about a password: it has a digit, which few sentences
/// have, and none of the words of those that do.
fn is_phrase(value: &str) -> bool {
    value.bytes().any(|byte| byte.is_ascii_digit()) && !value.contains(MARK) && !SENTENCE.is_match(value)
}

/// Words of rules, labels and messages about passwords.
static SENTENCE: LazyLock<Regex> = LazyLock::new(|| {
    compiled(
        r"(?i-u:\b(?:password|passphrase|pass ?code|pin|must|should|shall|can|cannot|may|will|need|needs|have|has|had|is|are|was|were|be|been|at (?:least|most)|minimum|maximum|min|max|more|less|fewer|than|between|up to|only|long|short|length|characters?|chars?|letters?|digits?|numbers?|symbols?|bytes?|bits?|days?|hours?|minutes?|times?|attempts?|attempt|expires?|expired|valid|invalid|incorrect|wrong|failed|missing|required|optional|default|example|e\.g|your|please|enter|type|choose|change|changed|reset|forgot|confirm|repeat|field|value|string|see|section|rfc|version|hash|hashed|encrypted|salted|redacted|hidden)\b)",
    )
});

/// The port of an address, and what follows the address in a list.
static PORT: LazyLock<Regex> = LazyLock::new(|| compiled(r"\A[0-9]{1,5}[,;|)]"));

/// Code in the place of a bare value: the name of a function that is called, or names with dots between them. Letters
/// and digits that change more than once are no name.
static CODE: LazyLock<Regex> = LazyLock::new(|| {
    compiled(
        r"\A([A-Za-z_]+[0-9]{0,3}[A-Za-z_]*(?:(?:\.|::|->)[A-Za-z_]+[0-9]{0,3}[A-Za-z_]*)*)([^!-~]|[\[\](){},;<>`]|\z)",
    )
});

/// The name of a type with a number in it, such as `OAuth2RefreshToken`.
static TYPE: LazyLock<Regex> = LazyLock::new(|| compiled(r"\A[A-Z][A-Za-z]*[0-9]{1,2}(?:[A-Z][a-z]{3,}){2,}\z"));

/// Names of which the last part of a name with dots is one where it is the password of something.
static OF_SECRET: LazyLock<Regex> =
    LazyLock::new(|| compiled(r"(?i-u:(?:password|passwd|passphrase|pwd|pass|secret|token|key|value)\z)"));

/// The bytes of a bare value that is looked at for code, so that the time does not grow with what follows.
const LONGEST_CODE: usize = 80;

/// Whether a bare value is code: a function that is called, or a name with dots. Of a password, which people make up from
/// words, the name must say that it is one.
fn is_code(rest: &str, family: Family) -> bool {
    let front = rest.get(..rest.floor_char_boundary(LONGEST_CODE)).unwrap_or_default();
    let Some(Some((name, next))) = CODE.captures(front).map(|found| found.get(1).zip(found.get(2))) else {
        return false;
    };
    let (name, next) = (name.as_str(), next.as_str());
    // What is cut there goes on.
    if next.is_empty() && front.len() < rest.len() {
        return false;
    }
    let has_parts = name.contains(['.', ':', '>']);
    match family {
        _ if next == "(" => true,
        Family::Password => has_parts && OF_SECRET.is_match(name),
        _ => has_parts || TYPE.is_match(name),
    }
}

/// Whether a token was made up by no person: long, with digits all over, and without a word. It is no UUID.
fn is_random(secret: &str) -> bool {
    let digits = secret.bytes().filter(u8::is_ascii_digit).count();
    let has_word = secret.as_bytes().windows(6).any(|part| part.iter().all(u8::is_ascii_lowercase));
    let is_uuid = secret.len() == 36 && secret.bytes().filter(|&byte| byte == b'-').count() == 4;
    secret.len() >= 16 && digits >= 3 && !has_word && !is_uuid
}

/// How the marks of what was removed begin.
const MARK: &str = "[REDACTED: ";

/// What stands in place of a secret.
fn mark(family: Family) -> String {
    format!("{MARK}{family}]")
}

/// Whether a byte belongs to a value without quotes, as in [`ASSIGNED`].
fn of_a_bare_value(byte: u8) -> bool {
    byte.is_ascii_graphic() && !b"\"'`,;&<>(){}[]\\".contains(&byte)
}

/// Whether a byte is a digit, or a sign that occurs in passwords and not in names, paths or types.
fn unlike_a_name(byte: u8) -> bool {
    byte.is_ascii_digit() || b"!@#$%^*+=?~".contains(&byte)
}

/// The bytes without those at the end, at most `most`, that pass `test`.
fn trimmed<'b>(bytes: &'b [u8], most: usize, test: &dyn Fn(u8) -> bool) -> &'b [u8] {
    let count = bytes.iter().rev().take(most).take_while(|&&byte| test(byte)).count();
    bytes.get(..bytes.len() - count).unwrap_or_default()
}

impl Before {
    /// The start of a secret with an anchor at `place`, if the rule applies there.
    fn start(self, bytes: &[u8], place: usize) -> Option<usize> {
        let before = bytes.get(..place)?;
        let token = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
        let back = |part: &dyn Fn(u8) -> bool| {
            // One more than the longest such part, so that a longer one does not fit.
            before.iter().rev().take(29).take_while(|&&byte| part(byte)).count()
        };
        let free = |part: &dyn Fn(u8) -> bool| match before {
            // An escape of JSON (`\n`) is not a part of the word behind it.
            [.., b'\\', b'n' | b'r' | b't'] | [] => true,
            [.., last] => !part(*last),
        };
        match self {
            Self::Any => Some(place),
            Self::Word => free(&|byte| byte.is_ascii_alphanumeric()).then_some(place),
            Self::Token => free(&token).then_some(place),
            Self::Digits => Some(place - back(&|byte| byte.is_ascii_digit())),
            Self::TokenPart => Some(place - back(&token)).filter(|start| place - start <= 28),
            Self::Alone => {
                let blanks = before.iter().rev().take(64).take_while(|&&byte| byte == b' ' || byte == b'\t').count();
                let is_word = |at: usize| before.get(..at).and_then(<[u8]>::last).is_some_and(|&byte| token(byte));
                (free(&token) && (blanks == 0 || !is_word(place - blanks))).then_some(place)
            }
            Self::Member => {
                let key = trimmed(before, 64, &|byte| token(byte) || byte == b'.' || byte == b'/');
                let key = trimmed(key, 8, &|byte| b"\"'\\".contains(&byte));
                let key = trimmed(key, 8, &|byte| byte == b' ').strip_suffix(b":")?;
                let key = trimmed(key, 8, &|byte| b" \"'\\".contains(&byte));
                let named = |name: &[u8]| {
                    key.len()
                        .checked_sub(name.len())
                        .and_then(|from| key.get(from..))
                        .is_some_and(|end| end.eq_ignore_ascii_case(name))
                };
                (named(b"name") || named(b"key")).then_some(place)
            }
            Self::Element => trimmed(before, 64, &|byte| token(byte) || byte == b'.' || byte == b':')
                .ends_with(b"<")
                .then_some(place),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Invented, mixed, and in parts, so that no scanner takes this file for a leak.
    const HEX: &str = "3f9a0c77be2d41586e0f9b3ac4d7e812";
    const MIXED: &str = "Qz7Lm2Xv9Rt4Kp8Wd3Nh6Yb1Fc5Gj0SaTuVeBiMo";
    const BASE: &str = "q1W2e3R4t5Y6u7I8o9P0a1S2d3F4g5H6j7K8l9Z0x1C2v3B4n5M6Q7w8E9r0T1y2U3i4O5p6A7s8D9f0G1h2J3";

    /// The first `length` characters of one of the texts above, repeated.
    fn some(text: &str, length: usize) -> String {
        text.chars().cycle().take(length).collect()
    }

    /// Secrets by family: what stands before, the secret, what stands behind.
    fn secrets() -> Vec<(Family, &'static str, String, &'static str)> {
        use Family as F;
        let mixed = |length| some(MIXED, length);
        let base = |length| some(BASE, length);
        let hex = |length| some(HEX, length);
        let upper = |length| mixed(80).to_uppercase().replace(['0', '1', '8', '9'], "K")[..length].to_owned();
        let key = |family, secret: String| (family, "it is ", secret, " here");
        let dashes = "-".repeat(5);
        let pem = |kind: &str, body: &str| format!("{dashes}BEGIN {kind}{dashes}{body}{dashes}END {kind}{dashes}");
        let lines = format!("\n{}\n{}\n", base(64), base(40));
        let escaped = lines.replace('\n', "\\n");
        vec![
            key(F::AwsAccessKey, format!("AK{}{}", "IA", upper(16))),
            key(F::AwsAccessKey, format!("AS{}{}", "IA", upper(16))),
            (F::AwsAccessKey, "a JSON escape\\n", format!("AK{}{}", "IA", upper(16)), "\\n"),
            (F::AwsSecretKey, "aws_secret_access_key = ", base(40), "\n"),
            (F::AwsSecretKey, "{\"SecretAccessKey\": \"", base(40), "\"}"),
            (F::AwsSecretKey, "AWS_SECRET_ACCESS_KEY=", base(40), ""),
            (F::AwsSessionToken, "\"SessionToken\": \"", base(120), "\","),
            key(F::GithubToken, format!("gh{}{}", "p_", mixed(36))),
            key(F::GithubToken, format!("gh{}{}", "o_", mixed(36))),
            key(F::GithubToken, format!("gh{}{}", "s_", mixed(36))),
            key(F::GithubToken, format!("github{}{}_{}", "_pat_", mixed(22), mixed(59))),
            (F::GithubToken, "GITHUB_TOKEN=", format!("gh{}{}", "p_", mixed(36)), "\n"),
            key(F::GitlabToken, format!("gl{}{}", "pat-", mixed(20))),
            key(F::GitlabToken, format!("gl{}{}.01.0w1x2y3z4", "pat-", mixed(40))),
            key(F::GitlabToken, format!("gl{}{}.0w1x2y3z4", "pat-", mixed(40))),
            key(F::SlackToken, format!("xo{}-{}-{}", "xb-123456789012", "1234567890123", mixed(24))),
            key(F::SlackToken, format!("xa{}-A012ABCDEFG-1234567890123-{}", "pp-1", hex(64))),
            key(F::SlackToken, format!("xo{}-{}-{}", "xc-123456789012-1234567890123", "1234567890123", hex(64))),
            (F::SlackToken, "token: ", format!("xo{}-1-{}-{}", "xe.xoxp", mixed(60), mixed(60)), ""),
            key(F::SlackToken, format!("xo{}-1-{}_{}", "xe", mixed(40), mixed(9))),
            key(F::SlackToken, format!("xo{}-{}%2B{}", "xd", mixed(30), mixed(30))),
            (
                F::SlackWebhook,
                "https://hooks.slack.com/services/",
                format!("T0{}/B0{}/{}", "12", "34", mixed(24)),
                "\"",
            ),
            key(F::StripeKey, format!("sk_{}_{}", "live", mixed(24))),
            key(F::StripeKey, format!("rk_{}_{}", "test", mixed(24))),
            key(F::StripeKey, format!("wh{}_{}", "sec", mixed(32))),
            key(F::GoogleApiKey, format!("AI{}{}", "za", mixed(35))),
            key(F::GoogleOauth, format!("GO{}-{}", "CSPX", mixed(28))),
            key(F::GoogleOauth, format!("ya{}.{}", "29", mixed(60))),
            key(F::OpenAiKey, format!("sk-{}-{}", "proj", mixed(48))),
            key(F::OpenAiKey, format!("sk{}{}", "-", base(48))),
            (F::OpenAiKey, "OPENAI_API_KEY=\"", format!("sk{}{}", "-", base(48)), "\""),
            key(F::AnthropicKey, format!("sk-{}-api03-{}", "ant", mixed(40))),
            (F::AzureKey, "DefaultEndpointsProtocol=https;AccountName=x;AccountKey=", base(86) + "==", ";Endpoint"),
            (F::AzureKey, "Endpoint=sb://x.net/;SharedAccessKeyName=n;SharedAccessKey=", base(43) + "=", ""),
            (F::AzureSignature, "https://x.blob.net/c?sv=2022&sig=", base(43) + "%3D", "&se=2030"),
            key(F::NpmToken, format!("np{}_{}", "m", mixed(36))),
            key(F::PypiToken, format!("py{}-AgEIcHlwaS5vcmc{}", "pi", mixed(60))),
            key(F::Jwt, format!("ey{}.ey{}.{}", "JhbGciOiJIUzI1NiJ9", "JzdWIiOiIxMjM0In0", mixed(43))),
            (
                F::Jwt,
                "Authorization: Bearer ",
                format!("ey{}.ey{}.{}", "JhbGciOiJIUzI1NiJ9", "JzdWIiOiIxMjM0In0", mixed(43)),
                "",
            ),
            key(F::PrivateKey, pem("RSA PRIVATE KEY", &lines)),
            key(F::PrivateKey, pem("OPENSSH PRIVATE KEY", &escaped)),
            key(F::PrivateKey, pem("PRIVATE KEY", &format!("\nProc-Type: 4,ENCRYPTED\n{lines}"))),
            key(F::PrivateKey, pem("PGP PRIVATE KEY BLOCK", &format!("\nVersion: x-1\n{lines}"))),
            (F::PrivateKey, "cut off: ", format!("{dashes}BEGIN EC PRIVATE KEY{dashes}\n{}", base(64)), "\n..."),
            (F::DatabasePassword, "postgres://app:", "s3cr3t".to_owned(), "@db:5432/main"),
            (F::DatabasePassword, "mongodb+srv://app:", "p@ss-word".to_owned(), "@cluster.net/?w=1"),
            (F::DatabasePassword, "redis://:", "hunter".to_owned(), "@cache:6379"),
            (F::UrlPassword, "https://user:", "hunter".to_owned(), "@example.org/path"),
            (F::Password, "password=", "hunter22".to_owned(), "&user=me"),
            (F::Password, "\"password\": \"", "correct".to_owned(), "\","),
            (F::Password, "\\\"dbPassword\\\":\\\"", "correct".to_owned(), "\\\","),
            (F::Password, "password: '", "it\u{e9}sme".to_owned(), "'"),
            (F::Password, "\"passwd\": \"", "a\\\"b\\\\c1".to_owned(), "\""),
            (F::Password, "PGPASSWORD=", "x!yzzy".to_owned(), "\n"),
            (F::Password, "passphrase: \"", "correct horse battery staple 9!".to_owned(), "\""),
            (F::Password, "{\"password\": \"", "My dog 7 years".to_owned(), "\"}"),
            (F::Password, "{\\\"password\\\":\\\"", "My dog 7 years".to_owned(), "\\\"}"),
            (F::Password, "{'passwd': '", "my \"2\" dogs".to_owned(), "'}"),
            (F::Password, "**Password:** ", "hunter22".to_owned(), "\n"),
            (F::Password, "- *password*: ", "hunter22".to_owned(), "\n"),
            (F::Password, "the password: `", "hunter,22".to_owned(), "` of the pool"),
            (F::Password, "`DB_PASSWORD`: `", "hunter22".to_owned(), "`"),
            (F::Password, "`password=", "hunter22".to_owned(), "`"),
            (F::Password, "password:`", "hunter2,rest(of)it".to_owned(), "`"),
            (F::Password, "__Password:__ ", "hunter22".to_owned(), "\n"),
            (F::Password, "_password_: ", "hunter22".to_owned(), "\n"),
            (F::Password, "**`password`**: ", "hunter22".to_owned(), ""),
            (F::Password, "**\"password\"**: \"", "hunter22".to_owned(), "\""),
            (F::Password, "~~password~~: ``", "hunter22".to_owned(), "``"),
            (F::Password, "`password:` ", "hunter22".to_owned(), ""),
            (F::Password, "password: `", some(MIXED, 160), "`"),
            (F::Password, "{\"name\":\"DB_PASSWORD\",\"value\":\"", "hunter2-Zq9x".to_owned(), "\"}"),
            (F::Password, "{\"Name\": \"db.password\",\n      \"Value\": \"", "hunter".to_owned(), "\"}"),
            (
                F::Password,
                "\\\"name\\\":\\\"DB_PASSWORD\\\",\\n  \\\"value\\\":\\\"",
                "hunter2-Zq9x".to_owned(),
                "\\\"}",
            ),
            (F::Password, "- name: DB_PASSWORD\n  value: ", "hunter2-Zq9x".to_owned(), "\n- name: A"),
            (F::Password, "- name: \"DB_PASSWORD\"\r\n  value: '", "hunter".to_owned(), "'\r\n"),
            (F::Secret, "{\"key\": \"STRIPE_API_KEY\", \"value\": \"", mixed(24), "\"}"),
            (F::Password, "<password>", "hunter2-Zq9x".to_owned(), "</password>"),
            (F::Password, "<db.password>\n  ", "hunter&amp;2".to_owned(), "\n</db.password>"),
            (F::Password, "<ns:Password>", "hunter".to_owned(), "<\\/ns:Password>"),
            (F::Secret, "<apiKey>", mixed(24), "</apiKey>"),
            (F::Password, "DB_PASS=", "hunter2-Zq9x".to_owned(), "\n"),
            (F::Password, "smtp-pass: ", "hunter2-Zq9x".to_owned(), "\n"),
            (F::Password, "\"dbPass\": \"", "hunter".to_owned(), "\""),
            (F::Password, "password: ", "hunter2.Zq9x".to_owned(), "\n"),
            (F::UrlPassword, "https://admin:", "123".to_owned(), "@example.org"),
            (F::UrlPassword, "https://admin:", "12345!,x".to_owned(), "@example.org"),
            (F::Secret, "\"api_token\": \"", mixed(24), "\""),
            (F::Secret, "{\"token\": \"", mixed(24), "\"}"),
            (F::Secret, "\n  token: ", hex(32), "\n"),
            (F::Secret, "?token=", mixed(24), "&page=2"),
            (F::Secret, "api_key = ", format!("{}.{}", mixed(12), mixed(20)), "\n"),
            (F::Secret, "secret: ", mixed(12), "(x)\n"),
            (F::Secret, "**API key:** ", mixed(30), "\n"),
            (F::Secret, "the client secret: ", mixed(30), "\n"),
            (F::Secret, "\"client_secret\": \"", mixed(30), "\""),
            (F::Secret, "x-api-key: ", hex(32), "\n"),
            (F::Secret, "TWILIO_AUTH_TOKEN=", hex(32), "\n"),
            (F::Secret, "secret: ", mixed(12), ""),
            (F::Secret, "secret: ", mixed(700), ", next"),
            (F::Secret, "access_token=", mixed(20), "&state=1"),
            (F::Authorization, "Authorization: Bearer ", mixed(30), "\r\n"),
            (F::Authorization, "\"authorization\": \"Basic ", "dXNlcjpwYXNzd29yZA==".to_owned(), "\""),
            (F::Authorization, "-H 'Authorization: token ", hex(40), "'"),
            key(F::TwilioKey, format!("S{}{}", "K", hex(32))),
            key(F::SendgridKey, format!("S{}.{}.{}", "G", mixed(22), base(43))),
            key(F::HuggingFaceToken, format!("h{}_{}", "f", mixed(34))),
            key(F::DiscordToken, format!("M{}.{}.{}", mixed(25), "GhXyZ1", base(38))),
            (F::DiscordWebhook, "https://discord.com/api/webhooks/123456789012345678/", base(68), " "),
            (F::TelegramToken, "https://api.telegram.org/bot", format!("1234567890:A{}{}", "A", mixed(33)), "/getMe"),
            key(F::DigitalOceanToken, format!("do{}_{}", "p_v1", hex(64))),
            key(F::ShopifyToken, format!("shp{}_{}", "at", hex(32))),
            key(F::DatabricksToken, format!("da{}{}", "pi", hex(32))),
            key(F::VaultToken, format!("hv{}.{}", "s", mixed(90))),
            key(F::DockerToken, format!("dckr{}_{}", "_pat", mixed(27))),
            key(F::LinearKey, format!("lin{}_{}", "_api", mixed(40))),
            key(F::GrafanaToken, format!("gl{}_{}_{}", "sa", mixed(32), "0a1b2c3d")),
            key(F::AtlassianToken, format!("ATA{}{}", "TT3", mixed(180))),
            key(F::MailgunKey, format!("ke{}-{}", "y", hex(32))),
            key(F::AgeKey, format!("AGE-{}-1{}", "SECRET-KEY", upper(58))),
        ]
    }

    #[test]
    fn a_key_tells_what_its_value_is() {
        for (key, value, expected) in [
            ("db_password", "hunter2-Zq9x", "[REDACTED: password]"),
            ("DB Password:", "hunter", "[REDACTED: password]"),
            ("stripe api key", "q7Lm2Xv9Rt4Kp8Wd3Nh6Yb1", "[REDACTED: secret]"),
            ("stripeApiKey", "q7Lm2Xv9Rt4Kp8Wd3Nh6Yb1", "[REDACTED: secret]"),
            ("password of the staging database", "pa\"ss\\1,x", "[REDACTED: password]"),
            ("password (staging)", "hunter2-Zq9x", "[REDACTED: password]"),
            ("password 2", "hunter2-Zq9x", "[REDACTED: password]"),
            ("password", "hunter2-Zq9x since Monday", "[REDACTED: password]"),
            ("password", "ask Ines for it", "ask Ines for it"),
            ("password", "[REDACTED: password]", "[REDACTED: password]"),
            ("password", "${DB_PASSWORD}", "${DB_PASSWORD}"),
            ("password policy", "rotate-9-times", "rotate-9-times"),
            ("region", "eu-west-1", "eu-west-1"),
            ("", "x", "x"),
            ("region", "password=hunter2-Zq9x", "password=[REDACTED: password]"),
        ] {
            let masked = redact_named(key, value);
            assert_eq!(masked, expected, "{key}: {value}");
            assert_eq!(redact_named(key, &masked), expected, "{key}: {value}");
        }
    }

    #[test]
    fn a_secret_of_every_family_is_taken_out_and_nothing_else() {
        let mut seen = std::collections::BTreeSet::new();
        for (family, before, secret, behind) in secrets() {
            let text = format!("{before}{secret}{behind}");
            let redacted = redact(&text);
            assert_eq!(redacted.text, format!("{before}[REDACTED: {family}]{behind}"), "{family}: {text}");
            assert_eq!(redacted.found, BTreeMap::from([(family, 1)]));
            seen.insert(family);
        }
        assert_eq!(seen.into_iter().collect::<Vec<_>>(), Family::ALL);
    }

    #[test]
    fn a_key_within_another_word_or_of_another_length_is_none() {
        // Families whose secrets are known by their own form, not by a name or by delimiters.
        let of_a_form = secrets().into_iter().filter(|(_, before, ..)| *before == "it is ");
        for (family, _, secret, _) in of_a_form.filter(|(family, ..)| *family != Family::PrivateKey) {
            let half: String = secret.chars().take(secret.len() / 2).collect();
            for text in [format!("it is {half} here"), format!("it is x{secret}")] {
                // Cut in half, some keys are still long enough for one.
                let long = matches!(
                    family,
                    Family::OpenAiKey
                        | Family::VaultToken
                        | Family::GoogleOauth
                        | Family::GithubToken
                        | Family::GitlabToken
                        | Family::SlackToken
                        | Family::AtlassianToken
                ) && text.contains(&half)
                    && !text.contains(&secret);
                assert!(long || redact(&text).found.is_empty(), "{family}: {text}");
            }
        }
    }

    #[test]
    fn look_alikes_stay() {
        let (git, md5, mixed, base) = (some(HEX, 40), some(HEX, 32), some(MIXED, 40), some(BASE, 80));
        let dashes = "-".repeat(5);
        let texts = [
            format!("commit {git}"),
            format!("sha256:{}", some(HEX, 64)),
            format!("etag: \"{md5}\""),
            "550e8400-e29b-41d4-a716-446655440000".to_owned(),
            format!("data:image/png;base64,iVBORw0KGgo{base}AKIA{base}eyJ{base}=="),
            format!("next_page_token: {mixed}"),
            format!("\"nextToken\": \"{mixed}\""),
            format!("\"cursor\": \"{base}\""),
            format!("{dashes}BEGIN CERTIFICATE{dashes}\n{base}\n{dashes}END CERTIFICATE{dashes}"),
            format!("{dashes}BEGIN PUBLIC KEY{dashes}\n{base}\n{dashes}END PUBLIC KEY{dashes}"),
            format!("if line.startswith('{dashes}BEGIN RSA PRIVATE KEY{dashes}'):"),
            "a task-force, a disk-image-of-the-second-generation-of-all, risk-adjusted".to_owned(),
            "sk-learn, sk-estimator-with-a-rather-long-name-for-it".to_owned(),
            "AKIAIO, ASIATIC, AKIABCDEFGHIJKLMNOPQRSTUVWXYZ".to_owned(),
            "SKU12345678901234567890123456789012".to_owned(),
            "https://example.org:8080/a@b and https://example.org/x:y@z and git@example.org:a/b.git".to_owned(),
            "postgres://localhost:5432/main and postgres://app@db/main".to_owned(),
            "postgres://app:${PASSWORD}@db/main and https://user:<password>@host".to_owned(),
            "\"password\": {\"type\": \"string\"}, \"password\": \"string\", \"password\": null".to_owned(),
            "password: required, password = get_password(), password=$PASSWORD, password: ********".to_owned(),
            "The password: choose one. Passwords: two. password_hash: none".to_owned(),
            "password = config.database.password, api_key = os.environ[\"KEY1\"]".to_owned(),
            "password: \"is required\", {\"password\": \"must have at least 8 characters\"}, passwd: 'Choose 1'"
                .to_owned(),
            "{\"password\": [\"is too short (minimum is 8)\"], \"forgot_password\": \"Forgot your password 2?\"}"
                .to_owned(),
            "print(\"password: \" + name + \" 2\"), password=\"\", user=\"Ada 7\", pwd: \" 1 \"".to_owned(),
            "passphrase: \"correct horse battery staple\", password: \"see section 3\"".to_owned(),
            "**Password:** required, `password`: `string`, password: `${PASSWORD1}`, the `password`: **not** shown"
                .to_owned(),
            "password:********, password:**, *password*: ******, secret: `sha`, password: ***not***".to_owned(),
            "glpat-example.com.1, xoxo-hugs-and-kisses, xoxb-your-token".to_owned(),
            "PWD=/home/me/project1 OLDPWD=/tmp/a1".to_owned(),
            "secret: arn:aws:secretsmanager:eu-west-1:123456789012:secret:name-1".to_owned(),
            "\"api_key\": \"your-api-key-1\", client_secret: {{ vault.secret1 }}, api-key: <key1>".to_owned(),
            "\"secret\": true, secret=none, secretary: jane1234, the secret is out".to_owned(),
            "Bearer authentication-is-required, the bearer understanding".to_owned(),
            "eyJ.eyJ.eyJ- eyJhbGciOiJIUzI1NiJ9 alone".to_owned(),
            "a.module.with.several.dotted.names and 12.345678.90".to_owned(),
            "npm_config_registry, npm_lifecycle_event, hf_hub_download, pypi-server".to_owned(),
            "[REDACTED: jwt]".to_owned(),
            "{\"name\": \"password\", \"type\": \"string\"}, {\"name\": \"password\", \"value\": \"string\"}".to_owned(),
            "{\"name\": \"DB_PASSWORD\", \"valueFrom\": {\"secretKeyRef\": {\"name\": \"db-1\", \"key\": \"password\"}}}".to_owned(),
            "{\"name\": \"DB_PASSWORD\", \"value\": \"${DB_PASSWORD1}\"}, {\"name\": \"password_hint\", \"value\": \"dog 2\"}"
                .to_owned(),
            "{\"label\": \"password\", \"value\": \"field-2\"}, - label: password\n  value: field-2".to_owned(),
            "| password | string | required, 8 to 64 |\n| token | string | page_token_2 |".to_owned(),
            "Put <password> there, <password>string</password>, <password></password>, <input type=password>hunter2</div>"
                .to_owned(),
            "<password>${DB_PASSWORD1}</password>, <password>two words 2</password>, <passwordPolicy>min-8</passwordPolicy>"
                .to_owned(),
            "pass: true, bypass=12345678, first_pass: 20000.5, pass=second-pass-2, compass: north-2".to_owned(),
            "\"token\": \"next_page\", \"token\": \"page_2_of_30_results\", max_tokens: 4096, \"token_count\": 12".to_owned(),
            format!("next token: {mixed}, \"token\": \"550e8400-e29b-41d4-a716-446655440000\", tokens: {mixed}"),
            format!("\"page-token\": \"{mixed}\", \"pageToken\": \"{mixed}\""),
            "api,https://api.example.org:8443,ops@example.org\nb|https://b.example.org:443|ops@example.org".to_owned(),
            "(see https://a.example.org:8080);mail:ops@example.org, postgres://db:5432;ops@example.org".to_owned(),
            "secret = hashlib.sha256(data).hexdigest(), api_key = base64.b64encode(raw), password = get_pw2(user)".to_owned(),
            "access_key = s3client.access_key\nsecret = x509.load_cert\npassword = db2.config.password".to_owned(),
            "refresh_token: OAuth2RefreshToken, client_secret = Secret::new2(raw), api_key=client2->api_key;".to_owned(),
            "z\u{e9}ro \u{1f512} password=\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}".to_owned(),
        ];
        for text in texts {
            let redacted = redact(&text);
            assert_eq!((redacted.text.as_ref(), redacted.found.len()), (text.as_str(), 0));
            assert!(matches!(redacted.text, Cow::Borrowed(_)));
        }
    }

    #[test]
    fn secrets_are_counted_where_they_stand() {
        let key = format!("AK{}{}", "IA", "QWERTYUIOPASDFGH");
        let text = format!("{key} é {key}\n{{\"password\": \"hunter\", \"note\": \"{key}\"}}");
        let redacted = redact(&text);
        insta::assert_snapshot!(redacted.text, @r#"
        [REDACTED: aws_access_key] é [REDACTED: aws_access_key]
        {"password": "[REDACTED: password]", "note": "[REDACTED: aws_access_key]"}
        "#);
        assert_eq!(redacted.found, BTreeMap::from([(Family::AwsAccessKey, 3), (Family::Password, 1)]));
    }

    proptest::proptest! {
        #![proptest_config(proptest::prelude::ProptestConfig::with_cases(100))]
        #[test]
        fn redacting_twice_is_redacting_once(parts in proptest::collection::vec((0usize..80, "[ -~é]{0,12}"), 0..12)) {
            let secrets = secrets();
            let mut text = String::new();
            for (place, filler) in &parts {
                if let Some((_, before, secret, behind)) = secrets.get(*place) {
                    text.push_str(before);
                    text.push_str(secret);
                    text.push_str(behind);
                }
                text.push_str(filler);
            }
            let once = redact(&text).text.into_owned();
            let twice = redact(&once).text.into_owned();
            proptest::prop_assert_eq!(twice, once);
        }
    }
}
