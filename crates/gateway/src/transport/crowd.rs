//! How much each of many has open at a time: connections of an address, requests of a caller, bytes of both.
//!
//! Who has as much as it may gets no more until something of its own ends; what others have plays no part.

use std::collections::HashMap;
use std::hash::Hash;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use crate::common::sync::lock;

/// What is open, by whose it is.
#[derive(Debug)]
pub(super) struct Crowd<K: Eq + Hash> {
    most: AtomicUsize,
    open: Mutex<HashMap<K, usize>>,
}

/// One thing that is open, until this is dropped.
#[derive(Debug)]
pub(super) struct Place<K: Eq + Hash> {
    crowd: Arc<Crowd<K>>,
    whose: K,
    count: usize,
}

impl<K: Eq + Hash + Clone> Crowd<K> {
    /// Nothing is open, and nobody may have more than `most`.
    pub(super) fn new(most: usize) -> Arc<Self> {
        Arc::new(Self { most: AtomicUsize::new(most), open: Mutex::default() })
    }

    /// What one may have open.
    pub(super) fn most(&self) -> usize {
        self.most.load(Ordering::Relaxed)
    }

    /// From now on nobody may open more than `most`; what is open stays.
    pub(super) fn set_most(&self, most: usize) {
        self.most.store(most, Ordering::Relaxed);
    }

    /// Opens something more; `None` when that would be too much.
    pub(super) fn enter(self: &Arc<Self>, whose: K) -> Option<Place<K>> {
        self.enter_with(whose, 1)
    }

    /// Opens so many more; `None` when that would be too much.
    pub(super) fn enter_with(self: &Arc<Self>, whose: K, count: usize) -> Option<Place<K>> {
        self.enter_within(whose, count, self.most())
    }

    /// Opens so many more for one that may have `most` open, whatever others may.
    pub(super) fn enter_within(self: &Arc<Self>, whose: K, count: usize, most: usize) -> Option<Place<K>> {
        let mut open = lock(&self.open);
        let held = open.get(&whose).copied().unwrap_or_default();
        let total = held.checked_add(count).filter(|total| *total <= most)?;
        open.insert(whose.clone(), total);
        Some(Place { crowd: Arc::clone(self), whose, count })
    }
}

impl<K: Eq + Hash> Place<K> {
    /// Gives back what is over `count`.
    pub(super) fn shrink(&mut self, count: usize) {
        let over = self.count.saturating_sub(count);
        self.count -= over;
        let mut open = lock(&self.crowd.open);
        if let Some(held) = open.get_mut(&self.whose) {
            *held = held.saturating_sub(over);
            if *held == 0 {
                open.remove(&self.whose);
            }
        }
    }
}

impl<K: Eq + Hash> Drop for Place<K> {
    fn drop(&mut self) {
        self.shrink(0);
    }
}

/// Who an address stands for: a host of IPv6 has a network of its own, 64 bits long.
pub(super) fn neighbour(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & !u128::from(u64::MAX))),
        address => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_takes_no_place_of_another_and_what_ends_makes_room() {
        let crowd = Crowd::new(2);
        let held: Vec<_> = ["a", "a", "a", "b"].map(|whose| crowd.enter(whose)).into();
        assert_eq!(held.iter().map(Option::is_some).collect::<Vec<_>>(), [true, true, false, true]);
        drop(held);
        assert!(lock(&crowd.open).is_empty() && crowd.enter("a").is_some());
        crowd.set_most(10);
        let mut large = crowd.enter_with("a", 8).unwrap();
        assert!(crowd.enter_with("a", 3).is_none() && crowd.enter_with("a", usize::MAX).is_none());
        large.shrink(7);
        large.shrink(9);
        assert!(crowd.enter_with("a", 3).is_some() && crowd.enter_with("b", 10).is_some());
        drop(large);
        assert!(crowd.enter_within("a", 11, 10).is_none());
        let larger = crowd.enter_within("a", 11, 11).unwrap();
        assert!(crowd.enter("a").is_none() && crowd.enter("b").is_some());
        drop(larger);
        assert!(lock(&crowd.open).is_empty());
    }

    #[test]
    fn an_address_stands_for_its_host() {
        let of = |text: &str| neighbour(text.parse().unwrap()).to_string();
        assert_eq!(of("192.0.2.1"), "192.0.2.1");
        assert_eq!(of("::ffff:192.0.2.1"), "192.0.2.1");
        assert_eq!(of("2001:db8::1:2:3:4"), of("2001:db8::4:3:2:1"));
        assert_ne!(of("2001:db8:0:1::1"), of("2001:db8::1"));
    }
}
