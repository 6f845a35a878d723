//! A cluster that swallows what it is asked: the others know nothing of it.

use std::future::pending;

use http::StatusCode;
use shoal_tests::meter::Growth;
use shoal_tests::scripted::client::{Http, Reader, Wire};
use shoal_tests::scripted::{Asked, Door};
use shoal_tests::soon;

use crate::Stand;

const JSON: &str = "application/json";
/// Requests to the hole on one connection: more than the upstream pool has streams on ten of its own, and nearly what
/// the listener takes on one.
const ON_ONE: usize = 900;
/// Requests to the hole over HTTP/1.1, each on a connection of its own.
const ALONE: usize = 300;
/// Requests to the live one meanwhile.
const LIVE: usize = 200;
/// How much the proxy may grow for one request that waits, in bytes.
const EACH: u64 = 48 << 10;

fn get(cluster: &str, number: usize) -> String {
    format!("{cluster}/api/v1/namespaces/default/configmaps/it-{number}")
}

fn ask(wire: &Wire, target: String) -> Asked {
    let wire = wire.clone();
    tokio::spawn(async move { wire.get(&target, JSON).await })
}

/// Asks the hole a lot; each is under way when it returns.
async fn swallowed(stand: &Stand, streams: &Wire) -> Vec<Asked> {
    let mut asked: Vec<_> = (0..ON_ONE).map(|number| ask(streams, get("/clusters/east", number))).collect();
    for number in 0..ALONE {
        let wire = soon("a connection", Wire::connect(&stand.proxy, Http::One)).await.unwrap();
        asked.push(ask(&wire, get("/clusters/east", number)));
    }
    asked
}

async fn live(wire: &Wire, target: &str) {
    let answer = soon("the live cluster", wire.get(target, JSON)).await.unwrap();
    assert_eq!(answer.status(), StatusCode::OK);
    let body = soon("its body", Reader::new(answer).rest()).await.unwrap();
    assert!(String::from_utf8(body).unwrap().contains(r#""name":"hub""#));
}

/// The same through what is shared, one connection of the client, and over others.
async fn unaffected(stand: &Stand, shared: &Wire, asked: &[Asked]) {
    let own = [Http::One, Http::Two].map(|http| Wire::connect(&stand.proxy, http));
    let [one, two] = own;
    let (one, two) = (soon("a connection", one).await.unwrap(), soon("a connection", two).await.unwrap());
    for wire in [shared, &one, &two] {
        for number in 0..LIVE {
            live(wire, &get("", number)).await;
        }
    }
    let watch = soon("a watch", shared.get("/api/v1/configmaps?watch=true", JSON)).await.unwrap();
    soon("an event", Reader::new(watch).until(b"BOOKMARK")).await.unwrap();
    let answered = asked.iter().filter(|asked| asked.is_finished()).count();
    println!("{answered} of {} have ended", asked.len());
}

/// It takes connections and requests, and never answers: nothing of it ends before the test ends it.
#[tokio::test]
async fn a_cluster_that_never_answers_stands_in_nobodys_way() {
    let stand = Stand::start("member_hole_silent", r#"exec "$@""#, |exchange| async move {
        let _exchange = exchange;
        pending::<()>().await;
    })
    .await;
    let shared = soon("a connection", Wire::connect(&stand.proxy, Http::Two)).await.unwrap();
    live(&shared, &get("", 0)).await;
    let before = Growth::of(stand.proxy.process()).unwrap();
    let asked = swallowed(&stand, &shared).await;
    soon("all in the hole", stand.east.until(|seen| seen.requests.len() == ON_ONE + ALONE)).await;
    unaffected(&stand, &shared, &asked).await;
    assert!(asked.iter().all(|asked| !asked.is_finished()), "the hole has answered");
    let grown = before.at_peak().unwrap();
    println!("{} KiB added for {} requests", grown >> 10, asked.len());
    assert!(grown <= (ON_ONE + ALONE) as u64 * EACH, "{grown}");
    let connections =
        stand.proxy.metrics().await.unwrap().sum("shoal_upstream_connections", &[r#"cluster="east""#]);
    assert!(connections <= 13.0, "{connections}");
    // Then it is gone, and so is everybody's hope. Reads are asked once more before they are told.
    stand.east.door(Door::Shut).await;
    for asked in asked {
        let answer = soon("a refusal", asked).await.unwrap().unwrap();
        assert!(matches!(answer.status().as_u16(), 502 | 503), "{}", answer.status());
    }
    live(&shared, &get("", 1)).await;
}

/// It takes connections only, and says nothing in TLS; or nobody listens there. The member's requests end by themselves.
#[tokio::test]
async fn a_cluster_that_cannot_be_reached_stands_in_nobodys_way() {
    for (name, door) in [
        ("member_hole_tcp", Door::Silent),
        ("member_hole_shut", Door::Shut),
        ("member_hole_full", Door::Full),
    ] {
        let stand = Stand::start(name, r#"exec "$@""#, |exchange| async move { drop(exchange) }).await;
        stand.east.door(door).await;
        let shared = soon("a connection", Wire::connect(&stand.proxy, Http::Two)).await.unwrap();
        let asked = swallowed(&stand, &shared).await;
        unaffected(&stand, &shared, &asked).await;
        for asked in asked {
            let answer = soon("a refusal", asked).await.unwrap().unwrap();
            assert_eq!(answer.status(), StatusCode::SERVICE_UNAVAILABLE, "{door:?}");
            assert_eq!(answer.headers()["retry-after"], "1", "{door:?}");
        }
        assert!(stand.east.seen().requests.is_empty(), "{door:?}");
    }
}
