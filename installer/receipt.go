package installer

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/mensylisir/kubexm/bundle/sign"
	"github.com/mensylisir/kubexm/installer/audit"
	"github.com/mensylisir/kubexm/manifest/durable"
)

// TypeReceipt is the predicate type of a receipt's statement, whose subject is the
// root of the bundle that was installed.
const TypeReceipt = "https://kubexm.mensylisir.io/receipt/v1"

// Receipt states what was installed where, by whom, and the head of the audit log.
type Receipt struct {
	Cluster    string        `json:"cluster"`
	Serial     int64         `json:"serial"`     // of the bundle
	Kubernetes string        `json:"kubernetes"` // version
	Config     string        `json:"config"`     // sha256:… of the config without its secrets
	Made       time.Time     `json:"made"`       // when the run ended
	Who        string        `json:"who"`        // user and machine that kubexm ran as and on
	Kubexm     string        `json:"kubexm"`     // its version
	Hosts      []ReceiptHost `json:"hosts"`
	Journal    string        `json:"journal"` // the file of the run's journal, in the cluster's runs/
	Audit      audit.Head    `json:"audit"`   // of the cluster's audit.jsonl
}

// ReceiptHost is one machine of the cluster.
type ReceiptHost struct {
	Name    string `json:"name"`
	Address string `json:"address"`
}

// Receipt writes a statement of what the run with this journal installed, signed if there is a
// signer, and returns the file's path. Nothing may be added to the audit log between the run
// and this call.
func (s *Session) Receipt(journal string, signer *sign.Signer) (path string, err error) {
	config, err := s.Cluster.Public()
	if err != nil {
		return "", err
	}
	made := time.Now().UTC().Truncate(time.Second)
	r := Receipt{
		Cluster: s.Cluster.Metadata.Name, Serial: s.Bundle.Lock.Serial, Kubernetes: s.Set(), Config: "sha256:" + hashed(config), Made: made,
		Who: Who(s.LookupEnv), Kubexm: s.Version, Journal: filepath.Base(journal), Audit: s.audit.Head(),
	}
	for _, h := range s.Cluster.Spec.Hosts {
		r.Hosts = append(r.Hosts, ReceiptHost{Name: h.Name, Address: h.Address})
	}
	st, err := sign.NewStatement(r.Cluster, s.Bundle.Root.Digest.String(), TypeReceipt, r)
	if err != nil {
		return "", fmt.Errorf("receipt: %w", err)
	}
	path = s.Workdir.Receipt(strings.TrimSuffix(r.Journal, ".jsonl"))
	text, err := json.MarshalIndent(st, "", "  ")
	if signer != nil {
		text, err = signer.Sign(st)
		path = strings.TrimSuffix(path, ".json") + ".sigstore.json"
	}
	if err != nil {
		return "", fmt.Errorf("receipt: %w", err)
	}
	if err := durable.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return "", fmt.Errorf("receipt: %w", err)
	}
	if err := durable.Create(path, append(text, '\n'), 0o600); err != nil {
		return "", fmt.Errorf("receipt: %w", err)
	}
	return path, nil
}

// ReadReceipt reads a receipt, signed or not, without verifying its signature. root is the
// bundle's.
func ReadReceipt(text []byte) (r Receipt, root string, signed bool, err error) {
	st, err := sign.Peek(text)
	if signed = err == nil; !signed {
		// Text that is not a signature bundle must itself be a statement.
		if json.Unmarshal(text, &st) != nil || st.Type != sign.StatementType {
			return r, "", false, fmt.Errorf("not a receipt: %w", err)
		}
	}
	r, root, err = receiptOf(st)
	return r, root, signed, err
}

// VerifyReceipt reads a receipt and verifies its signature by trust.
func VerifyReceipt(text []byte, trust *sign.Trust) (r Receipt, root string, err error) {
	st, err := trust.Verify(text)
	if err != nil {
		return r, "", err
	}
	return receiptOf(st)
}

func receiptOf(st sign.Statement) (r Receipt, root string, err error) {
	if st.PredicateType != TypeReceipt || len(st.Subject) != 1 {
		return r, "", fmt.Errorf("not a receipt: a statement of type %.120q", st.PredicateType)
	}
	if err := json.Unmarshal(st.Predicate, &r); err != nil { // a newer version may have more fields
		return r, "", fmt.Errorf("not a receipt: %w", err)
	}
	if r.Cluster == "" || r.Audit.Lines < 1 || len(r.Audit.SHA256) != 64 {
		return r, "", errors.New("not a receipt: it has no cluster name, or no head of an audit log")
	}
	return r, "sha256:" + st.Subject[0].Digest["sha256"], nil
}
