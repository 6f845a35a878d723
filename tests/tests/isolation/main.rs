//! A shard is shown what is its own and nothing else, and where nothing is its own it is told so in the server's words:
//! pages, tokens, watches without an event, deletions of collections, and what a client says of others.
#![allow(clippy::unwrap_used, reason = "test code, helpers included")]

mod collections;
mod ground;
mod pages;
mod quiet;
mod speaking_for;

use shoal_tests::RunDir;

use crate::ground::Ground;

#[tokio::test]
async fn a_shard_sees_its_own_and_the_servers_words() {
    let dir = RunDir::for_test("isolation").unwrap();
    let mut ground = Ground::start(&dir).await;
    pages::three_own_among_many(&ground).await;
    pages::tokens_that_the_server_refuses(&ground).await;
    let watches = quiet::watches_of_others(&ground).await;
    quiet::nothing_but_the_end_of_the_initial_events(&ground).await;
    quiet::foreign_events_hold_nothing_up(&ground).await;
    speaking_for::others_by_impersonation(&ground).await;
    quiet::bookmarks_go_on(watches).await;
    collections::only_what_is_owned_is_deleted(&ground).await;
    pages::tokens_that_are_too_old(&mut ground).await;
}
