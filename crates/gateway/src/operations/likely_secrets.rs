//! What in the entry of a server is likely a secret, judged by names and forms.
//!
//! Who writes an entry says nowhere which of its values are secrets, so that each is judged by what it is called, by what it
//! looks like, and by what stands beside its references. It takes little to be suspected: only what is plainly none (a
//! number, a path, a word) is shown. References have the form of a configuration, `${env:NAME}` and `${file:PATH}`.
//!
//! Nothing is replaced, noted or named here. That does who asks: the import, and what covers secrets in packs.

use std::path::Path;

use super::references::replaced;
use contextweaver_context::store::redact;

/// Whether what is called so is likely a secret.
pub(super) fn is_secret_name(name: &str) -> bool {
    const PARTS: [&str; 11] = [
        "KEY",
        "TOKEN",
        "SECRET",
        "PASSW",
        "CREDENTIAL",
        "AUTH",
        "COOKIE",
        "SESSION",
        "PRIVATE",
        "CONNECTION",
        "SIGNATURE",
    ];
    const WORDS: [&str; 7] = ["PAT", "PWD", "PASS", "DSN", "JWT", "SIG", "PIN"];
    let name = name.to_ascii_uppercase();
    PARTS.iter().any(|part| name.contains(part))
        || name.split(|c: char| !c.is_ascii_alphanumeric()).any(|word| WORDS.contains(&word))
}

/// Whether a value is plainly no secret.
pub(super) fn is_harmless(name: &str, value: &str) -> bool {
    if is_secret_name(name) || !redact(value).found.is_empty() {
        return false;
    }
    let is_number = value.len() <= 6 && value.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let is_word = value.len() <= 16
        && value.bytes().all(|byte| byte.is_ascii_alphabetic() || matches!(byte, b'-' | b'_'))
        && (value == value.to_ascii_lowercase() || value == value.to_ascii_uppercase());
    let is_path = ["/", "./", "../", "~/"].iter().any(|start| value.starts_with(start));
    let is_address = (value.starts_with("http://") || value.starts_with("https://")) && !value.contains(['@', '?']);
    let is_media_type = value.starts_with("application/") || value.starts_with("text/");
    is_number || is_word || is_path || is_address || is_media_type
}

/// Whether the value of a variable or a header is plainly no secret, its references aside.
pub(super) fn is_plain(name: &str, value: &str) -> bool {
    if is_reference(value) { is_plain_around(name, value) } else { is_harmless(name, value) }
}

/// Whether what stands around the references of a value is plainly no secret: words, small numbers, a path, an address.
fn is_plain_around(name: &str, value: &str) -> bool {
    // More than so many characters right beside a reference are hardly a unit or the beginning of a name.
    const LONGEST_BESIDE: usize = 7;
    // Much may be called a key or a session, so that within a value only the plainest names count.
    const NAMES: [&str; 5] = ["password", "passwd", "pwd", "secret", "token"];
    let marked = marked(value);
    if !redact(value).found.is_empty() || has_password(&marked) {
        return false;
    }
    // The address of what gives tokens has a telling name too.
    if is_secret_name(name) && !value.contains("://") {
        let is_sent = is_authorization(name) && is_kind_and_reference(&marked);
        return is_alone(&marked) || is_sent || is_plain_list(name, &marked);
    }
    let is_named_so = |name: &str| NAMES.iter().any(|end| name.to_ascii_lowercase().ends_with(end));
    let divides = |c: char| c.is_whitespace() || matches!(c, ';' | '&' | '?');
    let mut pairs = marked.split(divides).filter_map(|pair| pair.split_once('='));
    if pairs.any(|(name, value)| is_named_so(name) && !is_plain_pair(name, value)) {
        return false;
    }
    let beside = |part: &str| part.chars().filter(|c| *c != REFERENCE).count();
    let parts =
        |text: &str, is: &dyn Fn(&str) -> bool| text.split(|c: char| !c.is_alphanumeric() && c != REFERENCE).all(is);
    let is_apart = |part: &str| !part.contains(REFERENCE) || beside(part) <= LONGEST_BESIDE;
    let is_plain = |part: &str| is_plain_part(&part.replace(REFERENCE, ""), LONGEST_MIXED);
    parts(&marked, &is_apart)
        && (marked.split_whitespace().all(|word| is_plain_beside(word) || parts(word, &is_plain))
            || is_harmless(name, &marked.replace(REFERENCE, "")))
}

