//! Texts that nobody reads: base64, and code without white space.

use crate::brief::Piece;

use super::excerpt::Tally;
use super::rank;
use contextweaver_core::text::counted;

/// The number of bytes from which a text is taken for packed.
const LEAST: usize = 1_000;
/// The number of bytes of a line of base64 at least, on average: words of prose are shorter.
const LINE: usize = 40;
/// The number of bytes of a line of packed code at least, on average.
const CODE_LINE: usize = 800;
/// The number of characters of base64 that are shown: its first bytes tell what it holds.
const SHOWN: usize = 64;
/// The number of bytes at the start of a text by which packed code is told.
const LOOKED_AT: usize = 4_096;

/// What a text is packed as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Packing {
    /// Base64 of so many bytes.
    Base64(usize),
    /// Source code in long lines without blanks.
    Code,
}

/// Whether a text is packed.
pub(super) fn is_packed(text: &str) -> bool {
    packing(text).is_some()
}

fn packing(text: &str) -> Option<Packing> {
    let text = text.trim();
    if text.len() < LEAST {
        return None;
    }
    base64(text).map(Packing::Base64).or_else(|| is_code(text).then_some(Packing::Code))
}

/// The number of bytes that `text` is the base64 of, with or without the front of a `data:` address.
fn base64(text: &str) -> Option<usize> {
    let body =
        text.split_once(";base64,").filter(|(front, _)| front.starts_with("data:")).map_or(text, |(_, body)| body);
    let (mut digits, mut breaks, mut kinds) = (0_usize, 0_usize, [false; 3]);
    for byte in body.bytes() {
        match byte {
            b'A'..=b'Z' => kinds[0] = true,
            b'a'..=b'z' => kinds[1] = true,
            b'0'..=b'9' => kinds[2] = true,
            b'\n' => breaks += 1,
            b'+' | b'/' | b'-' | b'_' | b'=' | b'\r' => {}
            _ => return None,
        }
        // What fills the last group up is no digit.
        digits += usize::from(!matches!(byte, b'=' | b'\r' | b'\n'));
    }
    // A word that is repeated has the letters of base64, but hardly of every kind.
    (kinds == [true; 3] && digits >= LINE * (breaks + 1)).then_some(digits * 3 / 4)
}

/// Whether a text is code in long lines with few blanks.
fn is_code(text: &str) -> bool {
    let breaks = memchr::memchr_iter(b'\n', text.as_bytes()).count();
    let front = text.as_bytes().get(..LOOKED_AT.min(text.len())).unwrap_or_default();
    let share = |test: fn(&u8) -> bool| front.iter().filter(|byte| test(byte)).count() * 100 / front.len().max(1);
    let marks = share(|byte| matches!(byte, b'{' | b'}' | b';' | b'(' | b')' | b'=' | b',' | b':' | b'.'));
    text.len() >= CODE_LINE * (breaks + 1)
        && share(u8::is_ascii_whitespace) < 8
        && marks >= 12
        && front.contains(&b'{')
        && front.contains(&b';')
}

/// Describes a packed text: what it is, its size, how it begins, and how code ends.
pub(super) fn pieces(text: &str) -> Vec<Piece> {
    let tally = Tally::of(text);
    let size = format!("{}, {}", counted(tally.lines, "line"), counted(text.chars().count(), "character"));
    let shape = |is: &str| Piece::line(rank::SHAPE_PLACE, rank::SHAPE, format!("{is}: {size}"));
    match packing(text) {
        Some(Packing::Base64(bytes)) => {
            let end = tally.first.char_indices().nth(SHOWN).map_or(tally.first.len(), |(at, _)| at);
            let begin = format!("it begins: {}…", tally.first.get(..end).unwrap_or_default());
            vec![
                shape(&format!("base64 of {}", counted(bytes, "byte"))),
                Piece::line(rank::FIRST_LINE_PLACE, rank::ENDS, begin),
            ]
        }
        Some(Packing::Code) | None => [shape("minified code")].into_iter().chain(tally.ends()).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::told;

    /// Letters and digits without an order.
    fn digits(count: usize) -> String {
        let all = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        let mut state = 7_usize;
        let next = |state: &mut usize| {
            *state = (*state * 1_103_515_245 + 12_345) % (1 << 31);
            char::from(all[*state >> 16 & 63])
        };
        (0..count).map(|_| next(&mut state)).collect()
    }

    #[test]
    fn base64_tells_its_size() {
        insta::assert_snapshot!(told(&digits(40_000), 300), @r"
        [Packed]
        base64 of 30000 bytes: 1 line, 40000 characters
        it begins: sO0STliuxhNT+StCpmOk8jXaNgXhqGVuCKUDTooUXe8duueAKRRfd7R+CTkWtul4…
        ");
        let lines: Vec<String> =
            digits(4_000).as_bytes().chunks(76).map(|line| String::from_utf8_lossy(line).into_owned()).collect();
        insta::assert_snapshot!(told(&format!("{}==\n", lines.join("\n")), 100), @r"
        [Packed]
        base64 of 3000 bytes: 53 lines, 4055 characters
        it begins: sO0STliuxhNT+StCpmOk8jXaNgXhqGVuCKUDTooUXe8duueAKRRfd7R+CTkWtul4…
        ");
        insta::assert_snapshot!(told(&format!("data:image/png;base64,{}", digits(2_000)), 100), @r"
        [Packed]
        base64 of 1500 bytes: 1 line, 2022 characters
        it begins: data:image/png;base64,sO0STliuxhNT+StCpmOk8jXaNgXhqGVuCKUDTooUXe…
        ");
    }

    #[test]
    fn minified_code_shows_its_ends() {
        let text: String = (0..300).map(|n| format!("var a{n}=function(e){{return e+{n}}};")).collect();
        insta::assert_snapshot!(told(&format!("!function(e,t){{{text}throw new Error(\"late\")}}(this);"), 300), @r#"
        [Packed]
        minified code: 1 line, 10326 characters
        first line: !function(e,t){var a0=function(e){return e+0};var a1=function(e){return e+1};var a2=function(e){return e+2};var a3=function(e){return e+3};var a4=function(e){return e+4};var a5=function(e){return e+5};var a6=function(e){return e+6};var a7=function(e){return e+7};var a8=function(e){return e+8};var a9=function(e){return e+9};var a10=function(e){return…
        the line ends: …a299=function(e){return e+299};throw new Error("late")}(this);
        "#);
    }

    #[test]
    fn texts_that_are_read_are_not_packed() {
        for text in ["A sentence of prose. ".repeat(100), "ok\n".repeat(1_000), "word ".repeat(400)] {
            assert!(!super::is_packed(&text), "{text}");
        }
    }
}
