use std::{collections::VecDeque, io::Write, task::Waker};

use flate2::{Compression, write::GzEncoder};

use super::*;

/// A body that comes in these pieces, and then ends, or waits.
struct Pieces {
    left: VecDeque<Bytes>,
    ends: bool,
}

impl HttpBody for Pieces {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        match self.left.pop_front() {
            Some(piece) => Poll::Ready(Some(Ok(Frame::data(piece)))),
            None if self.ends => Poll::Ready(None),
            None => Poll::Pending,
        }
    }
}

fn member(text: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

fn body(bytes: &[u8], size: usize, ends: bool) -> Gunzip<Pieces> {
    Gunzip::gzip(Pieces { left: bytes.chunks(size).map(Bytes::copy_from_slice).collect(), ends })
}

/// All that comes now, and how it ended; `None` while it waits.
fn read(body: &mut Gunzip<Pieces>) -> (Vec<u8>, Option<Result<(), String>>) {
    let mut all = Vec::new();
    loop {
        match Pin::new(&mut *body).poll_frame(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(Some(Ok(frame))) => {
                let data = frame.into_data().unwrap();
                assert!(data.len() <= STEP && !data.is_empty());
                all.extend_from_slice(&data);
            }
            Poll::Ready(Some(Err(error))) => return (all, Some(Err(error.to_string()))),
            Poll::Ready(None) => return (all, Some(Ok(()))),
            Poll::Pending => return (all, None),
        }
    }
}

#[test]
fn members_in_any_pieces_are_one_text() {
    let text: Vec<u8> = (0..200_000_u32).flat_map(|number| (number % 251).to_le_bytes()).collect();
    let bytes: Vec<u8> = text.chunks(70_001).flat_map(member).chain(member(b"")).collect();
    for size in [1, 7, 1_000, usize::MAX] {
        assert_eq!(read(&mut body(&bytes, size, true)), (text.clone(), Some(Ok(()))), "{size}");
    }
    assert_eq!(read(&mut body(b"", 1, true)), (Vec::new(), Some(Ok(()))));
}

#[test]
fn a_member_comes_out_while_the_body_goes_on_and_nothing_is_held_between_two() {
    let mut body = body(&[member(b"first\n"), member(b"second\n")].concat(), usize::MAX, false);
    assert_eq!(read(&mut body), (b"first\nsecond\n".to_vec(), None));
    let gzip = body.gzip.as_ref().unwrap();
    assert!(gzip.member.is_none() && gzip.input.is_empty());
}

#[test]
fn what_a_flush_within_a_member_sent_comes_out() {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(b"an event\n").unwrap();
    encoder.flush().unwrap();
    assert_eq!(read(&mut body(encoder.get_ref(), usize::MAX, false)), (b"an event\n".to_vec(), None));
}

#[test]
fn a_cut_or_corrupt_body_is_no_clean_end() {
    let bytes = [member(b"first"), member(&[7; 1000])].concat();
    for end in (1..bytes.len()).filter(|end| *end != member(b"first").len()) {
        let (_, ended) = read(&mut body(&bytes[..end], 5, true));
        assert_eq!(ended, Some(Err(GzipError::Cut.to_string())), "{end}");
    }
    // The checksum of the last member; what is behind it; and no gzip at all.
    let mut wrong = bytes.clone();
    let at = wrong.len() - 8;
    wrong[at] ^= 1;
    for corrupt in [wrong, [bytes, b"more".to_vec()].concat(), b"{\"items\":[]}".to_vec()] {
        assert_eq!(read(&mut body(&corrupt, 9, true)).1, Some(Err(GzipError::Corrupt.to_string())));
    }
}

#[test]
fn a_gigabyte_in_a_megabyte_is_never_there_at_once() {
    let bomb = member(&vec![0; 1 << 20]).repeat(1 << 10);
    assert!(bomb.len() < 2 << 20);
    let mut body = body(&bomb, usize::MAX, true);
    let mut total = 0;
    while let Poll::Ready(Some(frame)) =
        Pin::new(&mut body).poll_frame(&mut Context::from_waker(Waker::noop()))
    {
        let data = frame.unwrap().into_data().unwrap();
        assert!(data.len() <= STEP);
        total += data.len();
    }
    assert_eq!(total, 1 << 30);
}

#[test]
fn what_is_no_gzip_passes_as_it_comes() {
    let mut plain = Gunzip::plain(Pieces { left: [Bytes::from_static(b"as it is")].into(), ends: true });
    assert_eq!(read(&mut plain), (b"as it is".to_vec(), Some(Ok(()))));
}

#[test]
fn a_small_frame_holds_no_large_buffer_and_a_body_that_waits_none() {
    let events: Vec<_> =
        (0..3).map(|number| format!("{{\"type\":\"ADDED\",\"object\":{{}}}}{number}\n")).collect();
    let bytes: Vec<u8> = events.iter().flat_map(|event| member(event.as_bytes())).collect();
    let mut body = body(&bytes, usize::MAX, false);
    for event in events {
        let Poll::Ready(Some(Ok(frame))) =
            Pin::new(&mut body).poll_frame(&mut Context::from_waker(Waker::noop()))
        else {
            panic!("{event} is missing")
        };
        let data = Vec::from(frame.into_data().unwrap());
        assert_eq!((data.len(), data.capacity()), (event.len(), event.len()));
    }
    assert_eq!(read(&mut body), (Vec::new(), None));
    assert_eq!(body.gzip.as_ref().unwrap().room.capacity(), 0);
}
