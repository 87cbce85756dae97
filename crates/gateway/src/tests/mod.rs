mod diagnostics;
mod folders;
mod fuzz;
mod guards;
mod secrets;
pub(crate) mod shop;
mod tenants;
