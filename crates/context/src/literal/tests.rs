use proptest::prelude::*;
use serde_json::Value as Json;

use super::*;

/// As a value of serde, through the accessors.
fn to_json(value: Value<'_>) -> Json {
    match value.kind() {
        Kind::Object => {
            Json::Object(value.members().map(|(key, value)| (key.plain().into_owned(), to_json(value))).collect())
        }
        Kind::Array => Json::Array(value.items().map(to_json).collect()),
        Kind::String => Json::String(value.string().unwrap().into_owned()),
        Kind::Number => serde_json::from_str(value.text()).unwrap(),
        Kind::Bool => Json::Bool(value.is_text("true") || value.is_text("True")),
        Kind::Null => Json::Null,
        Kind::Call => panic!("{}", value.text()),
    }
}

fn minified(text: &str) -> String {
    let document = Document::parse_any(text).unwrap_or_else(|error| panic!("{text}: {error}"));
    document.root().minified(usize::MAX).unwrap()
}

#[test]
fn python_is_read_and_written_as_json() {
    let cases = [
        ("[{'a': 1, 'b': None, 'c': True}]", r#"[{"a":1,"b":null,"c":true}]"#),
        (r#"('it\'s', "a \"b\"", 'say "x"')"#, r#"["it's","a \"b\"","say \"x\""]"#),
        (r"['\x41\u00e9\n', b'\x00\xff', u'x', r'a\n']", "[\"A\u{e9}\\n\",\"\\u0000\u{ff}\",\"x\",\"a\\\\n\"]"),
        ("{1, 2, 3}", "[1,2,3]"),
        ("{}", "{}"),
        ("{1: 'x', (1, 2): [()], None: {}}", r#"{"1":"x","(1, 2)":[[]],"None":{}}"#),
        ("[1, -2.5e-05, nan, -inf, Decimal('12.50'),]", r#"[1,-2.5e-05,"nan","-inf",12.50]"#),
        ("[datetime.date(2024, 5, 1), <Color.RED: 1>]", r#"["datetime.date(2024, 5, 1)","<Color.RED: 1>"]"#),
        ("{\"a\": NaN, \"b\": [1, 2]}", r#"{"a":"NaN","b":[1,2]}"#),
        (r#" {"a" : "\u00e9\ud83d\ude00" , "b":1.0 } "#, "{\"a\":\"\u{e9}\u{1f600}\",\"b\":1.0}"),
        (r#"["\ud83d x", "\/"]"#, r#"["\ud83d x","\/"]"#),
    ];
    for (text, expected) in cases {
        assert_eq!(minified(text), expected, "{text}");
    }
}

#[test]
fn errors_name_the_place_and_what_is_wrong() {
    let cases = [
        "",
        "{",
        "[1,\n 2,\n x]",
        "[1 2]",
        "{\"a\" 1}",
        "{'a': }",
        "\"abc",
        "[01]",
        "[1] 2",
        "{1}",
        "[\"\\x\"]",
        "-",
        "[1,]",
    ];
    let shown: Vec<String> = cases
        .iter()
        .map(|text| {
            format!(
                "{text:?}: {}",
                Document::parse(text, Dialect::Json).err().map_or_else(String::new, |e| e.to_string())
            )
        })
        .collect();
    insta::assert_snapshot!(shown.join("\n"), @r#"
    "": no literal: expected a value at byte 0 (line 1)
    "{": no literal: expected a key in double quotes at byte 1 (line 1)
    "[1,\n 2,\n x]": no literal: expected a value at byte 9 (line 3)
    "[1 2]": no literal: expected `,` or `]` at byte 3 (line 1)
    "{\"a\" 1}": no literal: expected `:` at byte 5 (line 1)
    "{'a': }": no literal: expected a key in double quotes at byte 1 (line 1)
    "\"abc": no literal: the string is not closed at byte 0 (line 1)
    "[01]": no literal: expected a number at byte 1 (line 1)
    "[1] 2": no literal: expected the end of the text at byte 4 (line 1)
    "{1}": no literal: expected a key in double quotes at byte 1 (line 1)
    "[\"\\x\"]": no literal: unknown escape in a string at byte 2 (line 1)
    "-": no literal: expected a number at byte 0 (line 1)
    "[1,]": no literal: expected a value at byte 3 (line 1)
    "#);
    let deep = "[".repeat(100_000);
    for dialect in [Dialect::Json, Dialect::Python] {
        assert_eq!(Document::parse(&deep, dialect).unwrap_err().problem, Problem::TooDeep);
        let fits = format!("{}{}", "[".repeat(MAX_DEPTH), "]".repeat(MAX_DEPTH));
        assert!(Document::parse(&fits, dialect).unwrap().root().same(Document::parse(&fits, dialect).unwrap().root()));
    }
}

#[test]
fn values_are_found_by_key_and_index_with_their_text() {
    let document = Document::parse_any(r#"{"rows": [{"id": 1.50, "n": "\u0061"}, []], "id": 1, "id": 2}"#).unwrap();
    let root = document.root();
    let row = root.get("rows").unwrap().at(0).unwrap();
    assert_eq!(row.text(), r#"{"id": 1.50, "n": "\u0061"}"#);
    assert_eq!(row.get("id").unwrap().text(), "1.50");
    assert_eq!(row.get("n").unwrap().string().unwrap(), "a");
    assert_eq!(root.get("id").unwrap().text(), "2");
    assert_eq!((root.len(), root.get("rows").unwrap().len(), root.get("nothing").is_none()), (3, 2, true));
    assert!(root.at(0).is_none() && row.get("id").unwrap().get("x").is_none());
}

#[test]
fn sequences_prefixes_and_broken_texts_are_read() {
    let lines = Document::sequence("{\"a\":1}\n{\"a\":2}\n", Dialect::Json).unwrap();
    assert_eq!(lines.root().minified(99).unwrap(), r#"[{"a":1},{"a":2}]"#);
    assert!(Document::sequence("1 2", Dialect::Json).is_err());
    let (document, end) = Document::prefix(" [1, 2] and more", Dialect::Json).unwrap();
    assert_eq!((document.root().text(), end), ("[1, 2]", 7));
    let cases = [
        (r#"{"a": [1, 2, {"b": 3, "c"#, r#"{"a":[1,2,{"b":3}]}"#),
        (r#"{"a": [1, 2], "b": "unfin"#, r#"{"a":[1,2]}"#),
        ("[{'a': 1}, {'a': <", r#"[{"a":1},{}]"#),
        ("[[1], x", "[[1]]"),
    ];
    for (text, expected) in cases {
        let (document, error) = Document::partial(text, Dialect::Python).unwrap();
        assert_eq!(document.root().minified(99).unwrap(), expected, "{text}");
        assert!(error.is_some());
    }
    assert!(Document::partial("nothing", Dialect::Python).is_none());
}

#[test]
fn the_same_values_are_the_same_in_every_notation() {
    let same = [
        ("{\"a\": 1, \"b\": [1.0, 100]}", "{'b': [1, 1e2], 'a': 1.00}"),
        ("[\"\\u0041\", null, true]", "('A', None, True)"),
        ("[0.1, 1e-7, -0]", "[1e-1, 0.0000001, 0]"),
    ];
    let differ = [
        ("[1]", "[2]"),
        ("[1]", "[\"1\"]"),
        ("{\"a\":1}", "{\"b\":1}"),
        ("[1,2]", "[2,1]"),
        ("[]", "{}"),
        ("[1]", "[1,1]"),
    ];
    for ((one, other), expected) in same.iter().map(|pair| (pair, true)).chain(differ.iter().map(|pair| (pair, false)))
    {
        let (one, other) = (Document::parse_any(one).unwrap(), Document::parse_any(other).unwrap());
        assert_eq!(one.root().same(other.root()), expected, "{} {}", one.source(), other.source());
    }
}

#[test]
fn decimals_add_and_compare_exactly() {
    let decimal = |text: &str| Decimal::parse(text).unwrap();
    let mut sum = Sum::default();
    for text in ["0.1", "0.2", "-1e-05", "1e3", "12345678901234567890"] {
        sum.add(decimal(text));
    }
    assert_eq!(sum.total().unwrap().to_string(), "12345678901234568890.29999");
    sum.add(decimal("1e60"));
    assert_eq!(sum.total(), None);
    let mut sorted = ["2", "-3", "1e50", "0.5", "-1e-60", "1.25e0", "0", "1e-9"].map(decimal);
    sorted.sort();
    assert_eq!(sorted.map(|one| one.to_string()).join(" "), "-3 -1e-60 0 0.000000001 0.5 1.25 2 1e50");
    assert_eq!(decimal("10e40"), decimal("1e41"));
    for wrong in [
        "",
        "-",
        "nan",
        "1e",
        "1.2.3",
        "1e99999",
        "1e-2147483648",
        "123456789012345678901234567890123456789",
        "170141183460469231731687303715884105728",
        "x",
        "e5",
        ".",
    ] {
        assert_eq!(Decimal::parse(wrong), None, "{wrong}");
    }
    for digits in 1..=200 {
        let nines = "9".repeat(digits);
        let parsed = Decimal::parse(&nines).map(|number| number.to_string());
        assert_eq!(parsed, (digits <= 38).then_some(nines));
    }
}

fn json() -> impl Strategy<Value = Json> {
    let leaf = prop_oneof![
        Just(Json::Null),
        any::<bool>().prop_map(Json::from),
        any::<i64>().prop_map(Json::from),
        any::<f64>().prop_map(Json::from),
        "\\PC{0,8}".prop_map(Json::from),
        "[\\x00-\\x7f\"\\\\]{0,6}".prop_map(Json::from),
    ];
    leaf.prop_recursive(5, 40, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Json::from),
            prop::collection::btree_map("[a-c\"\\\\\u{e9}]{0,3}", inner, 0..6)
                .prop_map(|members| Json::Object(members.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn json_is_read_as_serde_reads_it(value in json(), pretty in any::<bool>()) {
        let text = if pretty { serde_json::to_string_pretty(&value) } else { serde_json::to_string(&value) }.unwrap();
        let document = Document::parse(&text, Dialect::Json).unwrap();
        prop_assert_eq!(&to_json(document.root()), &value);
        prop_assert_eq!(document.root().text(), text.trim());
        prop_assert_eq!(document.root().minified(usize::MAX).unwrap(), serde_json::to_string(&value).unwrap());
        let python = Document::parse(&text, Dialect::Python).unwrap();
        prop_assert!(python.root().same(document.root()));
    }

    #[test]
    fn texts_are_refused_when_serde_refuses_them(text in "[\\[\\]{},:\"\\\\ntrue0-9.eE+ -]{0,12}") {
        let ours = Document::parse(&text, Dialect::Json);
        // Numbers beyond the range of a double are literals here.
        if !text.contains(['e', 'E']) {
            prop_assert_eq!(ours.is_ok(), serde_json::from_str::<Json>(&text).is_ok(), "{}", text);
        }
    }

    #[test]
    fn no_text_is_too_much(text in "([\\[\\]{}()<>,:'\"\\\\ bunN01.e-]|inf|None|Decimal\\(|\\\\ud83d|é){0,30}") {
        for dialect in [Dialect::Json, Dialect::Python] {
            for document in [
                Document::parse(&text, dialect).ok(),
                Document::sequence(&text, dialect).ok(),
                Document::prefix(&text, dialect).ok().map(|(document, _)| document),
                Document::partial(&text, dialect).map(|(document, _)| document),
            ].into_iter().flatten() {
                let json = document.root().minified(usize::MAX).unwrap();
                prop_assert!(serde_json::from_str::<Json>(&json).is_ok() || json.contains("\\u"), "{text} {json}");
                prop_assert!(document.root().same(document.root()));
            }
        }
    }

    #[test]
    fn cut_json_is_read_up_to_the_cut(value in json(), share in 0.0..1.0_f64) {
        let text = serde_json::to_string(&value).unwrap();
        let mut cut = (text.len() as f64 * share) as usize;
        while !text.is_char_boundary(cut) { cut -= 1; }
        if let Some((document, error)) = Document::partial(&text[..cut], Dialect::Json) {
            prop_assert!(document.root().minified(usize::MAX).is_some());
            prop_assert!(error.is_some() || !document.root().is_container());
        }
    }
}
