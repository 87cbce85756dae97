//! What a file of events says of each call and of each session: tokens spared, and what they cost.
//!
//! What a row does not know is `None`: events of earlier versions, and those of other modes than `gateway`, have no
//! tokens. The order is that of the file, the last first. Of a file of any size only the rows that are asked for are
//! kept in memory, and the numbers of a bounded count of sessions.

use std::collections::hash_map::DefaultHasher;
use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::hash::{Hash, Hasher};
use std::io::{self, BufRead, Seek};

use serde::Serialize;

use super::event_lines::{BadLines, EventLines, Window};
use crate::telemetry::diagnostics::{Event, EventName};
use crate::telemetry::savings::{Spent, fewer};
use contextweaver_core::text::Price;

/// Sessions that are told apart to count them, at most.
const MOST_COUNTED: usize = 1 << 20;

/// A call of a client: of a tool, or of one of the gateway's own.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CallRow {
    /// When it ended, as the event says it.
    pub time: String,
    /// The number of its session.
    pub session: String,
    /// The name of the caller.
    pub caller: Option<String>,
    /// The kind of event.
    pub event: EventName,
    /// The gateway's own tool that was called, `tool_execute` for any other.
    pub operation: Option<String>,
    /// The tool that it is about, when the catalog knew it.
    pub tool: Option<String>,
    /// What was decided: `allow`, `refuse` or `ask`.
    pub decision: Option<String>,
    /// How it ended: `OK`, `INPUT_REQUIRED`, `TOOL_ERROR`, or the code of a failure.
    pub outcome: Option<String>,
    /// Tokens of the whole result of the server, about; `None` also where no server was asked.
    pub result_tokens: Option<u64>,
    /// Tokens of what went on to the client.
    pub answer_tokens: Option<u64>,
    /// Tokens that were held back; below zero where the answer took more, as that of a search.
    pub saved: Option<i64>,
    /// Milliseconds that it took.
    pub ms: Option<f64>,
}

impl CallRow {
    pub(super) fn of(event: Event) -> Self {
        let word = |attribute: &str| event.word(attribute).map(str::to_owned);
        let outcome = match (event.success, event.has("input_required"), event.has("tool_error")) {
            (true, false, _) => Some("OK".to_owned()),
            (true, true, _) => Some("INPUT_REQUIRED".to_owned()),
            (false, _, true) => Some("TOOL_ERROR".to_owned()),
            (false, _, false) => word("code"),
        };
        let (result_tokens, answer_tokens) = (event.tokens("result_tokens"), event.tokens("answer_tokens"));
        Self {
            caller: word("caller"),
            operation: word("meta_tool"),
            decision: word("decision"),
            outcome,
            result_tokens,
            answer_tokens,
            saved: answer_tokens.map(|answer| fewer(result_tokens.unwrap_or_default(), answer)),
            ms: event.duration_ms,
            event: event.event,
            session: event.session_id,
            time: event.timestamp,
            tool: event.tool_id,
        }
    }
}

/// The last calls.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CallRows {
    /// The last of them, the latest first.
    pub items: Vec<CallRow>,
    /// Calls before them.
    pub left_out: u64,
    /// Lines that are not events.
    #[serde(flatten)]
    pub bad: BadLines,
}

impl CallRows {
    /// Reads the last calls of a file of events within `window`, at most `limit`.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn read(input: impl BufRead, limit: usize, window: &Window) -> io::Result<Self> {
        let (mut lines, mut last, mut left_out) = (EventLines::of(input, window), VecDeque::new(), 0);
        while let Some(event) = lines.next()? {
            if !is_call(event.event) {
                continue;
            }
            last.push_back(CallRow::of(event));
            if last.len() > limit {
                last.pop_front();
                left_out += 1;
            }
        }
        Ok(Self { items: last.into_iter().rev().collect(), left_out, bad: lines.into_bad() })
    }
}

/// Whether a client called something.
pub(super) fn is_call(event: EventName) -> bool {
    !matches!(event, EventName::CatalogLoaded | EventName::SignatureRefused)
}

