//! What a hop through the gateway costs, and the engines over HTTP: the tables of the rows that the benches between processes leave
//! behind.

use crate::eval::gateway::overhead::{self, OverheadRow};
use crate::eval::tables::Tables;

use crate::report::document::Document;
use crate::report::number::{MISSING, fixed, quantity};
use crate::report::table::Table;

/// What the name of the row begins with to which the others of its path are compared.
const DIRECT: &str = "direct";

/// The tables, one per kind of measurement; nothing without rows.
pub(super) fn section(page: &mut Document, recorded: &Tables) {
    hops(page, recorded);
    interface(page, recorded);
}

/// The engines over HTTP beside the library.
fn interface(page: &mut Document, recorded: &Tables) {
    let rows = recorded.interface.as_slice();
    if rows.is_empty() {
        return;
    }
    page.subheading("What the engines cost over HTTP");
    page.block(
        "Measured by `target/dist/examples/engine-interface --out scorecard/timings/interface-overhead.csv`, after \
         `cargo build --profile dist --bins --examples`: the same questions to the library in one process and to \
         [`contextweaver serve`](../docs/http.md) in another, which take turns in one run. In brackets the value as a \
         multiple of the library's. Times belong to the machine on which they were measured; these values are never \
         computed again.",
    );
    if let Some(origin) = recorded.origin(overhead::INTERFACE_FILE) {
        page.block(&origin.sentence());
    }
    for (unit, reading) in [
        ("us", "Times in µs, from the question to the whole answer."),
        ("calls/s", "Questions answered per second, by how many are asked at once."),
        ("MiB", "Resident memory of the service in MiB, at the end of the run."),
    ] {
        for table in tables(rows, unit) {
            page.table(reading, &table);
        }
    }
}

fn hops(page: &mut Document, recorded: &Tables) {
    let rows = recorded.overhead.as_slice();
    if rows.is_empty() {
        return;
    }
    page.subheading("What a hop costs");
    page.block(
        "Measured by `target/dist/examples/engine-overhead --out scorecard/timings/gateway-overhead.csv`, built with \
         the profile of the packages: the same client and the same upstream, with different programs between them that \
         take turns in one run. In brackets the value as a multiple of the direct connection's on the same path. Times \
         belong to the machine on which they were measured; these values are never computed again.",
    );
    if let Some(origin) = recorded.origin(overhead::FILE) {
        page.block(&origin.sentence());
    }
    for (unit, reading) in [
        (
            "us",
            "Times in µs: a call with a result of that size, from the start to the first answer, from the start to the \
             first list of tools, and a list after that.",
        ),
        ("calls/s", "Calls per second by the number of concurrent clients, the median of seven alternating rounds."),
        (
            "MiB",
            "Resident memory in MiB: at the end of the run, and after 1 000 and 100 000 calls in a row, of which one in 50 has \
             a result of 10 kB and the others of 10 B.",
        ),
    ] {
        for table in tables(rows, unit) {
            page.table(reading, &table);
        }
    }
}

/// What a call through the gateway takes beside a direct one, in a sentence.
pub(super) fn answer(recorded: &Tables) -> Option<String> {
    const PATH: &str = "stdio to stdio";
    const MEASURE: &str = "10 B p50";
    let value = |engine: &str| {
        let is_it = |row: &&OverheadRow| row.path == PATH && row.measure == MEASURE && row.engine == engine;
        recorded.overhead.iter().find(is_it).map(|row| quantity(row.value))
    };
    let origin = recorded.origin(overhead::FILE)?;
    let place = if origin.machine.is_none() { ", machine unknown" } else { "" };
    Some(format!(
        "A call with a small result takes {} µs through the [gateway](gateway.md#what-a-hop-costs), {} µs direct and {} µs \
         through a relay of bytes (recorded {}{place}).",
        value("contextweaver gateway")?,
        value(DIRECT)?,
        value("byte relay")?,
        origin.recorded,
    ))
}

