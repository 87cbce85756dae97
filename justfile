# The routines of CONTRIBUTING.md. Each is a plain command: without `just`, run it by hand.

# List the routines
default:
    @just --list

# Format, then lint everything
lint:
    cargo fmt
    cargo clippy --workspace --all-targets -- -D warnings

# Unit tests of one crate (core, encoder, routing, context, gateway, bench), or those whose path contains FILTER
room NAME FILTER="":
    cargo test -p contextweaver-{{NAME}} --lib -- {{FILTER}}

# Tests of the commands and the examples, or those whose path contains FILTER
commands FILTER="":
    cargo build --examples
    cargo test -p contextweaver --test it -- {{FILTER}}

# Examples in the documentation and in the README
doctests:
    cargo test --workspace --doc

# Tests of the Python module, and the recipes for frameworks
python:
    cargo build --bin contextweaver
    cargo build -p contextweaver-python
    scripts/python-test
    scripts/python-recipes

# Packages of the profile `dist`, in dist/
packages:
    cargo build --locked --profile dist -p contextweaver -p contextweaver-python --bin contextweaver --lib
    scripts/package

# Everything that CI runs
check:
    .ci/run

# Compute the facts again and compare them with the committed ones
facts:
    cargo run --release -- bench check

# Compute the facts, write them and render the pages
record:
    cargo run --release -- bench run
    scripts/site --check-tables --write

# Render the pages from the committed records
render:
    cargo run --release -- bench render
    scripts/site --check-tables --write

# Record timings; only on a quiet machine
timings:
    cargo run --profile dist -- bench run --record-timings

# What each set of features compiles
weight:
    scripts/router-alone

# The site of the documentation, in target/site
site:
    cargo build
    scripts/site

# The manual
docs:
    cargo doc --workspace --no-deps --open
