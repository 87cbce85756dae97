mod diagnostics;
mod folders;
mod guards;
mod shop;