/// Whether an address has a secret in it: a password, a value in its query, a part of its path that nobody chose.
pub(super) fn is_secret_address(url: &str) -> bool {
    let marked = marked(url);
    !redact(url).found.is_empty()
        || marked.split_once('?').is_some_and(|(_, query)| {
            query
                .split('&')
                .any(|pair| pair.split_once('=').is_some_and(|(name, value)| is_secret_name(name) && !is_alone(value)))
        })
        || marked.split_once("://").is_some_and(|(_, rest)| {
            let mut parts = rest.split(['?', '#']).next().unwrap_or(rest).split('/');
            let user = parts.next().and_then(|host| host.rsplit_once('@')).map(|(user, _)| user);
            user.is_some_and(|user| !is_alone(user.split_once(':').map_or(user, |(_, password)| password)))
                || parts.flat_map(|part| part.split(REFERENCE)).any(is_opaque)
        })
}

/// Whether a part of a path is a name that nobody chose, by which alone some servers know who asks: long, of letters and many digits.
fn is_opaque(part: &str) -> bool {
    let count = |is: fn(&u8) -> bool| part.bytes().filter(is).count();
    part.len() >= 20
        && count(u8::is_ascii_digit) >= 4
        && count(u8::is_ascii_alphabetic) >= 4
        && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'=' | b'~' | b'%'))
}

/// Kinds of credentials, which stand before these in a header.
const KINDS: [&str; 6] = ["bearer", "basic", "token", "apikey", "key", "bot"];

/// Whether a word is a kind of credentials.
fn is_kind_of_credentials(word: &str) -> bool {
    KINDS.iter().any(|kind| word.eq_ignore_ascii_case(kind))
}

/// A header's value in two parts: the kind of credentials at its beginning, which is not a secret (`Bearer `), and the rest.
pub(super) fn credentials(value: &str) -> (&str, &str) {
    let start = value.len() - value.trim_start().len();
    let end = value.trim_start().find(' ').map(|length| start + length);
    let is_kind = |end: &usize| value.get(start..*end).is_some_and(is_kind_of_credentials);
    value.split_at(end.filter(is_kind).map_or(start, |end| end + 1))
}

/// A part of an argument.
pub(super) enum Part<'t> {
    /// What stays as it is.
    Plain(&'t str),
    /// What may be a secret, with what it is called, and what it is for a person.
    Secret { name: &'t str, what: String, value: &'t str },
}

/// The parts of an argument, behind the `flag` before it if that [`takes_secret`]. `is_of_runner` tells whether the program
/// runs containers.
pub(super) fn in_argument<'t>(flag: Option<&'t str>, text: &'t str, is_of_runner: bool) -> Vec<Part<'t>> {
    let flag = flag.filter(|_| !text.starts_with('-'));
    let user = match (flag, text.split_once('=')) {
        (Some(flag), _) => Some((flag, "", text)),
        (None, Some((flag, value))) => Some((flag, text.get(..=flag.len()).unwrap_or_default(), value)),
        (None, None) => None,
    };
    let user = user.filter(|(flag, ..)| is_user_flag(flag));
    let user = user.and_then(|(flag, before, value)| Some((flag, before, user_and_password(value, is_of_runner)?)));
    match (flag, user) {
        (_, Some((flag, before, (user, password)))) => {
            let what = format!("the password behind `{flag}`");
            let secret = Part::Secret { name: "password", what, value: password };
            vec![Part::Plain(before), Part::Plain(user), Part::Plain(":"), secret]
        }
        (Some(flag), _)
            if !is_user_flag(flag)
                && !is_reference_alone(text)
                && !is_plain_list(flag, &marked(text))
                && !is_plain_value(flag, text) =>
        {
            vec![Part::Secret { name: flag, what: format!("what follows `{flag}`"), value: text }]
        }
        _ => parts(text),
    }
}

