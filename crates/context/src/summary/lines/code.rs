//! Source code: its types and functions are the outline, recognised by the first words of lines.
//!
//! Nothing is parsed: a declaration is a line that begins with modifiers, a keyword and a name, or (in the C family)
//! that looks like the head of a function. A line inside a string can look like that too; that is accepted.

use rustc_hash::FxHashMap;

use crate::brief::{Piece, spread};

use super::excerpt::{Tally, samples, shorter_first};
use super::rank;
use contextweaver_core::text::counted;

/// The SQL statements that are counted.
const STATEMENTS: [&str; 6] = ["select", "insert", "update", "delete", "alter", "drop"];
/// How many lines are shown behind one that declares something, where not all are.
const LINES_BEHIND: [usize; 8] = [usize::MAX, 24, 12, 8, 4, 2, 1, 0];
/// The number of symbols kept.
const KEPT: usize = 6000;
/// The number of constants kept.
const CONSTANTS: usize = 500;

/// A programming language, as far as its declarations look different.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum Language {
    Rust,
    Python,
    JavaScript,
    Go,
    Java,
    C,
    Shell,
    Sql,
    Ruby,
    Php,
    Css,
}

impl Language {
    const ALL: [Self; 11] = [
        Self::Rust,
        Self::Python,
        Self::JavaScript,
        Self::Go,
        Self::Java,
        Self::C,
        Self::Shell,
        Self::Sql,
        Self::Ruby,
        Self::Php,
        Self::Css,
    ];

    fn name(self) -> &'static str {
        match self {
            Self::Rust => "Rust",
            Self::Python => "Python",
            Self::JavaScript => "JavaScript/TypeScript",
            Self::Go => "Go",
            Self::Java => "Java-like",
            Self::C => "C/C++",
            Self::Shell => "shell",
            Self::Sql => "SQL",
            Self::Ruby => "Ruby",
            Self::Php => "PHP",
            Self::Css => "CSS",
        }
    }

    /// Starts of lines that suggest the language, separated by `|`.
    fn starts(self) -> &'static str {
        match self {
            Self::Rust => {
                "fn |pub |pub(|let |impl|use |mod |#[|#![|match |///|//!|struct |enum |trait |async fn |\
                unsafe |where|Some(|Ok(|None|Self|assert!|assert_eq!|extern crate |macro_rules!|\
                } else {|if let |loop {|&self|const "
            }
            Self::Python => {
                "def |class |import |from |elif |except|self.|@|with |async def |raise |yield |return |\
                try:|else:|finally:|\"\"\"|if __name__|pass|print(|not |assert |lambda |for |if |while |\
                # "
            }
            Self::JavaScript => {
                "const |let |var |function |export |import |async function|return |}, |});|\
                module.exports|require(|await |this.|=>|interface |type |class |if (|} else|console.|\
                'use strict'|\"use strict\"|describe(|it(|expect(|//|/**|* |throw "
            }
            Self::Go => {
                "func |package |import (|type |if err != nil|return |defer |go func|var |case |for |//|\
                switch |} else {|select {|fmt.|const (|chan "
            }
            Self::Java => {
                "public |private |protected |package |import |@|class |interface |return |if (|for (|\
                throw |try {|} catch|} else|this.|final |static |abstract |/**|* |//|using |namespace |\
                override |fun |val |var |internal |case "
            }
            Self::C => {
                "#include|#define|#if|#endif|#else|static |void |int |char |struct |typedef |return |\
                if (|for (|while (|const |unsigned |template|namespace |std::|class |public:|private:|\
                using |extern |/*|* |*/|//|} else|case |break;|goto |enum |size_t |bool |auto |else|\
                double |float |uint"
            }
            Self::Shell => {
                "#!|echo |if [|fi|then|done|for |do|export |set -|esac|case |local |cd |function |exit |\
                while |elif [|else|sudo |grep |source |#|$|mkdir |printf |return |shift|;;|curl |cp |\
                rm "
            }
            Self::Sql => {
                "select |insert |create |from |where |alter |drop |update |delete |join |left join|\
                group by|order by|--|values|begin|commit|union|with |primary key|foreign key|cast(|as |\
                grant |case|when |end|/*|*/|* |union|constraint |references |(|)|inner join|on |and |\
                or |set "
            }
            Self::Ruby => {
                "def |end|class |module |require |attr_|puts |if |unless |include |@|return |do |it |\
                describe |context |expect(|elsif |rescue|# |let(|before"
            }
            Self::Php => {
                "<?php|$|function |public |private |protected |namespace |use |class |return |if (|\
                foreach (|echo |} else|/**|* |//|require"
            }
            Self::Css => "@media|@import|@font-face|.|#|--|}|/*|:root|body|html",
        }
    }

    /// Starts of lines that hardly occur outside the language, separated by `|`.
    fn signs(self) -> &'static str {
        match self {
            Self::Rust => {
                "fn |pub fn |impl|use crate|use std|#[derive|let mut |pub struct |//!|pub(|pub |pub mod |\
                #[|match |assert_eq!(|///"
            }
            Self::Python => {
                "def |elif |except |self.|async def |from |if __name__|try:|else:|import |raise |\"\"\"|\
                except:"
            }
            Self::JavaScript => {
                "const |let |function |export |});|module.exports|await |=>|console.|var |interface |\
                describe(|expect(|import {"
            }
            Self::Go => "func |package |if err != nil|defer |import (|fmt.|go func",
            Self::Java => {
                "public |private |protected |@Override|import java|package |} catch|using System|\
                override |fun |internal |val "
            }
            Self::C => {
                "#include|#define|#if|#endif|typedef |static |void |template|namespace |std::|unsigned |\
                size_t |public:|private:|int |char |struct |uint"
            }
            Self::Shell => "#!|fi|done|then|esac|if [|echo |set -|local |export |elif [|;;|sudo ",
            Self::Sql => {
                "select |insert into|create table|create index|from |where |group by|order by|left join|\
                alter table|drop table|values|join |primary key"
            }
            Self::Ruby => "end|def |require '|attr_|module |puts |elsif |unless |rescue|describe ",
            Self::Php => "<?php|$|foreach (|public function|private function|protected function",
            Self::Css => "@media|@import|@font-face|:root|--|.",
        }
    }
}

