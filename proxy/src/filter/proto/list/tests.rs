use super::super::reference::{List, Unknown, list, object, packed, unpacked};
use super::super::wire::{Fields, put_bytes, put_padded};
use crate::filter::testing::{By, Sample, feed, filtered, refused, sample, scanner};
use crate::filter::{EXACT_LIMIT, Encoding, FilterError, Out, Scan, Scanner, Shape};
use bytes::Bytes;
use prost::Message;

/// What must be left of a list.
fn wanted(names: &[&str]) -> List {
    let mut list = list(names);
    list.metadata.as_mut().unwrap().remaining_item_count = None;
    list
}

fn holes() -> Scanner<Sample> {
    Scanner::with_exact_limit(Encoding::Protobuf, Shape::List, By(sample), 0)
}

const CASES: [(&[&str], &[&str]); 7] = [
    (&["a", "b"], &["a", "b"]),
    (&["x", "b", "x1"], &["b"]),
    (&["a", "x", "c"], &["a", "c"]),
    (&["x"], &[]),
    (&[], &[]),
    (&["old", "x", "a"], &["n", "a"]),
    (&["", "old"], &["", "n"]),
];

#[test]
fn exact_lists_are_what_a_server_would_have_sent() {
    for (names, kept) in CASES {
        let passed = filtered(Encoding::Protobuf, Shape::List, &packed("PodList", &list(names)));
        assert_eq!(passed, packed("PodList", &wanted(kept)));
    }
}

#[test]
fn lists_with_holes_have_the_old_length_and_read_the_same() {
    for (names, kept) in CASES {
        let body = packed("PodList", &list(names));
        for size in [1, 2, 7, usize::MAX] {
            let (passed, end) = feed(holes(), &body, &[size]);
            assert_eq!(end.unwrap().holed, 1);
            // The count is cut before the length is written.
            assert_eq!(passed.len(), body.len() - "\x20\u{2}\u{2}".len());
            assert_eq!(unpacked::<List>(&passed).1, wanted(kept));
            assert!(!passed.windows(2).any(|pair| pair == b"x1"));
        }
    }
}

#[test]
fn a_later_count_becomes_a_hole_too() {
    let raw = [list(&["a"]).encode_to_vec(), list(&["x", "old"]).encode_to_vec()].concat();
    let mut body = b"k8s\0".to_vec();
    put_bytes(2, &raw, &mut body);
    let (passed, end) = feed(holes(), &body, &[3]);
    assert!(end.is_ok());
    assert_eq!(unpacked::<List>(&passed).1, wanted(&["a", "n"]));
}

#[test]
fn a_name_that_frees_one_byte_or_none_fits_a_hole() {
    for to in ["ol", "odd"] {
        let rule = By(move |view: crate::filter::View<'_>| match view.name {
            "old" => crate::filter::Verdict::Rename(to),
            _ => crate::filter::Verdict::Keep,
        });
        let scan = Scanner::with_exact_limit(Encoding::Protobuf, Shape::List, rule, 0);
        let (passed, end) = feed(scan, &packed("PodList", &list(&["a", "old", "b"])), &[5]);
        assert!(end.is_ok());
        assert_eq!(unpacked::<List>(&passed).1, wanted(&["a", to, "b"]));
    }
}

