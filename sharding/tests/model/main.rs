//! Checks the rules of ownership in every order of events, up to bounds; see docs/model.md. `full` checks the wide bounds,
//! else each run of the tests checks the narrow ones.

mod fence;
mod ring;

use std::time::Duration;

use stateright::{Checker, HasDiscoveries, Model};

use self::ring::{
    Actor::{Coordinator, Proxy},
    Bounds, Ring,
};

/// A run whose states do not end in that time is a failure: it has to be bounded.
const LONGEST: Duration = Duration::from_mins(30);

fn main() {
    let full = std::env::args().any(|word| word == "full");
    let matrix = fence::matrix(full);
    let states: usize = rings(full).into_iter().map(checked).sum();
    let fence::Matrix { states: fenced, safe, failed } = matrix;
    println!("model: ok states={} mutations=32 safe={safe} failed={failed}", states + fenced);
}

/// Checks a ring, and gives the number of its states.
fn checked(ring: Ring) -> usize {
    let (name, threads) = (ring.name, std::thread::available_parallelism().map_or(1, usize::from));
    let checker = ring.checker().threads(threads).finish_when(HasDiscoveries::AnyFailures).timeout(LONGEST);
    let checker = checker.spawn_bfs().join();
    let states = checker.unique_state_count();
    println!("ring: {name:28} {states:8} states  {} deep", checker.max_depth());
    checker.assert_properties();
    assert!(checker.is_done(), "{name} did not end in time");
    states
}

/// What is tried.
fn rings(full: bool) -> Vec<Ring> {
    let or = |narrow: u8, wide: u8| if full { wide } else { narrow };
    let one = Bounds { ticks: or(1, 2), writes: 1, ..Bounds::default() };
    let base = Ring { shards: 2, proxies: 2, coordinators: 1, bounds: one, ..Ring::default() };
    let death = Bounds { ticks: 6, ..one };
    let leave = Bounds { ticks: or(2, 4), leaves: 1, ..one };
    let two = [Coordinator(0), Coordinator(1), Proxy(0)];
    // In narrow bounds one of the coordinators is prompt.
    let two = if full { two.to_vec() } else { two[1..].to_vec() };
    let ring = |name, free: &[ring::Actor]| Ring { name, free: free.to_vec(), ..base.clone() };
    vec![
        Ring { wish: true, ..ring("move, proxies free", &[Proxy(0), Proxy(1)]) },
        Ring { wish: true, ..ring("move, coordinator free", &[Proxy(0), Coordinator(0)]) },
        Ring {
            wish: true,
            bounds: Bounds { lost_answers: 1, ticks: or(1, 5), ..one },
            ..ring("move, answer lost", &[Proxy(0)])
        },
        Ring {
            silent: 3,
            bounds: death,
            ..ring("silence", if full { &[Proxy(0), Coordinator(0)] } else { &[Proxy(0)] })
        },
        Ring {
            silent: 3,
            bounds: Bounds { writes: 2, ..death },
            ..ring("silence, both free", if full { &[Proxy(0), Proxy(1)] } else { &[Proxy(0)] })
        },
        Ring {
            silent: 3,
            gap: true,
            bounds: Bounds { writes: 2, ticks: 6, ..death },
            ..ring("silence, gap", if full { &[Proxy(0), Proxy(1)] } else { &[Proxy(0)] })
        },
        Ring {
            silent: 3,
            bounds: Bounds { deleted_leases: 1, ticks: or(6, 8), ..death },
            ..ring("a Lease is deleted", if full { &[Proxy(0), Coordinator(0)] } else { &[Proxy(0)] })
        },
        Ring {
            silent: 3,
            coordinators: 2,
            bounds: Bounds { writes: or(0, 1), ..death },
            free: two.clone(),
            ..ring("two coordinators, silence", &[])
        },
        Ring {
            wish: true,
            coordinators: 2,
            bounds: Bounds { ticks: or(0, 1), ..one },
            free: two.clone(),
            ..ring("two coordinators, move", &[])
        },
        Ring {
            proxies: 3,
            coordinators: 2,
            bounds: Bounds { ticks: or(0, 1), ..leave },
            free: vec![Coordinator(0), Coordinator(1), Proxy(2)],
            ..ring("two coordinators, leave", &[])
        },
        Ring { proxies: 3, bounds: leave, ..ring("leave, standby free", &[Proxy(0), Proxy(2)]) },
        Ring { proxies: 3, bounds: leave, ..ring("leave, coordinator free", &[Proxy(2), Coordinator(0)]) },
        Ring {
            silent: 3,
            bounds: Bounds { restarts: 1, ..death },
            ..ring("restarts", if full { &[Proxy(0), Coordinator(0)] } else { &[Proxy(0)] })
        },
        Ring {
            begins: true,
            bounds: Bounds { ticks: or(0, 3), ..one },
            ..ring("beside a replica", &[Proxy(0), Coordinator(0)])
        },
    ]
}
