//! XML as the JSON that it stands for, so that summaries and selectors know its records.
//!
//! The document is an object with one member, its root. An element is an object of its attributes and child elements;
//! those with one name are an array under that name. An element with nothing but text is that text, or a number where
//! JSON writes the number the same way; text beside attributes or child elements is the member `#text`. An element
//! with nothing in it is `null`.
//!
//! Declarations of namespaces, comments, processing instructions and the order of elements with different names are
//! lost: what is shown as written is shown from the XML itself. Web pages, pictures and prose with marks in it are not
//! read, nor is anything that is not well formed. No entities are expanded but those of XML itself.

use quick_xml::Reader;
use quick_xml::XmlVersion;
use quick_xml::events::{BytesRef, BytesStart, Event};
use rustc_hash::FxHashMap;

/// The number of bytes up to which a text is read.
const MAX_BYTES: usize = 32 << 20;
/// The number of elements inside each other.
const MAX_DEPTH: usize = 200;
/// The member with the text of an element that has other members.
const TEXT: &str = "#text";
/// Roots of pages and parts of pages, which are XML only by chance, and of pictures.
const NOT_DATA: [&str; 46] = [
    "a",
    "article",
    "aside",
    "b",
    "blockquote",
    "body",
    "br",
    "button",
    "center",
    "code",
    "dd",
    "details",
    "div",
    "dl",
    "dt",
    "em",
    "figure",
    "font",
    "footer",
    "form",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "head",
    "header",
    "html",
    "i",
    "img",
    "li",
    "main",
    "math",
    "nav",
    "ol",
    "p",
    "pre",
    "script",
    "section",
    "span",
    "strong",
    "style",
    "svg",
    "table",
    "ul",
];

/// The JSON of an XML document that holds data; `None` for any other text.
pub(crate) fn as_json(text: &str) -> Option<String> {
    let text = text.trim_start_matches('\u{feff}').trim_start();
    if !text.starts_with('<') || text.len() > MAX_BYTES {
        return None;
    }
    let tree = Tree::read(text)?;
    // Marks inside sentences.
    if tree.text_beside * 2 > tree.text {
        return None;
    }
    let mut json = String::with_capacity(text.len());
    tree.write(&tree.document, &mut json);
    Some(json)
}

/// The elements of a document.
#[derive(Default)]
struct Tree {
    names: Vec<String>,
    numbers: FxHashMap<String, u32>,
    /// A nameless element around the root.
    document: Element,
    /// The number of bytes of text, and of text beside child elements.
    text: usize,
    text_beside: usize,
}

#[derive(Default)]
struct Element {
    members: Vec<(u32, Member)>,
    text: String,
    /// Whether one of the members is an element.
    is_parent: bool,
}

enum Member {
    Attribute(String),
    Element(Element),
}

impl Tree {
    fn read(text: &str) -> Option<Self> {
        let mut tree = Self::default();
        let mut reader = Reader::from_str(text);
        let mut open: Vec<(u32, Element)> = Vec::new();
        loop {
            match reader.read_event().ok()? {
                Event::Start(tag) => {
                    let element = tree.element(&tag, open.is_empty())?;
                    if open.len() == MAX_DEPTH {
                        return None;
                    }
                    open.push(element);
                }
                Event::Empty(tag) => {
                    let element = tree.element(&tag, open.is_empty())?;
                    tree.close(element, open.last_mut());
                }
                Event::End(_) => {
                    let element = open.pop()?;
                    tree.close(element, open.last_mut());
                }
                Event::Text(found) => add(&mut open, &found.xml10_content().ok()?)?,
                Event::CData(found) => add(&mut open, &found.xml10_content().ok()?)?,
                Event::GeneralRef(found) => add(&mut open, &referred(&found)?)?,
                Event::Eof => break,
                Event::Comment(_) | Event::Decl(_) | Event::PI(_) | Event::DocType(_) => {}
            }
        }
        (open.is_empty() && tree.document.members.len() == 1).then_some(tree)
    }

    /// An element with its attributes; `None` if it is the root and no data is below such a root.
    fn element(&mut self, tag: &BytesStart<'_>, is_root: bool) -> Option<(u32, Element)> {
        let name = std::str::from_utf8(tag.name().into_inner()).ok()?.to_owned();
        if is_root && NOT_DATA.contains(&name.to_lowercase().as_str()) {
            return None;
        }
        let mut element = Element::default();
        // Looking for duplicates would take quadratic time.
        for attribute in tag.attributes().with_checks(false) {
            let attribute = attribute.ok()?;
            let key = std::str::from_utf8(attribute.key.into_inner()).ok()?;
            if key == "xmlns" || key.starts_with("xmlns:") {
                continue;
            }
            let value = attribute.normalized_value(XmlVersion::Implicit1_0).ok()?.into_owned();
            let key = self.number(key);
            element.members.push((key, Member::Attribute(value)));
        }
        Some((self.number(&name), element))
    }

    /// Adds a whole element to the one around it.
    fn close(&mut self, (name, element): (u32, Element), around: Option<&mut (u32, Element)>) {
        let length = element.text.trim().len();
        self.text += length;
        if element.is_parent {
            self.text_beside += length;
        }
        let parent = around.map_or(&mut self.document, |(_, parent)| parent);
        parent.is_parent = true;
        parent.members.push((name, Member::Element(element)));
    }

    fn number(&mut self, name: &str) -> u32 {
        if let Some(number) = self.numbers.get(name) {
            return *number;
        }
        let number = u32::try_from(self.names.len()).unwrap_or(u32::MAX);
        self.names.push(name.to_owned());
        self.numbers.insert(name.to_owned(), number);
        number
    }