/// The likely language of sample lines, and the share of the lines that look like it (0 to 1).
pub(super) fn language(lines: &[&str]) -> (Language, f64) {
    let mut best = (Language::C, 0.0, 0.0);
    for language in Language::ALL {
        let mut starts = 0usize;
        let mut signs = 0usize;
        for line in lines {
            let line = line.trim_start();
            let has = |list: &str| {
                list.split('|').any(|start| match language {
                    Language::Sql => line.get(..start.len()).is_some_and(|front| front.eq_ignore_ascii_case(start)),
                    Language::Shell if start.bytes().all(|byte| byte.is_ascii_lowercase()) => {
                        line.split([' ', ';']).next() == Some(start)
                    }
                    Language::Ruby if start == "end" => line.trim_end() == "end",
                    _ => line.starts_with(start),
                })
            };
            let sign = has(language.signs());
            signs += usize::from(sign);
            starts += usize::from(sign || has(language.starts()));
        }
        if signs > 0 {
            let total = lines.len().max(1) as f64;
            let (signs, starts) = (signs as f64 / total, starts as f64 / total);
            let structure = match language {
                Language::Css => {
                    lines.iter().filter(|line| line.trim_end().ends_with([';', '{', '}'])).count() as f64 / total
                }
                _ => 1.0,
            };
            let score = if structure < 0.8 { 0.0 } else { 3.0 * signs + starts };
            if score > best.2 {
                best = (language, starts, score);
            }
        }
    }
    (best.0, best.1)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Role {
    /// A struct, class, interface, enum, trait, table …
    Type,
    /// An `impl` block or a namespace: holds functions, is not a type of its own.
    Holder,
    Function,
    Test,
}

#[derive(Debug)]
struct Symbol<'a> {
    /// The keyword as written: `fn`, `class` …
    word: &'a str,
    name: &'a str,
    role: Role,
    line: usize,
    indent: usize,
}

#[derive(Debug, Default)]
struct Outline<'a> {
    symbols: Vec<Symbol<'a>>,
    functions: usize,
    tests: usize,
    types: usize,
    imports: usize,
    comments: usize,
    /// The first parts of imported paths with their counts, in order of appearance.
    roots: Vec<(&'a str, usize)>,
    statements: FxHashMap<&'static str, usize>,
    /// Names with their values, as [`constant`] finds them, each once.
    constants: Vec<(&'a str, &'a str)>,
}

const MODIFIERS: [&str; 26] = [
    "pub",
    "async",
    "unsafe",
    "const",
    "extern",
    "default",
    "export",
    "static",
    "public",
    "private",
    "protected",
    "internal",
    "abstract",
    "final",
    "override",
    "virtual",
    "inline",
    "constexpr",
    "sealed",
    "open",
    "data",
    "suspend",
    "declare",
    "readonly",
    "partial",
    "synchronized",
];

/// Words before an opening bracket that are not names of functions.
const NO_FUNCTIONS: [&str; 22] = [
    "if",
    "for",
    "while",
    "switch",
    "catch",
    "return",
    "sizeof",
    "else",
    "do",
    "new",
    "throw",
    "assert",
    "defined",
    "await",
    "yield",
    "match",
    "with",
    "super",
    "typeof",
    "function",
    "alignof",
    "synchronized",
];

/// Whether a line at the margin is the head of a Python class or function or an import, unlike any prose.
pub(super) fn is_python_statement(line: &str) -> bool {
    let line = line.trim_end();
    let words: Vec<&str> = line.split(' ').collect();
    match words.as_slice() {
        ["import", module] | ["import", module, "as", _] => !module.ends_with([';', '"', '\'']),
        ["from", _, "import", ..] => !line.ends_with([';', '"', '\'']),
        ["def" | "class", ..] | ["async", "def", ..] => {
            line.ends_with(':') && declaration(Language::Python, line, 0).is_some()
        }
        _ => false,
    }
}

