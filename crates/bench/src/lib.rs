//! The harness: collections and engines in, records of facts out, and pages rendered from the records.
//!
//! [`eval`] measures and never renders; [`report`] has the means to render and never measures; [`results`] are what
//! stands between them, in files that say where each record comes from. A [`comparison`] judges two measurements of the same
//! queries. A [`chapter`] ties one subject together, the [`chapters`] are listed in one place, and the [`scorecard`] runs,
//! renders and checks all of them. A catalog of one's [`own`] has its gate without any of that.

pub mod chapter;
pub mod chapters;
pub mod comparison;
pub mod data;
pub mod eval;
pub mod own;
pub mod public;
pub mod report;
pub mod results;
pub mod scorecard;
