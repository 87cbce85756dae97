//! Leaves out the lines of logs that were pasted into a query: their words outnumber those of the request, and say nothing
//! of the tool that it wants.
//!
//! Only what no request looks like is left out: a line that begins with a time that has seconds, as logs have it, and the
//! frames of a stack. A line of a chat has such a time too, but then it says who speaks, and few of them are kept.

use std::borrow::Cow;
use std::ops::RangeInclusive;

/// A time is looked for in so many bytes of a line.
const BEGINNING: usize = 40;

/// More letters in a row before a time make a word of a sentence: a month has three.
const LETTERS_BEFORE_TIME: usize = 3;

/// The letters before a capital inside a name: `McKay`, `MacDonald`. Words with others are names of programs and levels:
/// `OrderService`, `ERROR`.
const LETTERS_BEFORE_CAPITAL: RangeInclusive<usize> = 2..=3;

/// The number of words in the name of a speaker.
const WORDS_OF_NAME: usize = 3;

/// What a line of a log has where one of a chat has a speaker, beside words in capitals.
const LEVELS: &[&str] = &[
    "Alert",
    "Critical",
    "Debug",
    "Error",
    "Exception",
    "Failed",
    "Failure",
    "Fatal",
    "Info",
    "Notice",
    "Panic",
    "Severe",
    "Trace",
    "Verbose",
    "Warn",
    "Warning",
];

/// So many lines of a chat are a request; more are pasted, or a log whose programs have names like people: `Scheduler: done`.
const LINES_OF_A_CHAT: usize = 5;

/// The query without pasted lines; all of it where nothing else is in it.
pub(super) fn without_pasted_lines(query: &str) -> Cow<'_, str> {
    if !query.contains('\n') {
        return query.into();
    }
    let spoken = |line: &str| behind_time(line).is_some_and(says_who_speaks);
    let is_chat = query.lines().filter(|line| spoken(line)).count() <= LINES_OF_A_CHAT;
    let is_pasted =
        |line: &str| is_frame(line.trim()) || behind_time(line).is_some_and(|rest| !(is_chat && says_who_speaks(rest)));
    let own = || query.lines().filter(|line| !is_pasted(line));
    if own().count() == query.lines().count() || own().all(|line| line.trim().is_empty()) {
        return query.into();
    }
    own().collect::<Vec<_>>().join("\n").into()
}

/// Whether a line is a frame of a stack as Java, JavaScript or Python write it.
fn is_frame(line: &str) -> bool {
    let place = line.strip_prefix("at ").and_then(|call| call.strip_suffix(')')?.rsplit_once('('));
    let (file, number) = place.and_then(|(_, place)| place.rsplit_once(':')).unwrap_or_default();
    let is_call = file.contains('.') && !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    is_call || line.starts_with("Traceback (") || line.starts_with("File \"") && line.contains("\", line ")
}

/// What stands behind a time such as 10:00:00 near the beginning of a line, with no word before it.
fn behind_time(line: &str) -> Option<&str> {
    const TIME: &[u8] = b"00:00:00";
    let whole = line.trim_start();
    let line = &whole.as_bytes()[..whole.len().min(BEGINNING)];
    let is_time = |part: &[u8]| {
        part.iter().zip(TIME).all(|(byte, like)| if *like == b':' { byte == like } else { byte.is_ascii_digit() })
    };
    let at = line.windows(TIME.len()).position(is_time)?;
    let mut words = line[..at].split(|byte| !byte.is_ascii_alphabetic());
    words.all(|word| word.len() <= LETTERS_BEFORE_TIME).then(|| whole.get(at + TIME.len()..)).flatten()
}