/// The name that a keyword declares on a line of an unknown language.
pub(super) fn declared(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let (word, name, role) = declaration(Language::Rust, line, 0)?;
    (role != Role::Holder && !matches!(word, "type" | "object" | "record" | "union")).then_some(name)
}

/// A name and the number or short text that a line sets it to, e.g. `const LIMIT: usize = 3;`. Without a keyword the
/// name is in capitals or, in a script, at the margin.
///
/// `block` says that the line is in a block that declares constants.
fn constant(language: Language, line: &str, block: bool) -> Option<(&str, &str)> {
    const WORDS: [&str; 11] =
        ["const", "static", "final", "pub", "export", "public", "private", "let", "var", "#define", "readonly"];
    let mut rest = line.trim_start();
    let script = matches!(language, Language::Python | Language::Ruby | Language::Shell);
    let mut said = block || (script && line.len() == rest.len());
    while let Some((word, after)) = rest.split_once(' ').filter(|(word, _)| WORDS.contains(word)) {
        said |= !matches!(word, "let" | "var");
        rest = after.trim_start();
    }
    let name = identifier(rest);
    let after = rest.get(name.len()..)?;
    let value = match after.split_once('=') {
        Some((kind, value)) if kind.trim().is_empty() || kind.starts_with([':', ' ']) => value,
        None if line.trim_start().starts_with("#define ") => after,
        _ => return None,
    };
    let value = value.trim().trim_end_matches([';', ',']);
    let number = value.starts_with(|c: char| c.is_ascii_digit() || c == '-')
        && value.len() <= 40
        && value
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-' | b'+' | b'*' | b' '));
    let quoted = ['"', '\''].into_iter().any(|mark| {
        value.len() > 2
            && value.len() <= 60
            && value.starts_with(mark)
            && value.find(mark) != value.rfind(mark)
            && value.ends_with(mark)
            && value.matches(mark).count() == 2
    });
    let capitals = name.len() > 2 && !name.chars().any(char::is_lowercase);
    (name.len() > 1 && (said || capitals) && (number || quoted)).then_some((name, value))
}

/// The identifier at the start of `text`.
fn identifier(text: &str) -> &str {
    let end = text
        .char_indices()
        .find(|&(_, character)| !(character.is_alphanumeric() || matches!(character, '_' | '$')))
        .map_or(text.len(), |(at, _)| at);
    text.get(..end).unwrap_or_default()
}

/// A declaration on a line (without its indentation): keyword, name, role.
fn declaration(language: Language, line: &str, indent: usize) -> Option<(&str, &str, Role)> {
    if language == Language::Sql {
        return sql_object(line);
    }
    let mut rest = line;
    loop {
        let word = identifier(rest);
        let after = rest.get(word.len()..)?;
        if word.is_empty() {
            return None;
        }
        let next = after.trim_start();
        let keyword = match word {
            "fn" | "def" | "func" | "fun" => Some(Role::Function),
            "function" => Some(Role::Function),
            "struct" | "enum" | "trait" | "class" | "interface" | "union" | "record" | "object" => Some(Role::Type),
            "type" | "typedef" if language != Language::Python => Some(Role::Type),
            "impl" => Some(Role::Holder),
            "mod" | "module" | "namespace" if next.contains('{') || language == Language::Ruby => Some(Role::Holder),
            "macro_rules" => Some(Role::Function),
            _ => None,
        };
        if let Some(role) = keyword {
            if let Some((name, role)) = named(language, word, after, role) {
                return Some((word, name, role));
            }
            return None;
        }
        if word == "const" && language == Language::JavaScript || matches!(word, "let" | "var") {
            break;
        }
        if !MODIFIERS.contains(&word) {
            break;
        }
        rest = next;
        // Visibility and linkage with arguments: `pub(crate)`, `extern "C"`.
        if let Some(inner) = rest.strip_prefix('(').filter(|_| word == "pub") {
            rest = inner.split_once(')')?.1.trim_start();
        } else if let Some(inner) = rest.strip_prefix('"').filter(|_| word == "extern") {
            rest = inner.split_once('"')?.1.trim_start();
        }
    }
    match language {
        Language::JavaScript => js_function(rest, indent),
        Language::Java | Language::C | Language::Php => c_function(language, rest, indent),
        Language::Shell => {
            let name = line.split_once("()")?.0.trim_end();
            let plain =
                name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b':'));
            (!name.is_empty() && plain).then_some(("", name, Role::Function))
        }
        _ => None,
    }
}

