#!/usr/bin/env bash
# node.sh missing            says what this machine lacks for a real node, and nothing when it lacks nothing
# node.sh run COMMAND...     runs a command where containerd and kubelet can run, and leaves nothing behind
#
# The command runs in a box: process, mount, network, host name and IPC namespaces of its own. The machine's network,
# mounts, /run, /var/log and sysctls stay as they are. The command finds in its environment
#   SHOAL_BOX        an empty folder for state and sockets, deleted with the box; its name is also that of a cgroup for
#                    Pods in each hierarchy
#   SHOAL_NODE_IP    the node's address, that of the bridge to its Pods, for which SHOAL_BOX/cni holds the config
# All ends when the command does, or when this script is killed. One box at a time: the next one waits.
set -euo pipefail

IP=10.88.0.1
CONTROLLERS="cpu cpuacct cpuset memory devices freezer blkio pids"
CGROUPS=/sys/fs/cgroup
temporary=${TMPDIR:-/tmp}

missing() {
    if [ "$(id -u)" -ne 0 ]; then
        echo "it needs root, for namespaces and cgroups"
        return
    fi
    local controller program packages=""
    for controller in $CONTROLLERS; do
        if [ ! -d "$CGROUPS/$controller" ]; then
            echo "it needs cgroup v1, and $CGROUPS/$controller is not there"
            return
        fi
    done
    if ! unshare --fork --pid --mount --net --uts --ipc --mount-proc true 2>/dev/null; then
        echo "unshare cannot make namespaces here; is this a container without CAP_SYS_ADMIN?"
        return
    fi
    for program in containerd:containerd ctr:containerd runc:runc iptables:iptables ip:iproute2; do
        command -v "${program%:*}" >/dev/null || packages+=" ${program#*:}"
    done
    [ -x /usr/lib/cni/bridge ] || packages+=" containernetworking-plugins"
    # A busybox that is linked dynamically could not run alone in an image.
    if [ ! -x /bin/busybox ] || ldd /bin/busybox >/dev/null 2>&1; then packages+=" busybox-static"; fi
    if [ -n "$packages" ]; then
        packages=$(tr ' ' '\n' <<<"$packages" | sort -u | xargs)
        echo "programs are missing; on Debian: apt-get install --no-install-recommends $packages"
    fi
}

# What a box that did not end well has left. Nothing runs in them: the lock is free.
sweep() {
    local left try
    for try in 1 2 3 4 5 6 7 8 9 10; do
        left=$(find $CGROUPS/*/shoal-node.* -maxdepth 0 2>/dev/null || true)
        [ -n "$left" ] || break
        # The kernel takes a moment to forget what ended in a cgroup.
        [ "$try" = 1 ] || sleep 0.5
        # shellcheck disable=SC2086
        find $left -depth -type d -exec rmdir {} + 2>/dev/null || true
    done
    rm -rf "$temporary"/shoal-node.*
}

make_cgroups() {
    local hierarchy file
    # kubelet wants one in systemd's hierarchy too where there is one.
    for hierarchy in "$CGROUPS"/*/; do
        [ "$(basename "$hierarchy")" = unified ] || mkdir -p "$hierarchy/$1"
    done
    for file in cpuset.cpus cpuset.mems; do
        cat "$CGROUPS/cpuset/$file" >"$CGROUPS/cpuset/$1/$file"
    done
}

run() {
    # Held by everything in the box, so that it is free only when all of that is gone.
    exec 9>"$temporary/shoal-node-lock"
    flock 9
    sweep
    SHOAL_BOX=$(mktemp -d "$temporary/shoal-node.XXXXXX")
    make_cgroups "$(basename "$SHOAL_BOX")"
    export SHOAL_BOX SHOAL_NODE_IP=$IP
    trap sweep EXIT
    unshare --fork --pid --mount --net --uts --ipc --mount-proc --propagation private --kill-child \
        bash "$0" inside "$@"
}

# Process 1 of the box: it stays, because bash reaps who loses its parent.
inside() {
    mount --make-rshared /
    own_files
    own_network
    "$@"
}

# Programs that do not ask where to write, and sysctls that kubelet sets for the whole machine.
own_files() {
    local folder name
    for folder in /run /var/log /var/lib/cni; do
        mkdir -p "$folder"
        mount -t tmpfs box "$folder"
    done
    for name in vm/overcommit_memory kernel/panic kernel/panic_on_oops; do
        cat "/proc/sys/$name" >"$SHOAL_BOX/${name#*/}"
        mount --bind "$SHOAL_BOX/${name#*/}" "/proc/sys/$name"
    done
    # There is no name server in here.
    : >"$SHOAL_BOX/resolv.conf"
    [ ! -f /etc/resolv.conf ] || mount --bind "$SHOAL_BOX/resolv.conf" /etc/resolv.conf
}

own_network() {
    hostname node
    ip link set lo up
    ip link add cni0 type bridge
    ip addr add $IP/24 dev cni0
    ip link set cni0 up
    ip route add default via $IP dev cni0
    echo 1 >/proc/sys/net/ipv4/ip_forward
    mkdir "$SHOAL_BOX/cni"
    cat >"$SHOAL_BOX/cni/10-pods.conflist" <<JSON
{"cniVersion": "1.0.0", "name": "pods", "plugins": [{"type": "bridge", "bridge": "cni0", "isGateway": true,
 "hairpinMode": true, "ipam": {"type": "host-local", "dataDir": "$SHOAL_BOX/ipam",
 "routes": [{"dst": "0.0.0.0/0"}], "ranges": [[{"subnet": "${IP%.*}.0/24", "rangeStart": "${IP%.*}.10", "gateway": "$IP"}]]}}]}
JSON
}

case ${1:-} in
missing) missing ;;
run) shift; run "$@" ;;
inside) shift; inside "$@" ;;
*)
    echo "usage: $0 missing | run COMMAND..." >&2
    exit 2
    ;;
esac