/// The parts of an argument that is no value of a flag before it. It may be a script, with several names and values.
fn parts(text: &str) -> Vec<Part<'_>> {
    // An address with a password is one secret, whatever in it looks like a name.
    let has_none = |text: &str| redact(text).found.is_empty() && !has_password(&marked(text));
    let mut parts = Vec::new();
    let mut rest = text;
    while let Some((name, value)) = divided(rest).filter(|(name, _)| has_none(name)) {
        let divider = rest.get(name.len()..rest.len() - value.len()).unwrap_or_default();
        let (start, own) = own_part(name, divider, value);
        let (before, after) = (value.get(..start), value.get(start + own.len()..));
        let (before, after) = (before.unwrap_or_default(), after.unwrap_or_default());
        // `--header=Authorization: …`: what is called so is the last word.
        let last = |c| QUOTES.contains(&c) || matches!(c, '=' | ':' | '?' | '&' | '/' | ' ' | '\\' | '{' | '(');
        let word = name.trim_end_matches(|c| QUOTES.contains(&c) || c == '\\');
        let word = word.rsplit(last).next().unwrap_or(word);
        let (kind, bare) = credentials(own);
        let what = match name.contains(char::is_whitespace) && bare.contains(char::is_whitespace) {
            true => format!("what follows `{word}` in an argument, to the end of that,"),
            false => format!("the value of `{word}`"),
        };
        // What is in quotes ends with one, and behind it may be more.
        let (closing, next) = after.split_at(after.find(QUOTES).map_or(0, |at| at + 1));
        parts.extend([name, divider, before, kind].map(Part::Plain));
        parts.extend([Part::Secret { name: word, what, value: bare }, Part::Plain(closing)]);
        rest = next;
    }
    parts.push(match has_none(rest) {
        true => Part::Plain(rest),
        false => Part::Secret { name: "argument", what: "an argument".to_owned(), value: rest },
    });
    parts
}

/// Whether a flag has a secret behind it; `before` is the last word before it that is no flag, or the program.
pub(super) fn takes_secret(flag: &str, before: &str) -> bool {
    let is_secret = (is_secret_name(flag) || is_short_secret(flag)) && !names_a_place(flag);
    // `-u` of an interpreter takes no value; that of a script of it may.
    let is_user = is_user_flag(flag) && !is_interpreter(before);
    !flag.contains('=') && (is_secret || is_user)
}

/// Whether a text has a reference in it, to a variable or to what a file holds.
pub(super) fn is_reference(text: &str) -> bool {
    text.contains("${env:") || text.contains("${file:")
}

/// What stands for a reference where the text around it is looked at.
const REFERENCE: char = '\0';

/// The text with a sign in place of each reference.
fn marked(text: &str) -> String {
    replaced(text, &mut |inner| match inner.starts_with("env:") || inner.starts_with("file:") {
        true => REFERENCE.to_string(),
        false => format!("${{{inner}}}"),
    })
}

/// Whether a text has a reference and beside it nothing that could be a secret.
fn is_reference_alone(text: &str) -> bool {
    is_alone(&marked(text))
}

