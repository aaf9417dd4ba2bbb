package e2e

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mensylisir/kubexm/bundle"
	"github.com/mensylisir/kubexm/installer"
	"github.com/mensylisir/kubexm/installer/audit"
	"github.com/mensylisir/kubexm/steps/connector"
)

// signingKey makes a key that signs receipts, and gives the flags for it.
func (s *labSite) signingKey(t testing.TB) (flags []string, public string) {
	t.Helper()
	password := s.write(t, "key-password", "of a key that is the lab's")
	prefix := filepath.Join(s.dir, "receipts")
	s.up.must(t, "keys", "generate", "--output-key-prefix", prefix, "--key-password-file", password)
	return []string{"--sign-key", prefix + ".key", "--key-password-file", password}, prefix + ".pub"
}

// onRecord: what an install did to hosts is on its audit log as it was done, without
// any secret, and its receipt tells whose cluster of which bundle that is.
func (s *labSite) onRecord(t testing.TB, public string) {
	t.Helper()
	var r audit.Report
	s.told(t, &r, "audit", "verify", "--cluster", "site", "--workdir", s.dir, "-o", "json")
	if len(r.Problems) > 0 || r.Head.Lines < 300 {
		t.Errorf("the audit log: %+v", r)
	}
	var lines []audit.Line
	s.told(t, &lines, "audit", "show", "--cluster", "site", "--workdir", s.dir, "-o", "json")
	inits := 0
	for _, x := range lines {
		if x.Host == s.masters[0] && x.Type == audit.TypeDid && slices.Contains(x.Argv, "kubeadm") && slices.Contains(x.Argv, "init") {
			if inits++; x.Exit == nil || *x.Exit != 0 || x.Step == "" {
				t.Errorf("kubeadm init is on record as %+v", x)
			}
		}
	}
	if inits == 0 {
		t.Error("kubeadm init is not on record")
	}
	s.filesAreAsRecorded(t, lines)
	s.noSecretOnRecord(t)
	s.receiptIsGood(t, public, r)
}

// told runs kubexm on this machine and decodes what it prints.
func (s *labSite) told(t testing.TB, v any, args ...string) {
	t.Helper()
	if err := json.Unmarshal([]byte(s.up.must(t, args...).stdout), v); err != nil {
		t.Fatalf("kubexm %s: %v", strings.Join(args, " "), err)
	}
}

// recorded gives, for each host, the digest of each file that it was last given.
func recorded(lines []audit.Line) (digests map[string]map[string]string, programs int) {
	digests = map[string]map[string]string{}
	for _, x := range lines {
		if x.Type != audit.TypeDid || x.Exit == nil || *x.Exit != 0 || len(x.Argv) < 2 {
			continue
		}
		if digests[x.Host] == nil {
			digests[x.Host] = map[string]string{}
		}
		switch on := digests[x.Host]; x.Verb {
		case connector.VerbWrite:
			delete(on, x.Argv[0])
			if c := x.Stdin; c != nil && !c.Secret && c.SHA256 != "" {
				on[x.Argv[0]] = c.SHA256
			}
		case connector.VerbPut:
			for f := range slices.Chunk(x.Argv[3:], 3) {
				on[path.Join(x.Argv[0], f[0])] = f[2]
				programs++
			}
		case connector.VerbRemove:
			for _, p := range x.Argv {
				delete(on, p)
			}
		case connector.VerbLink, connector.VerbRename:
			delete(on, x.Argv[0])
		case connector.VerbCopy:
			delete(on, x.Argv[1])
		}
	}
	return digests, programs
}

