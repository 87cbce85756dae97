//! The list of recorded tables, `scorecard/timings/timings.json`: of each its digest, day, machine and revision.
//!
//! Nothing computes a recorded table again, so this list is no proof. It holds that a table was not changed in passing,
//! and it is what `bench check` and the pages name as recorded.

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};

use crate::eval::day::Day;
use contextweaver_core::text::sha256_hex;

/// The name of the file, beside the tables.
pub const FILE: &str = "timings.json";

/// The number of the format; a file with another number is refused.
const SCHEMA: u32 = 1;

/// Where a recorded table comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TableOrigin {
    /// The name of the file, in `scorecard/timings/`.
    pub file: String,
    /// SHA-256 (hex) of its bytes.
    pub sha256: String,
    /// The day on which it was recorded.
    pub recorded: Day,
    /// The machine on which it was; `None` where nobody noted it.
    pub machine: Option<String>,
    /// The revision of the sources that were measured; `None` where nobody noted it.
    pub revision: Option<String>,
}

impl TableOrigin {
    /// Where, when and of what the table was recorded, as a sentence for a page.
    #[must_use]
    pub fn sentence(&self) -> String {
        let machine =
            self.machine.as_ref().map_or("on an unrecorded machine".to_owned(), |name| format!("on `{name}`"));
        let revision = self.revision.as_ref().map_or(String::new(), |revision| format!(", revision `{revision}`"));
        format!("Recorded, not computed: {} {machine}{revision}.", self.recorded)
    }
}

/// What makes a list of tables unusable. Every message is followed by how to repair it.
#[derive(Debug, thiserror::Error)]
pub enum ManifestError {
    /// Not JSON, or with unknown or missing fields.
    #[error("not a list of recorded tables: {0}")]
    Malformed(#[from] serde_json::Error),
    /// A number of the format that this version does not read.
    #[error("the list has format {0}; this version reads {SCHEMA}")]
    Schema(u32),
    /// A table occurs twice, or out of order.
    #[error("table `{0}` is out of order or occurs twice")]
    Repeated(String),
    /// The content is not what the digest was taken of.
    #[error("its digest does not match its content: the file was changed by hand")]
    Digest,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Wire {
    schema: u32,
    digest: String,
    tables: Vec<TableOrigin>,
}

/// The bytes of the file: JSON with one table a line; `digest` is the SHA-256 (hex) of these bytes with itself empty.
///
/// # Errors
/// None that plain data gives.
pub fn to_json(tables: &[TableOrigin]) -> Result<String, serde_json::Error> {
    let digest = sha256_hex(lines(tables, "")?.as_bytes());
    lines(tables, &digest)
}

fn lines(tables: &[TableOrigin], digest: &str) -> Result<String, serde_json::Error> {
    let mut text = format!("{{\"schema\":{SCHEMA},\"digest\":\"{digest}\",\"tables\":[");
    for (number, table) in tables.iter().enumerate() {
        let separator = if number == 0 { "\n" } else { ",\n" };
        let _ = write!(text, "{separator}{}", serde_json::to_string(table)?);
    }
    text.push_str("\n]}\n");
    Ok(text)
}

/// Reads the file.
///
/// # Errors
/// [`ManifestError`]: anything but what [`to_json`] writes.
pub fn from_json(text: &str) -> Result<Vec<TableOrigin>, ManifestError> {
    let Wire { schema, digest, tables } = serde_json::from_str(text)?;
    if schema != SCHEMA {
        return Err(ManifestError::Schema(schema));
    }
    if let Some(pair) = tables.windows(2).find(|pair| pair[0].file >= pair[1].file) {
        return Err(ManifestError::Repeated(pair[1].file.clone()));
    }
    // The bytes themselves are compared, so that a file cannot say one thing to this program and another to a reader.
    if lines(&tables, &digest)? == text && sha256_hex(lines(&tables, "")?.as_bytes()) == digest {
        Ok(tables)
    } else {
        Err(ManifestError::Digest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tables() -> Vec<TableOrigin> {
        let table = |file: &str, machine: Option<&str>| TableOrigin {
            file: file.to_owned(),
            sha256: "0".repeat(64),
            recorded: Day::try_from("2026-01-31".to_owned()).unwrap(),
            machine: machine.map(str::to_owned),
            revision: None,
        };
        vec![table("a.csv", Some("desk")), table("b.csv", None)]
    }

    #[test]
    fn a_list_reads_the_same_and_says_what_is_known() {
        let text = to_json(&tables()).unwrap();
        assert_eq!(from_json(&text).unwrap(), tables());
        let [first, second] = &tables()[..] else { panic!("two tables") };
        assert_eq!(first.sentence(), "Recorded, not computed: 2026-01-31 on `desk`.");
        assert_eq!(second.sentence(), "Recorded, not computed: 2026-01-31 on an unrecorded machine.");
    }

    #[test]
    fn whatever_else_a_list_says_is_refused() {
        let text = to_json(&tables()).unwrap();
        for (from, to) in [
            ("2026-01-31", "2026-01-30"),
            ("\"schema\":1", "\"schema\":2"),
            ("\"sha256\":\"0", "\"sha256\":\"1"),
            ("\"machine\":null", "\"machine\": null"),
            ("\"digest\":\"", "\"digest\":\"0"),
            ("b.csv", "a.csv"),
            ("\"revision\":null", "\"revision\":null,\"by\":1"),
        ] {
            let forged = text.replacen(from, to, 1);
            assert_ne!(forged, text, "{from}");
            assert!(from_json(&forged).is_err(), "{from}");
        }
    }
}