/// As [`is_reference_alone`], for a marked text. Beside references stand signs, kinds of credentials, names, and plain paths:
/// `Bearer …`, `session=…`, `…/.ssh/id_rsa`.
fn is_alone(marked: &str) -> bool {
    let is_name = |text: &str| text.bytes().all(|byte| byte.is_ascii_alphabetic() || matches!(byte, b'-' | b'_'));
    let mut words = marked.split_whitespace().peekable();
    let mut is_alone = marked.contains(REFERENCE);
    while let Some(word) = words.next() {
        let bare = word.trim_matches(QUOTES);
        let is_kind = words.peek().is_some() && is_kind_of_credentials(bare);
        let rest = match word.split_once('=').or(word.strip_suffix(':').map(|name| (name, ""))) {
            Some((name, rest)) if is_name(name) => rest,
            _ => word,
        };
        is_alone &= is_kind || !rest.contains(char::is_alphanumeric) || is_plain_beside(rest);
    }
    is_alone
}

/// Whether a marked word has references, and beside them only plain paths and words that a sign divides from them:
/// `…/.ssh/id_rsa`, `dev-…`. What is joined to a reference without one may be a part of a secret.
fn is_plain_beside(word: &str) -> bool {
    // A name of a file has more digits than another word: `id_ed25519`.
    const LONGEST_IN_PATH: usize = 8;
    const ENDINGS: [&str; 6] = [".json", ".pem", ".key", ".p12", ".pfx", ".crt"];
    let divides = |c: char| matches!(c, '/' | '\\' | '-' | '_');
    let is_plain = |text: &str| {
        // Files of keys are named by those who give them out: `shop-123456-ab12cd34ef56.json`.
        let is_file = text.contains(['/', '\\']) && ENDINGS.iter().any(|ending| text.ends_with(ending));
        let longest = if text.contains(['/', '\\']) { LONGEST_IN_PATH } else { LONGEST_MIXED };
        text.chars().all(|c| c.is_alphanumeric() || divides(c) || matches!(c, '.' | '~'))
            && (is_file
                || !text.split(['/', '\\', '.']).any(is_opaque)
                    && text.split(|c: char| !c.is_alphanumeric()).all(|part| is_plain_part(part, longest)))
    };
    let parts: Vec<&str> =
        word.trim_matches(|c| QUOTES.contains(&c) || matches!(c, ';' | ',')).split(REFERENCE).collect();
    parts.len() > 1
        && parts.iter().enumerate().all(|(at, part)| {
            let is_drive = at == 0 && part.get(1..3).is_some_and(|sign| matches!(sign, ":\\" | ":/"));
            let part = if is_drive { part.get(2..).unwrap_or_default() } else { part };
            !part.contains(char::is_alphanumeric)
                || is_plain(part)
                    && (at == 0 || part.starts_with(divides))
                    && (at + 1 == parts.len() || part.ends_with(divides))
        })
}

/// A word of both letters and digits that is longer may be a part of a secret.
const LONGEST_MIXED: usize = 4;

/// Whether a part of a text is a word of letters, a small number, or a short word of both.
fn is_plain_part(part: &str, longest_mixed: usize) -> bool {
    match part.chars().filter(char::is_ascii_digit).count() {
        0 => part.chars().count() <= 24,
        all if all == part.len() => all <= 6,
        _ => part.len() <= longest_mixed,
    }
}

/// Whether what is called so begins with a kind of credentials.
fn is_authorization(name: &str) -> bool {
    let name = name.trim_end_matches(|c| QUOTES.contains(&c) || c == '\\');
    name.to_ascii_lowercase().ends_with("authorization")
}

/// Whether a marked text is any kind of credentials and a reference: `SSWS …`.
fn is_kind_and_reference(marked: &str) -> bool {
    let mut words = marked.split_whitespace().map(|word| word.trim_matches(QUOTES));
    let (kind, reference, end) = (words.next(), words.next(), words.next());
    kind.is_some_and(|kind| kind.len() <= 16 && kind.bytes().all(|byte| byte.is_ascii_alphabetic()))
        && reference.is_some_and(|reference| reference.chars().eq([REFERENCE]))
        && end.is_none()
}