/// What a keyword declares: the name after it.
fn named<'a>(language: Language, word: &str, after: &'a str, role: Role) -> Option<(&'a str, Role)> {
    let next = after.trim_start();
    if word == "macro_rules" {
        let name = identifier(next.strip_prefix('!')?.trim_start());
        return (!name.is_empty()).then_some((name, Role::Function));
    }
    if word == "impl" {
        // `impl<T> Trait for Type<T> where …`: the text up to the brace.
        let body = if next.starts_with('<') { after_angles(next) } else { next };
        let end = body.find(" {").or_else(|| body.find(" where")).unwrap_or(body.len());
        let name = body.get(..end)?.trim();
        return (!name.is_empty()).then_some((name, Role::Holder));
    }
    let receiver = word == "func" && after.starts_with('(');
    if !receiver && !after.starts_with([' ', '\t']) {
        return None;
    }
    if word == "func" && next.starts_with('(') {
        // A method: `func (r *Reader) Read(`, written with its receiver's type.
        let (_, method) = next.split_once(") ")?;
        let name = identifier(method);
        return (!name.is_empty()).then_some((name, role));
    }
    if matches!(word, "struct" | "enum" | "union") && language == Language::C {
        // `struct x *f(` and `struct x y;` do not declare a type.
        let name = identifier(next);
        let rest = next.get(name.len()..)?.trim();
        return (!name.is_empty() && (rest.is_empty() || rest.starts_with(['{', ':']))).then_some((name, role));
    }
    if word == "typedef" {
        let name = identifier(next.rsplit(' ').next()?);
        return (!name.is_empty() && next.ends_with(';')).then_some((name, role));
    }
    let next = next.trim_start_matches("self.");
    let next = next.strip_prefix('*').map_or(next, str::trim_start);
    let name = identifier(next);
    let rest = next.get(name.len()..)?.trim_start();
    let well_formed = match language {
        Language::Python => rest.starts_with(['(', ':', '[']),
        // In prose "type of thing"; in code a bracket, brace, colon, semicolon, equals sign or a further type follows.
        _ => {
            rest.is_empty()
                || !rest.starts_with(|c: char| c.is_lowercase())
                || matches!(
                    identifier(rest),
                    "extends"
                        | "implements"
                        | "where"
                        | "struct"
                        | "interface"
                        | "func"
                        | "int"
                        | "string"
                        | "map"
                        | "chan"
                        | "final"
                )
        }
    };
    (!name.is_empty() && well_formed).then_some((name, role))
}

/// The text after a balanced `<…>` at the start of `text`.
fn after_angles(text: &str) -> &str {
    let mut depth = 0usize;
    let mut before = ' ';
    for (at, character) in text.char_indices() {
        match character {
            '<' => depth += 1,
            '>' if before != '-' => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return text.get(at + 1..).unwrap_or_default().trim_start();
                }
            }
            _ => {}
        }
        before = character;
    }
    ""
}

/// Parses `const name = (…) =>`, `name = async function`, and methods `name(…) {`.
fn js_function(rest: &str, indent: usize) -> Option<(&str, &str, Role)> {
    let rest = ["const ", "let ", "var "].iter().find_map(|word| rest.strip_prefix(word)).unwrap_or(rest);
    let rest = ["get ", "set ", "*"].iter().find_map(|word| rest.strip_prefix(word)).unwrap_or(rest);
    let name = identifier(rest);
    if name.is_empty() || NO_FUNCTIONS.contains(&name) {
        return None;
    }
    let after = rest.get(name.len()..)?.trim_start();
    if let Some(value) = after.strip_prefix('=').or_else(|| after.strip_prefix(": ")).map(str::trim_start) {
        let value = value.strip_prefix("async ").unwrap_or(value).trim_start();
        let function = value.starts_with("function")
            || ((value.starts_with('(') || identifier(value).len() < value.len())
                && value.contains("=>")
                && !value.contains("."));
        return (function && indent <= 4).then_some(("", name, Role::Function));
    }
    (after.starts_with('(')
        && rest.trim_end().ends_with('{')
        && indent > 0
        && !rest.contains("=>")
        && !rest.contains("function"))
    .then_some(("", name, Role::Function))
}

/// The head of a function in the C family: a type, a name, an opening bracket, and no semicolon at the end.
fn c_function(language: Language, rest: &str, indent: usize) -> Option<(&str, &str, Role)> {
    let open = rest.find('(')?;
    let front = rest.get(..open)?;
    let trimmed = rest.trim_end();
    // In C a prototype ends with a semicolon; deeper in the text that is a call.
    let deep = match language {
        Language::C => indent > 0 && !(indent <= 4 && trimmed.ends_with('{')),
        _ => indent > 8,
    };
    let call = trimmed.ends_with(';') && (language != Language::C || indent > 0);
    if deep || call || front.contains(['=', '"', '#', '.', ',']) || rest.starts_with(['*', '/', '@']) {
        return None;
    }
    let start = front.rfind(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | '~' | ':'))).map_or(0, |at| at + 1);
    let name = front.get(start..)?.trim_start_matches(':');
    let kind = front.get(..start)?.trim();
    let constructor =
        kind.is_empty() && language == Language::Java && trimmed.ends_with('{') && name.starts_with(char::is_uppercase);
    if name.is_empty()
        || NO_FUNCTIONS.contains(&name)
        || NO_FUNCTIONS.contains(&identifier(kind))
        || (kind.is_empty() && !constructor)
    {
        return None;
    }
    name.starts_with(|c: char| c.is_alphabetic() || matches!(c, '_' | '~')).then_some(("", name, Role::Function))
}