/// Whether what stands behind a time is said by somebody: a name, a colon and words, and no `key=value`.
fn says_who_speaks(rest: &str) -> bool {
    let is_mark = |letter: char| letter.is_whitespace() || matches!(letter, ']' | ')' | ',' | '-' | '–' | '—');
    let rest = rest.trim_start_matches(is_mark);
    let half_day = ["AM", "PM", "am", "pm"].into_iter().find_map(|half| rest.strip_prefix(half));
    let rest = half_day.filter(|rest| rest.starts_with(is_mark)).unwrap_or(rest).trim_start_matches(is_mark);
    let Some((name, words)) = rest.split_once(": ") else { return false };
    name.split(' ').count() <= WORDS_OF_NAME
        && name.split(' ').all(is_part_of_name)
        && words.contains(char::is_alphabetic)
        && !words.split_whitespace().any(is_field)
}

/// Whether a word can be one of the name of a person: `Kay`, `Anna-Lena`, `O'Neill`, `Dr.`.
fn is_part_of_name(word: &str) -> bool {
    let mut parts = word.strip_suffix('.').unwrap_or(word).split(['-', '\'', '’']);
    parts.all(is_capitalized) && !LEVELS.contains(&word)
}

/// Whether a word begins with a capital, or with a letter of a script that has none, and has others only as `McKay` does.
fn is_capitalized(word: &str) -> bool {
    let mut capitals = word.chars().enumerate().skip(1).filter(|(_, letter)| letter.is_uppercase());
    word.starts_with(|first: char| first.is_alphabetic() && !first.is_lowercase())
        && word.chars().all(char::is_alphabetic)
        && capitals.all(|(before, _)| LETTERS_BEFORE_CAPITAL.contains(&before))
}

/// Whether a word is `key=value`.
fn is_field(word: &str) -> bool {
    let is_of_key = |letter: char| letter.is_alphanumeric() || matches!(letter, '_' | '-' | '.');
    word.split_once('=').is_some_and(|(key, value)| !key.is_empty() && key.chars().all(is_of_key) && !value.is_empty())
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
            "12:03:11 ERROR: disk full on the host",
            "12:03:11 Warning: the disk is almost full",
            "[12:03:11] OrderService: payment failed for order 7",
            "12:03:11 c.a.App: started in 3 seconds",
            "12:03:11 [main] Main: started",
            "12:03:11 sshd: connection closed by peer",
            "12:03:11 Server: listening host=db port=80",
            "12:03:11 Total: 17",
            "Nov  4 10:00:00 MacBook-Pro Safari[7]: page loaded",
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
            "[12:03:11] Anna: can you restart the database?",
            "12:03:11 Anna: can you restart the database?",
            "[24/11/2026, 12:03:11 PM] Anna Kay: ok, and tell Bob",
            "24.11.26, 12:03:11 - Anna-Lena O'Neill: and the index?",
            "12:03:11 McKay: I'll open a ticket, see https://example.org/?id=7",
            "2026-11-24 12:03:11 张伟: 重启数据库",
        ];
        for line in kept {
            let query = format!("do this:\n{line}");
            assert_eq!(without_pasted_lines(&query), query, "{line}");
        }
    }

    #[test]
    fn a_long_chat_is_pasted_and_so_is_a_log_that_looks_like_one() {
        let lines = |count: usize| (0..count).map(|n| format!("\n12:03:{n:02} Scheduler: backup failed")).collect();
        for (count, stay) in [(LINES_OF_A_CHAT, true), (LINES_OF_A_CHAT + 1, false)] {
            let pasted: String = lines(count);
            let query = format!("which of my orders is late?{pasted}");
            let expected = if stay { &query } else { "which of my orders is late?" };
            assert_eq!(without_pasted_lines(&query), expected, "{count}");
        }
    }

    #[test]
    fn a_query_of_one_line_or_of_nothing_but_a_log_stays() {
        for query in ["10:00:00 INFO full", "10:00:00 INFO full\n\n10:00:01 INFO empty\n", "", "\n"] {
            assert_eq!(without_pasted_lines(query), query);
        }
    }
}