/// A session: what one client did from beginning to end.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SessionRow {
    /// Its number.
    pub session: String,
    /// The name of the caller.
    pub caller: Option<String>,
    /// The time of its first event.
    pub first: String,
    /// The time of its last event.
    pub last: String,
    /// Its calls.
    pub calls: u64,
    /// Those that did not succeed.
    pub failed: u64,
    /// Those whose tokens are known; only they are in the sums.
    pub counted: u64,
    /// Tokens of definitions that were not sent, once a session; below zero where those of the gateway take more.
    pub definitions_not_sent: Option<i64>,
    /// Tokens of results that were held back.
    pub results_held_back: Option<i64>,
    /// Tokens of everything else that was answered: searches, views, definitions, failures.
    pub other: Option<u64>,
    /// Tokens that were spared in all; below zero where it took more.
    pub net: Option<i64>,
    /// What these cost, at the price that was stated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
}

/// The sessions that were active last.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SessionRows {
    /// The last of them, that with the latest event first.
    pub items: Vec<SessionRow>,
    /// Sessions besides them; `None` where there are more than a million.
    pub left_out: Option<u64>,
    /// Calls of these.
    pub calls_left_out: u64,
    /// The price, where one was stated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub price: Option<Price>,
    /// Lines that are not events.
    #[serde(flatten)]
    pub bad: BadLines,
}

impl SessionRows {
    /// Reads the sessions that were active last within `window` from a file of events, at most `limit`, and what they spared
    /// then at this price. The file is read twice: which sessions these are is known at its end. What is appended meanwhile does not count.
    ///
    /// # Errors
    /// It cannot be read, or not from its beginning again.
    pub fn read(
        mut input: impl BufRead + Seek,
        limit: usize,
        window: &Window,
        price: Option<&Price>,
    ) -> io::Result<Self> {
        let start = input.stream_position()?;
        let mut lines = EventLines::of(&mut input, window);
        let (mut last, mut sessions, mut calls) = (Last::new(limit), Sessions::default(), 0);
        while let Some(event) = lines.next()? {
            if event.event == EventName::CatalogLoaded {
                continue;
            }
            calls += u64::from(is_call(event.event));
            sessions.add(&event.session_id);
            last.add(event.session_id);
        }
        let bad = lines.into_bad();
        let end = input.stream_position()?;
        input.seek(io::SeekFrom::Start(start))?;
        let mut lines = EventLines::of(input.take(end - start), window);
        let mut running: HashMap<String, Running> = HashMap::new();
        // Of the servers, and listed, as they were served last.
        let mut definitions = None;
        while let Some(event) = lines.next()? {
            if event.event == EventName::CatalogLoaded {
                definitions = event.tokens("definition_tokens").zip(event.tokens("surface_tokens"));
            } else if let Some(session) = running.get_mut(&event.session_id) {
                session.add(&event);
            } else if last.places.contains_key(&event.session_id) {
                let mut session = Running::new(&event, definitions);
                session.add(&event);
                running.insert(event.session_id, session);
            }
        }
        let rows =
            last.into_order().filter_map(|session| running.remove(&session).map(|found| found.row(session, price)));
        let items: Vec<SessionRow> = rows.collect();
        Ok(Self {
            left_out: sessions.count().map(|all| all.saturating_sub(items.len() as u64)),
            calls_left_out: calls - items.iter().map(|row| row.calls).sum::<u64>(),
            items,
            price: price.cloned(),
            bad,
        })
    }
}

/// Which sessions were active last.
#[derive(Debug)]
struct Last {
    most: usize,
    time: u64,
    places: HashMap<String, u64>,
    order: BTreeMap<u64, String>,
}

impl Last {
    fn new(most: usize) -> Self {
        Self { most, time: 0, places: HashMap::new(), order: BTreeMap::new() }
    }

