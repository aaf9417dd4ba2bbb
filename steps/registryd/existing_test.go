package registryd_test

import (
	"bytes"
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/crypto/bcrypt"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/registry/registrytest"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/registryd"
	"github.com/mensylisir/kubexm/steps/runner"
	"github.com/mensylisir/kubexm/steps/steptest"
)

// standing is a registry that stands already, at a name that only the config
// gives an address.
type standing struct {
	*registrytest.Product
	cluster *manifest.Cluster
	kase    steptest.Case
	wire    *wire
	log     bytes.Buffer
	host    *steps.Host
	direct  atomic.Int64 // connections from here that were tried
}

// stand serves it. reached says whether this machine reaches it.
func stand(t *testing.T, reached bool) *standing {
	t.Helper()
	s := &standing{Product: registrytest.NewProduct()}
	srv := httptest.NewUnstartedServer(s.Product)
	srv.Config.ErrorLog = log.New(io.Discard, "", 0) // of handshakes that fail on purpose
	srv.StartTLS()
	t.Cleanup(srv.Close)
	certs := t.TempDir()
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: srv.Certificate().Raw})
	if err := os.WriteFile(filepath.Join(certs, "ca.crt"), ca, 0o600); err != nil {
		t.Fatal(err)
	}
	config := strings.Replace(steptest.Small, "    registry: [node1]\n", "", 1) + fmt.Sprintf(
		"  registry: {type: external, privateRegistry: 'example.com:8443', namespaceOverride: kube, auths: {'example.com:8443': {username: robot, password: canary-x, certsPath: %q}}}\n"+
			"  extra: {hosts: [{domain: example.com, address: 192.0.2.99}]}\n", certs)
	s.cluster = steptest.Cluster(t, config)
	s.User, s.Password = "robot", "canary-x"
	s.kase = steptest.Case{Cluster: s.cluster, Workdir: t.TempDir(), Artifacts: newImageBundle(t, "registry.k8s.io/pause:3.10", "docker.io/library/nginx:1.29")}
	s.wire = &wire{Sim: s.kase.Sim(t), to: srv.Listener.Addr().String()}
	s.host = s.on(t, registryd.Seed(s.cluster, nil), func(ctx context.Context, network, address string) (net.Conn, error) {
		s.direct.Add(1)
		if address != "192.0.2.99:8443" {
			t.Errorf("%s was dialed", address)
		}
		if !reached {
			return nil, &net.OpError{Op: "dial", Net: network, Err: errors.New("no route to host")}
		}
		return (&net.Dialer{}).DialContext(ctx, network, srv.Listener.Addr().String())
	})
	return s
}

func (s *standing) on(t *testing.T, step steps.Step, direct func(context.Context, string, string) (net.Conn, error)) *steps.Host {
	t.Helper()
	h := s.kase.NewHost(t, s.wire.Sim, step)
	h.Runner = runner.New(s.wire, runner.Options{})
	h.Log = slog.New(slog.NewTextHandler(&s.log, nil))
	h.Direct = direct
	return h
}

// TestRouteToAnExistingRegistry: directly, and through the host only where this
// machine does not reach it; which of the two is found out once.
func TestRouteToAnExistingRegistry(t *testing.T) {
	for _, reached := range []bool{true, false} {
		t.Run(fmt.Sprintf("reached=%t", reached), func(t *testing.T) {
			s := stand(t, reached)
			step := registryd.Seed(s.cluster, nil)
			if v, err := step.Precheck(t.Context(), s.host); err != nil || v != steps.Todo {
				t.Fatalf("%v, %v", v, err)
			}
			if err := step.Run(t.Context(), s.host); err != nil {
				t.Fatal(err)
			}
			if v, err := step.Precheck(t.Context(), s.host); err != nil || v != steps.Done {
				t.Fatalf("%v, %v", v, err)
			}
			if s.Uploads != 4 || s.Manifest("kube/docker.io/library/nginx", "1.29") == "" {
				t.Errorf("%d blobs were sent", s.Uploads)
			}
			asked := s.wire.asked.Load()
			if through := asked != nil; through == reached {
				t.Errorf("through the host: %v", asked)
			}
			if !reached && asked != "192.0.2.99:8443" {
				t.Errorf("through the host to %v", asked)
			}
			if said := strings.Count(s.log.String(), "cannot reach the registry"); (said > 0) == reached || said > 3 {
				t.Errorf("said %d times:\n%s", said, &s.log)
			}
			if n := s.direct.Load(); !reached && n > 3*8 {
				t.Errorf("tried directly %d times", n)
			}
			if strings.Contains(s.log.String(), "canary-x") {
				t.Error("the password is in the log")
			}
		})
	}
}

// TestABusyRegistryIsFilled: each third upload is refused with "too many".
func TestABusyRegistryIsFilled(t *testing.T) {
	s := stand(t, true)
	s.Busy, s.Mount = 3, 405
	if err := registryd.Seed(s.cluster, nil).Run(t.Context(), s.host); err != nil {
		t.Fatal(err)
	}
	if s.Uploads < 5 || s.Manifest("kube/registry.k8s.io/pause", "3.10") == "" {
		t.Errorf("%d uploads", s.Uploads)
	}
}