/// Parses `CREATE [OR REPLACE] TABLE|VIEW|INDEX|FUNCTION … [IF NOT EXISTS] name`.
fn sql_object(line: &str) -> Option<(&str, &str, Role)> {
    let mut words = line.split_ascii_whitespace();
    if !words.next()?.eq_ignore_ascii_case("create") {
        return None;
    }
    let mut kind = "";
    for word in words {
        let known = ["table", "view", "index", "function", "procedure", "trigger", "type", "schema", "sequence"];
        let skipped = [
            "or",
            "replace",
            "unique",
            "temp",
            "temporary",
            "materialized",
            "if",
            "not",
            "exists",
            "virtual",
            "concurrently",
        ];
        if kind.is_empty() && known.iter().any(|known| word.eq_ignore_ascii_case(known)) {
            kind = word;
        } else if !skipped.iter().any(|skipped| word.eq_ignore_ascii_case(skipped)) {
            let name = word.split('(').next().unwrap_or(word).trim_matches(['"', '`', '[', ']', ';']);
            let function = kind.eq_ignore_ascii_case("function") || kind.eq_ignore_ascii_case("procedure");
            let role = if function { Role::Function } else { Role::Type };
            return (!kind.is_empty() && !name.is_empty()).then_some((kind, name, role));
        }
    }
    None
}

/// The name of a C function whose result type is alone on the line before.
fn split_head<'a>(before: &str, line: &'a str) -> Option<&'a str> {
    let typed = before.starts_with(|c: char| c.is_ascii_alphabetic())
        && before.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b' ' | b'*'))
        && !["else", "do", "return"].contains(&before.trim());
    let name = identifier(line);
    let called = line.get(name.len()..).is_some_and(|rest| rest.starts_with('('));
    (typed && called && !name.is_empty() && !line.trim_end().ends_with(';') && !NO_FUNCTIONS.contains(&name))
        .then_some(name)
}

/// The first name of an import: the crate, package or header.
fn import(language: Language, line: &str) -> Option<&str> {
    let path = match language {
        Language::Rust => line.strip_prefix("pub ").unwrap_or(line).strip_prefix("use ")?,
        Language::Python => line.strip_prefix("import ").or_else(|| line.strip_prefix("from "))?,
        Language::C => {
            let path = line.strip_prefix("#include")?.trim().trim_start_matches(['<', '"']);
            path.split(['>', '"']).next().unwrap_or_default()
        }
        Language::JavaScript => {
            let rest = line.strip_prefix("import ").or_else(|| line.contains("require(").then_some(line))?;
            return rest.split(['\'', '"']).nth(1).or(Some(""));
        }
        Language::Java | Language::Php => line
            .strip_prefix("import ")
            .or_else(|| line.strip_prefix("using "))
            .or_else(|| line.strip_prefix("use "))?
            .trim_start_matches("static ")
            .trim_end_matches(';'),
        Language::Ruby => line.strip_prefix("require ")?.trim_matches(['\'', '"']),
        Language::Go => {
            let rest = line.strip_prefix("import ").unwrap_or(line);
            return rest.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
        }
        _ => return None,
    };
    match language {
        Language::Rust => Some(path.split([':', ';', ' ', '{']).next().unwrap_or_default()),
        Language::Python => Some(path.split(['.', ' ', ',']).next().unwrap_or_default()),
        _ => Some(path),
    }
}

fn is_comment(language: Language, line: &str) -> bool {
    match language {
        Language::Python | Language::Shell | Language::Ruby => line.starts_with('#'),
        Language::Sql => line.starts_with("--") || line.starts_with("/*"),
        _ => {
            line.starts_with("//")
                || line.starts_with("/*")
                || line.starts_with("* ")
                || line == "*"
                || line.starts_with("*/")
        }
    }
}

impl<'a> Outline<'a> {
    fn read(language: Language, text: &'a str) -> Self {
        let mut outline = Self::default();
        let mut roots: FxHashMap<&str, usize> = FxHashMap::default();
        let mut test_next = false;
        let mut constants = rustc_hash::FxHashSet::default();
        let mut before = "";
        let mut block = false;
        for (number, whole) in text.lines().enumerate() {
            let line = whole.trim_start();
            if line.is_empty() {
                continue;
            }
            if is_comment(language, line) {
                outline.comments += 1;
                continue;
            }
            let indent = whole.len() - line.len();
            if language == Language::Rust && line.starts_with("#[") {
                test_next |= line.contains("test]") || line.contains("test(");
                continue;
            }
            if let Some(root) = import(language, line) {
                outline.imports += 1;
                if !root.is_empty() && root.len() < 80 && outline.roots.len() < 300 {
                    let index = *roots.entry(root).or_insert_with(|| {
                        outline.roots.push((root, 0));
                        outline.roots.len() - 1
                    });
                    outline.roots[index].1 += 1;
                }
                continue;
            }
            if language == Language::Sql {
                outline.statement(line);
            }
            let head = (language == Language::C && indent == 0).then(|| split_head(before, line)).flatten();
            before = whole;
            let declared = declaration(language, line, indent).or_else(|| head.map(|name| ("", name, Role::Function)));
            let Some((word, name, mut role)) = declared else {
                block = match line {
                    "const (" | "var (" => true,
                    ")" => false,
                    _ => block,
                };
                if let Some(found) = constant(language, whole, block).filter(|_| outline.constants.len() < CONSTANTS)
                    && constants.insert(found)
                {
                    outline.constants.push(found);
                }
                continue;
            };
            let named_test = match language {
                Language::Python => name.starts_with("test_"),
                Language::Go => name.starts_with("Test") || name.starts_with("Benchmark"),
                _ => false,
            };
            // Parameters of macros and associated types are not names of their own.
            if (name.starts_with('$') && language == Language::Rust) || (word == "type" && indent > 0) {
                continue;
            }
            if role == Role::Function && (test_next || named_test) {
                role = Role::Test;
            }
            test_next = false;
            match role {
                Role::Type => outline.types += 1,
                Role::Holder => {}
                Role::Function => outline.functions += 1,
                Role::Test => {
                    outline.functions += 1;
                    outline.tests += 1;
                }
            }
            if outline.symbols.len() < KEPT {
                outline.symbols.push(Symbol { word, name, role, line: number, indent });
            }
        }
        outline
    }

