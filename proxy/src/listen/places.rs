//! How many connections there may be, and who yields when there is no room.
//!
//! ```text
//! a new connection ── a place is free ──────────────▶ seated
//!                  ── a seated one has asked nothing ─▶ seated in its place; the oldest such is cut
//!                  ── all are in use ────────────────▶ told so (503), a few at a time
//!                  ── and many wait to be told ───────▶ closed
//! ```
//! A peer that connects and is silent so keeps nobody out, and a controller that leaks connections is told.
#![allow(
    clippy::disallowed_types,
    reason = "the mutex is held for a few instructions once a connection, and a poisoned one is taken as it is"
)]

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use tokio_util::sync::CancellationToken;

/// Connections that are being told that there is no room.
const TURNED_AWAY: usize = 16;

/// The places of a listener.
#[derive(Clone, Debug)]
pub struct Places(Arc<Mutex<Taken>>);

/// Who has the places.
#[derive(Debug)]
struct Taken {
    limit: usize,
    seated: usize,
    turned_away: usize,
    number: u64,
    /// Seated connections that have asked nothing yet, oldest first.
    silent: BTreeMap<u64, CancellationToken>,
}

/// A connection's place, until it is dropped.
#[derive(Debug)]
pub struct Place {
    places: Places,
    number: u64,
    is_seat: bool,
    asked: AtomicBool,
    cut: CancellationToken,
}

// === impl Places ===

impl Places {
    /// So many places, at least one.
    pub fn new(limit: usize) -> Self {
        let taken =
            Taken { limit: limit.max(1), seated: 0, turned_away: 0, number: 0, silent: BTreeMap::new() };
        Self(Arc::new(Mutex::new(taken)))
    }

    /// A place for a new connection; none if it is to be closed at once.
    pub fn take(&self) -> Option<Place> {
        let mut taken = self.lock();
        let is_seat = taken.seat();
        if !is_seat && taken.turned_away == TURNED_AWAY {
            return None;
        }
        let cut = CancellationToken::new();
        taken.number += 1;
        let number = taken.number;
        if is_seat {
            taken.silent.insert(number, cut.clone());
        } else {
            taken.turned_away += 1;
        }
        Some(Place { places: self.clone(), number, is_seat, asked: AtomicBool::new(false), cut })
    }

    /// Nothing panics while it is held; a poisoned lock would be as good as new.
    fn lock(&self) -> MutexGuard<'_, Taken> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl Taken ===

impl Taken {
    /// Makes room for one more, if need be in the place of the oldest that has asked nothing.
    fn seat(&mut self) -> bool {
        if self.seated < self.limit {
            self.seated += 1;
            return true;
        }
        match self.silent.pop_first() {
            Some((_, oldest)) => {
                oldest.cancel();
                true
            }
            None => false,
        }
    }
}

// === impl Place ===

impl Place {
    /// Whether requests are answered; else the connection is only told that there is no room.
    pub fn is_seat(&self) -> bool {
        self.is_seat
    }

    /// A request has come: from here on the place is kept.
    pub fn asked(&self) {
        if !self.asked.load(Ordering::Relaxed) && !self.asked.swap(true, Ordering::Relaxed) {
            self.places.lock().silent.remove(&self.number);
        }
    }

    /// Whether a request has come.
    pub fn has_asked(&self) -> bool {
        self.asked.load(Ordering::Relaxed)
    }

    /// Waits until the place is given to another.
    pub async fn cut(&self) {
        self.cut.cancelled().await;
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut taken = self.places.lock();
        let silent = taken.silent.remove(&self.number).is_some();
        if !self.is_seat {
            taken.turned_away -= 1;
        } else if silent || !self.cut.is_cancelled() {
            taken.seated -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_silent_connection_yields_to_a_new_one_oldest_first() {
        let places = Places::new(2);
        let (first, second) = (places.take().unwrap(), places.take().unwrap());
        let third = places.take().unwrap();
        assert!(third.is_seat() && first.cut.is_cancelled() && !second.cut.is_cancelled());
        second.asked();
        let fourth = places.take().unwrap();
        assert!(fourth.is_seat() && third.cut.is_cancelled() && !second.cut.is_cancelled());
        assert!(second.has_asked() && !fourth.has_asked());
    }

    #[test]
    fn when_all_are_in_use_a_few_are_told_and_the_rest_closed() {
        let places = Places::new(1);
        let seat = places.take().unwrap();
        seat.asked();
        let told: Vec<_> = std::iter::from_fn(|| places.take()).collect();
        assert_eq!(told.len(), TURNED_AWAY);
        assert!(told.iter().all(|place| !place.is_seat()));
        drop(told);
        assert!(!places.take().unwrap().is_seat());
        drop(seat);
        assert!(places.take().unwrap().is_seat());
    }

    #[test]
    fn every_place_comes_back_exactly_once() {
        let places = Places::new(3);
        for _ in 0..100 {
            let mut held: Vec<_> = (0..5).filter_map(|_| places.take()).collect();
            if let Some(place) = held.first() {
                place.asked();
            }
            held.rotate_left(2);
        }
        let taken = places.lock();
        assert_eq!((taken.seated, taken.turned_away, taken.silent.len()), (0, 0, 0));
    }
}
