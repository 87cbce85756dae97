//! Text to search terms: normalise, split, stop, stem.
//!
//! Written here because identifiers are the heart of this corpus (`getUserById`, `slack_send_message`, `HTTPServer2`)
//! and general tokenisers do not split them; only the Unicode tables come from a library. Scripts without word
//! separators other than Chinese, Japanese and Korean (Thai, Khmer, …) are kept as whole runs, vowel signs and tone
//! marks included. Only English is stemmed.

use std::borrow::Cow;

use caseless::Caseless;
use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

use super::is_stop_word;
use super::stem::stem;

/// Longer words are cut at this many bytes (at a character boundary), so that no input makes a term of
/// unbounded length.
const MAX_WORD_BYTES: usize = 64;

/// An alphanumeric run of at most this many characters stays whole although it mixes letters and digits:
/// `s3`, `k8s`, `p95`, `ec2` mean something only as a whole.
const WHOLE_MIXED_RUN: usize = 4;

/// Calls `emit` with every normalised word of `text`, in order, stop words included and nothing stemmed.
///
/// Words are NFKC-normalised, case-folded and stripped of Latin, Greek and Cyrillic accents. Runs of letters and
/// digits are split at `camelCase` and `ACRONYMWord` boundaries (but not before the plural ending of `PDFs`) and between letters
/// and digits; Han, kana and
/// Hangul runs become overlapping bigrams. What follows an apostrophe as an English clitic (`'s`, `n't` …) is
/// dropped.
pub fn for_each_word(text: &str, mut emit: impl FnMut(&str)) {
    if text.is_ascii() {
        ascii_words(text, &mut emit);
        return;
    }
    // One dash or curly quote must not slow down the analysis of a whole description. No normalisation reaches across
    // ASCII white space, so the pieces between can be treated separately.
    for piece in text.split_ascii_whitespace() {
        if piece.is_ascii() {
            ascii_words(piece, &mut emit);
        } else {
            unicode_words(piece, &mut emit);
        }
    }
}

fn ascii_words(text: &str, emit: &mut impl FnMut(&str)) {
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        if !bytes[at].is_ascii_alphanumeric() {
            at += 1;
            continue;
        }
        let start = at;
        while at < bytes.len() && bytes[at].is_ascii_lowercase() {
            at += 1;
        }
        let lower = at;
        while at < bytes.len() && bytes[at].is_ascii_alphanumeric() {
            at += 1;
        }
        // Most words are lower case already and are passed on in place.
        if lower == at && at - start <= MAX_WORD_BYTES {
            emit(&text[start..at]);
        } else {
            ascii_run(&bytes[start..at], emit);
        }
        at = skip_clitic(bytes, at);
    }
}

/// Splits one run of ASCII letters and digits as identifiers are written.
fn ascii_run(run: &[u8], emit: &mut impl FnMut(&str)) {
    let mut start = 0;
    for end in ascii_ends(run) {
        emit_ascii(&run[start..end], emit);
        start = end;
    }
}

/// Where the words of a run end, which has one at least.
fn ascii_ends(run: &[u8]) -> impl Iterator<Item = usize> {
    let split_digits = run.len() > WHOLE_MIXED_RUN;
    let is_end = move |at: &usize| {
        let class = |at: usize| run.get(at).copied().map(Class::of_ascii);
        let next = class(at + 1).filter(|_| !is_plural(run.get(at + 1) == Some(&b's'), class(at + 2)));
        boundary(Class::of_ascii(run[at - 1]), Class::of_ascii(run[*at]), next, split_digits)
    };
    (1..run.len()).filter(is_end).chain([run.len()])
}

/// The number of parts of a run that are put together at most, and the number of bytes of what they make.
const MOST_PARTS: usize = 3;
const MAX_COMPOUND: usize = 20;

/// A name with a single letter or digit as one of its parts is a short one that ends in digits, as `S3` and `IPv6` are.
const MAX_SHORT_NAME: usize = 6;

