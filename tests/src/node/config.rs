//! The configs of containerd and kubelet.

use super::{IMAGE, Machine};
use crate::ControlPlane;

/// Debian's containerd 1.6. The sandbox image need not be another one than the containers'.
pub(super) fn containerd(machine: &Machine) -> String {
    let dir = machine.dir.display();
    format!(
        r#"
version = 2
root = "{dir}/containerd"
state = "{dir}/containerd-state"
[grpc]
  address = "{dir}/containerd.sock"
[plugins."io.containerd.internal.v1.opt"]
  path = "{dir}/opt"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{IMAGE}"
  # Without CAP_SYS_RESOURCE no score can be lowered, and no sandbox would start.
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "{dir}/cni"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
"#
    )
}

/// For cgroup v1, with logs of containers beside the other ones, and a disk that is never too full.
pub(super) fn kubelet(machine: &Machine, plane: &ControlPlane) -> String {
    let dir = machine.dir.display();
    let cgroup = machine.dir.file_name().unwrap_or_default().display();
    let (logs, ca) = (plane.dir().join("pods"), &plane.pki().ca);
    let (logs, ca) = (logs.display(), ca.display());
    format!(
        r#"
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
failCgroupV1: false
failSwapOn: false
cgroupDriver: cgroupfs
cgroupRoot: /{cgroup}
containerRuntimeEndpoint: unix://{dir}/containerd.sock
podLogsDir: {logs}
volumePluginDir: {dir}/plugins
resolvConf: ""
syncFrequency: 5s
authentication: {{anonymous: {{enabled: false}}, x509: {{clientCAFile: {ca}}}}}
evictionHard: {{memory.available: 50Mi, nodefs.available: 0.1%, imagefs.available: 0.1%}}
imageGCHighThresholdPercent: 100
"#
    )
}
