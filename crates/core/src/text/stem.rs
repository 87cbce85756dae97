//! English stems: Snowball's "Porter2" (<https://snowballstem.org/algorithms/english/stemmer.html>).
//!
//! Written here because the words of a query that a catalog does not know are stemmed during the search, and the
//! library allocates for each word and searches a table in each step. Tests hold it against the library.

use std::borrow::Cow;

/// The letters of a word in which an ending is looked for; shorter words have zeros in front.
const WIDTH: usize = 8;

/// Words longer than this are stemmed in a buffer of their own.
const USUAL: usize = 64;

/// The stem of a word that the rules would stem wrongly.
fn irregular(word: &str) -> Option<&'static str> {
    Some(match word {
        "andes" => "andes",
        "atlas" => "atlas",
        "bias" => "bias",
        "cosmos" => "cosmos",
        "dying" => "die",
        "early" => "earli",
        "gently" => "gentl",
        "howe" => "howe",
        "idly" => "idl",
        "lying" => "lie",
        "news" => "news",
        "only" => "onli",
        "singly" => "singl",
        "skies" => "sky",
        "skis" => "ski",
        "sky" => "sky",
        "tying" => "tie",
        "ugly" => "ugli",
        _ => return None,
    })
}

/// Whether a word stays as it is once its plural ending has been removed.
fn is_invariant(word: &[u8]) -> bool {
    matches!(word, b"succeed" | b"proceed" | b"exceed" | b"canning" | b"inning" | b"earring" | b"herring" | b"outing")
}

/// The stem of a word of three letters or more, all of them `a`–`z`.
pub(super) fn stem(word: &str) -> Cow<'_, str> {
    if let Some(stem) = irregular(word) {
        return Cow::Borrowed(stem);
    }
    let mut usual = [0; WIDTH + USUAL];
    let mut unusual = Vec::new();
    let letters = match usual.get_mut(..WIDTH + word.len()) {
        Some(letters) => letters,
        None => {
            unusual.resize(WIDTH + word.len(), 0);
            &mut unusual[..]
        }
    };
    letters[WIDTH..].copy_from_slice(word.as_bytes());
    let mut open = Open::new(letters);
    open.plural();
    if !is_invariant(open.letters()) {
        open.past_and_progressive();
        open.final_y();
        open.double_suffix();
        open.single_suffix();
        open.residual_suffix();
        open.final_e_or_l();
    }
    let stem = open.finish();
    if word.as_bytes().starts_with(stem) {
        return Cow::Borrowed(&word[..stem.len()]);
    }
    // Only letters were replaced by letters, so the bytes are valid UTF-8.
    std::str::from_utf8(stem).map_or(Cow::Borrowed(word), |stem| Cow::Owned(stem.to_owned()))
}

/// An ending and its replacement.
#[derive(Clone, Copy)]
struct Ending {
    /// The letters of the ending, at the place that they have in [`Open::tail`].
    letters: u64,
    length: usize,
    with: &'static [u8],
}

const fn ending(text: &'static str, with: &'static str) -> Ending {
    let bytes = text.as_bytes();
    let mut letters = [0; WIDTH];
    let mut at = 0;
    while at < bytes.len() {
        letters[WIDTH - bytes.len() + at] = bytes[at];
        at += 1;
    }
    Ending { letters: u64::from_le_bytes(letters), length: bytes.len(), with: with.as_bytes() }
}

/// A word that is being stemmed. A `y` that is a consonant is written `Y`.
struct Open<'b> {
    /// [`WIDTH`] zeros, then the word.
    buffer: &'b mut [u8],
    /// Where the word ends.
    end: usize,
    /// Where the regions R1 and R2 begin: R1 behind the first consonant after a vowel, R2 behind the next such
    /// consonant.
    first: usize,
    second: usize,
}