    fn statement(&mut self, line: &str) {
        for word in STATEMENTS {
            let begins = line.get(..word.len()).is_some_and(|front| front.eq_ignore_ascii_case(word));
            if begins && line.as_bytes().get(word.len()) == Some(&b' ') {
                *self.statements.entry(word).or_default() += 1;
            }
        }
    }
}

/// The source without blank lines, imports, attributes and lines of nothing but brackets; then with fewer and fewer lines
/// behind each that declares something (one that is not indented, or a function, a type or a constant within it), and in the
/// end without comments. Of these the ones of at most `limit` bytes, and the last.
pub(super) fn shorter(language: Language, text: &str, limit: usize) -> Vec<String> {
    let mut lines = text.lines().filter(|line| !line.trim().is_empty()).peekable();
    // Each line that is left with its distance from the last that declares something.
    let mut kept: Vec<(usize, &str)> = Vec::new();
    let (mut is_begun, mut behind) = (false, 0);
    while let Some(whole) = lines.next() {
        let line = whole.trim_start();
        let is_last = lines.peek().is_none();
        let is_bare = !line.contains(char::is_alphanumeric);
        let is_attribute = language == Language::Rust && line.starts_with("#[");
        let is_comment = is_comment(language, line);
        is_begun |= !is_comment;
        let is_left = is_bare || is_attribute || import(language, line).is_some();
        if is_left && !kept.is_empty() && !is_last {
            continue;
        }
        let indent = whole.len() - line.len();
        let is_declared = kept.is_empty()
            || is_last
            || (indent == 0 && is_begun && !is_comment)
            || declaration(language, line, indent).is_some()
            || constant(language, whole, false).is_some();
        let distance = match (is_declared, is_comment) {
            (true, _) => 0,
            // It says why, wherever it stands.
            (false, true) => 1,
            (false, false) => behind + 1,
        };
        behind = if is_comment { behind } else { distance };
        kept.push((distance, whole));
    }
    let form = |most: &usize| {
        let shown = kept.iter().filter(|(distance, _)| distance <= most);
        let is_small = *most == 0 || shown.clone().map(|(_, line)| line.len() + 1).sum::<usize>() <= limit;
        is_small.then(|| shown.flat_map(|(_, line)| [*line, "\n"]).collect())
    };
    LINES_BEHIND.iter().filter_map(form).collect()
}

/// Describes source code.
pub(super) fn pieces(language: Language, text: &str) -> Vec<Piece> {
    let outline = Outline::read(language, text);
    let tally = Tally::of(text);
    let mut pieces = vec![shape(language, &outline, &tally)];
    pieces.extend(tally.ends());
    pieces.extend(imports(&outline));
    pieces.extend(constants(&outline));
    pieces.extend(types(&outline.symbols));
    pieces.extend(functions(&outline));
    pieces.extend(samples(text, &tally));
    pieces
}

fn shape(language: Language, outline: &Outline, tally: &Tally) -> Piece {
    let mut said = vec![
        counted(tally.lines, "line"),
        counted(outline.functions, "function"),
        counted(outline.types, "type"),
        counted(outline.imports, "import"),
    ];
    if outline.tests > 0 {
        said.push(counted(outline.tests, "test"));
    }
    for word in STATEMENTS {
        if let Some(count) = outline.statements.get(word) {
            said.push(format!("{count} {word}"));
        }
    }
    let short = format!("{} code: {}", language.name(), said.join(", "));
    let long = format!("{short}, {} not blank, {}", tally.filled, counted(outline.comments, "comment line"));
    Piece::line(rank::SHAPE_PLACE, rank::SHAPE, short).or(rank::SECOND_OUTLINE, long)
}

fn imports(outline: &Outline) -> Option<Piece> {
    let entries: Vec<String> = outline.roots.iter().map(|&(root, _)| root.to_owned()).collect();
    let least = (rank::SECOND_OUTLINE, 3);
    (!entries.is_empty())
        .then(|| Piece::list(rank::LEAF_PLACE, "imports: ", entries, ", ", least, rank::SECOND_OUTLINE + 1))
}

