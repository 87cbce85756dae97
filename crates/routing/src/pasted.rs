//! Leaves out the lines of logs that were pasted into a query: their words outnumber those of the request, and say nothing
//! of the tool that it wants.
//!
//! Only what no request looks like is left out: a line that begins with a time that has seconds, as logs have it and people
//! do not, and the frames of a stack.

use std::borrow::Cow;

/// A time is looked for in so many bytes of a line.
const BEGINNING: usize = 40;

/// More letters in a row before a time make a word of a sentence: a month has three.
const LETTERS_BEFORE_TIME: usize = 3;

/// The query without pasted lines; all of it where nothing else is in it.
pub(super) fn without_pasted_lines(query: &str) -> Cow<'_, str> {
    if !query.contains('\n') {
        return query.into();
    }
    let own = || query.lines().filter(|line| !is_pasted(line));
    if own().count() == query.lines().count() || own().all(|line| line.trim().is_empty()) {
        return query.into();
    }
    own().collect::<Vec<_>>().join("\n").into()
}

fn is_pasted(line: &str) -> bool {
    is_frame(line.trim()) || begins_with_time(line)
}

/// Whether a line is a frame of a stack as Java, JavaScript or Python write it.
fn is_frame(line: &str) -> bool {
    let place = line.strip_prefix("at ").and_then(|call| call.strip_suffix(')')?.rsplit_once('('));
    let (file, number) = place.and_then(|(_, place)| place.rsplit_once(':')).unwrap_or_default();
    let is_call = file.contains('.') && !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    is_call || line.starts_with("Traceback (") || line.starts_with("File \"") && line.contains("\", line ")
}

/// Whether there is a time such as 10:00:00 near the beginning of a line, with no word before it.
fn begins_with_time(line: &str) -> bool {
    const TIME: &[u8] = b"00:00:00";
    let line = line.trim_start().as_bytes();
    let line = &line[..line.len().min(BEGINNING)];
    let is_time = |part: &[u8]| {
        part.iter().zip(TIME).all(|(byte, like)| if *like == b':' { byte == like } else { byte.is_ascii_digit() })
    };
    let Some(at) = line.windows(TIME.len()).position(is_time) else { return false };
    let mut words = line[..at].split(|byte| !byte.is_ascii_alphabetic());
    words.all(|word| word.len() <= LETTERS_BEFORE_TIME)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_logs_are_left_out_where_others_remain() {
        let left_out = [
            "2026-11-24 10:00:00.000  INFO 1 --- [main] c.a.App : step 0",
            "[2026-11-24T10:00:00Z] queue: full",
            "Nov  4 10:00:00 host sshd[7]: closed",
            "10:00:00,123 WARN slow",
            "I1124 10:00:00.123456       1 server.go:42] ready",
            "127.0.0.1 - - [24/Nov/2026:10:00:00 +0000] \"GET / HTTP/1.1\" 200",
            "\tat com.shop.Orders.find(Orders.java:12)",
            "    at run (/srv/app/index.js:3:14)",
            "  File \"/srv/app.py\", line 3, in run",
            "Traceback (most recent call last):",
        ];
        for line in left_out {
            let query = format!("create an issue for this:\n{line}\nand assign it to Kim");
            assert_eq!(without_pasted_lines(&query), "create an issue for this:\nand assign it to Kim", "{line}");
        }
        let kept = [
            "set a timer for 00:10:00",
            "2026-11-24 10:00 dinner with Bob",
            "at noon",
            "at 10:30",
            "at the café (10:30)",
            "at the café: seats (near the door)",
            "ERROR in the report",
        ];
        for line in kept {
            let query = format!("do this:\n{line}");
            assert_eq!(without_pasted_lines(&query), query, "{line}");
        }
    }

    #[test]
    fn a_query_of_one_line_or_of_nothing_but_a_log_stays() {
        for query in ["10:00:00 INFO full", "10:00:00 INFO full\n\n10:00:01 INFO empty\n", "", "\n"] {
            assert_eq!(without_pasted_lines(query), query);
        }
    }
}
