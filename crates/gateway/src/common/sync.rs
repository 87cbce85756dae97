//! Locking. The data behind the gateway's locks is consistent after every statement.

pub(crate) use contextweaver_core::sync::lock;