/// Whether a pair of a marked list is no secret by its name, or has only a reference as its value.
fn is_plain_pair(name: &str, value: &str) -> bool {
    const SWITCHES: [&str; 4] = ["true", "false", "yes", "no"];
    // `Trusted_Connection` and `Authentication` say how, and not with what.
    let name = name.to_ascii_lowercase().replace("connection", "").replace("authentication", "");
    let is_switch = SWITCHES.iter().any(|switch| value.trim().eq_ignore_ascii_case(switch));
    !is_secret_name(&name) || value.trim().is_empty() || is_switch || is_alone(value)
}

/// Whether a marked text is a list of names and values, each of them no secret: `Server=db;Password=…;Encrypt=true`. Of
/// cookies any may be one, whatever its name.
fn is_plain_list(name: &str, marked: &str) -> bool {
    // The names tell which is a secret, so that others may be `server01`.
    const LONGEST_IN_LIST: usize = 12;
    let is_name = |text: &str| text.chars().all(|c| c.is_alphabetic() || matches!(c, ' ' | '_' | '-' | '.'));
    !name.to_ascii_lowercase().contains("cookie")
        && marked.contains(REFERENCE)
        && marked.contains(';')
        && marked.split(';').filter(|pair| !pair.trim().is_empty()).all(|pair| {
            pair.split_once('=').is_some_and(|(name, value)| {
                let mut parts = value.split(|c: char| !c.is_alphanumeric());
                is_name(name)
                    && is_plain_pair(name, value)
                    && (is_alone(value) || parts.all(|part| is_plain_part(part, LONGEST_IN_LIST)))
            })
        })
}

/// Whether a marked text is an address with a user and a password that is no reference, nor one of a shell or a gap to fill.
fn has_password(marked: &str) -> bool {
    marked.split_whitespace().filter_map(|word| word.split_once("://")).any(|(_, rest)| {
        let machine = rest.split(['/', '?', '#']).next().unwrap_or(rest);
        let user = machine.rsplit_once('@').and_then(|(user, _)| user.split_once(':'));
        user.is_some_and(|(_, password)| {
            !password.is_empty() && !password.starts_with(['$', '<', '{']) && !is_alone(password)
        })
    })
}

const QUOTES: [char; 2] = ['"', '\''];

/// How many `\` a text ends with.
fn escaped(before: &str) -> usize {
    before.len() - before.trim_end_matches('\\').len()
}

/// A text up to the quote that closes it, which stands behind as many `\` as the one that opened it. Where something else
/// than the end of a value follows, the text goes on, and nobody knows how far: `'a'-b`, `'a' + 'b'`.
fn closed(text: &str, quote: char, escapes: usize) -> Option<&str> {
    let ends = |c: char| c.is_whitespace() || matches!(c, ',' | '}' | ']' | ')' | ';' | '&');
    let mut found = text.match_indices(quote).filter_map(|(at, _)| Some((text.get(..at)?, text.get(at + 1..)?)));
    let (inner, after) = found.find(|(before, _)| escaped(before) == escapes)?;
    let goes_on = ["+", ". "].iter().any(|sign| after.trim_start().starts_with(sign));
    let is_end = after.is_empty() || after.starts_with(ends) && !goes_on;
    inner.get(..inner.len() - escapes).filter(|_| is_end)
}

/// The part of a value that is in quotes, those included that were opened before it: where it begins, and the part. All of
/// a value that is not.
fn own_part<'t>(name: &str, divider: &str, value: &'t str) -> (usize, &'t str) {
    let open = QUOTES.into_iter().find_map(|quote| {
        let before = || name.match_indices(quote).filter_map(|(at, _)| name.get(..at));
        // Those with more escapes stand within these.
        let escapes = before().next().map(escaped)?;
        (before().filter(|before| escaped(before) == escapes).count() % 2 == 1).then_some((quote, escapes))
    });
    let own = open.and_then(|(quote, escapes)| closed(value, quote, escapes)).unwrap_or(value);
    // Quotes are a part of the value of such a header: `Cookie: "a=b"; c=d`.
    let lower = name.to_ascii_lowercase();
    if divider == ":" && ["cookie", "authorization"].iter().any(|header| lower.ends_with(header)) {
        return (0, own);
    }
    let bare = own.trim_start_matches([' ', '\\']);
    let start = own.len() - bare.len() + 1;
    let escapes = own.get(..own.len() - bare.len()).map_or(0, escaped);
    let first = bare.chars().next().filter(|c| QUOTES.contains(c));
    let quoted = first.and_then(|quote| closed(bare.get(1..)?, quote, escapes));
    quoted.map_or((0, own), |quoted| (start, quoted))
}

