//! Runs a scanner over a body, whole and cut, and insists that the cut does not matter.

use bytes::Bytes;
use shoal_proxy::filter::{Counts, Encoding, FilterError, Lens, Out, Scan, Scanner, Shape, TableRows, Verdict, View};

/// What passed of a body, and how it ended.
pub type Outcome = (Vec<u8>, Result<Counts, FilterError>);

/// Shows names that do not start with `x`.
pub struct NotX;

/// The input without its first byte, which says how the rest is cut.
pub fn split(data: &[u8]) -> Option<(usize, &[u8])> {
    let (first, body) = data.split_first()?;
    Some((usize::from(*first % 61) + 1, body))
}

/// Whether an object with this name is shown.
pub fn is_shown(name: &str) -> bool {
    !name.starts_with('x')
}

/// Filters a body in chunks of `size` bytes and whole; both must come to the same.
pub fn filter(encoding: Encoding, shape: Shape, limit: usize, body: &[u8], size: usize) -> Outcome {
    let scanner =
        || Scanner::with_exact_limit(encoding, shape, NotX, limit).with_tables(TableRows::WithObject);
    let whole = run(scanner(), body, body.len().max(1));
    assert_eq!(run(scanner(), body, size), whole, "chunks of {size} bytes differ from the whole");
    whole
}

fn run(mut scanner: Scanner<NotX>, body: &[u8], size: usize) -> Outcome {
    let (mut out, mut passed) = (Out::default(), Vec::new());
    let mut end = Ok(());
    for chunk in body.chunks(size) {
        end = scanner.push(Bytes::copy_from_slice(chunk), &mut out);
        while let Some(bytes) = out.pop() {
            passed.extend_from_slice(&bytes);
        }
        if end.is_err() {
            break;
        }
    }
    let end = end.and_then(|()| scanner.finish(&mut out));
    assert!(out.is_empty(), "the end of a body lets nothing more pass");
    (passed, end.map(|()| out.take_counts()))
}

// === impl NotX ===

impl Lens for NotX {
    fn verdict(&self, view: View<'_>) -> Verdict<'_> {
        if is_shown(view.name) { Verdict::Keep } else { Verdict::Drop }
    }
}
