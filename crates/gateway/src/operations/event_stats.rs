//! What a file of events says: counts, shares, durations.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, BufRead};

use serde::Serialize;

use super::event_lines::{BadLines, EventLines, Window};
use crate::common::error::Code;
use crate::telemetry::diagnostics::{Event, EventName};
use crate::telemetry::savings::Savings;

/// How long something took, in milliseconds; nearest-rank percentiles.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Durations {
    /// The median, in milliseconds.
    pub p50: f64,
    /// 95 of 100 took no longer.
    pub p95: f64,
    /// The longest, in milliseconds.
    pub max: f64,
}

impl Durations {
    /// Those of `times`; `None` when there are none.
    fn of(mut times: Vec<f64>) -> Option<Self> {
        times.sort_by(f64::total_cmp);
        let rank = |percent: usize| times.get((times.len() * percent).div_ceil(100).saturating_sub(1)).copied();
        Some(Self { p50: rank(50)?, p95: rank(95)?, max: rank(100)? })
    }
}

/// Events of one kind, or about one tool.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Tally {
    /// The number of events.
    pub count: usize,
    /// How many of them went well.
    pub succeeded: usize,
    /// `succeeded` / `count`.
    pub success_rate: f64,
    /// How long they took, where they say it.
    pub duration_ms: Option<Durations>,
}

#[derive(Debug, Default)]
struct Running {
    count: usize,
    succeeded: usize,
    times: Vec<f64>,
}

impl Running {
    fn add(&mut self, event: &Event) {
        self.count += 1;
        self.succeeded += usize::from(event.success);
        self.times.extend(event.duration_ms.filter(|time| time.is_finite()));
    }

    fn tally(self) -> Tally {
        let Self { count, succeeded, times } = self;
        let success_rate = if count == 0 { 0.0 } else { succeeded as f64 / count as f64 };
        Tally { count, succeeded, success_rate, duration_ms: Durations::of(times) }
    }
}

/// What a file of events says.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct EventStats {
    /// When the time begins that it is about; `None` for all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<String>,
    /// Events that were read.
    pub events: usize,
    /// The time of the earliest.
    pub first: Option<String>,
    /// The time of the latest.
    pub last: Option<String>,
    /// Sessions in which a call was made.
    pub sessions: usize,
    /// The counts of each kind of event.
    pub by_event: BTreeMap<EventName, Tally>,
    /// Calls (events of `execute`, without dry runs and cache hits) by tool.
    pub by_tool: BTreeMap<String, Tally>,
    /// The same calls by server: the namespace of the tool.
    pub by_server: BTreeMap<String, Tally>,
    /// Failures by the code of their error, in order of the code.
    pub errors: BTreeMap<String, usize>,
    /// What was spared, in tokens; `None` where no event says it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub savings: Option<Savings>,
    /// Lines that are not events.
    #[serde(flatten)]
    pub bad: BadLines,
}

impl EventStats {
    /// Reads the events of a file within `window`.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn read(input: impl BufRead, window: &Window) -> io::Result<Self> {
        let mut collected = Collected::new(window);
        let mut lines = EventLines::of(input, window);
        while let Some(event) = lines.next()? {
            collected.take(&event);
        }
        Ok(collected.stats(lines.into_bad()))
    }

    /// What an operator can do about failures with this code; `None` for a code that this version does not know.
    #[must_use]
    pub fn remedy(code: &str) -> Option<&'static str> {
        serde_json::from_value::<Code>(code.into()).ok().map(Code::remedy)
    }
}

/// Events while they are counted.
#[derive(Debug, Default)]
pub(super) struct Collected {
    window: Window,
    times: Option<(String, String)>,
    sessions: BTreeSet<String>,
    by_event: BTreeMap<EventName, Running>,
    by_tool: BTreeMap<String, Running>,
    by_server: BTreeMap<String, Running>,
    errors: BTreeMap<String, usize>,
    /// Tokens of the definitions that were served last: of the servers, and listed.
    definitions: Option<(u64, u64)>,
    savings: Savings,
}

