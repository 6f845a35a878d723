package main

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
)

type object = map[string]any

// archive is a tar in memory.
type archive struct {
	buffer bytes.Buffer
	tar    *tar.Writer
}

func newArchive() *archive {
	a := &archive{}
	a.tar = tar.NewWriter(&a.buffer)
	return a
}

func (a *archive) add(header tar.Header, content []byte) error {
	header.Size = int64(len(content))
	if err := a.tar.WriteHeader(&header); err != nil {
		return err
	}
	_, err := a.tar.Write(content)
	return err
}

func (a *archive) file(name string, mode int64, content []byte) error {
	return a.add(tar.Header{Name: name, Mode: mode, Typeflag: tar.TypeReg}, content)
}

func (a *archive) bytes() ([]byte, error) {
	err := a.tar.Close()
	return a.buffer.Bytes(), err
}

// image writes an OCI image layout as one tar, which `ctr images import` takes
// (https://github.com/opencontainers/image-spec, image-layout.md).
func image(args []string) error {
	if len(args) < 4 {
		return errors.New("expected OUT REF BUSYBOX COMMAND...")
	}
	layer, err := layer(args[2])
	if err != nil {
		return err
	}
	config, err := json.Marshal(object{
		"architecture": runtime.GOARCH, "os": "linux",
		"config": object{"Cmd": args[3:], "Env": []string{"PATH=/bin"}, "WorkingDir": "/"},
		"rootfs": object{"type": "layers", "diff_ids": []string{name(layer)}},
	})
	if err != nil {
		return err
	}
	manifest, err := json.Marshal(object{
		"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
		"config": descriptor("config.v1+json", config), "layers": []object{descriptor("layer.v1.tar", layer)},
	})
	if err != nil {
		return err
	}
	whole, err := layout(args[1], manifest, config, layer)
	if err != nil {
		return err
	}
	return os.WriteFile(args[0], whole, 0o644)
}

// layer holds this program and busybox under all its names.
func layer(busybox string) ([]byte, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	names, err := exec.Command(busybox, "--list").Output()
	if err != nil {
		return nil, fmt.Errorf("%s --list: %w", busybox, err)
	}
	a := newArchive()
	for _, dir := range []string{"bin/", "etc/", "tmp/"} {
		err = errors.Join(err, a.add(tar.Header{Name: dir, Mode: 0o1777, Typeflag: tar.TypeDir}, nil))
	}
	for name, path := range map[string]string{"bin/podtools": self, "bin/busybox": busybox} {
		content, failed := os.ReadFile(path)
		err = errors.Join(err, failed, a.file(name, 0o755, content))
	}
	for _, applet := range strings.Fields(string(names)) {
		if applet != "busybox" {
			header := tar.Header{Name: "bin/" + applet, Linkname: "busybox", Typeflag: tar.TypeSymlink}
			err = errors.Join(err, a.add(header, nil))
		}
	}
	if err != nil {
		return nil, err
	}
	return a.bytes()
}

func layout(ref string, manifest, config, layer []byte) ([]byte, error) {
	entry := descriptor("manifest.v1+json", manifest)
	entry["annotations"] = object{"io.containerd.image.name": ref}
	index, err := json.Marshal(object{"schemaVersion": 2, "manifests": []object{entry}})
	if err != nil {
		return nil, err
	}
	a := newArchive()
	err = errors.Join(a.file("oci-layout", 0o644, []byte(`{"imageLayoutVersion":"1.0.0"}`)), a.file("index.json", 0o644, index))
	for _, blob := range [][]byte{manifest, config, layer} {
		err = errors.Join(err, a.file("blobs/"+strings.Replace(name(blob), ":", "/", 1), 0o644, blob))
	}
	if err != nil {
		return nil, err
	}
	return a.bytes()
}

func name(blob []byte) string { return fmt.Sprintf("sha256:%x", sha256.Sum256(blob)) }

func descriptor(kind string, blob []byte) object {
	return object{"mediaType": "application/vnd.oci.image." + kind, "digest": name(blob), "size": len(blob)}
}
