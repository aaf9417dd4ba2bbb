package main

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/armor"
	ggcr "github.com/google/go-containerregistry/pkg/registry"
	"golang.org/x/crypto/ssh/knownhosts"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps/connector/conntest"
	"github.com/mensylisir/kubexm/steps/registryd/registrydtest"
	"github.com/mensylisir/kubexm/steps/steptest"
	"github.com/mensylisir/kubexm/testdata/built"
)

// newPrinted makes the site, the stand-ins and what the lines take for given.
func newPrinted(t *testing.T) *printed {
	t.Helper()
	binary := built.Kubexm(t)
	l, err := openLab(t.Context(), programs{binary: binary}, "../configs/quickstart.yaml", t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	lock, err := resolve(l.config)
	if err != nil {
		t.Fatal(err)
	}
	p := &printed{t: t, base: filepath.Join(l.dir, "base"), bin: filepath.Join(l.dir, "bin"), version: lock.Sets[0].Name,
		clusterSite: &clusterSite{site: &site{lab: l, root: l.dir}, hosts: map[string]*host{}, workdir: filepath.Join(l.dir, "work")}}
	for _, dir := range []string{p.base, p.bin, p.workdir} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	server := httptest.NewServer(ggcr.New(ggcr.Logger(silent()), ggcr.WithReferrersSupport(true)))
	t.Cleanup(server.Close)
	p.registry = strings.TrimPrefix(server.URL, "http://")
	p.hostsOf()
	config := filepath.Join(p.base, "config.yaml")
	s, err := l.serveFor(t.Context(), config, l.dir, true)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.server.Close)
	p.programs(s)
	p.files(s)
	p.given()
	return p
}

// hostsOf starts the hosts and writes the config that names them.
func (p *printed) hostsOf() {
	p.t.Helper()
	var lines strings.Builder
	sims := map[string]*conntest.Sim{}
	var known []string
	for i, n := range []string{"r1", "m1", "w1", "w2"} {
		sim := conntest.New(nil)
		sim.SetHostname(n)
		sim.SetMachine(func(m *conntest.Machine) { m.Addresses = []string{fmt.Sprintf("192.0.2.%d/24", 10+i)} })
		h, err := newHost(n, fmt.Sprintf("127.0.77.%d:0", 10+i), sim)
		if err != nil {
			p.t.Fatal(err)
		}
		p.t.Cleanup(h.close)
		sims[n], p.hosts[n] = sim, h
		known = append(known, knownhosts.Line([]string{fmt.Sprintf("[127.0.77.%d]:%d", 10+i, h.wire.port())}, h.server.HostKey()))
		fmt.Fprintf(&lines, "    - {name: %s, address: 127.0.77.%d, port: %d, internalAddress: 192.0.2.%d}\n", n, 10+i, h.wire.port(), 10+i)
	}
	text := fmt.Sprintf(printedConfig, lines.String(), p.version)
	var problems manifest.Problems
	if p.cluster, problems = manifest.Decode(strings.NewReader(text)); problems.Err() != nil {
		p.t.Fatal(problems.Err())
	}
	p.write("config.yaml", text)
	ssh := filepath.Join(p.root, ".ssh")
	if err := errors.Join(os.MkdirAll(ssh, 0o700), os.WriteFile(filepath.Join(ssh, "known_hosts"), []byte(strings.Join(known, "\n")+"\n"), 0o600)); err != nil {
		p.t.Fatal(err)
	}
	p.kube = steptest.NewKube(p.cluster)
	for n, sim := range sims {
		p.kube.On(sim, n)
	}
	p.reg = registrydtest.Start(p.cluster, sims["r1"], func() http.Handler {
		return &faultyRegistry{inner: ggcr.New(ggcr.Logger(silent())), count: map[string]int{}, kept: map[string]document{}, fine: true}
	})
	p.t.Cleanup(p.reg.Stop)
	p.kube.Holds = p.reg.Holds
	for n, h := range p.hosts {
		h.dial = func(address string) (net.Conn, error) { return p.reg.Dial(sims[n], address) }
	}
}

