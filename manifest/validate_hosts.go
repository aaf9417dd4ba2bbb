package manifest

import (
	"fmt"
	"net/netip"
	"strings"

	"github.com/mensylisir/kubexm/manifest/document"
)

func (d *config) validateHosts(c *Cluster) {
	names, addresses := map[string]string{}, map[string]string{}
	for i, h := range c.Spec.Hosts {
		path := document.Indexed("spec.hosts", i)
		if first, ok := names[h.Name]; ok && h.Name != "" {
			d.Fail(path+".name", "give every host a unique name", "%s is already the name of %s", h.Name, first)
		} else {
			names[h.Name] = path
		}
		if h.Name == LeadName {
			d.Fail(path+".name", "give the host another name", "%s is reserved: it represents the first healthy master", h.Name)
		}
		d.hostAddresses(h, path, addresses)
		d.loginRules(h.Login, path)
		if h.HostKeyPolicy == "pinned" && h.HostKey == "" && d.Valid(path+".hostKey", "spec.ssh.hostKey", "spec.ssh.hostKeyPolicy") {
			d.Fail(path+".hostKey", "write the host's public key, or its fingerprint SHA256:…", "is required if hostKeyPolicy is pinned")
		}
		if h.JumpHost != nil && d.Written(path+".jumpHost") {
			d.jumpRules(h.JumpHost, path+".jumpHost")
		}
		if h.Address != "" && d.Valid(path+".address") && !isIP(h.Address) && len(h.InternalAddress) == 0 {
			d.Fail(path+".internalAddress", "write the IP address at which the other hosts reach this host", "is required if the address is a DNS name: %s", h.Address)
		}
		d.labelsAndTaints(h, path)
	}
	d.loginRules(c.Spec.SSH.Login, "spec.ssh")
	if c.Spec.SSH.JumpHost != nil {
		d.jumpRules(c.Spec.SSH.JumpHost, "spec.ssh.jumpHost")
	}
}

func (d *config) labelsAndTaints(h Host, path string) {
	for key, value := range h.Labels {
		if advice := labelAdvice(key, value); advice != "" {
			d.Fail(document.Join(path+".labels", key), advice, "%s=%s is not a valid label", document.Redact(key), document.Redact(value))
		}
	}
	for i, t := range h.Taints {
		if advice := labelAdvice(t.Key, t.Value); advice != "" && t.Key != "" {
			d.Fail(document.Indexed(path+".taints", i), advice, "%s is not a valid taint", document.Redact(strings.TrimSuffix(t.Key+"="+t.Value, "=")))
		}
	}
}

// hostAddresses finds addresses that two hosts share, and hosts with several addresses of one
// IP family.
func (d *config) hostAddresses(h Host, path string, seen map[string]string) {
	own := map[string]bool{}
	use := func(at, addr string, key string) {
		if addr == "" || own[key] {
			return
		}
		own[key] = true
		if first, ok := seen[key]; ok {
			d.Fail(at, "give every host a unique address", "%s is already an address of %s", addr, first)
			return
		}
		seen[key] = path
	}
	use(path+".address", h.Address, fmt.Sprintf("%s:%d", h.Address, h.Port))
	families := map[bool]bool{}
	for i, a := range h.InternalAddress {
		ip, err := netip.ParseAddr(a)
		if err != nil {
			continue
		}
		at := document.Indexed(path+".internalAddress", i)
		if !d.Written(at) {
			at = path + ".address" // the default of internalAddress
		}
		if families[ip.Is4()] {
			d.Fail(at, "write one IPv4 and one IPv6 address at most", "%s is a second address of the same IP family", a)
		}
		families[ip.Is4()] = true
		use(at, a, "internal "+ip.String())
	}
}

// loginRules checks the fields of a login that depend on each other, if they are set.
func (d *config) loginRules(l Login, path string) {
	if d.Written(path+".hostKey") && l.HostKeyPolicy != "pinned" && d.Valid(path+".hostKeyPolicy", "spec.ssh.hostKeyPolicy") {
		d.Fail(path+".hostKey", "write hostKeyPolicy: pinned", "has an effect only with hostKeyPolicy pinned, but the policy is %s", l.HostKeyPolicy)
	}
	if d.Written(path+".passphrase") && l.PrivateKeyPath == "" && d.Valid(path+".privateKeyPath") {
		d.Fail(path+".passphrase", "write privateKeyPath, or leave the passphrase out", "is set, but there is no privateKeyPath")
	}
	if d.Written(path+".connectionTimeout") && l.ConnectionTimeout <= 0 {
		d.Fail(path+".connectionTimeout", "write a time span above zero, as in 15s", "%s is not above zero", l.ConnectionTimeout)
	}
}

func (d *config) jumpRules(j *JumpHost, path string) {
	d.loginRules(j.Login, path)
	if j.HostKeyPolicy == "pinned" && j.HostKey == "" && d.Valid(path+".hostKey") {
		d.Fail(path+".hostKey", "write the host's public key, or its fingerprint SHA256:…", "is required if hostKeyPolicy is pinned")
	}
}

func labelAdvice(key, value string) string {
	prefix, name, ok := strings.Cut(key, "/")
	if !ok {
		prefix, name = "", key
	}
	switch {
	case ok && (len(prefix) > 253 || !hostnamePattern.MatchString(prefix)):
		return "the part before / must be a DNS name in lower case"
	case !labelName.MatchString(name) || len(name) > 63:
		return "a key consists of at most 63 letters, digits, dashes, underscores and dots"
	case value != "" && (!labelName.MatchString(value) || len(value) > 63):
		return "a value consists of at most 63 letters, digits, dashes, underscores and dots"
	}
	return ""
}