impl Collected {
    /// Nothing was counted yet; what ended before `window` is not.
    pub(super) fn new(window: &Window) -> Self {
        Self { window: window.clone(), ..Self::default() }
    }

    /// Counts an event.
    pub(super) fn take(&mut self, event: &Event) {
        if event.event == EventName::CatalogLoaded {
            self.definitions = event.tokens("definition_tokens").zip(event.tokens("surface_tokens"));
        }
        if self.window.is_after(event) {
            return;
        }
        self.times = Some(match self.times.take() {
            None => (event.timestamp.clone(), event.timestamp.clone()),
            Some((first, last)) => (first.min(event.timestamp.clone()), last.max(event.timestamp.clone())),
        });
        if event.event != EventName::CatalogLoaded {
            if self.sessions.insert(event.session_id.clone()) {
                let (definitions, surface) = self.definitions.unwrap_or_default();
                self.savings.definitions = self.savings.definitions.saturating_add(definitions);
                self.savings.surface = self.savings.surface.saturating_add(surface);
            }
            if let Some(answer) = event.tokens("answer_tokens") {
                self.savings.spent.add(event.tokens("result_tokens"), answer);
            }
        }
        if let Some(code) = event.word("code") {
            *self.errors.entry(code.to_owned()).or_default() += 1;
        }
        self.by_event.entry(event.event).or_default().add(event);
        if matches!(event.event, EventName::ExecuteCompleted | EventName::ExecuteFailed)
            && let Some(tool) = &event.tool_id
        {
            self.by_tool.entry(tool.clone()).or_default().add(event);
            if let Some(server) = &event.namespace {
                self.by_server.entry(server.clone()).or_default().add(event);
            }
        }
    }

