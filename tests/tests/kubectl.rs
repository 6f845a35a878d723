//! kubectl works through a proxy on the shard's own objects, and says whose they are where they are another's.
#![allow(clippy::unwrap_used, clippy::panic, reason = "test code, helpers included")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;
use std::time::Duration;

use serde_json::{Value, json};
use shoal_tests::kubectl::kubectl;
use shoal_tests::programs::Programs;
use shoal_tests::{ControlPlane, Options, Process, RunDir, Shards, User, wait_for};

const DEADLINE: Duration = Duration::from_mins(2);

/// kubectl behind the proxy of the first shard.
struct Ground {
    shards: Shards,
    plane: ControlPlane,
    kubeconfig: PathBuf,
    /// A namespace of the shard.
    own: String,
    /// A namespace of another one.
    foreign: String,
}

#[tokio::test]
async fn kubectl_works_on_own_objects_and_is_told_the_owner_of_others() {
    let dir = RunDir::for_test("kubectl").unwrap();
    let ground = Ground::start(&dir).await;
    ground.namespaces_have_owners().await;
    ground.own_objects_are_read().await;
    ground.a_watch_shows_changes().await;
    ground.own_objects_are_changed().await;
    ground.foreign_objects_are_hidden_from_lists().await;
    ground.foreign_objects_are_refused().await;
    ground.own_objects_are_deleted().await;
}

// === impl Ground ===

impl Ground {
    async fn start(dir: &RunDir) -> Self {
        let plane = ControlPlane::start(dir.path(), Options::default()).await.unwrap();
        let shards = Shards::start(&plane, &[plane.kubeconfig(&User::ADMIN).unwrap()]).await.unwrap();
        let kubeconfig = shards.proxies[0].kubeconfig(&plane, &User::ADMIN).unwrap();
        let named = |owned: bool| {
            let mut names = (0..).map(|number| format!("shop-{number}"));
            names.find(|name| (shards.owner(name) == "kcm-0") == owned).unwrap()
        };
        let (own, foreign) = (named(true), named(false));
        Self { shards, plane, kubeconfig, own, foreign }
    }

    /// Runs kubectl through the proxy.
    async fn run(&self, args: &[&str]) -> Output {
        kubectl(&self.kubeconfig, args).await.unwrap()
    }

    /// Runs it in the shard's namespace; it must succeed.
    async fn own(&self, args: &[&str]) -> String {
        succeeded(&self.run(&[&["--namespace", &self.own], args].concat()).await)
    }

    /// The same at the API server itself, in the other namespace.
    async fn direct(&self, args: &[&str]) -> String {
        succeeded(&self.plane.kubectl(&[&["--namespace", &self.foreign], args].concat()).await.unwrap())
    }

    /// A file with a Deployment; the replicas tell one version from another.
    fn deployment(&self, name: &str, replicas: u32) -> String {
        let labels = json!({"app": name});
        let containers = json!([{"name": "web", "image": "web:1"}]);
        let template = json!({"metadata": {"labels": labels}, "spec": {"containers": containers}});
        let spec = json!({"replicas": replicas, "selector": {"matchLabels": labels}, "template": template});
        let object =
            json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": spec});
        let path = self.plane.dir().join(format!("{name}-{replicas}.json"));
        fs::write(&path, object.to_string()).unwrap();
        path.display().to_string()
    }

    async fn namespaces_have_owners(&self) {
        succeeded(&self.run(&["create", "namespace", &self.own]).await);
        self.is_refused(&self.run(&["create", "namespace", &self.foreign]).await, "ServiceUnavailable");
        self.direct(&["create", "namespace", &self.foreign]).await;
        let shown = succeeded(&self.run(&["get", "namespaces", "--output", "name"]).await);
        let (own, foreign) = (format!("namespace/{}", self.own), format!("namespace/{}", self.foreign));
        assert!(
            shown.lines().any(|line| line == own) && !shown.lines().any(|line| line == foreign),
            "{shown}"
        );
    }

    async fn own_objects_are_read(&self) {
        self.direct(&["apply", "--filename", &self.deployment("theirs", 1)]).await;
        let applied = self.own(&["apply", "--filename", &self.deployment("web", 1)]).await;
        assert_eq!(applied.trim(), "deployment.apps/web created");
        let yaml = self.own(&["get", "deployment", "web", "--output", "yaml"]).await;
        let object: Value = serde_saphyr::from_str(&yaml).unwrap();
        assert_eq!(
            (&object["kind"], &object["spec"]["replicas"]),
            (&json!("Deployment"), &json!(1)),
            "{yaml}"
        );
        let one = self.own(&["get", "deployment", "web"]).await;
        let list = self.own(&["get", "deployments"]).await;
        assert!(one.contains("UP-TO-DATE"), "{one}");
        assert_eq!(list.lines().count(), 2, "{list}");
        assert_eq!(list.lines().next(), one.lines().next());
        self.own(&["describe", "deployment", "web"]).await;
    }

    async fn a_watch_shows_changes(&self) {
        let table = self.long(&["get", "deployments", "--all-namespaces", "--watch"]);
        let columns = "--output=custom-columns=NAME:.metadata.name,REPLICAS:.spec.replicas";
        let watch =
            self.long(&["get", "deployments", "--all-namespaces", "--watch", "--no-headers", columns]);
        let web = |replicas: &str| ["web".to_owned(), replicas.to_owned()];
        saw(&watch, &web("1")).await;
        self.direct(&["scale", "deployment", "theirs", "--replicas=7"]).await;
        self.own(&["scale", "deployment", "web", "--replicas=2"]).await;
        saw(&watch, &web("2")).await;
        saw_line(&table, |line| line.contains(" web ") && line.contains(" 0/2 ")).await;
        for program in [&watch, &table] {
            let seen = fs::read_to_string(program.log_path()).unwrap();
            assert!(!seen.contains("theirs"), "{seen}");
        }
    }

