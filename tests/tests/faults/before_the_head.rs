//! The request has arrived, and then something goes wrong before there is an answer.

use h2::Reason;
use shoal_tests::scripted::frames::go_away;
use shoal_tests::scripted::{Exchange, Gone};

use crate::form::Form;
use crate::matrix::{Strikes, UNHARMED, each_form};

/// Nobody knows whether the request was done: reads are repeated once, writes are not, and the client is not told to.
const BROKEN: &str = "
    GET             502 InternalError, retry after 1       2
    LIST json       502 InternalError, retry after 1       2
    LIST protobuf   502 InternalError, retry after 1       2
    WATCH json      502 InternalError, retry after 1       2
    WATCH protobuf  502 InternalError, retry after 1       2
    POST            502 InternalError                      1
    PUT             502 InternalError                      1
    PATCH           502 InternalError                      1
    DELETE          502 InternalError                      1
";
/// The first delivery is lost: a read is repeated once, a write may have been done.
pub(crate) const BROKEN_ONCE: &str = "
    GET             whole                                  2
    LIST json       whole                                  2
    LIST protobuf   whole                                  2
    WATCH json      whole                                  2
    WATCH protobuf  whole                                  2
    POST            502 InternalError                      1
    PUT             502 InternalError                      1
    PATCH           502 InternalError                      1
    DELETE          502 InternalError                      1
";
/// The server has not looked at it: the client may repeat a write, the proxy does not, because its body is gone.
const UNPROCESSED: &str = "
    GET             503 ServiceUnavailable, retry after 1  2
    LIST json       503 ServiceUnavailable, retry after 1  2
    LIST protobuf   503 ServiceUnavailable, retry after 1  2
    WATCH json      503 ServiceUnavailable, retry after 1  2
    WATCH protobuf  503 ServiceUnavailable, retry after 1  2
    POST            503 ServiceUnavailable, retry after 1  1
    PUT             503 ServiceUnavailable, retry after 1  1
    PATCH           503 ServiceUnavailable, retry after 1  1
    DELETE          503 ServiceUnavailable, retry after 1  1
";
const UNPROCESSED_ONCE: &str = "
    GET             whole                                  2
    LIST json       whole                                  2
    LIST protobuf   whole                                  2
    WATCH json      whole                                  2
    WATCH protobuf  whole                                  2
    POST            503 ServiceUnavailable, retry after 1  1
    PUT             503 ServiceUnavailable, retry after 1  1
    PATCH           503 ServiceUnavailable, retry after 1  1
    DELETE          503 ServiceUnavailable, retry after 1  1
";

#[tokio::test]
async fn a_stream_that_is_reset_may_have_been_done() {
    let reset = async |_: Form, exchange: Exchange| {
        exchange.reset(Reason::INTERNAL_ERROR);
        Ok(())
    };
    each_form("reset_each", Strikes::Each, reset, BROKEN).await;
    each_form("reset_first", Strikes::First, reset, BROKEN_ONCE).await;
}

#[tokio::test]
async fn a_connection_that_is_cut_may_have_done_it() {
    let cut = async |_: Form, exchange: Exchange| {
        exchange.line().cut().await;
        Ok(())
    };
    each_form("cut_each", Strikes::Each, cut, BROKEN).await;
    each_form("cut_first", Strikes::First, cut, BROKEN_ONCE).await;
}

/// The server goes away and says that it does this request still; then it does not.
#[tokio::test]
async fn a_connection_that_goes_away_above_and_is_cut_may_have_done_it() {
    let cut = async |_: Form, exchange: Exchange| {
        exchange.line().say(go_away(exchange.stream())).await;
        exchange.line().cut().await;
        Ok(())
    };
    each_form("go_away_above_cut_each", Strikes::Each, cut, BROKEN).await;
    each_form("go_away_above_cut_first", Strikes::First, cut, BROKEN_ONCE).await;
}

#[tokio::test]
async fn a_stream_that_is_refused_was_not_done() {
    let refuse = async |_: Form, exchange: Exchange| {
        exchange.reset(Reason::REFUSED_STREAM);
        Ok(())
    };
    each_form("refused_each", Strikes::Each, refuse, UNPROCESSED).await;
    each_form("refused_first", Strikes::First, refuse, UNPROCESSED_ONCE).await;
}

#[tokio::test]
async fn a_connection_that_goes_away_below_has_not_done_it() {
    let below = async |_: Form, exchange: Exchange| {
        exchange.line().say(go_away(exchange.stream().saturating_sub(2))).await;
        exchange.line().cut().await;
        Ok(())
    };
    each_form("go_away_below_each", Strikes::Each, below, UNPROCESSED).await;
    each_form("go_away_below_first", Strikes::First, below, UNPROCESSED_ONCE).await;
}

#[tokio::test]
async fn a_connection_that_goes_away_above_finishes_what_runs() {
    let above = async |form: Form, exchange: Exchange| -> Result<(), Gone> {
        exchange.line().say(go_away(exchange.stream())).await;
        form.answer().send(exchange).await
    };
    each_form("go_away_above", Strikes::Each, above, UNHARMED).await;
}
