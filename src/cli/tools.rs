//! Lists of tools for requests: the forms that are written, and the names under which tools are called.

use std::path::Path;

use anyhow::Result;
use clap::ValueEnum;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use serde_json::{Map, Value, json};

use contextweaver_core::catalog::{CallNames, ToolFormat};
use contextweaver_core::files::replace_file;

/// A form that is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct WrittenFormat(pub(super) ToolFormat);

impl ValueEnum for WrittenFormat {
    fn value_variants<'a>() -> &'a [Self] {
        const ALL: [WrittenFormat; ToolFormat::WRITTEN.len()] = {
            let mut all = [WrittenFormat(ToolFormat::Native); ToolFormat::WRITTEN.len()];
            let mut at = 0;
            while at < all.len() {
                all[at] = WrittenFormat(ToolFormat::WRITTEN[at]);
                at += 1;
            }
            all
        };
        &ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        let help = match self.0 {
            ToolFormat::Native => "this program's own form, which keeps everything",
            ToolFormat::WeaverSpec => "choice cards, which have no schemas",
            ToolFormat::Mcp => "as an MCP server lists its tools",
            format => format.name(),
        };
        Some(PossibleValue::new(self.0.key()).help(help))
    }
}

/// Reads the form of the list of a request: any that is written but the native one, which nobody is sent.
pub(super) fn of_request() -> impl TypedValueParser<Value = ToolFormat> {
    let formats = ToolFormat::WRITTEN.into_iter().filter(|format| *format != ToolFormat::Native);
    PossibleValuesParser::new(formats.map(ToolFormat::key)).try_map(|key| ToolFormat::of_request(&key))
}

/// Writes the names that `wanted` takes, each with the id behind it; of a tool with renamed arguments an object that
/// has the original names too.
pub(super) fn write_names(path: &Path, names: &CallNames, wanted: impl Fn(&str) -> bool) -> Result<()> {
    let names_of_arguments = |id: &str| names.arguments(id);
    let names = names.iter().filter(|(_, id)| wanted(id));
    let names = names.map(|(name, id)| {
        let behind = match names_of_arguments(id) {
            None => id.into(),
            Some(arguments) => json!({"id": id, "arguments": arguments}),
        };
        (name.to_owned(), behind)
    });
    let names: Map<String, Value> = names.collect();
    replace_file(path, format!("{:#}\n", Value::Object(names)).as_bytes())?;
    Ok(())
}
