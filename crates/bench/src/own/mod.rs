//! A catalog of one's own with its gate: a folder with `gate.toml`, measured without a checkout.
//!
//! [`workspace`] reads the folder, [`template`] makes one, [`results`] measures it, [`gate`] judges what was measured and
//! [`words`] says it to people. [`impact`] measures what a change of a catalog does, definition by definition; [`checks`]
//! judges that, with the [`place`] of what is at fault, and [`formats`] writes it for people and for CI. Without a folder,
//! [`bounds`] judge an engine, also by a [`baseline`], and [`failures`] are the queries that lack a tool. What a measure
//! is stands in [`crate::eval`]. Pages of the scorecard are not made here.

pub mod baseline;
pub mod bounds;
pub mod checks;
pub mod failures;
pub mod formats;
pub mod gate;
pub mod impact;
pub mod place;
pub mod results;
pub mod template;
pub mod threshold;
pub mod words;
pub mod workspace;

pub use gate::{Against, Judged, Moved, Power, judge};
pub use results::{Measured, RESULTS_FILE, measure};
pub use workspace::{Home, OwnWorkspace};