/// Calls `emit` with what neighbouring parts of a run make together, as others write it, and with these parts as they
/// stand in `text`: `linkedin` of `LinkedIn`, `s3` of `listS3Buckets`. Only runs of ASCII letters and digits that
/// [`for_each_word`] splits have any.
pub fn for_each_compound(text: &str, mut emit: impl FnMut(&str, &str)) {
    let bytes = text.as_bytes();
    let is_plain = |byte: &u8| !byte.is_ascii_uppercase() && !byte.is_ascii_digit();
    let Some(first) = bytes.iter().position(|byte| !is_plain(byte)) else { return };
    let before = bytes[..first].iter().rposition(|byte| !byte.is_ascii_alphanumeric());
    let mut at = before.map_or(0, |before| before + 1);
    let mut borders: Vec<usize> = Vec::new();
    while at < bytes.len() {
        let length = bytes[at..].iter().take_while(|byte| byte.is_ascii_alphanumeric()).count();
        let run = &bytes[at..at + length];
        // Most runs are words, some with a capital in front: nothing is divided there.
        if length > 1 && !run[1..].iter().all(is_plain) && is_apart(text, at, length) {
            borders.clear();
            borders.push(0);
            borders.extend(ascii_ends(run));
            for (start, end) in compounds(run, &borders) {
                emit_ascii(&run[start..end], &mut |word| emit(word, &text[at + start..at + end]));
            }
        }
        at += length.max(1);
    }
}

/// Where what neighbouring parts of a run make together begins and ends. `borders` are the start of the run and the ends
/// of its parts.
fn compounds(run: &[u8], borders: &[usize]) -> impl Iterator<Item = (usize, usize)> {
    let several = (0..borders.len())
        .flat_map(move |first| (first + 2..borders.len()).take(MOST_PARTS - 1).map(move |last| (first, last)));
    several.filter_map(move |(first, last)| {
        let (start, end) = (borders[first], borders[last]);
        let shortest = borders[first..=last].windows(2).map(|part| part[1] - part[0]).min()?;
        let is_name = end - start <= MAX_COMPOUND && (shortest > 1 || is_short_name(&run[start..end]));
        is_name.then_some((start, end))
    })
}

/// Whether it is a few letters and, behind them, digits.
fn is_short_name(joined: &[u8]) -> bool {
    let letters = joined.iter().take_while(|byte| !byte.is_ascii_digit()).count();
    let digits = &joined[letters..];
    joined.len() <= MAX_SHORT_NAME && letters > 0 && !digits.is_empty() && digits.iter().all(u8::is_ascii_digit)
}

/// Whether the run has no letter of another script beside it, which would be part of it.
fn is_apart(text: &str, start: usize, length: usize) -> bool {
    let before = text.get(..start).and_then(|front| front.chars().next_back());
    let after = text.get(start + length..).and_then(|rest| rest.chars().next());
    ![before, after].into_iter().flatten().any(char::is_alphanumeric)
}

fn emit_ascii(word: &[u8], emit: &mut impl FnMut(&str)) {
    let mut buffer = [0u8; MAX_WORD_BYTES];
    let word = &word[..word.len().min(MAX_WORD_BYTES)];
    let buffer = &mut buffer[..word.len()];
    buffer.copy_from_slice(word);
    buffer.make_ascii_lowercase();
    if let Ok(word) = std::str::from_utf8(buffer) {
        emit(word);
    }
}

/// The position after an English clitic (`'s`, `'re`, `'ll` …) that begins at `at`, or `at`.
fn skip_clitic(bytes: &[u8], at: usize) -> usize {
    if bytes.get(at) != Some(&b'\'') {
        return at;
    }
    let tail = &bytes[at + 1..];
    let length = tail.iter().take_while(|byte| byte.is_ascii_alphanumeric()).count();
    if is_clitic(&tail[..length]) { at + 1 + length } else { at }
}

fn is_clitic(tail: &[u8]) -> bool {
    [&b"s"[..], b"t", b"re", b"ve", b"ll", b"d", b"m"].iter().any(|clitic| tail.eq_ignore_ascii_case(clitic))
}

/// What a character is for the purpose of splitting identifiers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Class {
    Lower,
    Upper,
    Digit,
    /// A letter of a script that is written without spaces: taken as bigrams.
    Ideograph,
}

