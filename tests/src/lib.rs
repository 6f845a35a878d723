//! The harness: real control planes, proxies and controllers as child processes on loopback.
//!
//! ```text
//! test ── RunDir ──────── target/test-logs/<test>/, kept when the test fails
//!   ├──── Ring ── Shard ─┬─ Proxy (shoal-proxy)
//!   │                    └─ ControllerManager behind it
//!   ├──── LiveRing ── Pod, the same with slots that move, and the coordinator
//!   └──── Cluster ─┬───── ControlPlane ─── etcd, kube-apiserver
//!                  ├───── ControllerManager (the singletons), scheduler
//!                  └───── kwok, which plays the nodes
//! ```
//! Each program is a [`process::Process`] under a supervisor of its own, so nothing is left running whatever
//! happens to the test. `make control-plane` builds the programs.

pub mod bench;
pub mod chaos;
pub mod cluster;
pub mod conformance;
pub mod control_plane;
pub mod controllers;
pub mod demo;
pub mod error;
pub mod evidence;
pub mod health;
pub mod kinds;
pub mod kubeconfig;
pub mod kubectl;
pub mod kwok;
pub mod live;
pub mod load;
pub mod meter;
pub mod node;
pub mod pki;
pub mod ports;
pub mod process;
pub mod programs;
pub mod protobuf;
pub mod proxy;
pub mod raw;
pub mod relay;
pub mod ring;
pub mod run_dir;
pub mod scripted;
pub mod shards;
pub mod supervise;
pub mod user;
pub mod wait;
pub mod websites;
pub mod widgets;

pub use cluster::Cluster;
pub use control_plane::{ControlPlane, Options};
pub use error::HarnessError;
pub use live::LiveRing;
pub use load::Load;
pub use node::NodeCluster;
pub use process::Process;
pub use proxy::{Proxy, ProxyArgs};
pub use ring::Ring;
pub use run_dir::RunDir;
pub use scripted::Scripted;
pub use shards::Shards;
pub use user::User;
pub use wait::{soon, wait_for};
