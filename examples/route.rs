//! The tools for a query, and why: `cargo run --example route -- [CATALOG] [QUERY]`.

use std::error::Error;

use contextweaver::routing::{Provider, SCORE_UNITS};
use contextweaver::{Request, Router};

const CATALOG: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/gold/workbench/catalog.json");

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let catalog = arguments.next().unwrap_or_else(|| CATALOG.to_owned());
    let query = arguments.next().unwrap_or_else(|| "who is on call tonight".to_owned());

    let router = Router::from_path(catalog)?;
    let route = router.route(&Request { top_k: Some(3), ..Request::new(query) })?;
    println!("{} of {} tools for \"{}\"", route.choices.len(), router.catalog().len(), route.query);
    println!("confidence {:.2}\n", route.confidence);
    for (number, choice) in (1..).zip(&route.choices) {
        // The card is what a model gets to read: no schema, at most 80 tokens.
        println!("{}", choice.card.line(number, route.choices.len()));
        // A score is a sum of integers, so its parts add up exactly.
        for part in &choice.parts {
            println!("    {:+.2} {:?}", part.value as f64 / SCORE_UNITS as f64, part.source);
        }
    }

    // The model answers with an id. The schema lets a provider enforce that; the check finds out what was meant.
    println!("\nschema of the answer: {}", route.selection_schema(Provider::OpenAi)?);
    for answer in [route.ids().first().map_or_else(String::new, |id| id.to_uppercase()), "phone:dial".to_owned()] {
        let checked = route.validate_selection(&answer);
        println!("the answer `{answer}`: {:?}, {:?}", checked.status, checked.id);
    }
    Ok(())
}