impl<'b> Open<'b> {
    fn new(buffer: &'b mut [u8]) -> Self {
        let end = buffer.len();
        for at in WIDTH..end {
            if buffer[at] == b'y' && (at == WIDTH || is_vowel(buffer[at - 1])) {
                buffer[at] = b'Y';
            }
        }
        let region = |from: usize| {
            let vowel = buffer[from..].iter().position(|letter| is_vowel(*letter))?;
            let consonant = buffer[from + vowel..].iter().position(|letter| !is_vowel(*letter))?;
            Some(from + vowel + consonant + 1)
        };
        let word = &buffer[WIDTH..];
        let whole = ["arsen", "commun", "gener"].into_iter().find(|start| word.starts_with(start.as_bytes()));
        let first = whole.map(|start| WIDTH + start.len()).or_else(|| region(WIDTH)).unwrap_or(end);
        let second = region(first).unwrap_or(end);
        Self { buffer, end, first, second }
    }

    fn letters(&self) -> &[u8] {
        &self.buffer[WIDTH..self.end]
    }

    fn len(&self) -> usize {
        self.end - WIDTH
    }

    /// The letter with `behind` letters after it; 0 before the start of the word.
    fn letter(&self, behind: usize) -> u8 {
        self.buffer[self.end - 1 - behind]
    }

    /// The last [`WIDTH`] letters as one number.
    fn tail(&self) -> u64 {
        self.buffer[..self.end].last_chunk().map_or(0, |tail| u64::from_le_bytes(*tail))
    }

    /// The first of `endings` that the word ends in.
    fn ending(&self, endings: &[Ending]) -> Option<Ending> {
        let tail = self.tail();
        let has = |ending: &&Ending| (tail ^ ending.letters) >> (8 * (WIDTH - ending.length)) == 0;
        endings.iter().find(has).copied()
    }

    /// Whether an ending of this length lies in the region that begins at `region`.
    fn lies_in(&self, length: usize, region: usize) -> bool {
        region + length <= self.end
    }

    fn has_vowel_before(&self, length: usize) -> bool {
        self.buffer[WIDTH..self.end - length].iter().any(|letter| is_vowel(*letter))
    }

    /// Replaces the last `length` letters by `with`, which is not longer.
    fn replace(&mut self, length: usize, with: &[u8]) {
        let start = self.end - length;
        for (letter, new) in self.buffer[start..].iter_mut().zip(with) {
            *letter = *new;
        }
        self.end = start + with.len();
    }

    /// Whether the word without its last `behind` letters ends in a short syllable.
    fn is_short_before(&self, behind: usize) -> bool {
        let consonant = |at: usize| {
            let letter = self.letter(behind + at);
            letter != 0 && !is_vowel(letter)
        };
        if self.len() < behind + 2 || !consonant(0) || !is_vowel(self.letter(behind + 1)) {
            return false;
        }
        self.len() == behind + 2 || (consonant(2) && !matches!(self.letter(behind), b'w' | b'x' | b'Y'))
    }

    /// Step 1a: shortens plural endings (`sses`, `ies`, `s`).
    fn plural(&mut self) {
        match (self.letter(2), self.letter(1), self.letter(0)) {
            (b's', b'e', b's') if self.letter(3) == b's' => self.replace(4, b"ss"),
            (b'i', b'e', b'd' | b's') if self.len() > 4 => self.replace(3, b"i"),
            (b'i', b'e', b'd' | b's') => self.replace(3, b"ie"),
            (_, b's' | b'u', b's') => {}
            (_, _, b's') if self.has_vowel_before(2) => self.replace(1, b""),
            _ => {}
        }
    }