/// A text up to the end of the word that its first reference is in; in a list of names and values the next name ends it too.
fn first_word(text: &str) -> &str {
    let after = text.find('}').and_then(|end| text.get(end..)).unwrap_or_default();
    let space = after.find(char::is_whitespace);
    let divider = after.find([';', ',', '&']).filter(|at| after.get(*at..).is_some_and(|rest| rest.contains('=')));
    let end = space.into_iter().chain(divider).min();
    end.and_then(|end| text.get(..text.len() - after.len() + end)).unwrap_or(text)
}

/// Whether a text is divided within a reference.
fn is_within_reference(before: &str, after: &str) -> bool {
    after.contains('}')
        && before.rfind("${").is_some_and(|open| !before.get(open..).is_some_and(|rest| rest.contains('}')))
}

/// Where an argument is divided into a name and a value that may be a secret. A reference is never divided.
pub(super) fn divided(text: &str) -> Option<(&str, &str)> {
    let mut known_to = 0;
    text.match_indices(['=', ':']).find_map(|(at, divider)| {
        let (name, value) = (text.get(..at)?, text.get(at + divider.len()..)?);
        if at < known_to || is_within_reference(name, value) {
            return None;
        }
        let is_secret = match is_short_secret(name) {
            true => !is_plain_value(name, value),
            false => is_secret_name(&replaced(last_name(name), &mut |_| String::new())) && !names_a_place(name),
        };
        let (start, own) = own_part(name, divider, value);
        if is_secret && is_plain_list(name, &marked(own)) {
            known_to = at + divider.len() + start + own.len();
            return None;
        }
        // A header has a value of several words, and a word of a script or a variable one of one.
        let is_word = divider == "=" || name.contains(char::is_whitespace);
        let word = marked(if is_word { first_word(own) } else { own });
        let is_sent = divider == ":" && is_authorization(name) && is_kind_and_reference(&word);
        let is_known = is_alone(&word) || is_sent;
        (is_secret && !own.trim().is_empty() && !value.starts_with("//") && !is_known).then_some((name, value))
    })
}

/// What is called so behind the last reference of a text: what stands before it has that as its value.
fn last_name(name: &str) -> &str {
    let divides = |c: char| !c.is_alphanumeric() && !matches!(c, '-' | '_');
    match name.rsplit_once('}') {
        Some((_, last)) if is_reference(name) && last.contains(divides) => last,
        _ => name,
    }
}

/// Whether a flag takes the place of a secret, and not the secret: `--token-file`.
fn names_a_place(flag: &str) -> bool {
    const ENDS: [&str; 6] = ["-file", "_file", "-path", "_path", "-dir", "_dir"];
    let word = flag.rsplit(char::is_whitespace).next().unwrap_or(flag).to_ascii_lowercase();
    word.starts_with('-') && ENDS.iter().any(|end| word.ends_with(end))
}

/// Whether a flag takes a user, to which some programs have one add the password: `-u NAME:PASSWORD`.
pub(super) fn is_user_flag(flag: &str) -> bool {
    matches!(flag, "-u" | "--user" | "-U" | "--proxy-user")
}

/// Whether a program is one whose `-u` has to do with its output.
fn is_interpreter(program: &str) -> bool {
    let program = Path::new(program).file_name().unwrap_or_default().to_string_lossy();
    program.starts_with("python") || matches!(program.as_ref(), "node" | "node.exe")
}