    /// A kubectl that goes on.
    fn long(&self, args: &[&str]) -> Process {
        let flags = [format!("--kubeconfig={}", self.kubeconfig.display())];
        let args: Vec<String> = flags.into_iter().chain(args.iter().map(|&arg| arg.to_owned())).collect();
        let program = Programs::find().unwrap().path("kubectl").unwrap();
        Process::spawn("kubectl-watch", &program, &args, &[], self.plane.dir()).unwrap()
    }

    async fn own_objects_are_changed(&self) {
        let replicas =
            async || self.own(&["get", "deployment", "web", "--output=jsonpath={.spec.replicas}"]).await;
        self.own(&["apply", "--filename", &self.deployment("web", 3)]).await;
        assert_eq!(replicas().await, "3");
        let forced = ["apply", "--server-side", "--force-conflicts", "--filename"];
        self.own(&[&forced[..], &[&self.deployment("web", 4)]].concat()).await;
        assert_eq!(replicas().await, "4");
        self.own(&["replace", "--filename", &self.deployment("web", 5)]).await;
        assert_eq!(replicas().await, "5");
        let patches = [
            ("strategic", r#"{"spec":{"replicas":6}}"#),
            ("merge", r#"{"spec":{"replicas":7}}"#),
            ("json", r#"[{"op":"replace","path":"/spec/replicas","value":8}]"#),
        ];
        for (number, (kind, patch)) in patches.into_iter().enumerate() {
            self.own(&["patch", "deployment", "web", "--type", kind, "--patch", patch]).await;
            assert_eq!(replicas().await, (6 + number).to_string(), "{kind}");
        }
        self.own(&["label", "deployment", "web", "tier=front"]).await;
        assert_eq!(
            self.own(&["get", "deployments", "-l", "tier=front", "-o", "name"]).await.lines().count(),
            1
        );
        self.own(&["wait", "--for=jsonpath={.spec.replicas}=8", "deployment/web"]).await;
    }

    async fn foreign_objects_are_hidden_from_lists(&self) {
        let nothing = self.run(&["get", "deployments", "--namespace", &self.foreign]).await;
        assert!(nothing.status.success() && nothing.stdout.is_empty(), "{nothing:?}");
        assert!(String::from_utf8_lossy(&nothing.stderr).contains("No resources found"), "{nothing:?}");
        let all = succeeded(&self.run(&["get", "deployments", "--all-namespaces", "--output", "name"]).await);
        assert_eq!(all.trim(), "deployment.apps/web");
        let by_name = ["get", "deployment", "theirs", "--output", "name", "--namespace", &self.foreign];
        assert_eq!(succeeded(&self.run(&by_name).await).trim(), "deployment.apps/theirs");
    }

    async fn foreign_objects_are_refused(&self) {
        let before = self.direct(&["get", "deployment", "theirs", "--output", "yaml"]).await;
        let (theirs, new) = (self.deployment("theirs", 9), self.deployment("new", 1));
        let refused: [(&[&str], &str); 8] = [
            (&["patch", "deployment", "theirs", "--patch", r#"{"spec":{"replicas":9}}"#], "Conflict"),
            (&["apply", "--filename", &theirs], "Conflict"),
            // kubectl takes it for a conflict between managers and says only what the proxy said.
            (&["apply", "--server-side", "--force-conflicts", "--filename", &theirs], "cannot be fulfilled"),
            (&["replace", "--filename", &theirs], "Conflict"),
            (&["delete", "deployment", "theirs"], "Conflict"),
            (&["label", "deployment", "theirs", "tier=front"], "Conflict"),
            (&["create", "--filename", &new], "ServiceUnavailable"),
            (&["apply", "--filename", &new], "ServiceUnavailable"),
        ];
        for (args, reason) in refused {
            let output = self.run(&[&["--namespace", &self.foreign], args].concat()).await;
            self.is_refused(&output, reason);
        }
        assert_eq!(self.direct(&["get", "deployment", "theirs", "--output", "yaml"]).await, before);
        assert_eq!(self.direct(&["get", "deployments", "--output", "name"]).await.lines().count(), 1);
    }

    async fn own_objects_are_deleted(&self) {
        // It waits until it sees the object gone.
        let deleted = self.own(&["delete", "deployment", "web", "--wait"]).await;
        assert!(deleted.contains("\"web\" deleted"), "{deleted}");
        let gone = self.run(&["get", "deployment", "web", "--namespace", &self.own]).await;
        assert!(String::from_utf8_lossy(&gone.stderr).contains("(NotFound)"), "{gone:?}");
    }

    /// kubectl failed, and its message tells the reason and the owner.
    fn is_refused(&self, output: &Output, reason: &str) {
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        assert!(text.contains(reason), "{text}");
        let owner = format!("({:?}); {} does", self.foreign, self.shards.owner(&self.foreign));
        assert!(text.contains(&owner), "{text} does not say {owner}");
    }
}

fn succeeded(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout.clone()).unwrap()
}

/// Waits until a line of a program's output is of these words.
async fn saw(program: &Process, words: &[String]) {
    saw_line(program, |line| line.split_whitespace().eq(words.iter().map(String::as_str))).await;
}

/// Waits until a line of a program's output is the one.
async fn saw_line(program: &Process, is_it: impl Fn(&str) -> bool) {
    wait_for("a line of kubectl", DEADLINE, || async {
        let text = fs::read_to_string(Path::new(program.log_path())).map_err(|error| error.to_string())?;
        if text.lines().any(&is_it) { Ok(()) } else { Err(text) }
    })
    .await
    .unwrap();
}
