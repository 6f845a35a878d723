//! No connection, or none that can be used: nothing was sent, everybody may try again, and once the server is back it is
//! served without a restart of the proxy.

use std::time::Duration;

use shoal_tests::scripted::client::Http;
use shoal_tests::scripted::{Door, STREAMS, Stage};
use shoal_tests::wait_for;

use crate::matrix::{UNHARMED, ask_all, compare, settled};

const UNAVAILABLE: &str = "
    GET             503 ServiceUnavailable, retry after 1  0
    LIST json       503 ServiceUnavailable, retry after 1  0
    LIST protobuf   503 ServiceUnavailable, retry after 1  0
    WATCH json      503 ServiceUnavailable, retry after 1  0
    WATCH protobuf  503 ServiceUnavailable, retry after 1  0
    POST            503 ServiceUnavailable, retry after 1  0
    PUT             503 ServiceUnavailable, retry after 1  0
    PATCH           503 ServiceUnavailable, retry after 1  0
    DELETE          503 ServiceUnavailable, retry after 1  0
";

#[tokio::test]
async fn a_server_that_restarts_is_found_again() {
    door("server_restarts", &[Door::Shut]).await;
}

#[tokio::test]
async fn a_server_that_is_not_the_one_is_told_nothing() {
    door("not_the_server", &[Door::Plain, Door::Stranger, Door::Http1]).await;
}

#[tokio::test]
async fn a_server_that_accepts_and_says_nothing_is_given_up() {
    door("server_says_nothing", &[Door::Silent]).await;
}

#[tokio::test]
async fn a_server_that_does_not_accept_is_given_up() {
    door("server_does_not_accept", &[Door::Full]).await;
}

async fn door(test: &str, doors: &[Door]) {
    let mut stage = Stage::start(test, STREAMS).await.unwrap();
    let client = stage.client(Http::Two).await.unwrap();
    for (round, door) in doors.iter().enumerate() {
        stage.upstream.door(*door).await;
        disconnected(&stage).await;
        // All at once: those that wait for the same connection fail together.
        let asked = ask_all(&client, round * 20);
        let seen = settled(&mut stage, asked).await;
        compare(&format!("{test}, {door:?}"), &seen, UNAVAILABLE);
        stage.upstream.door(Door::Open).await;
        let asked = ask_all(&client, round * 20 + 10);
        let seen = settled(&mut stage, asked).await;
        compare(&format!("{test}, open after {door:?}"), &seen, UNHARMED);
    }
}

/// Waits until the proxy knows that its connections are gone.
async fn disconnected(stage: &Stage) {
    let look = async || {
        let metrics = stage.proxy.metrics().await.map_err(|error| error.to_string())?;
        match metrics.sum("shoal_upstream_connections", &[]) {
            0.0 => Ok(()),
            open => Err(format!("{open} connections")),
        }
    };
    wait_for("the connections' end", Duration::from_mins(1), look).await.unwrap();
}
