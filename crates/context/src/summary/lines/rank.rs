//! The order in which statements about a text are admitted, and their places in the summary.
//!
//! Counts and both ends come first, since every question about a large text starts there and they are short; then
//! errors; then numbers and labelled values; then the outline, which takes what is left.

/// The size of the text.
pub(super) const SHAPE: u32 = 0;
/// The first and last line.
pub(super) const ENDS: u32 = 10;
/// The first error, and the number of errors.
pub(super) const ERROR: u32 = 20;
/// Sizes, levels and ranges.
pub(super) const STAT: u32 = 30;
/// Values with their labels.
pub(super) const LEAF: u32 = 40;
/// A few entries of the outline.
pub(super) const OUTLINE: u32 = 50;
/// Numbers of lesser worth.
pub(super) const MORE_STAT: u32 = 45;
/// As much of the outline as fits. Lists side by side grow by turns on this and the next ranks.
pub(super) const WHOLE_OUTLINE: u32 = 70;
/// The whole outline in a richer wording.
pub(super) const RICH_OUTLINE: u32 = 80;
/// Verbatim lines at twice their length.
pub(super) const LONGER: u32 = 82;
/// A second list after the outline.
pub(super) const SECOND_OUTLINE: u32 = 85;
/// Verbatim lines at their greatest length.
pub(super) const LONGEST: u32 = 90;
/// Lines spread evenly over the text.
pub(super) const SAMPLE: u32 = 100;

/// Places in the summary.
pub(super) const SHAPE_PLACE: u32 = 0;
pub(super) const FIRST_LINE_PLACE: u32 = 10;
pub(super) const ERROR_PLACE: u32 = 20;
/// What stands around the first errors.
pub(super) const EXCERPT_PLACE: u32 = 25;
pub(super) const STAT_PLACE: u32 = 30;
pub(super) const LEAF_PLACE: u32 = 40;
pub(super) const OUTLINE_PLACE: u32 = 50;
pub(super) const SECOND_OUTLINE_PLACE: u32 = 60;
pub(super) const SAMPLE_PLACE: u32 = 70;
pub(super) const LAST_LINE_PLACE: u32 = 9_000;
/// The distance between the places of two parts of a text.
pub(super) const PART_PLACES: u32 = 100;
/// How much later statements about a part are admitted than those about the whole.
pub(super) const PART_RANKS: u32 = 1;