/// The constants with their values.
fn constants(outline: &Outline) -> Option<Piece> {
    let entries: Vec<String> = outline.constants.iter().map(|(name, value)| format!("{name} = {value}")).collect();
    let order = spread(entries.len());
    (!entries.is_empty()).then(|| {
        let least = (rank::LEAF, 2);
        Piece::grown(rank::LEAF_PLACE, "constants: ", entries, order, ", ", least, rank::RICH_OUTLINE)
    })
}

/// The names of `symbols`, each once, and the order in which they are shown: tests last, since their long names say
/// little about what the code is.
fn names(symbols: &[&Symbol]) -> (Vec<String>, Vec<usize>) {
    let mut known = rustc_hash::FxHashSet::default();
    let once: Vec<&&Symbol> = symbols.iter().filter(|symbol| known.insert(symbol.name)).collect();
    let lengths: Vec<usize> = once.iter().map(|symbol| symbol.name.len()).collect();
    let mut order = shorter_first(&lengths);
    order.sort_by_key(|&at| once.get(at).is_some_and(|symbol| symbol.role == Role::Test));
    (once.into_iter().map(|symbol| symbol.name.to_owned()).collect(), order)
}

/// The types with their lines.
fn types(symbols: &[Symbol]) -> Option<Piece> {
    let types: Vec<&Symbol> = symbols.iter().filter(|symbol| symbol.role == Role::Type).collect();
    if types.is_empty() {
        return None;
    }
    let rich: Vec<String> =
        types.iter().map(|symbol| format!("{} {} {}", symbol.word, symbol.name, symbol.line)).collect();
    let (names, order) = names(&types);
    let least = (rank::OUTLINE, 3);
    let piece = Piece::grown(rank::OUTLINE_PLACE, "types: ", names, order, " ", least, rank::WHOLE_OUTLINE);
    Some(piece.or(rank::RICH_OUTLINE, format!("types (line): {}", rich.join(", "))))
}

/// The functions: names alone, or if all fit with their holders and lines.
fn functions(outline: &Outline) -> Option<Piece> {
    let functions: Vec<&Symbol> =
        outline.symbols.iter().filter(|symbol| matches!(symbol.role, Role::Function | Role::Test)).collect();
    if functions.is_empty() {
        return None;
    }
    let (names, order) = names(&functions);
    let least = (rank::OUTLINE, 6);
    let piece = Piece::grown(rank::OUTLINE_PLACE, "functions: ", names, order, " ", least, rank::WHOLE_OUTLINE);
    let mut rich = String::from("functions (line):");
    let mut holder: Option<&Symbol> = None;
    let mut first = true;
    for symbol in &outline.symbols {
        match symbol.role {
            Role::Holder | Role::Type if symbol.role == Role::Holder || symbol.word == "class" => {
                holder = Some(symbol);
                first = true;
            }
            Role::Function | Role::Test => {
                let inside = holder.filter(|holder| symbol.indent > holder.indent);
                match inside {
                    Some(holder) if first => {
                        rich.push_str(&format!("\n{} {}: ", holder.word, holder.name));
                        first = false;
                    }
                    None if holder.is_some() || rich.ends_with(':') => {
                        rich.push('\n');
                        holder = None;
                    }
                    _ => rich.push_str(", "),
                }
                rich.push_str(&format!("{} {}", symbol.name, symbol.line));
            }
            _ => {}
        }
    }
    Some(piece.or(rank::RICH_OUTLINE, rich))
}

#[cfg(test)]
mod tests {
    use super::super::told;
    use super::*;

    #[test]
    fn less_and_less_of_a_source() {
        let text = "//! What it is.\n//! And more.\nuse std::fs;\n\n// A note.\n#[derive(Debug)]\npub struct A {\n    x: u8,\n}\nconst N: u8 = 3;\nimpl A {\n    fn f(&self) -> u8 {\n        let y = self.x;\n        y + N\n    }\n}\n";
        let forms = shorter(Language::Rust, text, 1_000);
        assert_eq!(
            forms[0],
            "//! What it is.\n//! And more.\n// A note.\npub struct A {\n    x: u8,\nconst N: u8 = 3;\nimpl A {\n    fn f(&self) -> u8 {\n        let y = self.x;\n        y + N\n}\n"
        );
        assert_eq!(
            forms[LINES_BEHIND.len() - 2],
            "//! What it is.\n//! And more.\n// A note.\npub struct A {\n    x: u8,\nconst N: u8 = 3;\nimpl A {\n    fn f(&self) -> u8 {\n        let y = self.x;\n}\n"
        );
        assert_eq!(
            forms[LINES_BEHIND.len() - 1],
            "//! What it is.\npub struct A {\nconst N: u8 = 3;\nimpl A {\n    fn f(&self) -> u8 {\n}\n"
        );
    }