    /// Recurses as deep as the elements, at most [`MAX_DEPTH`].
    fn write(&self, element: &Element, json: &mut String) {
        let text = element.text.trim();
        if element.members.is_empty() {
            return write_scalar(text, json);
        }
        let mut places: FxHashMap<u32, usize> = FxHashMap::default();
        let mut groups: Vec<(u32, Vec<&Member>)> = Vec::new();
        for (name, member) in &element.members {
            let place = *places.entry(*name).or_insert(groups.len());
            match groups.get_mut(place) {
                Some((_, group)) => group.push(member),
                None => groups.push((*name, vec![member])),
            }
        }
        json.push('{');
        for (number, (name, group)) in groups.iter().enumerate() {
            if number > 0 {
                json.push(',');
            }
            write_string(self.names.get(*name as usize).map_or("", String::as_str), json);
            json.push(':');
            let many = group.len() > 1;
            for (number, member) in group.iter().enumerate() {
                if many {
                    json.push(if number == 0 { '[' } else { ',' });
                }
                match member {
                    Member::Attribute(value) => write_scalar(value, json),
                    Member::Element(element) => self.write(element, json),
                }
            }
            if many {
                json.push(']');
            }
        }
        if !text.is_empty() {
            json.push(',');
            write_string(TEXT, json);
            json.push(':');
            write_scalar(text, json);
        }
        json.push('}');
    }
}

/// Adds text to the innermost element. Outside the root only white space is well formed.
fn add(open: &mut [(u32, Element)], text: &str) -> Option<()> {
    match open.last_mut() {
        Some((_, element)) => element.text.push_str(text),
        None if text.trim().is_empty() => {}
        None => return None,
    }
    Some(())
}

/// The characters that a reference stands for; one to an entity of the document's own stays as it is written.
fn referred(reference: &BytesRef<'_>) -> Option<String> {
    if let Some(character) = reference.resolve_char_ref().ok()? {
        return Some(character.to_string());
    }
    let name = reference.decode().ok()?;
    Some(quick_xml::escape::resolve_predefined_entity(&name).map_or_else(|| format!("&{name};"), str::to_owned))
}

fn write_scalar(text: &str, json: &mut String) {
    match text {
        "" => json.push_str("null"),
        number if is_number(number) => json.push_str(number),
        text => write_string(text, json),
    }
}

fn write_string(text: &str, json: &mut String) {
    // A string is always written.
    json.push_str(&serde_json::to_string(text).unwrap_or_default());
}

/// Whether JSON writes a number like this.
fn is_number(text: &str) -> bool {
    text.starts_with(|c: char| c == '-' || c.is_ascii_digit())
        && text.len() < 40
        && serde_json::from_str::<serde_json::Number>(text).is_ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn elements_are_the_json_that_they_stand_for() {
        for (xml, json) in [
            ("<r/>", r#"{"r":null}"#),
            ("<?xml version=\"1.0\"?>\n<!-- x -->\n<x> 12 </x>\n", r#"{"x":12}"#),
            ("<x>012</x>", r#"{"x":"012"}"#),
            ("<x n=\"1\">two</x>", r##"{"x":{"n":1,"#text":"two"}}"##),
            ("<x><y>1</y><z/><y>2</y></x>", r#"{"x":{"y":[1,2],"z":null}}"#),
            ("<x a=\"1\"><a>2</a></x>", r#"{"x":{"a":[1,2]}}"#),
            ("<x>a &lt; b &#x263A; &amp;&own;</x>", r#"{"x":"a < b ☺ &&own;"}"#),
            ("<x><![CDATA[<b> & \"c\"]]></x>", r#"{"x":"<b> & \"c\""}"#),
            ("<s:x xmlns:s=\"urn:s\" xmlns=\"urn:t\" s:k=\"v\"/>", r#"{"s:x":{"s:k":"v"}}"#),
            ("\u{feff}<x t='a\"b'/>", r#"{"x":{"t":"a\"b"}}"#),
        ] {
            assert_eq!(as_json(xml).as_deref(), Some(json), "{xml}");
        }
    }

    #[test]
    fn pages_prose_and_what_is_not_well_formed_are_not_read() {
        let deep = "<x>".repeat(MAX_DEPTH + 1) + &"</x>".repeat(MAX_DEPTH + 1);
        for text in [
            "",
            "x",
            "<x",
            "<x>",
            "<x></y>",
            "<x/><x/>",
            "<x/>text",
            "<x>a & b</x>",
            "<DIV><p>x</p></DIV>",
            "<html xmlns=\"http://www.w3.org/1999/xhtml\"><body/></html>",
            "<svg><path d=\"M0 0\"/></svg>",
            "<chapter>Some <b>bold</b> words between <i>others</i> here.</chapter>",
            &deep,
        ] {
            assert_eq!(as_json(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn what_is_read_is_json(parts in prop::collection::vec(
            prop_oneof![
                Just("<a>".to_owned()), Just("</a>".to_owned()), Just("<b x='1'/>".to_owned()), Just("&amp;".to_owned()),
                Just("<![CDATA[".to_owned()), Just("]]>".to_owned()), Just("<?p?>".to_owned()), "[ -~]{0,6}", "\\PC{0,3}",
            ],
            0..12,
        )) {
            let json = as_json(&format!("<r>{}</r>", parts.concat()));
            prop_assert!(json.is_none_or(|json| serde_json::from_str::<serde_json::Value>(&json).is_ok()));
        }
    }
}
