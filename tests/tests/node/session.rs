//! A long session with kubectl prints the same directly and through a proxy whose shard owns everything.

use std::fs;
use std::path::Path;

use shoal_tests::ring::{HUB, example};
use shoal_tests::{Proxy, ProxyArgs, User};

use crate::ground::{Ground, Outcome, Way, file, outcome};

/// The least that a session is.
const COMMANDS: usize = 60;
/// Between two commands of a record.
const SEPARATOR: &str = "\u{1e}\n";

/// A line of `session/commands.txt`.
struct Line {
    command: String,
    compared: bool,
}

#[tokio::test]
#[ignore = "needs a real node: make test-node"]
async fn a_session_with_kubectl_prints_the_same() {
    let ground = Ground::get().await;
    let lines = lines();
    assert!(lines.iter().filter(|line| line.compared).count() >= COMMANDS);
    let proxy = ring_of_one(ground).await;
    let through = proxy.kubeconfig(ground.plane(), &User::ADMIN).unwrap();
    let direct = play(ground, &ground.plane().kubeconfig(&User::ADMIN).unwrap(), Way::Direct, &lines).await;
    let proxied = play(ground, &through, Way::Proxied, &lines).await;
    assert_eq!((direct.len(), proxied.len()), (lines.len(), lines.len()));
    let differing: Vec<String> = lines
        .iter()
        .zip(direct.iter().zip(&proxied))
        .filter(|(_, (direct, proxied))| direct != proxied)
        .map(|(line, (direct, proxied))| {
            let (lacks, has) = (without(direct, proxied), without(proxied, direct));
            format!("$ {}\ndirect only:\n{lacks}\nproxied only:\n{has}\n", line.command)
        })
        .collect();
    println!("{} of {} commands differ", differing.len(), lines.len());
    assert!(differing.is_empty(), "\n{}", differing.join("\n"));
}

/// The lines of one text that another lacks.
fn without(text: &str, other: &str) -> String {
    text.lines().filter(|line| !other.lines().any(|one| one == *line)).collect::<Vec<_>>().join("\n")
}

fn lines() -> Vec<Line> {
    let text = fs::read_to_string(file("session/commands.txt")).unwrap();
    let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let line = |line: &str| match line.strip_prefix("~ ") {
        Some(command) => Line { command: command.to_owned(), compared: false },
        None => Line { command: line.to_owned(), compared: true },
    };
    lines.map(line).collect()
}

/// The example's ring with one shard, which is all of it.
async fn ring_of_one(ground: &Ground) -> Proxy {
    let config = ground.dir().join("ring-of-one");
    fs::create_dir_all(&config).unwrap();
    let copy = |name: &str, edit: &dyn Fn(String) -> String| {
        let text = fs::read_to_string(example().join(name)).unwrap();
        fs::write(config.join(name), edit(text)).unwrap();
    };
    copy("ring.yaml", &|text| text.replace("shards: 3", "shards: 1"));
    copy("shardmap.yaml", &|text| {
        let (head, _) = text.split_once("  - {first").unwrap();
        format!("{head}  - {{first: 0, last: 255, owner: kcm-0, epoch: 1, state: Owned}}\n")
    });
    let upstreams = [(HUB, ground.plane().kubeconfig(&User::ADMIN).unwrap())];
    let dir = config.clone();
    Proxy::start(ProxyArgs { shard: "kcm-0", config: &config, upstreams: &upstreams, dir: &dir })
        .await
        .unwrap()
}

/// Plays the session in a namespace of its own and returns what each command came to, in normal form.
async fn play(ground: &Ground, kubeconfig: &Path, way: Way, lines: &[Line]) -> Vec<String> {
    let namespace = match way {
        Way::Direct => "session-a",
        Way::Proxied => "session-b",
    };
    let mut record = Vec::new();
    for line in lines {
        let seen = outcome(ground.bash_at(kubeconfig, namespace, way, &line.command)).await;
        record.push(told(line, &seen));
    }
    let path = ground.dir().join(format!("session-{way:?}.txt"));
    fs::write(&path, record.join(SEPARATOR)).unwrap();
    normal(ground, &path).await.split(SEPARATOR).map(str::to_owned).collect()
}

fn told(line: &Line, seen: &Outcome) -> String {
    let Outcome { code, stdout, stderr } = seen;
    if line.compared { format!("code {code:?}\n{stdout}{stderr}") } else { format!("code {code:?}\n") }
}

async fn normal(ground: &Ground, record: &Path) -> String {
    let (rules, record) = (file("session/normal.sed"), record.display());
    let lines = format!("sed --regexp-extended --file={} {record}", rules.display());
    ground.shell(Way::Direct, &lines).await.stdout
}