impl Class {
    fn of_ascii(byte: u8) -> Self {
        match byte {
            b'0'..=b'9' => Self::Digit,
            b'A'..=b'Z' => Self::Upper,
            _ => Self::Lower,
        }
    }

    fn of(character: char) -> Self {
        match character {
            '\u{1100}'..='\u{11FF}'
            | '\u{2E80}'..='\u{2FDF}'
            | '\u{3005}'..='\u{3007}'
            | '\u{3040}'..='\u{30FF}'
            | '\u{3100}'..='\u{31FF}'
            | '\u{3400}'..='\u{9FFF}'
            | '\u{AC00}'..='\u{D7AF}'
            | '\u{F900}'..='\u{FAFF}'
            | '\u{20000}'..='\u{3FFFF}' => Self::Ideograph,
            _ if character.is_numeric() => Self::Digit,
            _ if character.is_uppercase() => Self::Upper,
            _ => Self::Lower,
        }
    }
}

/// Whether a letter behind capitals is the plural ending of an acronym, as in `PDFs` and `listIDsOfUsers`: an `s`, and no further
/// letter of a word.
fn is_plural(is_s: bool, after: Option<Class>) -> bool {
    is_s && after != Some(Class::Lower)
}

/// Whether a word ends between two neighbouring characters of a run; `next` is the one after them.
fn boundary(before: Class, here: Class, next: Option<Class>, split_digits: bool) -> bool {
    use Class::{Digit, Ideograph, Lower, Upper};
    match (before, here) {
        (Ideograph, Ideograph) => false,
        (Ideograph, _) | (_, Ideograph) => true,
        (Lower, Upper) => true,
        (Upper, Upper) => next == Some(Lower),
        (Digit, Digit) => false,
        (Digit, _) | (_, Digit) => split_digits,
        _ => false,
    }
}

fn unicode_words(text: &str, emit: &mut impl FnMut(&str)) {
    // Decompose, drop the combining accents of the European scripts (not the kana voicing marks, which
    // change the syllable), and compose again so that Hangul and kana are single characters.
    let normalised: Vec<char> =
        text.nfkd().filter(|character| !('\u{300}'..='\u{36F}').contains(character)).nfc().collect();
    let is_word = |character: &char| character.is_alphanumeric();
    let mut at = 0;
    while at < normalised.len() {
        if !is_word(&normalised[at]) {
            at += 1;
            continue;
        }
        let start = at;
        while at < normalised.len() && (is_word(&normalised[at]) || is_vowel_sign(normalised[at - 1], normalised[at])) {
            at += 1;
        }
        unicode_run(&normalised[start..at], emit);
        if at < normalised.len() && matches!(normalised[at], '\'' | '\u{2019}') {
            let tail: String = normalised[at + 1..].iter().take_while(|c| is_word(c)).take(3).collect();
            if is_clitic(tail.as_bytes()) {
                at += 1 + tail.chars().count();
            }
        }
    }
}

/// Whether `here` is a mark that belongs to the word `before` it, as the vowel signs of Thai and of the Indic scripts
/// do. A mark on an ASCII character or an ideograph (a keycap, a variation selector) does not, and ends the word.
fn is_vowel_sign(before: char, here: char) -> bool {
    is_combining_mark(here) && !before.is_ascii() && Class::of(before) != Class::Ideograph
}

fn unicode_run(run: &[char], emit: &mut impl FnMut(&str)) {
    let mut classes: Vec<Class> = Vec::with_capacity(run.len());
    for &character in run {
        // A mark has the class of the character it stands on, so that no word ends between the two.
        let of_base = classes.last().copied().filter(|_| is_combining_mark(character));
        classes.push(of_base.unwrap_or_else(|| Class::of(character)));
    }
    let mut start = 0;
    while start < run.len() {
        let ideographs = classes[start] == Class::Ideograph;
        let mut end = start + 1;
        while end < run.len() && (classes[end] == Class::Ideograph) == ideographs {
            end += 1;
        }
        if ideographs {
            emit_bigrams(&run[start..end], emit);
        } else {
            cased_run(&run[start..end], &classes[start..end], emit);
        }
        start = end;
    }
}