#[test]
fn a_longer_name_fits_exact_lists_only() {
    let rule = || By(|_: crate::filter::View<'_>| crate::filter::Verdict::Rename("a-longer-name"));
    let body = packed("PodList", &list(&["a"]));
    let exact = Scanner::new(Encoding::Protobuf, Shape::List, rule());
    let (passed, _) = feed(exact, &body, &[9]);
    assert_eq!(unpacked::<List>(&passed).1, wanted(&["a-longer-name"]));
    let holes = Scanner::with_exact_limit(Encoding::Protobuf, Shape::List, rule(), 0);
    assert!(matches!(feed(holes, &body, &[9]).1, Err(FilterError::Rename(_))));
}

#[test]
fn a_large_list_goes_on_with_holes_at_the_limit() {
    let mut big = list(&["x"]);
    let spec = vec![1; 1 << 20];
    for name in ["a", "x", "b", "c", "d", "e", "f", "g", "h", "x", "i", "x", "old"] {
        big.items.push(super::super::reference::Object { spec: spec.clone(), ..object(name) });
    }
    let (passed, end) = feed(scanner(Encoding::Protobuf, Shape::List), &packed("PodList", &big), &[16 << 10]);
    assert_eq!(end.unwrap().holed, 1);
    let read = unpacked::<List>(&passed).1;
    let names: Vec<_> = read.items.iter().map(|item| item.metadata.as_ref().unwrap().name.as_str()).collect();
    assert_eq!(names, ["a", "b", "c", "d", "e", "f", "g", "h", "i", "n"]);
    let dropped_before = (1 << 20) + "x".len();
    assert!(passed.len() > EXACT_LIMIT + 4 * dropped_before && passed.len() < 13 << 20);
}

#[test]
fn padded_repeated_and_unordered_fields_are_read() {
    let field = |tag: u8, value: &[u8], width| {
        let mut field = vec![tag | 0x80, 0];
        put_padded(value.len() as u64, width, &mut field);
        [field, value.to_vec()].concat()
    };
    let item = |name: &str| object(name).encode_to_vec();
    let halves = [&field(0x0a, b"\x0a\x01x", 3)[..], &field(0x0a, b"\x0a\x01a", 1)].concat();
    let hidden = [&field(0x0a, b"\x0a\x01a", 3)[..], &field(0x0a, b"\x0a\x01x", 1)].concat();
    let raw = [
        field(0x12, &item("x"), 4),
        field(0x12, &halves, 2),
        field(0x12, &hidden, 2),
        field(0x0a, b"\x20\x05", 9),
    ]
    .concat();
    let body = [b"k8s\0", &field(0x12, &raw, 5)[..], b"\x1a\x00", b"\x0a\x00"].concat();
    let passed = filtered(Encoding::Protobuf, Shape::List, &body);
    let read = unpacked::<List>(&passed).1;
    assert_eq!(read.items.len(), 1);
    assert_eq!(read.items[0].metadata.as_ref().unwrap().name, "a");
    assert_eq!(read.metadata.unwrap().remaining_item_count, None);
    let (passed, _) = feed(holes(), &body, &[4]);
    assert_eq!(unpacked::<List>(&passed).1.items, read.items);
}

#[test]
fn of_two_raws_both_are_filtered() {
    let raw = |names: &[&str]| {
        let raw = list(names).encode_to_vec();
        [&[0x12, u8::try_from(raw.len()).unwrap()][..], &raw].concat()
    };
    let body = [b"k8s\0", &raw(&["x", "a"])[..], &raw(&["b", "x"])].concat();
    let passed = filtered(Encoding::Protobuf, Shape::List, &body);
    assert_eq!(unpacked::<List>(&passed).1, wanted(&["b"]));
    let fields: Vec<_> = Fields::of(&passed[4..]).map(|field| field.unwrap().number).collect();
    assert_eq!(fields, [2, 2]);
}

#[test]
fn what_is_no_list_is_refused() {
    let encoded = Unknown { raw: Some(vec![]), content_encoding: Some("gzip".into()), ..Unknown::default() };
    for body in [
        b"{\"items\":[]}".to_vec(),
        b"k8s\0\x10\x01".to_vec(),
        b"k8s\0\x12\x03\x12\x01".to_vec(),
        b"k8s\0\x12\x04\x12\x05aa".to_vec(),
        b"k8s\0\x12\x02\x10\x01".to_vec(),
        b"k8s\0\x12\x02\x08\x01".to_vec(),
        b"k8s\0\x12\x02\x13\x14".to_vec(),
        b"k8s\0\x12\x04\x12\x02\x08\x01".to_vec(),
        b"k8s\0\x12\x07\x12\x05\x0a\x03\x0a\x01\xff".to_vec(),
        b"k8s\0\x12\x00\x1a\x04gzip".to_vec(),
        packed("Status", &list(&["a"])),
        packed("Pod", &object("a")),
        [b"k8s\0", &encoded.encode_to_vec()[..]].concat(),
    ] {
        let error = refused(Encoding::Protobuf, Shape::List, &body);
        assert!(matches!(error, FilterError::Malformed(_) | FilterError::Truncated), "{body:x?}: {error}");
    }
    let huge = b"k8s\0\x12\xff\xff\xff\xff\x0f\x12\x81\x80\x80\x08";
    assert_eq!(refused(Encoding::Protobuf, Shape::List, huge), FilterError::TooLarge);
}

#[test]
fn a_cut_body_is_an_error_until_raw_is_complete() {
    let body = packed("PodList", &list(&["a", "x", "old"]));
    // The fields after `raw` are two empty strings; a cut between fields of the envelope is a shorter, whole message.
    let raw_end = body.len() - 4;
    for end in 0..body.len() {
        let whole = end == raw_end || end == raw_end + 2;
        for scan in [scanner(Encoding::Protobuf, Shape::List), holes()] {
            assert_eq!(feed(scan, &body[..end], &[9]).1.is_err(), !whole, "{end}");
        }
    }
}

#[test]
fn with_holes_the_first_item_passes_at_once() {
    let body = packed("PodList", &list(&["a", "b"]));
    let first = body.len() - list(&["b"]).items[0].encoded_len() - 2 - "\x4a\x05extra\x1a\0\x22\0".len();
    let mut out = Out::default();
    holes().push(Bytes::copy_from_slice(&body[..first]), &mut out).unwrap();
    let passed: Vec<_> = std::iter::from_fn(|| out.pop()).flatten().collect();
    assert!(passed.ends_with(&object("a").encode_to_vec()));
}