/// One table for each set of measures that some paths share.
fn tables(rows: &[OverheadRow], unit: &str) -> Vec<Table> {
    let rows: Vec<&OverheadRow> = rows.iter().filter(|row| row.unit == unit).collect();
    let mut paths: Vec<&str> = Vec::new();
    for row in &rows {
        if !paths.contains(&row.path.as_str()) {
            paths.push(&row.path);
        }
    }
    let mut groups: Vec<(Vec<&str>, Vec<&str>)> = Vec::new();
    for path in paths {
        let mut measures: Vec<&str> = Vec::new();
        for row in rows.iter().filter(|row| row.path == path) {
            if !measures.contains(&row.measure.as_str()) {
                measures.push(&row.measure);
            }
        }
        match groups.iter_mut().find(|(known, _)| *known == measures) {
            Some((_, paths)) => paths.push(path),
            None => groups.push((measures, vec![path])),
        }
    }
    groups.into_iter().map(|(measures, paths)| table(&rows, &measures, &paths)).collect()
}

fn table(rows: &[&OverheadRow], measures: &[&str], paths: &[&str]) -> Table {
    let mut table = Table::new(["path", "engine"].into_iter().chain(measures.iter().copied())).words(&["engine"]);
    for path in paths {
        let own: Vec<&&OverheadRow> = rows.iter().filter(|row| row.path == *path).collect();
        let mut engines: Vec<&str> = Vec::new();
        for row in &own {
            if !engines.contains(&row.engine.as_str()) {
                engines.push(&row.engine);
            }
        }
        for engine in engines {
            let value = |measure: &str, is_wanted: &dyn Fn(&str) -> bool| {
                own.iter().find(|row| row.measure == measure && is_wanted(&row.engine)).map(|row| row.value)
            };
            let cell = |measure: &&str| {
                let Some(shown) = value(measure, &|name| name == engine) else { return MISSING.to_owned() };
                match value(measure, &|name| name.starts_with(DIRECT)) {
                    Some(direct) if direct > 0.0 && !engine.starts_with(DIRECT) => {
                        format!("{} (×{})", quantity(shown), fixed(shown / direct, 2))
                    }
                    _ => quantity(shown),
                }
            };
            let names = [(*path).to_owned(), engine.to_owned()];
            table.row(names.into_iter().chain(measures.iter().map(cell)));
        }
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_compared_with_the_direct_connection_of_their_path() {
        let row = |path: &str, engine: &str, measure: &str, value: f64, unit: &str| OverheadRow {
            path: path.to_owned(),
            engine: engine.to_owned(),
            measure: measure.to_owned(),
            value,
            unit: unit.to_owned(),
        };
        let rows = [
            row("stdio", "direct", "10 B p50", 40.0, "us"),
            row("stdio", "direct", "10 B p99", 60.0, "us"),
            row("stdio", "gateway", "10 B p50", 100.0, "us"),
            row("HTTP", "direct over HTTP", "10 B p50", 50.0, "us"),
            row("HTTP", "direct over HTTP", "10 B p99", 80.0, "us"),
            row("HTTP", "gateway", "10 B p99", 160.0, "us"),
            row("start", "gateway", "start p50", 2_000.0, "us"),
            row("HTTP", "gateway", "8 clients", 9_000.0, "calls/s"),
        ];
        let mut page = Document::default();
        section(&mut page, &Tables { overhead: rows.to_vec(), ..Tables::default() });
        let text = page.text();
        for shown in ["100 (×2.50)", "160 (×2.00)", "2,000", "9,000"] {
            assert_eq!(text.matches(shown).count(), 1, "{shown}: {text}");
        }
        section(&mut page, &Tables::default());
        assert_eq!(page.text(), text);
        let row = |engine: &str, measure: &str, value| row("route among 1 000 tools", engine, measure, value, "us");
        let rows = [
            row("direct call of the library", "p50", 20.0),
            row("direct call of the library", "p99", 30.0),
            row("contextweaver serve", "p50", 50.0),
            row("contextweaver serve", "p99", 90.0),
        ];
        let mut page = Document::default();
        section(&mut page, &Tables { interface: rows.to_vec(), ..Tables::default() });
        let text = page.text();
        for shown in ["What the engines cost over HTTP", "50.0 (×2.50)", "90.0 (×3.00)"] {
            assert_eq!(text.matches(shown).count(), 1, "{shown}: {text}");
        }
    }
}
