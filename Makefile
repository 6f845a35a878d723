# Every target is safe to run twice.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

CRDS := charts/shoal/crds
CARGO_DENY_VERSION := 0.20.2
CARGO_DENY := target/tools/cargo-deny-$(CARGO_DENY_VERSION)/bin/cargo-deny
CARGO_FUZZ_VERSION := 0.13.2
CARGO_FUZZ := target/tools/cargo-fuzz-$(CARGO_FUZZ_VERSION)/bin/cargo-fuzz

.PHONY: help
help: ## Lists what there is to run
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-15s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: control-plane
control-plane: ## Builds the real programs into target/control-plane/bin/
	@tests/control-plane/build.sh

.PHONY: demo
demo: ## Shows a stock kube-controller-manager at work as three shards; KEEP=1 leaves it up
	@tests/demo.sh $(if $(KEEP),--keep)

.PHONY: test
test: control-plane ## Runs every test; builds what they need first
	@tests/run.sh all

.PHONY: test-fast
test-fast: ## Runs the tests that need no control plane
	@tests/run.sh fast

.PHONY: test-node
test-node: ## Runs exec, attach, port-forward and kubectl on a real kubelet; needs root and Debian's containerd
	@tests/run.sh node

.PHONY: faults
faults: control-plane ## Shows what a client sees of each fault of the wire, and checks it
	@tests/run.sh faults

.PHONY: chaos
chaos: control-plane ## Lets all go wrong with a live ring, see docs/chaos.md; MINUTES=10 MODE=Freeze FENCE=Preconditions SEED=1
	cargo build --bin shoal-proxy --bin shoal-controller --bin shoal-chaos --bin shoal-supervise
	target/debug/shoal-chaos $(if $(MINUTES),--minutes $(MINUTES)) $(if $(MODE),--mode $(MODE)) \
		$(if $(FENCE),--fence $(FENCE)) $(if $(SEED),--seed $(SEED)) $(if $(FAULTS),--faults $(FAULTS)) \
		$(if $(CONTROLLERS),--controllers $(CONTROLLERS))

.PHONY: conformance
conformance: control-plane ## Compares answers straight and through proxies, see docs/conformance.md; ONLY=TEXT for a part
	cargo build --bin shoal-proxy --bin shoal-conformance --bin shoal-supervise
	target/debug/shoal-conformance $(if $(ONLY),--only '$(ONLY)')

.PHONY: model
model: ## Checks the ownership rules in every order of events, see docs/model.md; ends with the count of states
	cargo test --quiet -p shoal-sharding --test model -- full

.PHONY: fuzz
fuzz: $(CARGO_FUZZ) ## Fuzzes each parser of the proxy for a minute; SECONDS=600 for ten
	@proxy/fuzz/run.sh $(CARGO_FUZZ) $(or $(SECONDS),60)

.PHONY: bench
bench: control-plane ## Measures Shoal beside other proxies, see docs/performance.md; ONLY="quick watch" for a part, ONLY=handover for hand-overs
	cargo build --release --bin shoal-proxy --bin shoal-controller --bin shoal-floor --bin shoal-bench --bin shoal-supervise
	target/release/shoal-bench $(ONLY)

.PHONY: crds
crds: ## Writes the chart's CRDs from the API types
	cargo run --quiet -p shoal-api --bin shoal-crds $(CRDS)

.PHONY: lint
lint: $(CARGO_DENY) ## Checks format, clippy, docs, dependencies, generated files and scripts
	cargo fmt --check
	cargo clippy --workspace --all-targets -- -D warnings
# A workspace of its own, which nothing else builds.
	cargo clippy --manifest-path proxy/fuzz/Cargo.toml --target-dir target/fuzz --bins -- -D warnings
	RUSTDOCFLAGS='-D warnings' cargo doc --quiet --workspace --no-deps
# Not `advisories`, which has a target of its own: a lint must not depend on what was found out today.
	$(CARGO_DENY) check bans licenses sources
	rm -rf target/crds
	cargo run --quiet -p shoal-api --bin shoal-crds target/crds
	@diff -ru $(CRDS) target/crds || { echo 'lint: the CRDs are not what the types say: run make crds' >&2; exit 1; }
	@unformatted=$$(gofmt -l tests/control-plane); \
	[ -z "$$unformatted" ] || { echo "lint: not formatted, run gofmt -w: $$unformatted" >&2; exit 1; }
	@for script in .ci/run $$(git ls-files '*.sh'); do bash -n "$$script"; done
	@echo 'lint: ok'

.PHONY: advisories
advisories: $(CARGO_DENY) ## Looks for known vulnerabilities in the dependencies; needs the network
	$(CARGO_DENY) check advisories

# Built in a folder of its own, so that the workspace's stays as it is; first time about ten minutes on two cores.
$(CARGO_DENY):
	cargo install --root target/tools/cargo-deny-$(CARGO_DENY_VERSION) --locked --target-dir target/tools/build \
		cargo-deny@$(CARGO_DENY_VERSION)
	rm -rf target/tools/build

$(CARGO_FUZZ):
	cargo install --root target/tools/cargo-fuzz-$(CARGO_FUZZ_VERSION) --locked --target-dir target/tools/build \
		cargo-fuzz@$(CARGO_FUZZ_VERSION)
	rm -rf target/tools/build