    fn add(&mut self, session: String) {
        self.time += 1;
        let session = match self.places.get_mut(&session) {
            Some(place) => {
                let session = self.order.remove(place).unwrap_or(session);
                *place = self.time;
                session
            }
            None => {
                self.places.insert(session.clone(), self.time);
                session
            }
        };
        self.order.insert(self.time, session);
        if self.order.len() > self.most
            && let Some((_, earliest)) = self.order.pop_first()
        {
            self.places.remove(&earliest);
        }
    }

    /// The sessions, that which was active last first.
    fn into_order(self) -> impl Iterator<Item = String> {
        self.order.into_values().rev()
    }
}

/// How many sessions there are.
#[derive(Debug, Default)]
struct Sessions {
    seen: HashSet<u64>,
    are_too_many: bool,
}

impl Sessions {
    fn add(&mut self, session: &str) {
        let mut hasher = DefaultHasher::new();
        session.hash(&mut hasher);
        let number = hasher.finish();
        if self.seen.len() < MOST_COUNTED {
            self.seen.insert(number);
        } else if !self.seen.contains(&number) {
            self.are_too_many = true;
        }
    }

    fn count(&self) -> Option<u64> {
        (!self.are_too_many).then_some(self.seen.len() as u64)
    }
}

/// A session while it is read.
#[derive(Debug)]
struct Running {
    caller: Option<String>,
    first: String,
    last: String,
    calls: u64,
    failed: u64,
    counted: u64,
    definitions: Option<(u64, u64)>,
    spent: Spent,
}

impl Running {
    fn new(event: &Event, definitions: Option<(u64, u64)>) -> Self {
        let (first, last) = (event.timestamp.clone(), event.timestamp.clone());
        Self { caller: None, first, last, calls: 0, failed: 0, counted: 0, definitions, spent: Spent::default() }
    }

    fn add(&mut self, event: &Event) {
        if self.caller.is_none() {
            self.caller = event.word("caller").map(str::to_owned);
        }
        self.last.clone_from(&event.timestamp);
        if is_call(event.event) {
            self.calls += 1;
            self.failed += u64::from(!event.success);
        }
        if let Some(answer) = event.tokens("answer_tokens") {
            self.counted += 1;
            self.spent.add(event.tokens("result_tokens"), answer);
        }
    }