/// The user and the password in what follows such a flag of a program; nothing where it is an address, a path, a port, a
/// module, or the user and the group of a container. Rather a password is missed than another thing taken for one.
fn user_and_password(text: &str, is_of_runner: bool) -> Option<(&str, &str)> {
    // `server:app`, `nginx:nogroup`
    const LONGEST_WORD: usize = 10;
    let mut divided = text.match_indices(':').filter_map(|(at, _)| Some((text.get(..at)?, text.get(at + 1..)?)));
    let (user, password) = divided.find(|(user, password)| !is_within_reference(user, password))?;
    let (name, own) = (marked(user), marked(password));
    let is_name = |text: &str| {
        text.chars().all(|c| c.is_alphanumeric() || c == REFERENCE || matches!(c, '.' | '_' | '-')) && !text.is_empty()
    };
    let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let is_user = match name.split_once('@') {
        Some((name, machine)) => is_name(name) && is_name(machine),
        None => is_name(&name) && !is_number(&name),
    };
    let is_word =
        own.len() <= LONGEST_WORD && own.bytes().all(|byte| byte.is_ascii_lowercase() || matches!(byte, b'-' | b'_'));
    let is_group = is_of_runner && is_name(&own);
    let is_other = own.contains(['/', '\\', '@']) || own.ends_with(".git") || is_number(&own) || is_word || is_group;
    (is_user && !is_other && !is_alone(&own)).then_some((user, password))
}

/// Whether a flag of one letter is one under which programs take tokens, keys and passwords, among other things.
pub(super) fn is_short_secret(flag: &str) -> bool {
    matches!(flag, "-t" | "-k" | "-p" | "-T" | "-K" | "-P")
}

