//! Outside formats of conversations, and our types.
//!
//! One file per format; pure functions, no I/O. What a format says and our types do not know is kept in the metadata
//! of an item, so that it survives a round trip.
