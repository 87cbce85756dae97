//! The catalog that the gateway serves: an immutable view of what the upstreams list, and how it is kept fresh.

pub(crate) mod answer_forms;
pub(crate) mod answers;
pub(crate) mod build;
mod exact_numbers;
pub(crate) mod follow;
pub(crate) mod from_file;
pub(crate) mod lessons;
mod list_cache;
pub(crate) mod names;
pub(crate) mod pages;
pub(crate) mod routes;
pub(crate) mod serving;
pub(crate) mod shelf;
pub(crate) mod view;
pub(crate) mod written;

#[cfg(test)]
pub(crate) use list_cache::tests::kept_lists;