/// Whether what follows a flag of one letter is plainly something else: a number, a word in small letters, a path, an
/// image, a package. What follows a flag with a telling name is always taken for a secret.
fn is_plain_value(flag: &str, value: &str) -> bool {
    if is_reference(value) {
        return is_short_secret(flag) && is_plain_around("", value);
    }
    let is_name = |part: &str| {
        part.len() <= 32
            && part.bytes().all(|byte| byte.is_ascii_lowercase() || matches!(byte, b'-' | b'_' | b'.'))
            && !part.is_empty()
    };
    let is_number = |part: &str| part.len() <= 6 && part.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let mut parts = value.trim_start_matches('@').split(['/', ':', '@']);
    is_short_secret(flag)
        && redact(value).found.is_empty()
        && (is_harmless("", value) && value != value.to_ascii_uppercase()
            || is_number(value)
            || parts.all(|part| is_name(part) || is_number(part)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_plainly_no_secret_stays() {
        let cases = [
            ("LOG_LEVEL", "debug", true),
            ("PORT", "8080", true),
            ("ROOT", "/srv/data", true),
            ("BASE", "https://example.com/v1", true),
            ("Accept", "application/json", true),
            ("API_KEY", "debug", false),
            ("GH_PAT", "word", false),
            ("OTHER", "s3cr3tvalue", false),
            ("OTHER", "MixedCase", false),
            ("BASE", "https://example.com/?k=v", false),
            ("BASE", "https://u:p@example.com/", false),
            ("NUMBER", "123456789", false),
        ];
        for (name, value, expected) in cases {
            assert_eq!(is_harmless(name, value), expected, "{name}={value}");
        }
    }

    #[test]
    fn a_part_of_a_path_that_nobody_chose_is_taken_for_a_secret() {
        let cases = [
            ("https://mcp.example.com/api/mcp/s/NWZkYzQ4ZjMtYjk4ZC00ZGQyLWE0/mcp", true),
            ("https://mcp.example.com/0b6c8c36-1d1f-4f0e-9f57-3f5f4c3f1b2a/slack", true),
            ("https://mcp.example.com/v1/mcp", false),
            ("https://example.com/organizations/model-context-protocol", false),
            ("https://mcp.example.com/s/${env:PATH_OF_THE_SERVER_1234}/mcp", false),
        ];
        for (url, is_secret) in cases {
            assert_eq!(is_secret_address(url), is_secret, "{url}");
        }
    }

    #[test]
    fn a_secret_beside_a_reference_is_one() {
        let alone =
            ["${env:X}", "Bearer ${env:X}", " token '${env:X}'", "session=${env:X};", "Authorization: Basic ${file:x}"];
        for text in alone {
            assert!(is_reference_alone(text), "{text}");
        }
        let not_alone = [
            "",
            "Bearer",
            "Bearer abc",
            "${env:X}Bearer",
            "Bearer s3cret${env:X}",
            "${env:X}secret",
            "pre${env:X}",
            "${env:X} Bearer",
            "${env:X}:secret",
            "secret:${env:X}",
            "${command:x}",
            "a=${env:X}b",
        ];
        for text in not_alone {
            assert!(!is_reference_alone(text), "{text}");
        }
        let values = [
            ("BASE", "https://${env:HOST}/path", true),
            ("BASE", "https://api.${env:REGION}.example.com/v1beta1/${env:ID}", true),
            ("AUTH_URL", "https://${env:HOST}/oauth/token", true),
            ("DATABASE_URL", "postgres://me:${env:PW}@db1:5432/shop", true),
            ("DATABASE_URL", "postgres://me:hunter2@${env:HOST}/shop", false),
            ("HEADERS", r#"{"Authorization": "Bearer ${env:X}", "Notion-Version": "2022-06-28"}"#, true),
            ("PATH", "/opt/MyApp2/bin:${env:PATH}", true),
            ("SIZE", "${env:N}ms", true),
            ("LIT", "pre${env:FOO}realsecret", false),
            ("OTHER", "${env:FOO} hunter22", false),
            ("TOKEN", "real${env:X}", false),
            ("X-Api-Key", "${env:EMPTY}realsecret", false),
            ("X-Api-Key", "${file:key}", true),
            ("Authorization", "Bearer ${env:TOK}extra", false),
            ("Authorization", "Bearer realsecret123${env:EMPTY}", false),
            ("Authorization", "Bearer realsecret ${env:EMPTY}", false),
            ("Authorization", "SSWS ${env:OKTA_TOKEN}", true),
            ("Authorization", "GenieKey ${env:X}", true),
            ("TOKEN", "realsecret ${env:X}", false),
            ("GOOGLE_APPLICATION_CREDENTIALS", "${env:HOME}/.config/gcloud/application_default_credentials.json", true),
            ("KEY_FILE", "${env:HOME}/keys/shop-123456-ab12cd34ef56.json", true),
            ("KEY_FILE", "${env:HOME}/0b6c8c361d1f4f0e9f573f5f4c3f1b2a", false),
            (
                "CONNECTION_STRING",
                "Server=localhost;Database=Shop;User Id=sa;Password=${env:PW};TrustServerCertificate=true",
                true,
            ),
            ("CONNECTION_STRING", "Server=db1;Trusted_Connection=True;Database=${env:D};", true),
            ("CONNECTION_STRING", "Server=db1;Password=hunterpw;Database=${env:D}", false),
            ("JDBC_URL", "jdbc:sqlserver://${env:HOST}:1433;databaseName=Shop;encrypt=true", true),
            ("JDBC_URL", "jdbc:sqlserver://${env:HOST}:1433;user=sa;password=hunterpw", false),
            ("DATABASE_URL", "postgres://me:hunterpw@${env:HOST}/shop", false),
            ("Cookie", "session=${env:S}; c=realsecret", false),
            ("APPDATA", r"${env:USERPROFILE}\AppData\Roaming", true),
            ("GIT_SSH_COMMAND", "ssh -i ${env:HOME}/.ssh/id_ed25519 -o IdentitiesOnly=yes", true),
        ];
        for (name, value, expected) in values {
            assert_eq!(is_plain_around(name, value), expected, "{name}={value}");
        }
    }
}
