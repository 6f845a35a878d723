//! The head and a part of the body have arrived.

use bytes::Bytes;
use h2::Reason;
use shoal_tests::scripted::frames::go_away;
use shoal_tests::scripted::{Exchange, Gone};

use crate::form::Form;
use crate::matrix::{Strikes, UNHARMED, each_form};

/// Nothing is repeated any more, and nothing looks whole. A watch has no end of its own: it breaks off between two events,
/// so that its client goes on from the last one.
const BROKEN: &str = "
    GET             broken                                 1
    LIST json       broken                                 1
    LIST protobuf   broken                                 1
    WATCH json      ends between events                    1
    WATCH protobuf  ends between events                    1
    POST            broken                                 1
    PUT             broken                                 1
    PATCH           broken                                 1
    DELETE          broken                                 1
";

#[tokio::test]
async fn a_body_that_is_reset_is_a_broken_transfer() {
    let reset = async |form: Form, exchange: Exchange| -> Result<(), Gone> {
        form.answer().begin(exchange).await?.reset(Reason::INTERNAL_ERROR);
        Ok(())
    };
    each_form("body_reset", Strikes::Each, reset, BROKEN).await;
}

#[tokio::test]
async fn a_body_whose_connection_is_cut_is_a_broken_transfer() {
    let cut = async |form: Form, exchange: Exchange| -> Result<(), Gone> {
        let line = exchange.line().clone();
        let _open = form.answer().begin(exchange).await?;
        line.cut().await;
        Ok(())
    };
    each_form("body_cut", Strikes::Each, cut, BROKEN).await;
}

#[tokio::test]
async fn a_body_that_is_shorter_than_it_says_is_a_broken_transfer() {
    let short = async |form: Form, exchange: Exchange| -> Result<(), Gone> {
        let answer = form.answer();
        let length = answer.whole().len();
        answer.begin_with(exchange, Some(length)).await?.end()
    };
    each_form("body_short", Strikes::Each, short, BROKEN).await;
}

/// In one frame, so that it is known before any of it is passed on. What had passed before is as long as its head says:
/// on HTTP/1.1 the client has it, and sees that half an object is none, as it would without a proxy. A watch ends well,
/// but without an event: nothing is lost when its client goes on from where it was.
#[tokio::test]
async fn nothing_is_whole_of_a_body_that_is_longer_than_it_says() {
    let long = async |form: Form, exchange: Exchange| -> Result<(), Gone> {
        let mut answer = form.answer();
        let length = answer.halves[0].len();
        answer.halves[0] = answer.whole();
        answer.begin_with(exchange, Some(length)).await?.end()
    };
    // Of a list nothing was sent yet, so the client learns why.
    let table = "
        GET             broken                                 1
        LIST json       502 InternalError, retry after 1       1
        LIST protobuf   502 InternalError, retry after 1       1
        WATCH json      empty                                  1
        WATCH protobuf  empty                                  1
        POST            broken                                 1
        PUT             broken                                 1
        PATCH           broken                                 1
        DELETE          broken                                 1
    ";
    each_form("body_long", Strikes::Each, long, table).await;
}

#[tokio::test]
async fn a_body_on_a_connection_that_goes_away_is_whole() {
    let leave = async |form: Form, exchange: Exchange| -> Result<(), Gone> {
        let (line, answer) = (exchange.line().clone(), form.answer());
        let last = exchange.stream();
        let mut sending = answer.begin(exchange).await?;
        line.say(go_away(last)).await;
        sending.send(answer.halves[1].clone()).await?;
        sending.end()
    };
    each_form("body_go_away", Strikes::Each, leave, UNHARMED).await;
}

/// However slowly it comes: each byte is a frame of its own.
#[tokio::test]
async fn a_body_that_trickles_is_whole() {
    let trickle = async |form: Form, exchange: Exchange| -> Result<(), Gone> {
        let answer = form.answer();
        let length = answer.whole().len();
        let mut sending = answer.begin_with(exchange, Some(length)).await?;
        for byte in &answer.halves[1] {
            sending.send(Bytes::copy_from_slice(&[*byte])).await?;
            tokio::task::yield_now().await;
        }
        sending.end()
    };
    each_form("body_trickles", Strikes::Each, trickle, UNHARMED).await;
}
