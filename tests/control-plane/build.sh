#!/usr/bin/env bash
# build.sh          builds the real programs that the tests and the demo run into target/control-plane/bin/: etcd,
#                   kube-apiserver, kube-controller-manager, kube-scheduler, kubectl, kwok with its stock stages, and
#                   our own programs of cmd/
# build.sh node     builds what a real node needs beside them into target/node/bin/: kubelet, podtools
#
# bin is a symlink to a folder named by the hash of everything that decides what is in it, so a second run costs
# nothing. A program that did not change is linked over from the set before, not built again. Two runs at once wait
# for each other; a failed one leaves bin as it was.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
for_whom=${1:-control-plane}
out=${CARGO_TARGET_DIR:-$here/../../target}/$for_whom
mkdir -p "$out"
out=$(cd "$out" && pwd)

# No C compiler is needed; the workspace and flags of the caller do not matter.
export CGO_ENABLED=0 GOWORK=off GOFLAGS=-buildvcs=false

# One row a program: name, module folder, package.
programs() {
    case $for_whom in
    node)
        echo "kubelet . k8s.io/kubernetes/cmd/kubelet"
        echo "podtools . ./cmd/podtools"
        ;;
    *) programs_of_the_control_plane ;;
    esac
}

programs_of_the_control_plane() {
    echo "etcd etcd go.etcd.io/etcd/server/v3"
    for name in kube-apiserver kube-controller-manager kube-scheduler kubectl; do
        echo "$name . k8s.io/kubernetes/cmd/$name"
    done
    echo "kwok kwok sigs.k8s.io/kwok/cmd/kwok"
    echo "manager manager ./"
    for main in "$here"/cmd/*/main.go; do
        [ -e "$main" ] || continue
        local name
        name=$(basename "$(dirname "$main")")
        [ "$name" = podtools ] || echo "$name . ./cmd/$name"
    done
}

# What decides the bytes of one program: its module, this recipe, and our own sources where the program is ours.
key() {
    local module=$1 package=$2
    {
        cat "$here/build.sh" "$here/$module/go.mod" "$here/$module/go.sum"
        case $package in ./*) find "$here/$module/$package" -type f | LC_ALL=C sort | xargs cat ;; esac
    } | sha256sum | cut -c1-16
}

# Without these flags /version names no release.
ldflags() {
    local component=k8s.io/component-base/version
    case $1 in
    .) echo "-s -w -X $component.gitVersion=$2 -X $component.gitMajor=$(cut -d. -f1 <<<"${2#v}") -X $component.gitMinor=$(cut -d. -f2 <<<"$2")" ;;
    kwok) echo "-s -w -X sigs.k8s.io/kwok/pkg/consts.Version=$2" ;;
    *) echo "-s -w" ;;
    esac
}

# The version in a module's go.mod of what it builds.
version() {
    case $1 in
    .) (cd "$here" && go list -m -f '{{.Version}}' k8s.io/kubernetes) ;;
    kwok) (cd "$here/kwok" && go list -m -f '{{.Version}}' sigs.k8s.io/kwok) ;;
    esac
}

build() {
    local name=$1 module=$2 package=$3 into=$4 started=$SECONDS
    # On a terminal the line is completed in place.
    [ ! -t 1 ] || printf '%-26s building\r' "$name"
    (cd "$here/$module" && go build -trimpath -ldflags "$(ldflags "$module" "$(version "$module")")" -o "$into/$name" "$package") ||
        { echo "$for_whom: $name does not build; the lines above are Go's own" >&2; return 1; }
    printf '%-26s %4d s %5d MB\n' "$name" $((SECONDS - started)) $(($(stat -c %s "$into/$name") / 1000000))
}

# kwok's stock stages, which a config of our own would otherwise replace.
copy_stages() {
    local module
    module=$(cd "$here/kwok" && go list -m -f '{{.Dir}}' sigs.k8s.io/kwok)
    cp -r "$module/kustomize/stage" "$1/kwok-stages"
    chmod -R u+w "$1/kwok-stages"
}

keys() { programs | while read -r name module package; do echo "$name $module $package $(key "$module" "$package")"; done; }

wanted=$(keys)
set_name=$(sha256sum <<<"$wanted" | cut -c1-16)
current=$(readlink "$out/bin" || true)
[ "$current" = "$set_name" ] && exit 0

command -v go >/dev/null || { echo "$for_whom: Go is not installed; see https://go.dev/dl, 1.26 or newer" >&2; exit 1; }
exec 9>"$out/.lock"
flock 9
current=$(readlink "$out/bin" || true)
[ "$current" = "$set_name" ] && exit 0

rm -rf "$out"/.new-*
new=$(mktemp -d "$out/.new-XXXXXX")
trap 'rm -rf "$new"' EXIT
echo "$for_whom: building into $out/bin (all of Kubernetes the first time: about ten minutes on two cores)"
while read -r name module package key; do
    if [ -n "$current" ] && grep -qxF "$name $module $package $key" "$out/$current/.keys" 2>/dev/null; then
        ln "$out/$current/$name" "$new/$name"
    else
        build "$name" "$module" "$package" "$new"
    fi
done <<<"$wanted"
[ "$for_whom" = node ] || copy_stages "$new"
echo "$wanted" >"$new/.keys"
chmod 755 "$new"

rm -rf "${out:?}/$set_name"
mv "$new" "$out/$set_name"
ln -sfn "$set_name" "$out/.bin-new"
mv -T "$out/.bin-new" "$out/bin"
# The set before this one stays: a test may be running from it.
find "$out" -mindepth 1 -maxdepth 1 -type d ! -name "$set_name" ! -name "${current:-none}" -exec rm -rf {} +
echo "$for_whom: ready in $SECONDS s"
