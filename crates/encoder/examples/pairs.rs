//! What a cross-encoder with this network would cost: the time to read a query together with each of twenty tools.
//!
//! Prints medians of a run on one core: a query alone, one tool, and twenty texts of a query and a tool, as they are and cut at
//! so many pieces. `cargo run --release -p contextweaver-encoder --example pairs`

use std::time::Instant;

use contextweaver_encoder::MiniLm;

/// Repetitions, of which the median counts.
const RUNS: usize = 30;

const QUERY: &str = "who is on call tonight for the payments team and until when";

const TOOL: &str = "get schedule. Returns the rota of a team: who is on call now, who comes next, with the times of the shifts and \
    how each person can be reached. Filter by team, by level of escalation or by a range of dates";

fn main() -> Result<(), contextweaver_encoder::ModelError> {
    let model = MiniLm::built_in()?;
    // No text is like another, as no pair of a query and a tool is.
    let pairs: Vec<String> = (0..20).map(|number| format!("{QUERY} {number} {TOOL}")).collect();
    let half: Vec<String> = pairs.iter().map(|pair| pair.chars().take(pair.chars().count() / 2).collect()).collect();
    let table: [(&str, &[String]); 4] = [
        ("a query", &[QUERY.to_owned()]),
        ("a tool", &[TOOL.to_owned()]),
        ("twenty pairs", &pairs),
        ("twenty pairs of half the length", &half),
    ];
    for (what, texts) in table {
        let mut times: Vec<f64> = (0..RUNS).map(|_| milliseconds(&model, texts)).collect();
        times.sort_by(f64::total_cmp);
        println!("{what}: {:.1} ms", times[RUNS / 2]);
    }
    Ok(())
}

fn milliseconds(model: &MiniLm, texts: &[String]) -> f64 {
    let start = Instant::now();
    std::hint::black_box(model.encode_tools(texts));
    start.elapsed().as_secs_f64() * 1e3
}
