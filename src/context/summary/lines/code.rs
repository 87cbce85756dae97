//! Source code: its types and functions are the outline, read off the first words of lines.
//!
//! Nothing is parsed: a declaration is a line that begins with modifiers, a keyword and a name, or (in the C family)
//! that looks like the head of a function. A line inside a string can look like that too; that is accepted.

use rustc_hash::FxHashMap;

use crate::context::brief::{Piece, spread};

use super::excerpt::{Tally, counted, samples};
use super::rank;

/// Symbols that are kept.
const KEPT: usize = 6000;

/// A programming language, as far as declarations look different.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Language {
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

    /// Beginnings of lines that speak for the language.
    fn starts(self) -> &'static [&'static str] {
        match self {
            Self::Rust => &[
                "fn ",
                "pub ",
                "pub(",
                "let ",
                "impl",
                "use ",
                "mod ",
                "#[",
                "#![",
                "match ",
                "///",
                "//!",
                "struct ",
                "enum ",
                "trait ",
                "async fn ",
                "unsafe ",
                "where",
                "Some(",
                "Ok(",
                "None",
                "Self",
                "assert!",
                "assert_eq!",
                "extern crate ",
                "macro_rules!",
                "} else {",
                "if let ",
                "loop {",
                "&self",
                "const ",
            ],
            Self::Python => &[
                "def ",
                "class ",
                "import ",
                "from ",
                "elif ",
                "except",
                "self.",
                "@",
                "with ",
                "async def ",
                "raise ",
                "yield ",
                "return ",
                "try:",
                "else:",
                "finally:",
                "\"\"\"",
                "if __name__",
                "pass",
                "print(",
                "not ",
                "assert ",
                "lambda ",
                "for ",
                "if ",
                "while ",
                "# ",
            ],
            Self::JavaScript => &[
                "const ",
                "let ",
                "var ",
                "function ",
                "export ",
                "import ",
                "async function",
                "return ",
                "}, ",
                "});",
                "module.exports",
                "require(",
                "await ",
                "this.",
                "=>",
                "interface ",
                "type ",
                "class ",
                "if (",
                "} else",
                "console.",
                "'use strict'",
                "\"use strict\"",
                "describe(",
                "it(",
                "expect(",
                "//",
                "/**",
                "* ",
                "throw ",
            ],
            Self::Go => &[
                "func ",
                "package ",
                "import (",
                "type ",
                "if err != nil",
                "return ",
                "defer ",
                "go func",
                "var ",
                "case ",
                "for ",
                "//",
                "switch ",
                "} else {",
                "select {",
                "fmt.",
                "const (",
                "chan ",
            ],
            Self::Java => &[
                "public ",
                "private ",
                "protected ",
                "package ",
                "import ",
                "@",
                "class ",
                "interface ",
                "return ",
                "if (",
                "for (",
                "throw ",
                "try {",
                "} catch",
                "} else",
                "this.",
                "final ",
                "static ",
                "abstract ",
                "/**",
                "* ",
                "//",
                "using ",
                "namespace ",
                "override ",
                "fun ",
                "val ",
                "var ",
                "internal ",
                "case ",
            ],
            Self::C => &[
                "#include",
                "#define",
                "#if",
                "#endif",
                "#else",
                "static ",
                "void ",
                "int ",
                "char ",
                "struct ",
                "typedef ",
                "return ",
                "if (",
                "for (",
                "while (",
                "const ",
                "unsigned ",
                "template",
                "namespace ",
                "std::",
                "class ",
                "public:",
                "private:",
                "using ",
                "extern ",
                "/*",
                "* ",
                "*/",
                "//",
                "} else",
                "case ",
                "break;",
                "goto ",
                "enum ",
                "size_t ",
                "bool ",
                "auto ",
                "else",
                "double ",
                "float ",
                "uint",
            ],
            Self::Shell => &[
                "#!",
                "echo ",
                "if [",
                "fi",
                "then",
                "done",
                "for ",
                "do",
                "export ",
                "set -",
                "esac",
                "case ",
                "local ",
                "cd ",
                "function ",
                "exit ",
                "while ",
                "elif [",
                "else",
                "sudo ",
                "grep ",
                "source ",
                "#",
                "$",
                "mkdir ",
                "printf ",
                "return ",
                "shift",
                ";;",
                "curl ",
                "cp ",
                "rm ",
            ],
            Self::Sql => &[
                "select ",
                "insert ",
                "create ",
                "from ",
                "where ",
                "alter ",
                "drop ",
                "update ",
                "delete ",
                "join ",
                "left join",
                "group by",
                "order by",
                "--",
                "values",
                "begin",
                "commit",
                "union",
                "with ",
                "primary key",
                "foreign key",
                "cast(",
                "as ",
                "grant ",
                "case",
                "when ",
                "end",
                "/*",
                "*/",
                "* ",
                "union",
                "constraint ",
                "references ",
                "(",
                ")",
                "inner join",
                "on ",
                "and ",
                "or ",
                "set ",
            ],
            Self::Ruby => &[
                "def ",
                "end",
                "class ",
                "module ",
                "require ",
                "attr_",
                "puts ",
                "if ",
                "unless ",
                "include ",
                "@",
                "return ",
                "do ",
                "it ",
                "describe ",
                "context ",
                "expect(",
                "elsif ",
                "rescue",
                "# ",
                "let(",
                "before",
            ],
            Self::Php => &[
                "<?php",
                "$",
                "function ",
                "public ",
                "private ",
                "protected ",
                "namespace ",
                "use ",
                "class ",
                "return ",
                "if (",
                "foreach (",
                "echo ",
                "} else",
                "/**",
                "* ",
                "//",
                "require",
            ],
            Self::Css => &["@media", "@import", "@font-face", ".", "#", "--", "}", "/*", ":root", "body", "html"],
        }
    }

    /// Beginnings of lines that hardly occur outside the language.
    fn signs(self) -> &'static [&'static str] {
        match self {
            Self::Rust => &[
                "fn ",
                "pub fn ",
                "impl",
                "use crate",
                "use std",
                "#[derive",
                "let mut ",
                "pub struct ",
                "//!",
                "pub(",
                "pub ",
                "pub mod ",
                "#[",
                "match ",
                "assert_eq!(",
                "///",
            ],
            Self::Python => &[
                "def ",
                "elif ",
                "except ",
                "self.",
                "async def ",
                "from ",
                "if __name__",
                "try:",
                "else:",
                "import ",
                "raise ",
                "\"\"\"",
                "except:",
            ],
            Self::JavaScript => &[
                "const ",
                "let ",
                "function ",
                "export ",
                "});",
                "module.exports",
                "await ",
                "=>",
                "console.",
                "var ",
                "interface ",
                "describe(",
                "expect(",
                "import {",
            ],
            Self::Go => &["func ", "package ", "if err != nil", "defer ", "import (", "fmt.", "go func"],
            Self::Java => &[
                "public ",
                "private ",
                "protected ",
                "@Override",
                "import java",
                "package ",
                "} catch",
                "using System",
                "override ",
                "fun ",
                "internal ",
                "val ",
            ],
            Self::C => &[
                "#include",
                "#define",
                "#if",
                "#endif",
                "typedef ",
                "static ",
                "void ",
                "template",
                "namespace ",
                "std::",
                "unsigned ",
                "size_t ",
                "public:",
                "private:",
                "int ",
                "char ",
                "struct ",
                "uint",
            ],
            Self::Shell => &[
                "#!", "fi", "done", "then", "esac", "if [", "echo ", "set -", "local ", "export ", "elif [", ";;",
                "sudo ",
            ],
            Self::Sql => &[
                "select ",
                "insert into",
                "create table",
                "create index",
                "from ",
                "where ",
                "group by",
                "order by",
                "left join",
                "alter table",
                "drop table",
                "values",
                "join ",
                "primary key",
            ],
            Self::Ruby => {
                &["end", "def ", "require '", "attr_", "module ", "puts ", "elsif ", "unless ", "rescue", "describe "]
            }
            Self::Php => &["<?php", "$", "foreach (", "public function", "private function", "protected function"],
            Self::Css => &["@media", "@import", "@font-face", ":root", "--", "."],
        }
    }
}

