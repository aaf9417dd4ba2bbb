package installer

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/mensylisir/kubexm/installer/audit"
)

// Verify reads a cluster's audit log to its end and checks it against the heads in journals
// and receipts, and against those in known. The error is only for a log that cannot be read.
func Verify(w Workdir, known []audit.Anchor) (audit.Report, error) {
	journals, err := w.anchors()
	if err != nil {
		return audit.Report{}, err
	}
	f, err := os.Open(w.Audit())
	if err != nil {
		return audit.Report{}, fmt.Errorf("audit log: %w", err)
	}
	report, err := audit.Verify(f, append(journals, known...))
	return report, errors.Join(err, f.Close())
}

// anchors returns the heads of the audit log in journals and receipts. A run that was killed
// has written none.
func (w Workdir) anchors() ([]audit.Anchor, error) {
	all, err := filepath.Glob(filepath.Join(w.Dir, "runs", "*.jsonl"))
	if err != nil {
		return nil, err
	}
	slices.SortFunc(all, runOrder)
	var out []audit.Anchor
	for _, path := range all {
		last, err := lastLine(path)
		if err != nil {
			return nil, fmt.Errorf("journal: %w", err)
		}
		var x auditLine
		if json.Unmarshal(last, &x) == nil && x.Audit != nil {
			out = append(out, audit.Anchor{Head: *x.Audit, From: path})
		}
	}
	receipts, err := filepath.Glob(w.Receipt("*"))
	if err != nil {
		return nil, err
	}
	for _, path := range receipts {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("receipt: %w", err)
		}
		if r, _, _, err := ReadReceipt(text); err == nil {
			out = append(out, audit.Anchor{Head: r.Audit, From: path})
		}
	}
	return out, nil
}

// longestAnchor is longer than any line with an anchor.
const longestAnchor = 4 << 10

// lastLine returns the last line of a file.
func lastLine(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // only read: a close error loses no data
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	b := make([]byte, min(st.Size(), longestAnchor))
	if _, err := f.ReadAt(b, st.Size()-int64(len(b))); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	b = bytes.TrimSuffix(b, []byte("\n"))
	return b[bytes.LastIndexByte(b, '\n')+1:], nil
}
