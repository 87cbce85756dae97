//! The gateway x catalogs, recorded sessions, scenarios and requests by kind -> records of what its surface and its answers cost,
//! and of what its searches find.
//!
//! Everything goes through a real gateway as a client sees it; only the servers behind it are code of this process
//! ([`stage`]), so that the same inputs give the same figures on every machine. What a hop costs in time is measured
//! elsewhere, between processes ([`overhead`] holds its rows).

pub mod case;
pub mod exchange;
pub mod kinds;
pub mod overhead;
pub mod record;
pub mod run;
pub mod scenario;
pub mod session;
pub mod stage;
pub mod surface;