    /// Step 1b: shortens `eed`, removes `ed` and `ing`, each also before `ly`, and repairs the end of the word.
    fn past_and_progressive(&mut self) {
        const ENDINGS: [Ending; 6] = [
            ending("eedly", "ee"),
            ending("ingly", ""),
            ending("edly", ""),
            ending("eed", "ee"),
            ending("ing", ""),
            ending("ed", ""),
        ];
        let Some(Ending { length, with, .. }) = self.ending(&ENDINGS) else { return };
        if !with.is_empty() {
            if self.lies_in(length, self.first) {
                self.replace(length, with);
            }
            return;
        }
        if !self.has_vowel_before(length) {
            return;
        }
        self.replace(length, b"");
        match (self.letter(1), self.letter(0)) {
            (b'a', b't') | (b'b', b'l') | (b'i', b'z') => self.push_e(),
            (one, other @ (b'b' | b'd' | b'f' | b'g' | b'm' | b'n' | b'p' | b'r' | b't')) if one == other => {
                self.replace(1, b"");
            }
            _ if self.end == self.first && self.is_short_before(0) => self.push_e(),
            _ => {}
        }
    }

    /// Appends an `e`; only called after a longer ending was removed.
    fn push_e(&mut self) {
        if let Some(letter) = self.buffer.get_mut(self.end) {
            *letter = b'e';
            self.end += 1;
        }
    }

    /// Step 1c: turns a final `y` after a consonant into `i`.
    fn final_y(&mut self) {
        if matches!(self.letter(0), b'y' | b'Y') && self.len() > 2 && !is_vowel(self.letter(1)) {
            self.replace(1, b"i");
        }
    }

    /// Step 2: shortens double suffixes in R1 (`ational` to `ate`).
    fn double_suffix(&mut self) {
        // Where one ending contains another, the longer one comes first.
        const I: [Ending; 14] = [
            ending("lessli", "less"),
            ending("biliti", "ble"),
            ending("fulli", "ful"),
            ending("ousli", "ous"),
            ending("entli", "ent"),
            ending("aliti", "al"),
            ending("iviti", "ive"),
            ending("abli", "able"),
            ending("alli", "al"),
            ending("anci", "ance"),
            ending("enci", "ence"),
            ending("bli", "ble"),
            ending("ogi", "og"),
            ending("li", ""),
        ];
        const L: [Ending; 2] = [ending("ational", "ate"), ending("tional", "tion")];
        const M: [Ending; 1] = [ending("alism", "al")];
        const N: [Ending; 2] = [ending("ization", "ize"), ending("ation", "ate")];
        const R: [Ending; 2] = [ending("izer", "ize"), ending("ator", "ate")];
        const S: [Ending; 3] = [ending("iveness", "ive"), ending("fulness", "ful"), ending("ousness", "ous")];
        let endings: &[Ending] = match self.letter(0) {
            b'i' => &I,
            b'l' => &L,
            b'm' => &M,
            b'n' => &N,
            b'r' => &R,
            b's' => &S,
            _ => return,
        };
        let Some(Ending { length, with, .. }) = self.ending(endings) else { return };
        let fits = match with {
            b"og" => self.letter(3) == b'l',
            b"" => matches!(self.letter(2), b'c' | b'd' | b'e' | b'g' | b'h' | b'k' | b'm' | b'n' | b'r' | b't'),
            _ => true,
        };
        if fits && self.lies_in(length, self.first) {
            self.replace(length, with);
        }
    }

    /// Step 3: shortens or removes suffixes in R1 (`icate`, `ful`, `ness`).
    fn single_suffix(&mut self) {
        const E: [Ending; 3] = [ending("icate", "ic"), ending("alize", "al"), ending("ative", "")];
        const I: [Ending; 1] = [ending("iciti", "ic")];
        const L: [Ending; 4] =
            [ending("ational", "ate"), ending("tional", "tion"), ending("ical", "ic"), ending("ful", "")];
        const S: [Ending; 1] = [ending("ness", "")];
        let endings: &[Ending] = match self.letter(0) {
            b'e' => &E,
            b'i' => &I,
            b'l' => &L,
            b's' => &S,
            _ => return,
        };
        let Some(Ending { length, with, .. }) = self.ending(endings) else { return };
        let region = if with.is_empty() && self.letter(0) == b'e' { self.second } else { self.first };
        if self.lies_in(length, region) {
            self.replace(length, with);
        }
    }

