//! The door of programs that choose one of the cards they are shown, by protocol 1 of `docs/engines.md`: a model in the loop.
//!
//! What comes back is what the model said. Whether it stands for a card, and whether that one is right, is for who asked.

use std::ffi::OsString;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::program::{Launch, bounded};
use super::speaker::Speaker;
use super::{Hiding, Limits, ProcessError};

/// A longer text stands for no card: an id on a card has at most 80 tokens, and no token has more than 128 bytes. No more
/// characters than this are kept of what a program says.
const LONGEST_CHOICE: usize = 10_241;

/// How a program is started.
#[derive(Debug, Clone)]
pub struct Chooser {
    /// The program and its arguments.
    pub command: Vec<OsString>,
    /// Files and folders that it must not read.
    pub hidden: Vec<PathBuf>,
    /// Names of variables of the environment that it gets beside the few that every program gets: keys and addresses.
    pub variables: Vec<String>,
    /// The bounds of a run.
    pub limits: Limits,
}

/// What a program said to one question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Said {
    /// The text that shall stand for a card, without white space at both ends; `None` for no tool.
    pub choice: Option<String>,
    /// How long it took as we saw it, in microseconds.
    pub us: u64,
}

impl Said {
    /// What is kept of `choice`.
    pub(in crate::eval) fn of(choice: Option<&str>, us: u64) -> Self {
        Self { choice: choice.map(|text| text.trim().chars().take(LONGEST_CHOICE).collect()), us }
    }
}

/// A program that runs.
pub struct ChoosingProgram {
    speaker: Speaker,
    name: String,
    version: String,
}

impl ChoosingProgram {
    /// Starts a program, and hears its name and version and one ping.
    ///
    /// # Errors
    /// [`ProcessError`].
    pub fn start(chooser: &Chooser) -> Result<Self, ProcessError> {
        let Chooser { command, hidden, variables, limits } = chooser;
        let mut speaker = Speaker::start(Launch { command, hidden, variables }, *limits)?;
        let hello = speaker.hello()?;
        speaker.ping()?;
        Ok(Self { speaker, name: hello.name, version: hello.version })
    }

    /// What it calls itself.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its version: of a model, which one.
    #[must_use]
    pub fn version(&self) -> &str {
        &self.version
    }

    /// What the kernel keeps from it.
    #[must_use]
    pub fn hiding(&self) -> &Hiding {
        self.speaker.program.hiding()
    }

    /// What it chooses. `query` is for messages; `members` are those of the request, without `op` and `id`.
    ///
    /// # Errors
    /// [`ProcessError`]; [`ProcessError::TimedOut`] with the query where no answer comes in time.
    pub fn choose(&mut self, query: &str, members: Map<String, Value>) -> Result<Said, ProcessError> {
        let what = format!("the query {:?}", bounded(query));
        let mut request = json!({"op": "choose"});
        if let Some(request) = request.as_object_mut() {
            request.extend(members);
        }
        let (reply, us) = self.speaker.ask_by_id(&what, request)?;
        let Some(choice) = reply.choice else {
            return Err(self.speaker.program.failed(format!("{what}: the answer has no `choice`")));
        };
        Ok(Said::of(choice.as_deref(), us))
    }

    /// Ends its input; it has to end by itself, and well.
    ///
    /// # Errors
    /// [`ProcessError`].
    pub fn end(self) -> Result<(), ProcessError> {
        self.speaker.program.end()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// What a program in shell says to a question; `$id` is the id of the request.
    fn said(answer: &str) -> Result<Said, ProcessError> {
        let script = format!(
            r#"read -r line; echo '{{"ok":true,"name":"shell","version":"1"}}'
            read -r line; echo '{{"id":"a1"}}'
            while read -r line; do id=a2; {answer}; done"#
        );
        let command = ["sh", "-c", script.as_str()].map(OsString::from).to_vec();
        let limits = Limits { load: Duration::from_secs(20), route: Duration::from_secs(5), ..Limits::default() };
        let chooser = Chooser { command, hidden: Vec::new(), variables: Vec::new(), limits };
        let mut program = ChoosingProgram::start(&chooser)?;
        assert_eq!((program.name(), program.version()), ("shell", "1"));
        let said = program.choose("what", Map::new())?;
        program.end()?;
        Ok(said)
    }

    #[test]
    fn a_choice_is_a_text_or_null() {
        let table = [
            (r#"echo '{"id":"a2","choice":" s:t "}'"#, Some("s:t")),
            (r#"echo '{"id":"a2","choice":""}'"#, Some("")),
            (r#"echo '{"id":"a2","choice":null,"thought":"none fits"}'"#, None),
        ];
        for (answer, expected) in table {
            assert_eq!(said(answer).unwrap().choice.as_deref(), expected, "{answer}");
        }
        let long = r#"printf '{"id":"a2","choice":"'; head -c 50000 /dev/zero | tr '\0' x; echo '"}'"#;
        assert_eq!(said(long).unwrap().choice.map(|text| text.len()), Some(LONGEST_CHOICE));
    }

    #[test]
    fn what_is_no_choice_is_named() {
        let table = [
            (r#"echo '{"id":"a2"}'"#, "failed: the query \"what\": the answer has no `choice`"),
            (r#"echo '{"id":"a2","choice":7}'"#, "is not a JSON object of the protocol: invalid type: integer `7`"),
            (r#"echo '{"id":"a1","choice":"s:t"}'"#, "the answer has the id Some(\"a1\") and not \"a2\""),
            (r#"echo '{"id":"a2","error":"no key"}'"#, "it says \"no key\""),
            (r#"echo '{"id":"a2","unsupported":"no cards"}'"#, "unsupported: the query \"what\": no cards"),
            (r#"echo '{"id":"a2","choice":null}'; exit 3"#, "it ended with exit status: 3 after its input"),
        ];
        for (answer, expected) in table {
            let error = said(answer).unwrap_err().to_string();
            assert!(error.contains(expected), "{expected}: {error}");
        }
    }
}