// TestAnUnreachableRegistry: both reasons are said.
func TestAnUnreachableRegistry(t *testing.T) {
	s := stand(t, false)
	s.wire.to = ""
	found := checks(t, s, registryd.CheckPush(s.cluster))
	if len(found) != 1 || !strings.Contains(found[0].What, "no route to host") || !strings.Contains(found[0].What, "and through the host") || !strings.Contains(found[0].Advice, "curl -v https://example.com:8443/v2/") {
		t.Errorf("%+v", found)
	}
}

func checks(t *testing.T, s *standing, step steps.Step) steps.Findings {
	t.Helper()
	err := step.Run(t.Context(), s.on(t, step, s.host.Direct))
	var found steps.Findings
	if err != nil && !errors.As(err, &found) {
		t.Fatal(err)
	}
	return found
}

func TestChecksOfAnExistingRegistry(t *testing.T) {
	for name, c := range map[string]struct {
		change     func(*standing)
		pull, push string // of what is found; "" is nothing
		advice     string
	}{
		"all well":         {func(*standing) {}, "", "", ""},
		"another password": {func(s *standing) { s.Password = "other" }, "401", "401", `spec.registry.auths["example.com:8443"]`},
		"another CA": {func(s *standing) {
			a := s.cluster.Spec.Registry.Auths["example.com:8443"]
			a.CertsPath = ""
			s.cluster.Spec.Registry.Auths["example.com:8443"] = a
		}, "unknown authority", "unknown authority", "certsPath"},
		"another name": {func(s *standing) {
			s.cluster.Spec.Registry.PrivateRegistry = "other.example:8443"
			s.cluster.Spec.Registry.Auths["other.example:8443"] = s.cluster.Spec.Registry.Auths["example.com:8443"]
			s.cluster.Spec.Extra.Hosts[0].Domain = "other.example"
		}, "not other.example", "not other.example", "a name that its certificate contains"},
		"another name, unchecked": {func(s *standing) {
			a := s.cluster.Spec.Registry.Auths["example.com:8443"]
			a.SkipTLSVerify = true
			s.cluster.Spec.Registry.PrivateRegistry = "other.example:8443"
			s.cluster.Spec.Registry.Auths["other.example:8443"] = a
			s.cluster.Spec.Extra.Hosts[0].Domain = "other.example"
		}, "", "", ""},
		"no project": {func(s *standing) { s.Project = "others/" }, "", "404", "namespaceOverride"},
		"tokens":     {func(s *standing) { s.Tokens = true }, "only tokens", "only tokens", "Harbor"},
	} {
		t.Run(name, func(t *testing.T) {
			s := stand(t, true)
			c.change(s)
			for step, want := range map[steps.Step]string{registryd.CheckPull(s.cluster): c.pull, registryd.CheckPush(s.cluster): c.push} {
				found := checks(t, s, step)
				if (len(found) > 0) != (want != "") || len(found) > 0 && (!strings.Contains(found[0].What, want) || !strings.Contains(found[0].Advice, c.advice)) {
					t.Errorf("%s: %+v, want %q", step.Meta().Name, found, want)
				}
			}
			if s.OpenUploads != 0 || s.Uploads+s.Puts != 0 {
				t.Errorf("a check left something: %d, %d", s.OpenUploads, s.Uploads+s.Puts)
			}
		})
	}
}

func TestCertificatesAreCheckedFirst(t *testing.T) {
	s := stand(t, true)
	if ps := registryd.CheckFiles(s.cluster, time.Now()); len(ps) > 0 {
		t.Error(ps)
	}
	s.cluster.Spec.Registry.Auths["b.example"] = manifest.RegistryAuth{CertsPath: "nowhere"}
	s.cluster.Spec.Registry.Auths["a.example"] = manifest.RegistryAuth{CertsPath: t.TempDir()}
	ps := registryd.CheckFiles(s.cluster, time.Now())
	if len(ps) != 2 || ps[0].Path != `spec.registry.auths["a.example"].certsPath` || !strings.Contains(ps[1].Message, "no such file") {
		t.Errorf("%v", ps)
	}
}

// TestAUserOfTheConfig can pull from the registry that is installed, with a hash that
// costs what a password of a person's should, and cannot push.
func TestAUserOfTheConfig(t *testing.T) {
	c := steptest.Cluster(t, steptest.Small+"  registry: {privateRegistry: r.example, auths: {'r.example:443': {username: anna, password: hers}}}\n")
	kase := steptest.Case{Cluster: c, Workdir: t.TempDir()}
	s := kase.Sim(t)
	step := registryd.Install(c)
	if err := step.Run(t.Context(), kase.NewHost(t, s, step)); err != nil {
		t.Fatal(err)
	}
	text := s.Read("/etc/kubexm/registry/htpasswd")
	_, hash, _ := strings.Cut(text, "\nanna:")
	if cost, err := bcrypt.Cost([]byte(strings.TrimSpace(hash))); err != nil || cost != bcrypt.DefaultCost || strings.Count(text, "\n") != 2 || strings.Contains(s.Read("/etc/kubexm/registry/push.htpasswd"), "anna") {
		t.Errorf("%v, cost %d:\n%s", err, cost, text)
	}
	if bcrypt.CompareHashAndPassword([]byte(strings.TrimSpace(hash)), []byte("hers")) != nil {
		t.Error("another password")
	}
	if v, err := step.Precheck(t.Context(), kase.NewHost(t, s, step)); err != nil || v != steps.Done {
		t.Errorf("%v, %v", v, err)
	}
}