func (p *printed) write(name, text string) {
	p.t.Helper()
	if err := os.WriteFile(filepath.Join(p.base, name), []byte(text), 0o600); err != nil {
		p.t.Fatal(err)
	}
}

// programs writes what a shell finds: kubexm, sent to the stand-ins where it would ask
// the internet, and programs that only read what kubexm prints.
func (p *printed) programs(s *site) {
	p.t.Helper()
	kubexm := fmt.Sprintf(`#!/bin/sh
case "$1 $2" in
"bundle build"|"bundle lock"|"bundle images") set -- "$@" --sources %[1]s --versions %[2]s ;;
"registry serve"|"registry login") set -- "$@" --listen 127.0.0.1:0 ;;
"bundle push"|"bundle pull") set -- "$@" --plain-http ;;
"registry push") case "$*" in *--to*) set -- "$@" --plain-http ;; esac ;;
esac
exec %[3]s "$@"
`, s.paths.Sources, s.paths.Versions, p.binary)
	for name, text := range map[string]string{"kubexm": kubexm, "jq": "#!/bin/sh\nexec cat\n", "dot": "#!/bin/sh\nexec cat\n"} {
		if err := os.WriteFile(filepath.Join(p.bin, name), []byte(text), 0o700); err != nil {
			p.t.Fatal(err)
		}
	}
}

// files writes the reader's own files: mirrors, versions, certificates and keys.
func (p *printed) files(s *site) {
	p.t.Helper()
	for from, to := range map[string]string{s.paths.Sources: "mirrors.yaml", s.paths.Versions: "own.yaml"} {
		text, err := os.ReadFile(from)
		if err != nil {
			p.t.Fatal(err)
		}
		p.write(to, string(text))
	}
	server := httptest.NewTLSServer(http.NotFoundHandler())
	server.Close()
	pair := server.TLS.Certificates[0]
	key, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	if err != nil {
		p.t.Fatal(err)
	}
	certificate := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: pair.Certificate[0]}))
	p.write("tls.crt", certificate)
	p.write("ca.crt", certificate)
	p.write("tls.key", string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key})))
	var armored bytes.Buffer
	e, err := openpgp.NewEntity("site", "", "site@example.org", nil)
	if err != nil {
		p.t.Fatal(err)
	}
	w, err := armor.Encode(&armored, openpgp.PrivateKeyType, nil)
	if err == nil {
		err = errors.Join(e.SerializePrivate(w, nil), w.Close())
	}
	if err != nil {
		p.t.Fatal(err)
	}
	p.write("packages.key", armored.String())
}

// given makes what the lines take for given: a signed bundle, an older one and a
// delta, the keys, an inventory; and the cluster.
func (p *printed) given() {
	p.t.Helper()
	const install = "kubexm install demo.tar.zst --key cosign.pub -f config.yaml"
	for _, line := range []string{
		"kubexm keys generate",
		"kubexm bundle build -f config.yaml --sign-key cosign.key demo.tar.zst",
		"kubexm bundle push --key cosign.pub demo.tar.zst registry.example/bundles/demo:2026-11",
		"kubexm bundle split demo.tar.zst --volume-size 128KiB --parity 1",
		install, install + " --sign-key cosign.key", // a receipt of each kind
		"kubexm site inventory -f config.yaml -O site.json",
		"kubexm bundle build -f config.yaml --since site.json --sign-key cosign.key delta.tar.zst",
	} {
		p.typed(p.t, p.base, "cache", "given", line)
	}
	if out, err := exec.CommandContext(p.t.Context(), "/bin/sh", "-c", "cd '"+p.base+"' && cp demo.tar.zst old.tar.zst && cp demo.tar.zst new.tar.zst && cp config.yaml other.yaml && cp -a ../cache ../cache-elsewhere").CombinedOutput(); err != nil {
		p.t.Fatalf("%v\n%s", err, out)
	}
}
