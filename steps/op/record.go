package op

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"

	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/runner"
)

// recordRoot holds, on each host, what was there before kubexm came: a folder
// per cluster, in it a folder before, in it a file per resource. An entry is
// written and synced before the first change, and never overwritten: what counts
// is what was there first. It is removed after what it tells of is put back, so
// that a removal that is cut off anywhere goes on from there. What has no entry
// was not changed, and a removal leaves it alone.
const recordRoot = "/var/lib/kubexm"

// RecordDir is the folder of the records of h's cluster.
func RecordDir(h *steps.Host) string {
	return path.Join(recordRoot, h.Cluster.Metadata.Name, "before")
}

// Record is what was there before kubexm changed a resource. Most resources need
// Existed and Value alone. The host keeps it as JSON, and a later version of kubexm
// reads it: a field keeps its name.
type Record struct {
	Resource string      `json:"resource"`          // its String: "file /etc/hosts"; set by who writes the record
	Existed  bool        `json:"existed"`           // else there was nothing
	Value    string      `json:"value,omitempty"`   // a sysctl's value, a unit's state
	Mode     fs.FileMode `json:"mode,omitempty"`    // of a folder
	Owner    string      `json:"owner,omitempty"`   // of a folder
	Group    string      `json:"group,omitempty"`   // of a folder
	Made     []string    `json:"made,omitempty"`    // folders above that were made for it, the outermost first
	Objects  []kept      `json:"objects,omitempty"` // of a manifest
	Pending  bool        `json:"pending,omitempty"` // a unit is to be restarted, packages are being installed
	// Detail is what a domain's own resource keeps where Value does not suffice. Packages
	// of the operating system do, and hosts have it under their name.
	Detail json.RawMessage `json:"packages,omitempty"`
}

func (e Record) attr() runner.Attr {
	return runner.Attr{Mode: e.Mode, Owner: e.Owner, Group: e.Group}
}

// The files of a record, beside its entry.
const (
	suffixEntry = ".json"
	suffixFirst = ".data" // what was there at the very first
	suffixLast  = ".last" // what the last change replaced, so that it can be undone
)

func recordPath(h *steps.Host, r Resource, suffix string) string {
	sum := sha256.Sum256([]byte(r.String()))
	return path.Join(RecordDir(h), hex.EncodeToString(sum[:12])+suffix)
}

// Recall reads the record of r; ok tells whether there is one. Without one kubexm has
// not changed r, or has put it back.
func Recall(ctx context.Context, h *steps.Host, r Resource) (e Record, ok bool, err error) {
	text, err := h.ReadFile(ctx, recordPath(h, r, suffixEntry))
	if errors.Is(err, fs.ErrNotExist) {
		return Record{}, false, nil
	}
	if err != nil {
		return Record{}, false, err
	}
	if err := json.Unmarshal(text, &e); err != nil {
		return Record{}, false, fmt.Errorf("record of %s: %w", r, err)
	}
	return e, true, nil
}

// Recorded tells whether kubexm changed r, and has not put it back.
func Recorded(ctx context.Context, h *steps.Host, r Resource) (bool, error) {
	_, ok, err := Recall(ctx, h, r)
	return ok, err
}

// Remember writes the first record of r. A resource calls it before its first change.
func Remember(ctx context.Context, h *steps.Host, r Resource, e Record) error {
	if err := makeRecordDir(ctx, h); err != nil {
		return err
	}
	return Rewrite(ctx, h, r, e)
}

// RememberFirst is Remember where there is no record of r: what was there first
// counts. first tells that there was none, so that an undo knows to Forget it.
func RememberFirst(ctx context.Context, h *steps.Host, r Resource, e Record) (first bool, err error) {
	_, recorded, err := Recall(ctx, h, r)
	if err != nil || recorded {
		return false, err
	}
	return true, Remember(ctx, h, r, e)
}

func makeRecordDir(ctx context.Context, h *steps.Host) error {
	_, err := h.Mkdir(ctx, RecordDir(h), runner.Attr{Mode: 0o700})
	return err
}

// Rewrite writes the record of r in place of the one that exists.
func Rewrite(ctx context.Context, h *steps.Host, r Resource, e Record) error {
	e.Resource = r.String()
	text, err := json.Marshal(e)
	if err != nil {
		return err
	}
	return h.WriteFile(ctx, recordPath(h, r, suffixEntry), append(text, '\n'), runner.Attr{Mode: 0o600})
}

// Forget removes the record of r, and what goes with it first: an entry whose
// data is gone says that all is put back. A resource calls it after it has put r back.
func Forget(ctx context.Context, h *steps.Host, r Resource) error {
	for _, suffix := range []string{suffixFirst, suffixLast, suffixEntry} {
		if err := h.Remove(ctx, recordPath(h, r, suffix)); err != nil {
			return err
		}
	}
	return nil
}

// prune removes the folders of the records when the last entry is gone.
// Removals side by side on one host may both try; who comes second is content.
func prune(ctx context.Context, h *steps.Host) error {
	for _, dir := range []string{RecordDir(h), path.Dir(RecordDir(h)), recordRoot} {
		err := h.RemoveDir(ctx, dir)
		switch {
		case errors.Is(err, runner.ErrNotEmpty), runner.Refused(err):
			return nil
		case err != nil:
			return err
		}
	}
	return nil
}

// Records is the folder of records itself: the last thing that a removal takes away.
type Records struct {
	NoNeeds
	// Empty leaves a folder alone that tells of anything.
	Empty bool
}

func (Records) String() string { return "records of what was there before" }

// Want has nothing to do: the folder comes with the first entry.
func (Records) Want(context.Context, *steps.Host, bool) (*Change, error) { return nil, nil }

// telling tells whether the cluster's folder holds anything but an empty one of records.
func telling(ctx context.Context, h *steps.Host) (bool, error) {
	for _, dir := range []string{path.Dir(RecordDir(h)), RecordDir(h)} {
		all, err := h.List(ctx, dir)
		if errors.Is(err, fs.ErrNotExist) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		if slices.ContainsFunc(all, func(i runner.Info) bool { return path.Join(dir, i.Name) != RecordDir(h) }) {
			return true, nil
		}
	}
	return false, nil
}

// Gone removes the records of this cluster, and the folder of all clusters once
// it is empty.
func (r Records) Gone(ctx context.Context, h *steps.Host) (*Change, error) {
	if r.Empty {
		if left, err := telling(ctx, h); err != nil || left {
			return nil, err
		}
	}
	all, err := h.List(ctx, recordRoot)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	dir := path.Dir(RecordDir(h))
	ours := slices.ContainsFunc(all, func(i runner.Info) bool { return i.Name == path.Base(dir) })
	if !ours && len(all) > 0 {
		return nil, nil
	}
	return &Change{What: "remove " + dir, Apply: func(ctx context.Context, h *steps.Host) error {
		if err := stillThere(ctx, h); err != nil {
			return err
		}
		return h.RemoveAll(ctx, dir)
	}}, nil
}