fn emit_bigrams(run: &[char], emit: &mut impl FnMut(&str)) {
    if let [single] = run {
        emit(single.encode_utf8(&mut [0; 4]));
        return;
    }
    for pair in run.windows(2) {
        let mut buffer = [0u8; 8];
        let first = pair[0].encode_utf8(&mut buffer).len();
        let second = pair[1].encode_utf8(&mut buffer[first..]).len();
        if let Ok(bigram) = std::str::from_utf8(&buffer[..first + second]) {
            emit(bigram);
        }
    }
}

fn cased_run(run: &[char], classes: &[Class], emit: &mut impl FnMut(&str)) {
    let split_digits = run.len() > WHOLE_MIXED_RUN;
    let mut start = 0;
    for at in 1..=run.len() {
        let class = |at: usize| classes.get(at).copied();
        let next = class(at + 1).filter(|_| !is_plural(run.get(at + 1) == Some(&'s'), class(at + 2)));
        if at < run.len() && !boundary(classes[at - 1], classes[at], next, split_digits) {
            continue;
        }
        let folded: String = run[start..at].iter().copied().default_case_fold().collect();
        let end = folded.char_indices().map(|(i, c)| i + c.len_utf8()).take_while(|end| *end <= MAX_WORD_BYTES).last();
        if let Some(end) = end {
            emit(&folded[..end]);
        }
        start = at;
    }
}

/// An acronym in the plural as people write it, without its ending: `pdf` of `pdfs`, `cve` of `cves`. Porter2 takes an ending
/// off only where a vowel is left before the last letter. Of three letters nothing tells `vms` from `dns`.
fn acronym(word: &str) -> Option<&str> {
    let singular = word.strip_suffix('s').filter(|rest| rest.len() > 2 && !rest.ends_with('s'))?;
    let is_vowel = |byte: u8| matches!(byte, b'a' | b'e' | b'i' | b'o' | b'u' | b'y');
    let has_vowel = singular.strip_suffix('e').unwrap_or(singular).bytes().any(is_vowel);
    // Not the plural of its plain form, but another protocol.
    (!has_vowel && word != "https").then_some(singular)
}

/// The retrieval analyser: normalised words without stop words, English ones stemmed (Snowball, "Porter2"; plural acronyms that
/// it leaves lose their ending).
#[derive(Debug, Clone, Copy, Default)]
pub struct Analyzer(());

impl Analyzer {
    /// The search terms of `text`, in order, repeats kept.
    #[must_use]
    pub fn terms(&self, text: &str) -> Vec<String> {
        let mut terms = Vec::new();
        for_each_word(text, |word| {
            if !is_stop_word(word) {
                terms.push(self.stem(word).into_owned());
            }
        });
        terms
    }

