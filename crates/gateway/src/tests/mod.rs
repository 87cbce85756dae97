mod diagnostics;
mod folders;
mod guards;
mod secrets;
pub(crate) mod shop;
mod tenants;