    /// Step 4: removes suffixes in R2 (`ance`, `ment`, `ion`).
    fn residual_suffix(&mut self) {
        const E: [Ending; 7] = [
            ending("ance", ""),
            ending("ence", ""),
            ending("able", ""),
            ending("ible", ""),
            ending("ate", ""),
            ending("ive", ""),
            ending("ize", ""),
        ];
        const T: [Ending; 4] = [ending("ement", ""), ending("ment", ""), ending("ant", ""), ending("ent", "")];
        let endings: &[Ending] = match self.letter(0) {
            b'c' => &const { [ending("ic", "")] },
            b'e' => &E,
            b'i' => &const { [ending("iti", "")] },
            b'l' => &const { [ending("al", "")] },
            b'm' => &const { [ending("ism", "")] },
            b'n' => &const { [ending("ion", "")] },
            b'r' => &const { [ending("er", "")] },
            b's' => &const { [ending("ous", "")] },
            b't' => &T,
            _ => return,
        };
        let Some(Ending { length, .. }) = self.ending(endings) else { return };
        let fits = self.letter(0) != b'n' || matches!(self.letter(3), b's' | b't');
        if fits && self.lies_in(length, self.second) {
            self.replace(length, b"");
        }
    }

    /// Step 5: removes a final `e`, or the second `l` of a final `ll`.
    fn final_e_or_l(&mut self) {
        let gone = match self.letter(0) {
            b'e' => self.lies_in(1, self.second) || (self.lies_in(1, self.first) && !self.is_short_before(1)),
            b'l' => self.lies_in(1, self.second) && self.letter(1) == b'l',
            _ => false,
        };
        if gone {
            self.replace(1, b"");
        }
    }

    fn finish(self) -> &'b [u8] {
        let stem = &mut self.buffer[WIDTH..self.end];
        stem.iter_mut().filter(|letter| **letter == b'Y').for_each(|letter| *letter = b'y');
        stem
    }
}

/// Whether a letter is a vowel; `Y` is not.
fn is_vowel(letter: u8) -> bool {
    matches!(letter, b'a' | b'e' | b'i' | b'o' | b'u' | b'y')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rust_stemmers::{Algorithm, Stemmer};

    use super::*;

    fn library(word: &str) -> String {
        Stemmer::create(Algorithm::English).stem(word).into_owned()
    }

    #[test]
    fn exceptions_are_those_of_the_library() {
        const WORDS: &str = "andes atlas bias cosmos dying early gently howe idly lying news only singly skies skis \
            sky tying ugly succeed proceed exceed canning inning earring herring outing";
        for word in WORDS.split(' ').flat_map(|word| [word.to_owned(), format!("{word}s"), format!("{word}ed")]) {
            assert_eq!(stem(&word), library(&word), "{word}");
        }
    }

    /// Syllables and endings, so that every rule has its words.
    const WORD: &str = "[a-z]{0,3}((arsen|commun|gener|[aeiouy]{1,2}[b-dgk-nstvwxyz]{1,2}|[a-z]{1,2}){1,4})\
        (s|ss|us|sses|ies|ied|ed|eed|ing|edly|eedly|ingly|y|ly|li|bly|ogy|logy|ative|icate|alize|icity|ical|ful|ness|\
        anci|enci|ably|ally|fully|lessly|ously|ently|ality|bility|ivity|tional|ational|alism|ation|ization|izer|ator|\
        iveness|fulness|ousness|al|ance|ence|er|ic|able|ible|ant|ement|ment|ent|ism|ate|iti|ous|ive|ize|ion|sion|e|l|\
        ll){1,2}";

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(20_000))]

        #[test]
        fn words_have_the_stems_of_the_library(word in WORD, any in "[a-z]{3,70}") {
            prop_assume!(word.len() > 2);
            prop_assert_eq!(stem(&word), library(&word), "{}", word);
            prop_assert_eq!(stem(&any), library(&any), "{}", any);
        }
    }
}
