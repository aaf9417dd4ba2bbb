package manifest

import (
	"slices"
	"strings"

	"github.com/mensylisir/kubexm/manifest/document"
)

func (d *config) validateBundle(c *Cluster) {
	b := c.Spec.Bundle
	d.platforms(c)
	for i, v := range b.KubernetesVersions {
		at := document.Indexed("spec.bundle.kubernetesVersions", i)
		if m := minor(v); m > 0 && m < 24 {
			d.Fail(at, "choose 1.24 or newer", "%s is not supported by kubexm", v)
		}
		if v == c.Spec.Kubernetes.Version || slices.Contains(b.KubernetesVersions[:i], v) {
			d.Warn(at, "write it once", "%s is already in the bundle", v)
		}
	}
	if t := b.Trust; (t.TrustedRoot == "") != (t.CertificateIdentity == "") || (t.CertificateIdentity == "") != (t.CertificateOIDCIssuer == "") {
		d.Fail("spec.bundle.trust", "write trustedRoot, certificateIdentity and certificateOIDCIssuer, or none of them", "a keyless signature needs all three")
	}
	if t := b.Trust; t.AllowUnsigned && (len(t.Keys) > 0 || t.CertificateIdentity != "") {
		d.Fail("spec.bundle.trust.allowUnsigned", "leave it out; --allow-unsigned accepts a single bundle", "is true, but a key or an identity is set, which requires a signature")
	}
	images := map[string]string{}
	for i, im := range b.Images {
		at := document.Indexed("spec.bundle.images", i)
		if digest, twice := images[im.Reference]; twice && im.Reference != "" {
			if digest != im.Digest {
				d.Fail(at, "keep one of the two", "%s is listed twice, with different digests", im.Reference)
			} else {
				d.Warn(at, "write it once", "%s is listed twice", im.Reference)
			}
		}
		images[im.Reference] = im.Digest
	}
	files := map[string]bool{}
	for i, f := range b.Files {
		key := f.Name + " " + f.Platform.String()
		if files[key] && f.Name != "" {
			d.Fail(document.Indexed("spec.bundle.files", i)+".name", "give every file of a platform a unique name", "%s is listed twice", f.Name)
		}
		files[key] = true
		d.servedPlatform(f.Platform, document.Indexed("spec.bundle.files", i)+".platform")
	}
}

func (d *config) platforms(c *Cluster) {
	b := c.Spec.Bundle
	for i, p := range b.Platforms {
		at := document.Indexed("spec.bundle.platforms", i)
		d.servedPlatform(p, at)
		if slices.Contains(b.Platforms[:i], p) && !p.IsZero() {
			d.Warn(at, "write it once", "%s is listed twice", p)
		}
	}
	if len(b.Platforms) == 0 || !d.Valid("spec.bundle.platforms") {
		return
	}
	for i, h := range c.Spec.Hosts {
		p := Platform{OS: "linux", Arch: h.Arch}
		if !slices.Contains(b.Platforms, p) && d.Valid(document.Indexed("spec.hosts", i)+".arch") {
			d.Fail("spec.bundle.platforms", "add "+p.String(), "lacks %s, the platform of %s", p, document.Indexed("spec.hosts", i))
		}
	}
}

// servedPlatform adds an error for a platform that kubexm does not support. The zero platform
// means any.
func (d *config) servedPlatform(p Platform, at string) {
	switch {
	case p.IsZero():
	case p.Distribution != "":
		d.Fail(at, "write "+p.OS+"/"+p.Arch+", and list distributions in spec.bundle.operatingSystems", "%s contains a distribution", p)
	case p.OS != "linux" || p.Arch != "amd64" && p.Arch != "arm64":
		d.Fail(at, "write linux/amd64 or linux/arm64", "%s is not supported by kubexm", p)
	}
}

func (d *config) validateSources(s Sources, at string) {
	seen := map[string]bool{}
	for i, r := range s.Replace {
		p := document.Indexed(at+".replace", i)
		from := strings.TrimSuffix(r.From, "/")
		if seen[from] && from != "" {
			d.Fail(p+".from", "keep one of the two", "%s is replaced twice", from)
		}
		seen[from] = true
		if strings.HasPrefix(r.To, "http://") && !r.PlainHTTP && d.Valid(p+".plainHTTP") {
			d.Fail(p+".to", "write https://, or plainHTTP: true if you trust the network in between", "is an http:// address, but plainHTTP is not true")
		}
		if strings.HasPrefix(r.To, "https://") && r.PlainHTTP {
			d.Fail(p+".plainHTTP", "leave it out", "is true, but the address is https")
		}
	}
}
