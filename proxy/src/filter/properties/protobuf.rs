//! Protobuf against prost.

use super::{lens, shown};
use crate::filter::proto::reference::{List, Object, frame, list, object, packed, unpacked};
use crate::filter::testing::feed;
use crate::filter::{Encoding, Scanner, Shape};
use proptest::collection::vec;
use proptest::prelude::*;

fn any_object() -> impl Strategy<Value = Object> {
    ("[a-f]{0,2}", vec(any::<u8>(), 0..200), any::<u64>()).prop_map(|(name, spec, number)| Object {
        spec,
        number,
        ..object(&name)
    })
}

fn kept(seed: u64, object: &Object) -> bool {
    object.metadata.as_ref().is_some_and(|metadata| shown(seed, &metadata.namespace, &metadata.name))
}

proptest! {
    #[test]
    fn a_filtered_list_equals_the_reference(
        items in vec(any_object(), 0..8),
        count in prop::option::of(any::<i64>()),
        sizes in vec(1_usize..60, 1..6),
        limit in 0_usize..800,
        seed: u64,
    ) {
        let mut whole = List { items, ..list(&[]) };
        whole.metadata.as_mut().unwrap().remaining_item_count = count;
        let mut wanted = whole.clone();
        wanted.items.retain(|item| kept(seed, item));
        wanted.metadata.as_mut().unwrap().remaining_item_count = None;
        let body = packed("PodList", &whole);
        let scan = Scanner::with_exact_limit(Encoding::Protobuf, Shape::List, lens(seed), limit);
        let (passed, end) = feed(scan, &body, &sizes);
        prop_assert_eq!(&unpacked::<List>(&passed).1, &wanted);
        if end.unwrap().holed == 0 {
            prop_assert_eq!(passed, packed("PodList", &wanted));
        }
    }

    #[test]
    fn a_filtered_watch_equals_the_reference(
        events in vec((prop_oneof![Just("ADDED"), Just("BOOKMARK"), Just("DELETED")], any_object()), 0..6),
        sizes in vec(1_usize..60, 1..6),
        seed: u64,
    ) {
        let body: Vec<u8> = events.iter().flat_map(|(kind, object)| frame(kind, object)).collect();
        let shown = events.iter().filter(|(kind, object)| *kind == "BOOKMARK" || kept(seed, object));
        let wanted: Vec<u8> = shown.flat_map(|(kind, object)| frame(kind, object)).collect();
        let scan = Scanner::new(Encoding::Protobuf, Shape::Watch, lens(seed));
        let (passed, end) = feed(scan, &body, &sizes);
        prop_assert!(end.is_ok());
        prop_assert_eq!(passed, wanted);
    }
}
