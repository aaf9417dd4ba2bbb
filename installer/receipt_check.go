package installer

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/mensylisir/kubexm/bundle/sign"
	"github.com/mensylisir/kubexm/installer/audit"
	"github.com/mensylisir/kubexm/manifest/refusal"
)

// CheckedReceipt is a receipt with the results of its verification.
type CheckedReceipt struct {
	Receipt
	Root string `json:"root"` // of the bundle
	// Signed reports whether there is a signature, Verified whether it is valid for one of the
	// given keys.
	Signed   bool `json:"signed"`
	Verified bool `json:"verified"`
	// AuditLog reports whether the audit log in the same folder contains the receipt's head:
	// "whole", "broken", "not there".
	AuditLog string   `json:"auditLog,omitempty"`
	Problems []string `json:"problems,omitempty"`
}

// CheckReceipt reads the receipt at path; its signature must be valid for one of the public
// keys. If it is in a cluster's folder, the audit log in that folder is compared with it.
func CheckReceipt(path string, keys []string) (CheckedReceipt, error) {
	v := CheckedReceipt{Signed: true, Verified: true}
	text, err := sign.ReadFile(path)
	if err != nil {
		return v, err
	}
	var refusals []error
	for _, key := range keys {
		trust, err := sign.TrustFile(key)
		if err != nil {
			return v, err
		}
		if v.Receipt, v.Root, err = VerifyReceipt(text, trust); err == nil {
			refusals = nil
			break
		}
		refusals = append(refusals, fmt.Errorf("%s: with key %s: %w", path, key, err))
	}
	if err := errors.Join(refusals...); err != nil {
		if _, _, signed, bad := ReadReceipt(text); bad == nil && !signed {
			err = fmt.Errorf("%s: not signed: its author cannot be verified", path)
		}
		return v, &refusal.Error{Err: err, Kind: refusal.Content, Advice: "find out who wrote it; `kubexm receipt show` prints its content"}
	}
	return v, v.checkLog(path)
}

// checkLog compares the audit log of the receipt's cluster with the receipt.
func (v *CheckedReceipt) checkLog(path string) error {
	dir := filepath.Dir(filepath.Dir(path))
	w := Workdir{Dir: dir}
	if _, err := os.Stat(w.Audit()); errors.Is(err, fs.ErrNotExist) {
		v.AuditLog = "not there"
		return nil
	}
	r, err := Verify(w, []audit.Anchor{{Head: v.Audit, From: "the receipt"}})
	if err != nil {
		return err
	}
	v.AuditLog, v.Problems = "whole", r.Problems
	if len(r.Problems) > 0 {
		v.AuditLog = "broken"
	}
	return nil
}
