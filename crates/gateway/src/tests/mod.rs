mod diagnostics;
mod folders;
mod fuzz;
mod guards;
mod search;
mod secrets;
pub(crate) mod shop;
mod tenants;
