//! The chapters of the scorecard, one file or folder each, and the list of them.

pub mod collections;
pub mod confidence;
pub mod context;
pub mod copies;
pub mod feedback;
pub mod gateway;
pub mod meaning;
pub mod routing;
pub mod scaling;

use crate::chapter::AnyChapter;
use collections::PerCollection;

/// Every chapter, in the order of the page.
pub const CHAPTERS: [&dyn AnyChapter; 8] = [
    &PerCollection(meaning::Meaning),
    &routing::Routing,
    &PerCollection(copies::CopiesChapter),
    &PerCollection(confidence::Confidence),
    &PerCollection(feedback::Feedback),
    &scaling::Scaling,
    &context::ContextChapter,
    &gateway::GatewayChapter,
];

/// The chapter called `name`.
#[must_use]
pub fn find(name: &str) -> Option<&'static dyn AnyChapter> {
    CHAPTERS.into_iter().find(|chapter| chapter.name() == name)
}
