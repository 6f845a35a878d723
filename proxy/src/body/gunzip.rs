//! A body that came as gzip (RFC 1952), decoded while it streams.
//!
//! A server may close a member at each flush, so that a watch is many of them (apiserver, `handlers/watch.go`): what a
//! member holds comes out when its bytes are in, and between two of them nothing is held. However much a few bytes expand
//! to, a frame has at most [`STEP`] bytes, and the next is made when it is wanted.

use std::{
    mem,
    pin::Pin,
    task::{Context, Poll, ready},
};

use bytes::{Buf, Bytes};
use flate2::{Decompress, FlushDecompress, Status};
use http_body::{Body as HttpBody, Frame, SizeHint};
use thiserror::Error;

use super::BodyError;

/// The most bytes of a frame.
const STEP: usize = 32 << 10;
/// The largest window of deflate, as a power of two.
const WINDOW_BITS: u8 = 15;

/// A body as it was before its sender compressed it, or as it came.
pub struct Gunzip<B> {
    body: B,
    gzip: Option<Gzip>,
}

/// Why a compressed body cannot be read to its end. The upstream is at fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
enum GzipError {
    #[error("upstream: the gzip body is corrupt; ask again")]
    Corrupt,
    #[error("upstream: the gzip body ended within a member; ask again")]
    Cut,
}

/// Decodes members one after the other; no IO.
#[derive(Default)]
struct Gzip {
    /// Bytes that came and are not read yet.
    input: Bytes,
    /// The member at hand.
    member: Option<Decompress>,
    /// Whether the member may hold bytes back for want of room.
    is_full: bool,
    /// Room to decode into, kept while frames are small.
    room: Vec<u8>,
}

// === impl Gunzip ===

impl<B> Gunzip<B> {
    /// Decodes a body that is gzip.
    pub fn gzip(body: B) -> Self {
        Self { body, gzip: Some(Gzip::default()) }
    }

    /// Passes a body as it comes.
    pub fn plain(body: B) -> Self {
        Self { body, gzip: None }
    }
}

impl<B> HttpBody for Gunzip<B>
where
    B: HttpBody<Data = Bytes> + Unpin,
    B::Error: Into<BodyError>,
{
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let Self { body, gzip } = &mut *self;
        loop {
            if let Some(gzip) = gzip
                && let Some(data) = gzip.step()?
            {
                return Poll::Ready(Some(Ok(Frame::data(data))));
            }
            let frame = ready!(Pin::new(&mut *body).poll_frame(cx)).transpose().map_err(Into::into)?;
            let Some(gzip) = gzip else { return Poll::Ready(frame.map(Ok)) };
            match frame.map(Frame::into_data) {
                Some(Ok(data)) => gzip.input = data,
                last => {
                    mem::take(gzip).end()?;
                    return Poll::Ready(last.and_then(Result::err).map(Ok));
                }
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.gzip.is_none() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        if self.gzip.is_some() { SizeHint::default() } else { self.body.size_hint() }
    }
}

// === impl Gzip ===

impl Gzip {
    /// Some more of the decoded bytes; `None` when more input is needed.
    fn step(&mut self) -> Result<Option<Bytes>, GzipError> {
        while self.is_full || !self.input.is_empty() {
            let member = self.member.get_or_insert_with(|| Decompress::new_gzip(WINDOW_BITS));
            self.room.reserve_exact(STEP);
            let before = member.total_in();
            let status = member.decompress_vec(&self.input, &mut self.room, FlushDecompress::None);
            let status = status.map_err(|_| GzipError::Corrupt)?;
            let read = usize::try_from(member.total_in() - before).map_err(|_| GzipError::Corrupt)?;
            if status != Status::StreamEnd && read == 0 && self.room.is_empty() && !self.input.is_empty() {
                return Err(GzipError::Corrupt);
            }
            self.input.advance(read.min(self.input.len()));
            self.is_full = status != Status::StreamEnd && self.room.len() == self.room.capacity();
            if status == Status::StreamEnd {
                self.member = None;
            }
            if !self.room.is_empty() {
                return Ok(Some(self.take_decoded()));
            }
        }
        // A watch that waits holds nothing.
        self.room = Vec::new();
        Ok(None)
    }

    /// What was decoded. A small event is copied out, since whoever keeps a part of it keeps all of its buffer.
    fn take_decoded(&mut self) -> Bytes {
        if self.room.len() >= STEP / 4 {
            return mem::take(&mut self.room).into();
        }
        let copy = Bytes::copy_from_slice(&self.room);
        self.room.clear();
        copy
    }

    /// No more input will come.
    fn end(self) -> Result<(), GzipError> {
        if self.member.is_some() { Err(GzipError::Cut) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests;
