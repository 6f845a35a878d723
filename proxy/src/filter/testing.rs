//! Helpers of this room's tests.

use super::{Counts, Encoding, FilterError, Lens, Out, Scan, Scanner, Shape, Verdict, View};
use bytes::Bytes;

/// A lens made of a function.
pub(super) struct By<F>(pub(super) F);

impl<F: Fn(View<'_>) -> Verdict<'static>> Lens for By<F> {
    fn verdict(&self, view: View<'_>) -> Verdict<'_> {
        (self.0)(view)
    }
}

/// Shows names that do not start with `x`; `old` becomes `n`.
pub(super) fn sample(view: View<'_>) -> Verdict<'static> {
    match view.name {
        "old" => Verdict::Rename("n"),
        name if name.starts_with('x') => Verdict::Drop,
        _ => Verdict::Keep,
    }
}

/// A lens over [`sample`].
pub(super) type Sample = By<fn(View<'_>) -> Verdict<'static>>;

/// A scanner over [`sample`].
pub(super) fn scanner(encoding: Encoding, shape: Shape) -> Scanner<Sample> {
    Scanner::new(encoding, shape, By(sample))
}

/// Feeds a body cut into pieces of the given sizes, over and over; all that passed, and how it ended.
pub(super) fn feed<L: Lens>(
    mut scan: Scanner<L>,
    body: &[u8],
    sizes: &[usize],
) -> (Vec<u8>, Result<Counts, FilterError>) {
    let mut out = Out::default();
    let mut passed = Vec::new();
    let mut rest = body;
    let mut end = Ok(());
    for size in sizes.iter().cycle() {
        if rest.is_empty() || end.is_err() {
            break;
        }
        let (chunk, more) = rest.split_at((*size).clamp(1, rest.len()));
        rest = more;
        end = scan.push(Bytes::copy_from_slice(chunk), &mut out);
        drain(&mut out, &mut passed);
    }
    let end = end.and_then(|()| scan.finish(&mut out));
    drain(&mut out, &mut passed);
    (passed, end.map(|()| out.take_counts()))
}

/// The whole output of a body that is fine, cut into chunks of each of a few sizes.
pub(super) fn filtered(encoding: Encoding, shape: Shape, body: &[u8]) -> Vec<u8> {
    let (whole, end) = feed(scanner(encoding, shape), body, &[usize::MAX]);
    assert!(end.is_ok(), "{end:?}: {}", String::from_utf8_lossy(body));
    for size in [1, 2, 3, 7, 64] {
        let (passed, _) = feed(scanner(encoding, shape), body, &[size]);
        assert_eq!(
            String::from_utf8_lossy(&passed),
            String::from_utf8_lossy(&whole),
            "chunks of {size} bytes differ from the whole"
        );
    }
    whole
}

/// The error of a body that is not fine.
pub(super) fn refused(encoding: Encoding, shape: Shape, body: &[u8]) -> FilterError {
    for size in [1, 5] {
        assert!(feed(scanner(encoding, shape), body, &[size]).1.is_err());
    }
    feed(scanner(encoding, shape), body, &[usize::MAX]).1.unwrap_err()
}

fn drain(out: &mut Out, passed: &mut Vec<u8>) {
    while let Some(bytes) = out.pop() {
        passed.extend_from_slice(&bytes);
    }
}