    #[test]
    fn declarations_of_each_language() {
        let cases: [(Language, &str, usize, Option<&str>); 40] = [
            (Language::Rust, "pub(crate) async fn connect<T>(x: T) {", 0, Some("connect")),
            (Language::Rust, "pub struct Client<'a> {", 0, Some("Client")),
            (Language::Rust, "impl<T: Fn() -> u8> Trait for Client<T> {", 0, Some("Trait for Client<T>")),
            (Language::Rust, "macro_rules! card {", 0, Some("card")),
            (Language::Rust, "const LIMIT: usize = 3;", 0, None),
            (Language::Rust, "let function = 3;", 4, None),
            (Language::Python, "async def run(self):", 4, Some("run")),
            (Language::Python, "class Reader(Base):", 0, Some("Reader")),
            (Language::Python, "class of its own", 0, None),
            (Language::JavaScript, "export default async function load(x) {", 0, Some("load")),
            (Language::JavaScript, "export const load = async (x) => {", 0, Some("load")),
            (Language::JavaScript, "const value = compute(x);", 0, None),
            (Language::JavaScript, "render(props) {", 2, Some("render")),
            (Language::JavaScript, "if (props) {", 2, None),
            (Language::JavaScript, "export interface Options {", 0, Some("Options")),
            (Language::JavaScript, "type Id = string;", 0, Some("Id")),
            (Language::Go, "func (r *Reader) Read(p []byte) (int, error) {", 0, Some("Read")),
            (Language::Go, "func New() *Reader {", 0, Some("New")),
            (Language::Go, "type Reader struct {", 0, Some("Reader")),
            (Language::Java, "public final class Service extends Base {", 0, Some("Service")),
            (Language::Java, "private static List<String> names(int a) {", 4, Some("names")),
            (Language::Java, "Service(int port) {", 4, Some("Service")),
            (Language::Java, "return names(a);", 8, None),
            (Language::Java, "foo.bar(a);", 8, None),
            (Language::C, "static int parse(const char *text)", 0, Some("parse")),
            (Language::C, "int parse(const char *text);", 0, Some("parse")),
            (Language::C, "parse(text);", 4, None),
            (Language::C, "void Reader::read(int n) {", 0, Some("Reader::read")),
            (Language::C, "while (x) {", 4, None),
            (Language::C, "struct node {", 0, Some("node")),
            (Language::C, "struct node *next;", 4, None),
            (Language::Shell, "build() {", 0, Some("build")),
            (Language::Shell, "function build {", 0, Some("build")),
            (Language::Sql, "CREATE TABLE IF NOT EXISTS orders (", 0, Some("orders")),
            (Language::Sql, "create unique index by_day on orders (day);", 0, Some("by_day")),
            (Language::Sql, "select * from orders", 0, None),
            (Language::Ruby, "def self.load(path)", 2, Some("load")),
            (Language::Ruby, "module Tools", 0, Some("Tools")),
            (Language::Php, "public function load($path)", 4, Some("load")),
            (Language::Php, "$this->load($path);", 8, None),
        ];
        for (language, line, indent, expected) in cases {
            let found = declaration(language, line, indent).map(|(_, name, _)| name);
            assert_eq!(found, expected, "{language:?}: {line}");
        }
    }

    const RUST: &str = "//! Reads things.\n\nuse std::io;\nuse serde::Serialize;\n\npub struct Reader {\n    line: usize,\n}\n\nimpl Reader {\n    pub fn new() -> Self {\n        Self { line: 0 }\n    }\n\n    fn read(&mut self) {\n        self.line += 1;\n    }\n}\n\nfn main() {\n    Reader::new();\n}\n\n#[test]\nfn reads() {\n    assert!(true);\n}\n";

    #[test]
    fn functions_stand_under_their_types_with_their_lines() {
        insta::assert_snapshot!(told(RUST, 300), @r"
        [Code(Rust)]
        Rust code: 27 lines, 4 functions, 1 type, 2 imports, 1 test, 21 not blank, 1 comment line
        first line: //! Reads things.
        imports: std, serde
        types (line): struct Reader 5
        functions (line):
        impl Reader: new 10, read 14
        main 19, reads 24
        some lines:
        0: //! Reads things.
        2: use std::io;
        3: use serde::Serialize;
        5: pub struct Reader {
        6: line: usize,
        7: }
        9: impl Reader {
        10: pub fn new() -> Self {
        11: Self { line: 0 }
        12: }
        14: fn read(&mut self) {
        15: self.line += 1;
        16: }
        17: }
        19: fn main() {
        20: Reader::new();
        21: }
        23: #[test]
        24: fn reads() {
        25: assert!(true);
        26: }
        last lines: assert!(true); }
        ");
    }

    #[test]
    fn many_functions_are_names_only() {
        let text: String = (0..200).map(|n| format!("def step_{n}(x):\n    return self.step(x)\n\n")).collect();
        insta::assert_snapshot!(told(&text, 120), @r"
        [Code(Python)]
        Python code: 600 lines, 200 functions, 0 types, 0 imports
        first line: def step_0(x):
        functions: step_0 step_6 step_12 step_18 step_24 step_30 step_36 step_42 step_49 step_55 step_61 step_67 step_74 step_80 step_86 step_92 step_99 step_111 step_124 step_136 step_149 step_161 step_174 step_186 step_199 … +175
        last line:     return self.step(x)
        ");
    }
}