/// A guess at the language of sample lines, and the share of the lines that look like it (0 to 1).
pub fn language(lines: &[&str]) -> (Language, f64) {
    let mut best = (Language::C, 0.0, 0.0);
    for language in Language::ALL {
        let mut starts = 0usize;
        let mut signs = 0usize;
        for line in lines {
            let line = line.trim_start();
            let has = |list: &[&str]| {
                list.iter().any(|start| match language {
                    Language::Sql => line.get(..start.len()).is_some_and(|front| front.eq_ignore_ascii_case(start)),
                    Language::Shell if start.bytes().all(|byte| byte.is_ascii_lowercase()) => {
                        line.split([' ', ';']).next() == Some(start)
                    }
                    Language::Ruby if *start == "end" => line.trim_end() == "end",
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
    /// An `impl` block or a namespace: holds functions, is no type of its own.
    Holder,
    Function,
    Test,
}

#[derive(Debug)]
struct Symbol<'a> {
    /// `fn`, `class` … as written.
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
    /// First parts of imported paths with how often, in order of appearance.
    roots: Vec<(&'a str, usize)>,
    statements: FxHashMap<&'static str, usize>,
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

/// Words before an opening bracket that are no function names.
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
        // `pub(crate)`, `extern "C"`.
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
    if !after.starts_with([' ', '\t']) && !(word == "func" && after.starts_with('(')) {
        return None;
    }
    if word == "func" && next.starts_with('(') {
        // A method: `func (r *Reader) Read(`, written with its receiver's type.
        let (_, method) = next.split_once(") ")?;
        let name = identifier(method);
        return (!name.is_empty()).then_some((name, role));
    }
    if matches!(word, "struct" | "enum" | "union") && language == Language::C {
        // `struct x *f(` and `struct x y;` declare no type.
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

/// What follows a balanced `<…>` at the start of `text`.
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

/// `const name = (…) =>`, `name = async function`, and methods `name(…) {`.
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

/// `CREATE [OR REPLACE] TABLE|VIEW|INDEX|FUNCTION … [IF NOT EXISTS] name`.
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

/// What an import names first: the crate, package or header.
fn import<'a>(language: Language, line: &'a str) -> Option<&'a str> {
    let path = match language {
        Language::Rust => line.strip_prefix("pub ").unwrap_or(line).strip_prefix("use ")?,
        Language::Python => line.strip_prefix("import ").or_else(|| line.strip_prefix("from "))?,
        Language::C => line.strip_prefix("#include")?.trim().trim_matches(['<', '>', '"']),
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
            let Some((word, name, mut role)) = declaration(language, line, indent) else { continue };
            let named_test = match language {
                Language::Python => name.starts_with("test_"),
                Language::Go => name.starts_with("Test") || name.starts_with("Benchmark"),
                _ => false,
            };
            // Parameters of macros and associated types are no names of their own.
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
                outline.symbols.push(Symbol { word, name, role, line: number + 1, indent });
            }
        }
        outline
    }

    fn statement(&mut self, line: &str) {
        for word in ["select", "insert", "update", "delete", "alter", "drop"] {
            if line
                .get(..word.len() + 1)
                .is_some_and(|front| front[..word.len()].eq_ignore_ascii_case(word) && front.ends_with(' '))
            {
                *self.statements.entry(word).or_default() += 1;
            }
        }
    }
}

/// What source code says.
pub fn pieces(language: Language, text: &str) -> Vec<Piece> {
    let outline = Outline::read(language, text);
    let tally = Tally::of(text);
    let mut pieces = vec![shape(language, &outline, &tally)];
    pieces.extend(tally.ends());
    pieces.extend(imports(&outline));
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
    for word in ["select", "insert", "update", "delete", "alter", "drop"] {
        if let Some(count) = outline.statements.get(word) {
            said.push(format!("{count} {word}"));
        }
    }
    let short = format!("{} code: {}", language.name(), said.join(", "));
    let long = format!("{short}, {} not blank, {}", tally.filled, counted(outline.comments, "comment line"));
    Piece::line(rank::SHAPE_PLACE, rank::SHAPE, short).or(rank::MORE_STAT, long)
}

fn imports(outline: &Outline) -> Option<Piece> {
    let entries: Vec<String> = outline.roots.iter().map(|&(root, _)| root.to_owned()).collect();
    let least = (rank::SECOND_OUTLINE, 3);
    (!entries.is_empty())
        .then(|| Piece::list(rank::LEAF_PLACE, "imports: ", entries, ", ", least, rank::SECOND_OUTLINE + 1))
}

/// Types with their lines.
fn types(symbols: &[Symbol]) -> Option<Piece> {
    let types: Vec<&Symbol> = symbols.iter().filter(|symbol| symbol.role == Role::Type).collect();
    if types.is_empty() {
        return None;
    }
    let short = types.iter().map(|symbol| symbol.name.to_owned()).collect();
    let rich: Vec<String> =
        types.iter().map(|symbol| format!("{} {} {}", symbol.word, symbol.name, symbol.line)).collect();
    let piece = Piece::grown(
        rank::OUTLINE_PLACE,
        "types: ",
        short,
        spread(types.len()),
        ", ",
        (rank::OUTLINE, 3),
        rank::WHOLE_OUTLINE,
    );
    Some(piece.or(rank::RICH_OUTLINE, format!("types (line): {}", rich.join(", "))))
}

/// Functions: names alone, or if all fit with their holders and lines.
fn functions(outline: &Outline) -> Option<Piece> {
    let functions: Vec<&Symbol> =
        outline.symbols.iter().filter(|symbol| matches!(symbol.role, Role::Function | Role::Test)).collect();
    if functions.is_empty() {
        return None;
    }
    // A name that recurs (`new`, `fmt`) stands once.
    let mut names: Vec<(&str, usize)> = Vec::new();
    let mut at = FxHashMap::default();
    for symbol in &functions {
        let index = *at.entry(symbol.name).or_insert_with(|| {
            names.push((symbol.name, 0));
            names.len() - 1
        });
        names[index].1 += 1;
    }
    let entries = names
        .iter()
        .map(|&(name, times)| if times > 1 { format!("{name} ×{times}") } else { name.to_owned() })
        .collect();
    let mut order = spread(names.len());
    order.sort_by_key(|&index| std::cmp::Reverse(names[index].1));
    let piece =
        Piece::grown(rank::OUTLINE_PLACE, "functions: ", entries, order, ", ", (rank::OUTLINE, 6), rank::WHOLE_OUTLINE);
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
