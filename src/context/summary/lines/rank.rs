//! In which order statements about a text are admitted, and where they stand.
//!
//! Counts and both ends come first since every question about a large text starts there and they are short; then what
//! went wrong; then numbers and labelled values; then the outline, which takes what is left.

/// How much there is.
pub const SHAPE: u32 = 0;
/// The first and last line.
pub const ENDS: u32 = 10;
/// What went wrong first, and how often.
pub const ERROR: u32 = 20;
/// Sizes, levels, ranges.
pub const STAT: u32 = 30;
/// Labelled values.
pub const LEAF: u32 = 40;
/// A few entries of the outline.
pub const OUTLINE: u32 = 50;
/// Numbers of lesser worth.
pub const MORE_STAT: u32 = 45;
/// All of the outline that fits. Lists that stand side by side grow by turns on this and the next ranks.
pub const WHOLE_OUTLINE: u32 = 70;
/// The whole outline in a richer wording.
pub const RICH_OUTLINE: u32 = 80;
/// Verbatim lines at twice their length.
pub const LONGER: u32 = 82;
/// What stands behind the outline: a second list.
pub const SECOND_OUTLINE: u32 = 85;
/// Verbatim lines at their greatest length.
pub const LONGEST: u32 = 90;
/// Lines spread evenly over the text.
pub const SAMPLE: u32 = 100;

/// Places in the summary.
pub const SHAPE_PLACE: u32 = 0;
pub const FIRST_LINE_PLACE: u32 = 10;
pub const ERROR_PLACE: u32 = 20;
pub const STAT_PLACE: u32 = 30;
pub const LEAF_PLACE: u32 = 40;
pub const OUTLINE_PLACE: u32 = 50;
pub const SECOND_OUTLINE_PLACE: u32 = 60;
pub const SAMPLE_PLACE: u32 = 70;
pub const LAST_LINE_PLACE: u32 = 9_000;
/// Distance between the places of two parts of a text.
pub const PART_PLACES: u32 = 100;
/// By how much statements about a part stand behind those about the whole.
pub const PART_RANKS: u32 = 1;
