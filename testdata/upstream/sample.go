package upstream

import "github.com/mensylisir/kubexm/manifest"

// Sample is a small lock, not pinned, with one artifact of every form: what a
// test of one package uses where the whole matrix would be too much.
func Sample() *manifest.Lock {
	const set = "v1.32.2"
	amd, arm := manifest.Platform{OS: "linux", Arch: "amd64"}, manifest.Platform{OS: "linux", Arch: "arm64"}
	l := &manifest.Lock{
		APIVersion: manifest.APIVersion, Kind: manifest.LockKind, Cluster: "sample",
		Created: released, Serial: 20250101000000,
		Config:    "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
		Platforms: []manifest.Platform{amd, arm},
		Sets:      []manifest.Set{{Name: set, Components: map[string]string{"kubernetes": set, "etcd": "3.5.16"}}},
	}
	add := func(a manifest.Artifact) {
		a.ID = string(a.Kind) + "/" + a.Name + "/" + a.Version
		if !a.Platform.IsZero() {
			a.ID += "/" + a.Platform.String()
		}
		a.Sets = []string{set}
		l.Artifacts = append(l.Artifacts, a)
	}
	for _, p := range l.Platforms {
		release := "https://dl.k8s.io/release/" + set + "/bin/linux/" + p.Arch
		for _, name := range []string{"kubeadm", "kubelet"} {
			add(manifest.Artifact{Kind: manifest.Binary, Name: name, Version: set, Platform: p, Address: release + "/" + name, DigestAddress: release + "/" + name + ".sha256"})
		}
		etcd := "https://github.com/etcd-io/etcd/releases/download/v3.5.16/"
		folder := "etcd-v3.5.16-linux-" + p.Arch
		add(manifest.Artifact{
			Kind: manifest.Binary, Name: "etcd", Version: "3.5.16", Platform: p, Archive: "tar.gz",
			Address: etcd + folder + ".tar.gz", DigestAddress: etcd + "SHA256SUMS",
			Members: []manifest.Member{{Path: folder + "/etcd", Name: "etcd"}, {Path: folder + "/etcdctl", Name: "etcdctl"}},
		})
		cni := "https://github.com/containernetworking/plugins/releases/download/v1.6.2/cni-plugins-linux-" + p.Arch + "-v1.6.2.tgz"
		add(manifest.Artifact{
			Kind: manifest.Binary, Name: "cni-plugins", Version: "1.6.2", Platform: p, Archive: "tar.gz",
			Address: cni, DigestAddress: cni + ".sha256",
			Members: []manifest.Member{{Path: "bridge", Name: "bridge"}, {Path: "loopback", Name: "loopback"}},
		})
		runc := "https://github.com/opencontainers/runc/releases/download/v1.2.5/"
		add(manifest.Artifact{Kind: manifest.Binary, Name: "runc", Version: "1.2.5", Platform: p, Address: runc + "runc." + p.Arch, DigestAddress: runc + "runc.sha256sum"})
	}
	add(manifest.Artifact{Kind: manifest.File, Name: "kube-flannel", Version: "0.26.4", Address: "https://github.com/flannel-io/flannel/releases/download/v0.26.4/kube-flannel.yml"})
	add(manifest.Artifact{Kind: manifest.Chart, Name: "metallb", Version: "0.14.9", Address: "https://metallb.github.io/metallb/metallb-0.14.9.tgz"})
	for _, ref := range []string{
		"registry.k8s.io/kube-apiserver:v1.32.2", "registry.k8s.io/pause:3.10", "registry.k8s.io/coredns/coredns:v1.11.3",
		"ghcr.io/flannel-io/flannel:v0.26.4", "docker.io/library/registry:2.8.3", "quay.io/metallb/speaker:v0.14.9",
	} {
		l.Images = append(l.Images, manifest.ImagePin{ID: "image/" + ref, Names: []string{ref}, Reference: ref, Sets: []string{set}})
	}
	l.Sort()
	return l
}
