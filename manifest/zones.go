package manifest

// mirror is a line of a zone: an upstream host or address prefix, and its mirrors. Images and
// files have different mirrors.
type mirror struct {
	from   string // as Replacement.From
	images string // as Replacement.To, for images; "" if from has no images or no mirror for them
	files  string // the same for files
	none   string // why there is no mirror; "" if there is one
}

// zoneTable returns the mirrors of a zone; nil for an unknown zone.
func zoneTable(zone string) []mirror {
	if zone == "cn" {
		return cnMirrors()
	}
	return nil
}

// cnMirrors has a line for every upstream host of the version matrix, which a test of package
// versions checks, and for two registries that charts often use. All mirrors serve unchanged
// content, and none flattens names. docs/decisions/0017 has the reasons for this choice. The
// sources of each line:
//
//   - images: the rule "put the mirror before the name" is in
//     https://github.com/DaoCloud/public-image-mirror/blob/871a1e7221478447b426438e1fe962211a0ba6e8/README.md,
//     what it serves is in allows.txt in the same repository;
//   - files: the same rule for addresses is in
//     https://github.com/DaoCloud/public-binary-files-mirror/blob/975d2638d1173949dba4fb94fdbd0b398720c54b/README.md,
//     with dl.k8s.io, get.helm.sh and github.com as examples; any host is served since
//     https://github.com/DaoCloud/public-binary-files-mirror/commit/fb21f9bfd65c650c10050abeee823c2d22e4824c.
//     raw.githubusercontent.com is used in
//     https://github.com/wzshiming/daocloud-mirror-speed-up/blob/e5952668b53b84704f6dc104c03170111bddfe8e/README.md;
//   - download.docker.com: https://github.com/docker/docker-install/blob/0095742fb5d923f876e720731073c541f47f0f79/install.sh,
//     its mirror "Aliyun".
func cnMirrors() []mirror {
	return []mirror{
		{from: "docker.io", images: "m.daocloud.io/docker.io"},
		{from: "docker.io/kubeovn/vpc-nat-gateway", none: "the mirror of docker.io does not serve it"}, // allows.txt lists only kube-ovn of kubeovn
		{from: "gcr.io", images: "m.daocloud.io/gcr.io"},
		{from: "ghcr.io", images: "m.daocloud.io/ghcr.io"},
		{from: "k8s.gcr.io", images: "m.daocloud.io/k8s.gcr.io"},
		{from: "quay.io", images: "m.daocloud.io/quay.io"},
		{from: "registry.k8s.io", images: "m.daocloud.io/registry.k8s.io"},

		{from: "dl.k8s.io", files: "files.m.daocloud.io/dl.k8s.io"},
		{from: "download.docker.com", files: "mirrors.aliyun.com/docker-ce"},
		{from: "get.helm.sh", files: "files.m.daocloud.io/get.helm.sh"},
		{from: "github.com", files: "files.m.daocloud.io/github.com"},
		{from: "helm.cilium.io", files: "files.m.daocloud.io/helm.cilium.io"},
		{from: "kubeovn.github.io", files: "files.m.daocloud.io/kubeovn.github.io"},
		{from: "raw.githubusercontent.com", files: "files.m.daocloud.io/raw.githubusercontent.com"},
		{from: "storage.googleapis.com", files: "files.m.daocloud.io/storage.googleapis.com"},
	}
}

// zoneReplacements returns the lines of a zone for files or for images. To is empty in a line
// without a mirror.
func zoneReplacements(zone string, files bool) []Replacement {
	var out []Replacement
	for _, m := range zoneTable(zone) {
		to := m.images
		if files {
			to = m.files
		}
		if to != "" || m.none != "" {
			out = append(out, Replacement{From: m.from, To: to})
		}
	}
	return out
}