    /// What was counted, with the lines that are not events.
    pub(super) fn stats(self, bad: BadLines) -> EventStats {
        let (first, last) = self.times.unzip();
        let savings = Savings { sessions: self.sessions.len() as u64, ..self.savings };
        let says_something = self.savings != Savings::default();
        let tallies = |all: BTreeMap<String, Running>| all.into_iter().map(|(of, one)| (of, one.tally())).collect();
        EventStats {
            since: self.window.since().map(str::to_owned),
            savings: says_something.then_some(savings),
            events: self.by_event.values().map(|running| running.count).sum(),
            first,
            last,
            sessions: self.sessions.len(),
            by_event: self.by_event.into_iter().map(|(event, running)| (event, running.tally())).collect(),
            by_tool: tallies(self.by_tool),
            by_server: tallies(self.by_server),
            errors: self.errors,
            bad,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(event: &str, time: f64, success: bool, attributes: &str) -> String {
        format!(
            r#"{{"attributes":{attributes},"duration_ms":{time},"event":"{event}","namespace":"a","session_id":"s","success":{success},"timestamp":"2026-11-22T12:00:0{}+00:00","tool_id":"a:b","version":1}}"#,
            time as u64 % 10
        )
    }

    #[test]
    fn events_are_counted_and_bad_lines_named() {
        let lines = [
            line("catalog.loaded", 1.0, true, "{}"),
            line("execute.completed", 2.0, true, "{}"),
            line("execute.completed", 4.0, false, r#"{"tool_error":true}"#),
            "{\"torn\":".to_owned(),
            String::new(),
            line("execute.failed", 9.0, false, r#"{"code":"ARGS_INVALID"}"#),
            line("execute.dry_run", 3.0, true, "{}"),
            line("browse.asked", 3.0, true, "{}"),
            line("view.completed", 3.0, true, "{}").replace("\"version\":1", "\"version\":2"),
        ];
        let stats = EventStats::read(lines.join("\n").as_bytes(), &Window::all()).unwrap();
        insta::assert_snapshot!(serde_json::to_string_pretty(&stats).unwrap(), @r#"
    {
      "events": 5,
      "first": "2026-11-22T12:00:01+00:00",
      "last": "2026-11-22T12:00:09+00:00",
      "sessions": 1,
      "by_event": {
        "catalog.loaded": {
          "count": 1,
          "succeeded": 1,
          "success_rate": 1.0,
          "duration_ms": {
            "p50": 1.0,
            "p95": 1.0,
            "max": 1.0
          }
        },
        "execute.completed": {
          "count": 2,
          "succeeded": 1,
          "success_rate": 0.5,
          "duration_ms": {
            "p50": 2.0,
            "p95": 4.0,
            "max": 4.0
          }
        },
        "execute.failed": {
          "count": 1,
          "succeeded": 0,
          "success_rate": 0.0,
          "duration_ms": {
            "p50": 9.0,
            "p95": 9.0,
            "max": 9.0
          }
        },
        "execute.dry_run": {
          "count": 1,
          "succeeded": 1,
          "success_rate": 1.0,
          "duration_ms": {
            "p50": 3.0,
            "p95": 3.0,
            "max": 3.0
          }
        }
      },
      "by_tool": {
        "a:b": {
          "count": 3,
          "succeeded": 1,
          "success_rate": 0.3333333333333333,
          "duration_ms": {
            "p50": 4.0,
            "p95": 9.0,
            "max": 9.0
          }
        }
      },
      "by_server": {
        "a": {
          "count": 3,
          "succeeded": 1,
          "success_rate": 0.3333333333333333,
          "duration_ms": {
            "p50": 4.0,
            "p95": 9.0,
            "max": 9.0
          }
        }
      },
      "errors": {
        "ARGS_INVALID": 1
      },
      "bad_lines": 3,
      "first_bad_lines": [
        {
          "line": 4,
          "reason": "EOF while parsing a value at column 8"
        },
        {
          "line": 8,
          "reason": "unknown variant `browse.asked` at column 55"
        },
        {
          "line": 9,
          "reason": "version 2 is not 1"
        }
      ]
    }
    "#);
    }

    #[test]
    fn tokens_are_added_up_by_session() {
        let of = |session: &str, attributes: &str| {
            line("execute.completed", 1.0, true, attributes)
                .replace(r#""session_id":"s""#, &format!(r#""session_id":"{session}""#))
        };
        let lines = [
            line("catalog.loaded", 1.0, true, r#"{"definition_tokens":1000,"surface_tokens":100}"#),
            of("a", r#"{"answer_tokens":10,"result_tokens":500}"#),
            of("a", r#"{"answer_tokens":7}"#),
            line("catalog.loaded", 1.0, true, r#"{"definition_tokens":3000,"surface_tokens":100}"#),
            of("a", r#"{"answer_tokens":10,"result_tokens":10}"#),
            of("b", r#"{"answer_tokens":3}"#),
        ];
        let savings = EventStats::read(lines.join("\n").as_bytes(), &Window::all()).unwrap().savings.unwrap();
        assert_eq!((savings.sessions, savings.definitions, savings.surface), (2, 4_000, 200));
        let spent = savings.spent;
        assert_eq!((spent.calls, spent.results, spent.answers, spent.other), (2, 510, 20, 10));
        assert_eq!(savings.saved(), 4_510 - 230);
    }

    #[test]
    fn every_code_has_a_remedy_and_foreign_words_have_none() {
        for code in Code::WORDS {
            assert!(EventStats::remedy(code).is_some_and(|remedy| !remedy.is_empty()), "{code}");
        }
        assert_eq!([EventStats::remedy("<script>"), EventStats::remedy("args_invalid")], [None, None]);
    }

    #[test]
    fn percentiles_are_values_that_occur() {
        let times = |count: u32| (1..=count).rev().map(f64::from).collect::<Vec<_>>();
        assert_eq!(Durations::of(Vec::new()), None);
        assert_eq!(Durations::of(times(1)), Some(Durations { p50: 1.0, p95: 1.0, max: 1.0 }));
        assert_eq!(Durations::of(times(100)), Some(Durations { p50: 50.0, p95: 95.0, max: 100.0 }));
        assert_eq!(Durations::of(times(3)), Some(Durations { p50: 2.0, p95: 3.0, max: 3.0 }));
    }
}
