//! What operators do besides serving: check, preview, import, capture, record, play back, count, pack.

pub(crate) mod applied;
pub(crate) mod audit_trail;
pub(crate) mod capture;
pub(crate) mod client_cover;
pub(crate) mod client_edit;
pub(crate) mod client_files;
pub(crate) mod clients;
mod cover;
pub(crate) mod doctor;
pub(crate) mod event_feed;
pub(crate) mod event_lines;
pub(crate) mod event_rows;
pub(crate) mod event_stats;
pub(crate) mod import;
pub(crate) mod incident;
mod likely_secrets;
pub(crate) mod memory;
pub(crate) mod playback;
pub(crate) mod preview;
pub(crate) mod recording;
pub(crate) mod references;
pub(crate) mod rights;
pub(crate) mod running_stats;
pub(crate) mod servers;
mod text_parts;
pub(crate) mod tool_rows;
