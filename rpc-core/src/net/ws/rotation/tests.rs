//! The round of addresses: each once per attempt, on from where the last attempt ended.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

use proptest::prelude::*;

use super::{Pass, Rotation, Step};

/// The answers for the name of each URL.
type Names = Vec<Vec<SocketAddr>>;

fn address(n: u8) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, n], 80))
}

fn addresses(numbers: &[u8]) -> Vec<SocketAddr> {
    numbers.iter().copied().map(address).collect()
}

/// Returns the next address that the pass dials.
fn next(pass: &mut Pass, names: &Names) -> Option<(usize, SocketAddr)> {
    loop {
        match pass.step() {
            Step::Resolve { url } => pass.resolved(&names[url]),
            Step::Dial { url, address } => return Some((url, address)),
            Step::Done => return None,
        }
    }
}

/// Returns what an attempt dials if every address fails.
fn all(rotation: &Rotation, names: &Names) -> Vec<(usize, SocketAddr)> {
    let mut pass = rotation.pass();
    std::iter::from_fn(|| next(&mut pass, names)).collect()
}

/// Dials one address, as an attempt that gets an answer from it does.
fn dial(rotation: &mut Rotation, names: &Names) -> (usize, SocketAddr) {
    let (url, address) = next(&mut rotation.pass(), names).unwrap();
    rotation.dialled(url, address);
    (url, address)
}

#[test]
fn attempts_try_all_addresses_of_a_url_then_the_next() {
    let names = vec![addresses(&[1, 2]), addresses(&[3])];
    let mut rotation = Rotation::new(2, None);
    let dialled: Vec<_> = (0..5).map(|_| dial(&mut rotation, &names)).collect();
    let (a, b, c) = ((0, address(1)), (0, address(2)), (1, address(3)));
    assert_eq!(dialled, [a, b, c, a, b]);
    // The attempt after `b`: the rest of the list, and `b` last.
    assert_eq!(all(&rotation, &names), [c, a, b]);
}

#[test]
fn the_current_address_stays_first_until_it_fails() {
    let names = vec![addresses(&[1, 2, 3])];
    let mut rotation = Rotation::new(1, None);
    dial(&mut rotation, &names);
    let second = dial(&mut rotation, &names);
    rotation.keep();
    assert_eq!(all(&rotation, &names)[0], second);
    rotation.leave();
    assert_eq!(all(&rotation, &names)[0], (0, address(3)));
    assert_eq!(all(&rotation, &names)[2], second);
}

#[test]
fn an_unresolvable_name_is_skipped() {
    let names = vec![vec![], addresses(&[3])];
    let mut rotation = Rotation::new(2, None);
    assert_eq!(dial(&mut rotation, &names), (1, address(3)));
    assert_eq!(all(&rotation, &names), [(1, address(3))]);
    assert_eq!(all(&rotation, &vec![vec![], vec![]]), []);
}

#[test]
fn changed_addresses_of_a_name_are_tried_first() {
    let mut rotation = Rotation::new(1, None);
    dial(&mut rotation, &vec![addresses(&[1])]);
    let names = vec![addresses(&[8, 9])];
    assert_eq!(all(&rotation, &names), [(0, address(8)), (0, address(9))]);
}

#[test]
fn the_resolvers_preferred_family_stays_first() {
    let v6: SocketAddr = "[2001:db8::1]:80".parse().unwrap();
    let names = vec![vec![v6, address(1), address(2)]];
    for entropy in 0..50 {
        let order = all(&Rotation::new(1, Some(entropy)), &names);
        assert_eq!(order[0].1, v6, "{entropy}");
    }
}

#[test]
fn clients_spread_evenly_over_live_nodes() {
    for names in [
        vec![addresses(&[1, 2, 3, 4])],
        (1..5).map(|n| addresses(&[n])).collect::<Names>(),
    ] {
        let (mut first, mut second) = (BTreeMap::new(), BTreeMap::new());
        for client in 0..1000 {
            let mut rotation = Rotation::new(names.len(), Some(client));
            let node = dial(&mut rotation, &names);
            *first.entry(node).or_insert(0) += 1;
            if node.1 == address(1) {
                *second.entry(dial(&mut rotation, &names)).or_insert(0) += 1;
            }
        }
        assert_eq!(first.len(), 4);
        assert!(first.values().all(|clients| *clients > 200), "{first:?}");
        assert_eq!(second.len(), 3);
        assert!(second.values().all(|clients| *clients > 50), "{second:?}");
    }
}

fn any_names() -> impl Strategy<Value = Names> {
    let answers = prop::collection::vec((0..20u8).prop_map(address), 0..5);
    prop::collection::vec(answers, 1..5)
}

proptest! {
    /// Whatever was dialled before: no address is dialled twice in an attempt, and none is left
    /// out.
    #[test]
    fn an_attempt_visits_every_address_once(
        names in any_names(),
        seed in any::<Option<u64>>(),
        before in prop::collection::vec(any::<bool>(), 0..10),
    ) {
        let expected: BTreeSet<_> = (0..).zip(&names)
            .flat_map(|(url, answers)| answers.iter().map(move |answer| (url, *answer)))
            .collect();
        let mut rotation = Rotation::new(names.len(), seed);
        for keep in before {
            let visited = all(&rotation, &names);
            prop_assert_eq!(visited.len(), expected.len());
            prop_assert_eq!(&visited.iter().copied().collect::<BTreeSet<_>>(), &expected);
            if let Some((url, address)) = visited.first() {
                rotation.dialled(*url, *address);
            }
            if keep {
                rotation.keep();
            }
        }
    }

    /// A node that was left is the last one to be tried again.
    #[test]
    fn a_failed_address_comes_last(
        names in any_names(),
        seed in any::<Option<u64>>(),
        rounds in 1..10usize,
    ) {
        let mut rotation = Rotation::new(names.len(), seed);
        for _ in 0..rounds {
            let Some((url, address)) = all(&rotation, &names).first().copied() else { return Ok(()) };
            rotation.dialled(url, address);
            let last = all(&rotation, &names).pop();
            prop_assert_eq!(last, Some((url, address)));
        }
    }

    /// As many attempts as there are addresses reach each of them once.
    #[test]
    fn a_round_of_attempts_reaches_every_address(
        names in any_names(),
        seed in any::<Option<u64>>(),
    ) {
        let mut rotation = Rotation::new(names.len(), seed);
        let count = all(&rotation, &names).len();
        let reached: BTreeSet<_> = (0..count).map(|_| dial(&mut rotation, &names)).collect();
        prop_assert_eq!(reached.len(), count);
    }

    /// The steps that are left never grow but by the answers of a name.
    #[test]
    fn remaining_addresses_are_counted(names in any_names(), entropy in any::<u64>()) {
        let mut pass = Rotation::new(names.len(), Some(entropy)).pass();
        loop {
            let before = pass.left();
            match pass.step() {
                Step::Resolve { url } => pass.resolved(&names[url]),
                Step::Dial { .. } => prop_assert_eq!(pass.left() + 1, before),
                Step::Done => break,
            }
        }
        prop_assert_eq!(pass.left(), 0);
    }
}