    fn row(self, session: String, price: Option<&Price>) -> SessionRow {
        let Self { caller, first, last, calls, failed, counted, definitions, spent } = self;
        let definitions_not_sent = definitions.map(|(servers, listed)| fewer(servers, listed));
        let is_known = counted > 0 || calls == 0;
        let results_held_back = is_known.then(|| fewer(spent.results, spent.answers));
        let other = is_known.then_some(spent.other);
        let net = definitions_not_sent.zip(results_held_back).map(|(definitions, results)| {
            let other = i64::try_from(spent.other).unwrap_or(i64::MAX);
            definitions.saturating_add(results).saturating_sub(other)
        });
        SessionRow {
            session,
            caller,
            first,
            last,
            calls,
            failed,
            counted,
            definitions_not_sent,
            results_held_back,
            other,
            net,
            cost: price.zip(net).map(|(price, net)| price.amount(net)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;

    fn line(second: u32, session: &str, event: &str, attributes: &str) -> String {
        let success = !event.ends_with("failed") && !attributes.contains("tool_error");
        format!(
            "{{\"attributes\":{{{attributes}}},\"duration_ms\":2.5,\"event\":\"{event}\",\"namespace\":null,\"session_id\":\"{session}\",\"success\":{success},\"timestamp\":\"2026-11-22T12:00:{second:02}.000042+00:00\",\"tool_id\":null,\"version\":1}}\n"
        )
    }

    /// Two sessions that take turns, one of an earlier version, and lines that are not events.
    fn events() -> String {
        [
            line(0, "old", "execute.completed", r#""meta_tool":"tool_execute""#),
            line(1, "run", "catalog.loaded", r#""definition_tokens":1000,"surface_tokens":100"#),
            line(
                2,
                "a",
                "browse.completed",
                r#""answer_tokens":40,"caller":"ci","decision":"allow","meta_tool":"tool_browse""#,
            ),
            line(
                3,
                "b",
                "execute.failed",
                r#""answer_tokens":30,"caller":"local","code":"POLICY_DENIED","decision":"refuse""#,
            ),
            "torn\n".to_owned(),
            line(4, "run", "catalog.loaded", r#""definition_tokens":50,"surface_tokens":100"#),
            line(
                5,
                "a",
                "execute.completed",
                r#""answer_tokens":10,"caller":"ci","decision":"allow","result_tokens":500"#,
            ),
            line(6, "c", "signature.refused", r#""caller":"ci","reason":"missing","signed":"call""#),
            line(
                7,
                "a",
                "execute.completed",
                r#""answer_tokens":20,"caller":"ci","decision":"allow","result_tokens":20,"tool_error":true"#,
            ),
            "{\"attributes\":".to_owned(),
        ]
        .concat()
    }

    fn json(value: &impl Serialize) -> String {
        let value = serde_json::to_value(value).unwrap();
        let rows = value["items"].as_array().unwrap().iter().map(|row| format!("{row}\n"));
        let mut rest = value.clone();
        rest.as_object_mut().unwrap().shift_remove("items");
        format!("{}{rest}", rows.collect::<String>())
    }

    #[test]
    fn sessions_add_up_their_calls_and_say_what_is_not_known() {
        let price = Price { per_million_tokens: 3.0, currency: "$".to_owned() };
        let all = SessionRows::read(Cursor::new(events()), 10, &Window::all(), Some(&price)).unwrap();
        insta::assert_snapshot!(json(&all), @r#"
        {"session":"a","caller":"ci","first":"2026-11-22T12:00:02.000042+00:00","last":"2026-11-22T12:00:07.000042+00:00","calls":3,"failed":1,"counted":3,"definitions_not_sent":900,"results_held_back":490,"other":40,"net":1350,"cost":0.00405}
        {"session":"c","caller":"ci","first":"2026-11-22T12:00:06.000042+00:00","last":"2026-11-22T12:00:06.000042+00:00","calls":0,"failed":0,"counted":0,"definitions_not_sent":-50,"results_held_back":0,"other":0,"net":-50,"cost":-0.00015}
        {"session":"b","caller":"local","first":"2026-11-22T12:00:03.000042+00:00","last":"2026-11-22T12:00:03.000042+00:00","calls":1,"failed":1,"counted":1,"definitions_not_sent":900,"results_held_back":0,"other":30,"net":870,"cost":0.00261}
        {"session":"old","caller":null,"first":"2026-11-22T12:00:00.000042+00:00","last":"2026-11-22T12:00:00.000042+00:00","calls":1,"failed":0,"counted":0,"definitions_not_sent":null,"results_held_back":null,"other":null,"net":null}
        {"left_out":0,"calls_left_out":0,"price":{"per_million_tokens":3.0,"currency":"$"},"bad_lines":2,"first_bad_lines":[{"line":5,"reason":"expected ident at column 2"},{"line":10,"reason":"it is not finished: EOF while parsing a value at column 14"}]}
        "#);
        let net: i64 = all.items.iter().filter_map(|row| row.net).sum();
        assert_eq!(
            net,
            (900 + 490 - 40) + (900 - 30) - 50,
            "definitions are those that were served when a session began"
        );
    }

    #[test]
    fn the_last_sessions_are_whole_however_they_take_turns() {
        let all = SessionRows::read(Cursor::new(events()), 10, &Window::all(), None).unwrap();
        for limit in 1..=4 {
            let some = SessionRows::read(Cursor::new(events()), limit, &Window::all(), None).unwrap();
            assert_eq!(some.items, all.items[..limit], "{limit}");
            assert_eq!(some.left_out, Some(4 - limit as u64), "{limit}");
            let calls: u64 = some.items.iter().map(|row| row.calls).sum();
            assert_eq!(calls + some.calls_left_out, 5, "{limit}");
        }
    }

    #[test]
    fn calls_stand_in_the_order_of_the_file_from_its_end() {
        let all = CallRows::read(events().as_bytes(), 10, &Window::all()).unwrap();
        insta::assert_snapshot!(json(&all), @r#"
        {"time":"2026-11-22T12:00:07.000042+00:00","session":"a","caller":"ci","event":"execute.completed","operation":null,"tool":null,"decision":"allow","outcome":"TOOL_ERROR","result_tokens":20,"answer_tokens":20,"saved":0,"ms":2.5}
        {"time":"2026-11-22T12:00:05.000042+00:00","session":"a","caller":"ci","event":"execute.completed","operation":null,"tool":null,"decision":"allow","outcome":"OK","result_tokens":500,"answer_tokens":10,"saved":490,"ms":2.5}
        {"time":"2026-11-22T12:00:03.000042+00:00","session":"b","caller":"local","event":"execute.failed","operation":null,"tool":null,"decision":"refuse","outcome":"POLICY_DENIED","result_tokens":null,"answer_tokens":30,"saved":-30,"ms":2.5}
        {"time":"2026-11-22T12:00:02.000042+00:00","session":"a","caller":"ci","event":"browse.completed","operation":"tool_browse","tool":null,"decision":"allow","outcome":"OK","result_tokens":null,"answer_tokens":40,"saved":-40,"ms":2.5}
        {"time":"2026-11-22T12:00:00.000042+00:00","session":"old","caller":null,"event":"execute.completed","operation":"tool_execute","tool":null,"decision":null,"outcome":"OK","result_tokens":null,"answer_tokens":null,"saved":null,"ms":2.5}
        {"left_out":0,"bad_lines":2,"first_bad_lines":[{"line":5,"reason":"expected ident at column 2"},{"line":10,"reason":"it is not finished: EOF while parsing a value at column 14"}]}
        "#);
        let some = CallRows::read(events().as_bytes(), 2, &Window::all()).unwrap();
        assert_eq!((&some.items[..], some.left_out), (&all.items[..2], 3));
        assert_eq!(some.bad, all.bad);
    }

    #[test]
    fn sums_stay_in_their_bounds() {
        let huge = format!(r#""answer_tokens":{},"result_tokens":0"#, u64::MAX);
        let loaded = format!(r#""definition_tokens":0,"surface_tokens":{}"#, u64::MAX);
        let text = [
            line(0, "run", "catalog.loaded", &loaded),
            line(1, "a", "execute.completed", &huge),
            line(2, "a", "execute.completed", &huge),
        ]
        .concat();
        let rows = SessionRows::read(Cursor::new(&text), 1, &Window::all(), None).unwrap();
        assert_eq!(rows.items[0].net, Some(i64::MIN));
        assert_eq!(CallRows::read(text.as_bytes(), 1, &Window::all()).unwrap().items[0].saved, Some(-i64::MAX));
    }

    #[test]
    fn what_is_appended_while_a_file_is_read_does_not_count() {
        /// A file that grows when its beginning is sought.
        struct Growing(Cursor<Vec<u8>>);
        impl io::Read for Growing {
            fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
                self.0.read(into)
            }
        }
        impl BufRead for Growing {
            fn fill_buf(&mut self) -> io::Result<&[u8]> {
                self.0.fill_buf()
            }

            fn consume(&mut self, amount: usize) {
                self.0.consume(amount);
            }
        }
        impl Seek for Growing {
            fn seek(&mut self, to: io::SeekFrom) -> io::Result<u64> {
                if to == io::SeekFrom::Start(0) {
                    let more = line(9, "a", "execute.completed", r#""answer_tokens":1,"result_tokens":9"#);
                    self.0.get_mut().extend_from_slice(more.as_bytes());
                }
                self.0.seek(to)
            }
        }
        let text = line(1, "a", "execute.completed", r#""answer_tokens":1,"result_tokens":1"#);
        let rows = SessionRows::read(Growing(Cursor::new(text.into_bytes())), 5, &Window::all(), None).unwrap();
        assert_eq!((rows.items[0].calls, rows.calls_left_out), (1, 0));
    }
}
