mod diagnostics;
mod folders;
mod guards;
mod secrets;
mod shop;
mod tenants;