// filesAreAsRecorded compares the hosts with the log. What kubeadm and the kubelet
// write anew is theirs.
func (s *labSite) filesAreAsRecorded(t testing.TB, lines []audit.Line) {
	t.Helper()
	digests, programs := recorded(lines)
	if programs < 10 {
		t.Errorf("%d programs are on record", programs)
	}
	for _, host := range []string{s.Hosts[0].Name, s.masters[1], s.Hosts[len(s.Hosts)-1].Name} {
		var paths []string
		for p := range digests[host] {
			if !strings.HasPrefix(p, "/etc/kubernetes/") && !strings.HasPrefix(p, "/var/lib/kubelet/") {
				paths = append(paths, p)
			}
		}
		slices.Sort(paths)
		same := 0
		for line := range strings.Lines(s.on(t, host, "sha256sum -- "+connector.Quote(paths)+" 2>/dev/null || true")) {
			sum, path, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "  ")
			if want := digests[host][path]; sum != want {
				t.Errorf("%s on %s has sha256 %s, and the log says %s", path, host, sum, want)
				continue
			}
			same++
		}
		if t.Logf("%s: %d files are as the audit log says", host, same); same < 10 {
			t.Errorf("%s: %d of %d recorded files could be compared", host, same, len(paths))
		}
	}
}

// noSecretOnRecord looks for the secrets of this cluster: tokens of kubeadm, passwords
// of the registry, keys.
func (s *labSite) noSecretOnRecord(t testing.TB) {
	t.Helper()
	log, err := os.ReadFile(filepath.Join(s.dir, ".kubexm", "site", "audit.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	secrets := map[string]string{"a private key": "PRIVATE KEY"}
	tokens := s.master(t, s.masters[0], `-n kube-system get secrets --field-selector type=bootstrap.kubernetes.io/token -o 'jsonpath={range .items[*]}{.data.token-secret}{"\n"}{end}'`)
	for i, line := range strings.Fields(tokens) {
		b, err := base64.StdEncoding.DecodeString(line)
		if err != nil {
			t.Fatal(err)
		}
		secrets[fmt.Sprintf("token %d of kubeadm", i+1)] = string(b)
	}
	files, err := filepath.Glob(filepath.Join(s.dir, ".kubexm", "site", "certs", "registry", "*.password"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		secrets[filepath.Base(f)] = strings.TrimSpace(string(b))
	}
	if len(files) == 0 || len(strings.Fields(tokens)) == 0 {
		t.Errorf("no secrets to look for: passwords %v, tokens %q", files, tokens)
	}
	for what, secret := range secrets {
		if strings.Contains(string(log), secret) || strings.Contains(string(log), base64.StdEncoding.EncodeToString([]byte(secret))) {
			t.Errorf("%s is in the audit log", what)
		}
	}
}

// receiptIsGood verifies the newest receipt and compares it with what was installed.
func (s *labSite) receiptIsGood(t testing.TB, public string, log audit.Report) {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(s.dir, ".kubexm", "site", "receipts", "*.sigstore.json"))
	if err != nil || len(all) == 0 {
		t.Fatal("no signed receipt", err)
	}
	var r struct {
		installer.Receipt
		Root     string `json:"root"`
		Verified bool   `json:"verified"`
		AuditLog string `json:"auditLog"`
	}
	s.told(t, &r, "receipt", "verify", "--key", public, "-o", "json", slices.Max(all))
	b, err := bundle.Open(t.Context(), s.bundle, bundle.Policy{AllowUnsigned: true})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	want := []installer.ReceiptHost{}
	for _, h := range s.Hosts {
		want = append(want, installer.ReceiptHost{Name: h.Name, Address: h.Address})
	}
	if !r.Verified || r.AuditLog != "whole" || r.Root != b.Root.Digest.String() || r.Config != b.Lock.Config || !slices.Equal(r.Hosts, want) || r.Audit != log.Head {
		t.Errorf("the receipt says %+v, %s; the bundle is %s of config %s, the log ends at %+v", r.Receipt, r.Root, b.Root.Digest, b.Lock.Config, log.Head)
	}
	other, _ := filepath.Split(public)
	s.up.must(t, "keys", "generate", "--output-key-prefix", other+"other", "--key-password-file", other+"key-password")
	said(t, s.up.run(t, []string{"receipt", "verify", "--key", other + "other.pub", slices.Max(all)}), 4)
}
