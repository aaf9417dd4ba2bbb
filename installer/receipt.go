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
	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/manifest/durable"
)

// TypeReceipt is the predicate type of a receipt's statement, whose subject is the
// root of the bundle that was installed.
const TypeReceipt = "https://kubexm.mensylisir.io/receipt/v1"

// Receipt states what was installed where, by whom, and the head of the audit log.
type Receipt struct {
	Cluster    string        `json:"cluster"`
	Operation  string        `json:"operation,omitempty"` // the pipeline, such as "create"; "" in receipts of older versions, which are of creations
	Serial     int64         `json:"serial"`              // of the bundle
	Kubernetes string        `json:"kubernetes"`          // version
	Config     string        `json:"config"`              // sha256:… of the config without its secrets
	Made       time.Time     `json:"made"`                // when the run ended
	Who        string        `json:"who"`                 // user and machine that kubexm ran as and on
	Kubexm     string        `json:"kubexm"`              // its version
	Hosts      []ReceiptHost `json:"hosts"`
	Left       []ReceiptHost `json:"left,omitempty"` // hosts that the operation has deleted from the cluster
	Journal    string        `json:"journal"`        // the file of the run's journal, in the cluster's runs/
	Audit      audit.Head    `json:"audit"`          // of the cluster's audit.jsonl
}

// ReceiptHost is one machine of the cluster.
type ReceiptHost struct {
	Name    string `json:"name"`
	Address string `json:"address"`
}

// ReceiptOptions describe the operation that a receipt is about.
type ReceiptOptions struct {
	Journal   string // of the run
	Operation string // the pipeline
	// Exists is the record of a cluster that the operation has changed without a bundle, and Left
	// are the hosts that it has deleted from it.
	Exists *manifest.Existing
	Left   []manifest.Host
	Signer *sign.Signer // nil leaves the receipt unsigned
}

// Receipt writes a statement of what an operation installed or deleted, signed if there is a
// signer, and returns the file's path; "" if an older kubexm made the record, which does not
// tell the bundle. Nothing may be added to the audit log between the run and this call.
func (s *Session) Receipt(o ReceiptOptions) (path string, err error) {
	config, err := s.Cluster.Public()
	if err != nil {
		return "", err
	}
	made := time.Now().UTC().Truncate(time.Second)
	r := Receipt{
		Cluster: s.Cluster.Metadata.Name, Operation: o.Operation, Config: "sha256:" + hashed(config), Made: made,
		Who: Who(s.LookupEnv), Kubexm: s.Version, Hosts: receiptHosts(s.Cluster.Spec.Hosts), Left: receiptHosts(o.Left), Journal: filepath.Base(o.Journal), Audit: s.audit.Head(),
	}
	var root string
	switch {
	case s.Bundle != nil:
		root, r.Serial, r.Kubernetes = s.Bundle.Root.Digest.String(), s.Bundle.Lock.Serial, s.Set()
	case o.Exists == nil || o.Exists.Root == "":
		return "", nil
	default:
		root, r.Serial, r.Kubernetes = o.Exists.Root, o.Exists.Serial, o.Exists.Set
	}
	st, err := sign.NewStatement(r.Cluster, root, TypeReceipt, r)
	if err != nil {
		return "", fmt.Errorf("receipt: %w", err)
	}
	path = s.Workdir.Receipt(strings.TrimSuffix(r.Journal, ".jsonl"))
	text, err := json.MarshalIndent(st, "", "  ")
	if o.Signer != nil {
		text, err = o.Signer.Sign(st)
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

func receiptHosts(all []manifest.Host) []ReceiptHost {
	var out []ReceiptHost
	for _, h := range all {
		out = append(out, ReceiptHost{Name: h.Name, Address: h.Address})
	}
	return out
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
