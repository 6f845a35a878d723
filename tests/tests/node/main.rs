//! What only a real kubelet answers is the same through a proxy: exec, attach, port-forward, logs, `kubectl cp`.
//!
//! The tests share one cluster and run one after the other in a box, `make test-node`; without one they are ignored.
#![allow(clippy::unwrap_used, clippy::panic, reason = "test code, helpers included")]

mod attach;
mod copies;
mod exec;
mod foreign;
mod ground;
mod live;
mod port_forward;
mod proxied;
mod session;
mod vanished;

/// How kubectl asks for an upgrade: as it does since 1.31, and as older clients do.
const PROTOCOLS: [(&str, &str); 2] = [
    ("WebSocket", ""),
    ("SPDY", "export KUBECTL_REMOTE_COMMAND_WEBSOCKETS=false KUBECTL_PORT_FORWARD_WEBSOCKETS=false\n"),
];
