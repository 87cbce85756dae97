//! The order in which statements about data are admitted, and their places in the summary.
//!
//! Shape first, then short ends; then of every column what is asked first, before any column gets more; then long ends.
//! The scale is that of the statements about lines.

pub(super) const SHAPE: u32 = 0;
pub(super) const NAMES: u32 = 5;
/// The text that announces a literal or a table.
pub(super) const LEAD: u32 = 11;
pub(super) const SHORT_ENDS: u32 = 10;
/// The whole, wherever it fits after the statistics that cannot be read off at a glance.
pub(super) const LOSSLESS: u32 = 49;
pub(super) const STAT: u32 = 30;
pub(super) const MORE_STAT: u32 = 32;
/// Rows with values that few others have: in a table, and where rows are told by what is in their objects or have names.
pub(super) const UNUSUAL: u32 = 33;
pub(super) const FIRST_UNUSUAL: u32 = 8;
/// All values of both ends, where there are many.
pub(super) const WHOLE_ENDS: u32 = 36;
/// The values of keys on all levels.
pub(super) const BY_KEY: u32 = 41;
/// What went wrong deep in a tree, and what stands beside it.
pub(super) const ERROR: u32 = 6;
pub(super) const MORE_ERRORS: u32 = 35;
/// How often labels occur.
pub(super) const LABELS: u32 = 38;
/// Both ends with the names of the columns.
pub(super) const ENDS: u32 = 45;
pub(super) const SIZE: u32 = 48;
pub(super) const RICH_STAT: u32 = 50;
pub(super) const MORE_NESTED: u32 = 80;
/// Values below the rows of a table.
pub(super) const INNER: u32 = 90;
pub(super) const ALL_INNER: u32 = 95;
pub(super) const MORE_INNER: u32 = 97;
pub(super) const ALL_NAMES: u32 = 55;
pub(super) const KEYS: u32 = 52;
/// The first keys at the root.
pub(super) const FIRST_KEYS: u32 = 13;
/// The value at the end of a tree.
pub(super) const LAST_LEAF: u32 = 14;
/// The totals of rows that hold rows, on all levels.
pub(super) const TOTALS: u32 = 9;
pub(super) const NESTED: u32 = 60;
pub(super) const LONGER: u32 = 65;
pub(super) const VERBATIM: u32 = 70;
pub(super) const SAMPLE: u32 = 100;

/// The rank of a leaf by its number, from 1: a few leaves at the root before statistics, the others after the ends.
pub(super) fn leaf(number: u32, path: &str) -> u32 {
    let inner = path.contains(['.', '[']);
    match number {
        1..=6 if !inner => 12,
        7..=12 if !inner => 15,
        1..=16 => 40,
        17..=40 => 42,
        _ => 62,
    }
}

pub(super) const SHAPE_PLACE: u32 = 0;
pub(super) const FIRST_PLACE: u32 = 1;
pub(super) const SAMPLE_PLACE: u32 = 2;
/// The place of unusual rows, after the other rows between the first and the last.
pub(super) const UNUSUAL_PLACE: u32 = 30;
pub(super) const LAST_PLACE: u32 = 50;
pub(super) const STAT_PLACE: u32 = 51;
/// The place of what went wrong, after the size.
pub(super) const ERROR_PLACE: u32 = 2;
/// The place of leaves in the whole, behind the places that have a meaning in texts of lines.
pub(super) const LEAF_PLACE: u32 = 100;
/// The place of the values of keys on all levels.
pub(super) const BY_KEY_PLACE: u32 = 890;
/// The place after the leaves.
pub(super) const LAST_LEAF_PLACE: u32 = 900;
/// The place of the first table, and the distance to the next.
pub(super) const TABLE_PLACE: u32 = 1000;
pub(super) const TABLE_PLACES: u32 = 1000;
/// The place of values below the rows, after the statistics.
pub(super) const INNER_PLACE: u32 = 400;
/// The place of the first text in a string, and the distance to the next.
pub(super) const EMBEDDED_PLACE: u32 = 1_000_000;
pub(super) const EMBEDDED_PLACES: u32 = 100_000_000;
/// The place after a table.
pub(super) const AFTER_PLACE: u32 = 2000;
/// The place after everything else.
pub(super) const LOSSLESS_PLACE: u32 = u32::MAX;
/// How much later a table is admitted than a larger one.
pub(super) const TABLE_DELAY: u32 = 3;
/// How much later a text in a string is admitted than a longer one.
pub(super) const EMBEDDED_DELAY: u32 = 20;
/// How much later a table is admitted that is not most of the whole: after the leaves at the root.
pub(super) const SMALL_DELAY: u32 = 12;