    /// The stem of one normalised word. Words with characters outside `a`–`z` are their own stems.
    #[must_use]
    pub fn stem<'w>(&self, word: &'w str) -> Cow<'w, str> {
        if word.len() > 2 && word.bytes().all(|byte| byte.is_ascii_lowercase()) {
            acronym(word).map_or_else(|| stem(word), Cow::Borrowed)
        } else {
            Cow::Borrowed(word)
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn words(text: &str) -> String {
        let mut words = Vec::new();
        for_each_word(text, |word| words.push(word.to_owned()));
        words.join(" ")
    }

    #[test]
    fn parts_of_a_run_are_put_together_as_others_write_them() {
        for (text, expected) in [
            ("Publish a post on LinkedIn.", "linkedin"),
            ("listS3Buckets", "lists3 s3"),
            ("assignIPv6Address", "ipv6 pv6"),
            ("exportPDFs", "exportpdfs"),
            ("runMySQLQuery", "runmy runmysql mysql mysqlquery sqlquery"),
            ("s3 k8s snake_case lower 2026-11-01 1234567", ""),
            ("PDFs of IPv6 and S3", "ipv6"),
            ("GetIt", "getit"),
            ("IsADog", ""),
            ("ÜberLinkedInÜ LinkedInÜber", ""),
        ] {
            let mut compounds = Vec::new();
            for_each_compound(text, |compound, parts| {
                assert!(parts.eq_ignore_ascii_case(compound) && text.contains(parts));
                compounds.push(compound.to_owned());
            });
            assert_eq!(compounds.join(" "), expected, "{text}");
        }
    }

    #[test]
    fn words_are_normalised_and_split() {
        let table = [
            ("camelCase", "getUserById", "get user by id"),
            ("acronym", "parseHTTPResponse", "parse http response"),
            ("acronyms in the plural", "PDFs listIDsOfUsers URLs2", "pdfs list ids of users urls 2"),
            ("not in the plural", "getAStep HTTPServer ISSue OSs", "get a step http server is sue oss"),
            ("snake, kebab, dotted", "slack_send-message.now", "slack send message now"),
            ("digits", "page2 sha256sum", "page 2 sha 256 sum"),
            ("short mixed runs stay whole", "S3 k8s p95 ec2", "s3 k8s p95 ec2"),
            ("clitics", "what's Bob's, don't we'll", "what bob don we"),
            ("other apostrophes", "l'heure o'clock", "l heure o clock"),
            ("accents and case", "Café STRASSE Straße Überblick", "cafe strasse strasse uberblick"),
            ("typographic apostrophe", "what’s up", "what up"),
            ("full width", "ＡＰＩ　ｋｅｙ", "api key"),
            ("ligature", "ﬁle", "file"),
            ("greek final sigma", "ΟΔΟΣ οδός", "οδοσ οδοσ"),
            ("han bigrams", "查询天气", "查询 询天 天气"),
            ("one han character", "水 x", "水 x"),
            ("mixed scripts", "用API查询", "用 api 查询"),
            ("kana keeps its voicing", "がか", "がか"),
            ("hangul", "날씨를", "날씨 씨를"),
            ("thai tone marks", "น้ำ ที่นี่", "น้ํา ที่นี่"),
            ("indic vowel signs", "नमस्ते தமிழ்", "नमस्ते தமிழ்"),
            ("khmer", "ភាសាខ្មែរ", "ភាសាខ្មែរ"),
            ("keycaps and variation selectors", "1\u{FE0F}\u{20E3}x 水\u{FE00}火", "1 x 水 火"),
            ("nothing", "  ---  ", ""),
        ];
        for (what, input, expected) in table {
            assert_eq!(words(input), expected, "{what}");
        }
    }

    #[test]
    fn terms_are_stemmed_without_stop_words() {
        let analyzer = Analyzer::default();
        assert_eq!(analyzer.terms("Please list all the repositories of my teams"), ["list", "repositori", "team"]);
        let acronyms = analyzer.terms("PDFs pdfs pdf CVEs cve APIs api URLs url IDs id DNS css HTTPS xss");
        assert_eq!(acronyms.join(" "), "pdf pdf pdf cve cve api api url url id id dns css https xss");
        assert_eq!(analyzer.terms("über Straßen"), ["uber", "strassen"].map(|w| analyzer.stem(w).into_owned()));
    }

    #[test]
    fn a_long_word_is_cut() {
        assert_eq!(words(&"a".repeat(1000)).len(), MAX_WORD_BYTES);
        assert!(words(&"é".repeat(1000)).len() <= MAX_WORD_BYTES);
        assert!(words(&"ж".repeat(1000)).len() <= MAX_WORD_BYTES);
    }

    proptest! {
        #[test]
        fn the_ascii_path_equals_the_unicode_path(text in "[ -~]{0,80}") {
            let (mut fast, mut plain) = (Vec::new(), Vec::new());
            ascii_words(&text, &mut |word| fast.push(word.to_owned()));
            unicode_words(&text, &mut |word| plain.push(word.to_owned()));
            prop_assert_eq!(fast, plain);
        }

        #[test]
        fn pieces_equal_the_whole(text in "([ -~]{0,12}|[\\PC]{0,6}|[ \\t\\n]){0,8}") {
            let (mut pieces, mut whole) = (Vec::new(), Vec::new());
            for_each_word(&text, |word| pieces.push(word.to_owned()));
            unicode_words(&text, &mut |word| whole.push(word.to_owned()));
            prop_assert_eq!(pieces, whole);
        }

        #[test]
        fn no_text_panics_and_words_are_bounded(text in any::<String>()) {
            for_each_word(&text, |word| assert!(!word.is_empty() && word.len() <= MAX_WORD_BYTES));
        }
    }
}
