package installer

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mensylisir/kubexm/bundle/sign"
	"github.com/mensylisir/kubexm/installer/plan"
	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/connector/sshtest"
	"github.com/mensylisir/kubexm/steps/op"
)

// TestReceipt: it says what the run was, holds the audit log to what it was then,
// and is signed or says that it is not.
func TestReceipt(t *testing.T) {
	t.Parallel()
	server := sshtest.Start(t, sshtest.Config{Password: "secret"})
	site := &deltaSite{server: server, mill: newMill(t)}
	c := clusterOf(t, host("a", server, ""))
	site.options = options(t, c, server)
	site.options.Version = "v1.2.3"
	s := site.session(t, open(t, site.mill.build("full.tar.zst", nil, "kubelet 1", "one")))
	g, err := plan.Build(plan.Pipeline{Name: "create", Modules: []plan.Module{{Name: "m", Plan: plan.Sequential(plan.Task{Name: "t", Plan: func(s plan.Scope) plan.Fragment {
		return plan.On(s.Hosts(), op.Check("x.look", func(context.Context, *steps.Host) (steps.Findings, error) { return nil, nil }))
	}})}}}, plan.Scope{Want: c})
	if err != nil {
		t.Fatal(err)
	}
	journal, err := s.Run(t.Context(), g, RunOptions{DryRun: true, Parallel: 1})
	if err != nil {
		t.Fatal(err)
	}
	pair, err := sign.Generate([]byte("pw"))
	if err != nil {
		t.Fatal(err)
	}
	signer, err := sign.LoadSigner(pair.Private, []byte("pw"))
	if err != nil {
		t.Fatal(err)
	}
	plain, err := s.Receipt(ReceiptOptions{Journal: journal, Operation: "create"})
	if err != nil {
		t.Fatal(err)
	}
	signed, err := s.Receipt(ReceiptOptions{Journal: journal, Operation: "create", Signer: signer})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Receipt(ReceiptOptions{Journal: journal, Operation: "create"}); !errors.Is(err, os.ErrExist) {
		t.Errorf("a receipt was written over: %v", err)
	}
	// Hosts are deleted without a bundle: the record tells which one the cluster was made from.
	whole := s.Bundle
	s.Bundle = nil
	exists := &manifest.Existing{Root: "sha256:" + strings.Repeat("b", 64), Serial: 7, Set: "v1.34.10"}
	deleted, err := s.Receipt(ReceiptOptions{Journal: "later.jsonl", Operation: "node-delete", Exists: exists, Left: []manifest.Host{{Name: "w9", Address: "192.0.2.29"}}})
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(deleted)
	if err != nil {
		t.Fatal(err)
	}
	if r, root, _, err := ReadReceipt(text); err != nil || root != exists.Root || r.Serial != 7 || r.Kubernetes != "v1.34.10" || r.Operation != "node-delete" ||
		!slices.Equal(r.Left, []ReceiptHost{{"w9", "192.0.2.29"}}) || len(r.Hosts) != 1 {
		t.Errorf("of a deletion: %+v of %s, %v", r, root, err)
	}
	if path, err := s.Receipt(ReceiptOptions{Journal: "older.jsonl", Operation: "node-delete", Exists: &manifest.Existing{}}); path != "" || err != nil {
		t.Errorf("of a record that does not tell the bundle: %q, %v", path, err)
	}
	s.Bundle = whole
	if err := os.Remove(deleted); err != nil {
		t.Fatal(err)
	}
	trust, err := sign.TrustKey(pair.Public)
	if err != nil {
		t.Fatal(err)
	}
	other, err := sign.Generate([]byte("pw"))
	if err != nil {
		t.Fatal(err)
	}
	stranger, err := sign.TrustKey(other.Public)
	if err != nil {
		t.Fatal(err)
	}
	for path, isSigned := range map[string]bool{plain: false, signed: true} {
		if st, err := os.Stat(path); err != nil || st.Mode().Perm() != 0o600 {
			t.Errorf("%v, %v", st, err)
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		r, root, was, err := ReadReceipt(text)
		if err != nil || was != isSigned || root != s.Bundle.Root.Digest.String() {
			t.Fatalf("%s: %+v, %s, %v, %v", path, r, root, was, err)
		}
		if r.Cluster != "demo" || r.Serial != s.Bundle.Lock.Serial || len(r.Hosts) != 1 || r.Hosts[0].Name != "a" || r.Journal != filepath.Base(journal) ||
			r.Audit != s.audit.Head() || r.Who != Who(s.LookupEnv) || r.Kubexm != "v1.2.3" || !strings.HasPrefix(r.Config, "sha256:") {
			t.Errorf("%+v", r)
		}
		if _, _, err := VerifyReceipt(text, trust); (err == nil) != isSigned {
			t.Errorf("%s: %v", path, err)
		}
		if _, _, err := VerifyReceipt(text, stranger); err == nil {
			t.Errorf("%s counts by another key", path)
		}
		for _, from := range []string{`"payload":"`, `"sig":"`} { // one letter of what is signed, and of the signature
			i := strings.Index(string(text), from)
			if i < 0 {
				continue
			}
			bad := []byte(string(text))
			if i += len(from) + 10; bad[i] == 'A' {
				bad[i] = 'B'
			} else {
				bad[i] = 'A'
			}
			if _, _, err := VerifyReceipt(bad, trust); err == nil {
				t.Errorf("a change behind %s counts", from)
			}
		}
	}
	// A journal that is gone leaves the receipts to tell that the log's end is, too.
	if err := os.Remove(journal); err != nil {
		t.Fatal(err)
	}
	text, err = os.ReadFile(s.Workdir.Audit())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(s.Workdir.Audit(), int64(strings.LastIndex(string(text[:len(text)-1]), "\n")+1)); err != nil {
		t.Fatal(err)
	}
	report, err := Verify(s.Workdir, nil)
	if err != nil || len(report.Problems) != 2 || !strings.Contains(report.Problems[0], "the end is cut off: "+filepath.Dir(plain)) {
		t.Errorf("%+v, %v", report, err)
	}
	for _, text := range []string{"", "{}", `{"_type":"https://in-toto.io/Statement/v1"}`, `{"_type":"https://in-toto.io/Statement/v1","subject":[{"digest":{"sha256":"00"}}],"predicateType":"` + TypeReceipt + `","predicate":{}}`} {
		if !json.Valid([]byte(text)) && text != "" {
			t.Fatal(text)
		}
		if r, _, _, err := ReadReceipt([]byte(text)); err == nil || !strings.Contains(err.Error(), "not a receipt") {
			t.Errorf("%s: %+v, %v", text, r, err)
		}
	}
}
