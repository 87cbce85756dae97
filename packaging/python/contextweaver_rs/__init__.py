"""The command contextweaver, as a binary. `python -m contextweaver_rs` runs it."""
