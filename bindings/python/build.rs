//! A module finds the interpreter's functions when it is loaded; the linker of macOS must be told.

fn main() {
    pyo3_build_config::add_extension_module_link_args();
}
