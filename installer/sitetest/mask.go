package sitetest

import (
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strings"

	"github.com/mensylisir/kubexm/manifest"
)

// mask replaces everything in a text that differs between two installations of the same
// cluster, or between two sites: keys, digests, passwords, names and addresses of hosts.
type mask struct {
	names *regexp.Regexp
	hosts map[string]bool // addresses
	cidrs []named
}

type named struct {
	name   string
	prefix netip.Prefix
}

func newMask(c *manifest.Cluster) *mask {
	m := &mask{hosts: map[string]bool{}}
	var names []string
	for _, h := range c.Spec.Hosts {
		names = append(names, regexp.QuoteMeta(h.Name))
		m.hosts[h.Address] = true
		for _, a := range h.InternalAddress {
			m.hosts[a] = true
		}
	}
	// The longest first: m10 must not match m1.
	slices.SortFunc(names, func(a, b string) int { return len(b) - len(a) })
	m.names = regexp.MustCompile(`\b(` + strings.Join(names, "|") + `)\b`)
	for name, list := range map[string][]string{"pods": c.Spec.Network.KubePodsCIDR, "services": c.Spec.Network.KubeServiceCIDR} {
		for _, one := range list {
			if p, err := netip.ParsePrefix(one); err == nil {
				m.cidrs = append(m.cidrs, named{name, p.Masked()})
			}
		}
	}
	return m
}

var (
	blocks  = regexp.MustCompile(`(?s)-----BEGIN [A-Z ]+-----.*?-----END [A-Z ]+-----\n?`)
	digests = regexp.MustCompile(`\b[0-9a-f]{64}\b`)
	configs = regexp.MustCompile(`/config/[0-9a-f]{16}\b`)        // of a worker's load balancer, with its certificates
	conf    = regexp.MustCompile(`(/kubeconfig: ")[0-9a-f]{16}"`) // of kube-vip, with its key
	ipv4    = regexp.MustCompile(`\b\d+\.\d+\.\d+\.\d+(/\d+)?`)
	times   = regexp.MustCompile(`\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`)
	runs    = regexp.MustCompile(`\bop-\d{8}-\d{6}\b`) // ids of operations
	lasted  = regexp.MustCompile(`"took": ?"[^"]*"`)
	basic   = regexp.MustCompile(`\bBasic [A-Za-z0-9+/]+=*`)
	keys    = regexp.MustCompile(`[A-Za-z0-9+/]{43}=`)       // 32 bytes in base64
	coded   = regexp.MustCompile(`[A-Za-z0-9+/]{80,}={0,2}`) // longer than any path
	salted  = regexp.MustCompile(`\$2[aby]\$\d\d\$[./A-Za-z0-9]{53}`)
)

func (m *mask) text(s string, secrets []string) string {
	for _, secret := range secrets {
		if secret != "" {
			s = strings.ReplaceAll(s, secret, "<secret>")
		}
	}
	s = blocks.ReplaceAllStringFunc(s, block)
	s = basic.ReplaceAllString(s, "Basic <login>")
	s = coded.ReplaceAllString(s, "<base64>")
	s = keys.ReplaceAllString(s, "<key>")
	s = salted.ReplaceAllString(s, "<salted>")
	s = times.ReplaceAllString(s, "<time>")
	s = runs.ReplaceAllString(s, "<operation>")
	s = lasted.ReplaceAllString(s, `"took": "<time>"`)
	s = digests.ReplaceAllString(s, "<sha256>")
	s = conf.ReplaceAllString(s, `${1}<digest>"`)
	s = configs.ReplaceAllString(s, "/config/<digest>")
	s = ipv4.ReplaceAllStringFunc(s, m.address)
	return m.names.ReplaceAllString(s, "<host>")
}

// block describes a PEM block; for a certificate, what it asserts.
func block(text string) string {
	b, _ := pem.Decode([]byte(text))
	if b == nil {
		return "<damaged block>\n"
	}
	c, err := x509.ParseCertificate(b.Bytes)
	if b.Type != "CERTIFICATE" || err != nil {
		return "<" + b.Type + ">\n"
	}
	return fmt.Sprintf("<certificate of %s by %s for %v %v, usage %d %v, CA %t, %s>\n",
		c.Subject, c.Issuer, c.DNSNames, c.IPAddresses, c.KeyUsage, c.ExtKeyUsage, c.IsCA, c.NotAfter.Sub(c.NotBefore))
}

// address replaces an address by its role in the cluster.
func (m *mask) address(s string) string {
	one, bits, _ := strings.Cut(s, "/")
	a, err := netip.ParseAddr(one)
	if err != nil {
		return s
	}
	if m.hosts[one] {
		return "<address>"
	}
	for _, c := range m.cidrs {
		switch {
		case bits != "" && c.prefix.String() == s:
			return "<" + c.name + ">"
		case c.prefix.Contains(a):
			x, y := c.prefix.Addr().As4(), a.As4()
			n := 0
			for i := range x {
				n = n<<8 + int(y[i]) - int(x[i])
			}
			return fmt.Sprintf("<%s+%d>", c.name, n)
		}
	}
	return s
}
