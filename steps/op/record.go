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

// recordRoot contains, on each host, the original state of all resources that kubexm
// changed: a folder per cluster, with a folder "before" and in it one file per resource.
// An entry is written and synced before the first change, and later changes keep it,
// because it describes the original state. It is removed after its resource has been
// restored, so that an interrupted removal can resume. A resource without an entry was
// not changed, and a removal ignores it.
const recordRoot = "/var/lib/kubexm"

// RecordDir returns the folder of the records of h's cluster.
func RecordDir(h *steps.Host) string {
	return path.Join(recordRoot, h.Cluster.Metadata.Name, "before")
}

// Record is the original state of a resource, before kubexm changed it. Most resources
// need only Existed and Value. The host stores it as JSON, and later versions of kubexm
// read it: the names of the fields must not change.
type Record struct {
	Resource string           `json:"resource"`          // the resource's String: "file /etc/hosts"; Rewrite sets it
	Existed  bool             `json:"existed"`           // whether the resource existed
	Value    string           `json:"value,omitempty"`   // a sysctl's value, a unit's state
	Mode     fs.FileMode      `json:"mode,omitempty"`    // of a folder
	Owner    string           `json:"owner,omitempty"`   // of a folder
	Group    string           `json:"group,omitempty"`   // of a folder
	Made     []string         `json:"made,omitempty"`    // parent folders that were created for it, the outermost first
	Objects  []recordedObject `json:"objects,omitempty"` // of a manifest
	Pending  bool             `json:"pending,omitempty"` // a unit must be restarted, or an installation of packages is running
	// Detail is the data of a domain's own resource for which Value does not suffice. Only
	// operating system packages use it, hence the JSON name.
	Detail json.RawMessage `json:"packages,omitempty"`
	Given  bool            `json:"given,omitempty"` // void: the cluster's copy of the record could not be deleted
}

func (e Record) attr() runner.Attr {
	return runner.Attr{Mode: e.Mode, Owner: e.Owner, Group: e.Group}
}

// The suffixes of the files of a record.
const (
	suffixEntry = ".json"
	suffixFirst = ".data" // the original content
	suffixLast  = ".last" // the content that the last change replaced, for its undo
)

func recordPath(h *steps.Host, r Resource, suffix string) string {
	sum := sha256.Sum256([]byte(r.String()))
	return path.Join(RecordDir(h), hex.EncodeToString(sum[:12])+suffix)
}

// ReadRecord reads the record of r. ok reports whether there is one: if not, kubexm has not
// changed r, or has restored it.
func ReadRecord(ctx context.Context, h *steps.Host, r Resource) (e Record, ok bool, err error) {
	read, file := h.ReadFile, recordPath(h, r, suffixEntry)
	if c := cacheOf(ctx, h); c != nil {
		read = c.entry
	}
	text, err := read(ctx, file)
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

// Recorded reports whether r has a record: kubexm changed r and has not restored it.
func Recorded(ctx context.Context, h *steps.Host, r Resource) (bool, error) {
	_, ok, err := ReadRecord(ctx, h, r)
	return ok, err
}

// Remember writes the first record of r. A resource must call it before its first change.
func Remember(ctx context.Context, h *steps.Host, r Resource, e Record) error {
	if err := makeRecordDir(ctx, h); err != nil {
		return err
	}
	return Rewrite(ctx, h, r, e)
}

// RememberFirst is Remember if r has no record yet, and does nothing otherwise. first
// reports whether it wrote the record: then an undo must Forget it.
func RememberFirst(ctx context.Context, h *steps.Host, r Resource, e Record) (first bool, err error) {
	_, recorded, err := ReadRecord(ctx, h, r)
	if err != nil || recorded {
		return false, err
	}
	return true, Remember(ctx, h, r, e)
}

func makeRecordDir(ctx context.Context, h *steps.Host) error {
	if cacheOf(ctx, h).hasFolder() {
		return nil
	}
	_, err := h.Mkdir(ctx, RecordDir(h), runner.Attr{Mode: 0o700})
	return err
}

// Rewrite replaces the record of r.
func Rewrite(ctx context.Context, h *steps.Host, r Resource, e Record) error {
	e.Resource = r.String()
	text, err := json.Marshal(e)
	if err != nil {
		return err
	}
	file, text := recordPath(h, r, suffixEntry), append(text, '\n')
	if err := h.WriteFile(ctx, file, text, runner.Attr{Mode: 0o600}); err != nil {
		return err
	}
	cacheOf(ctx, h).set(file, text)
	return nil
}

// Forget deletes the record of r. A resource must call it after it has restored r. The
// entry is deleted last: an entry without data means that r is already restored.
func Forget(ctx context.Context, h *steps.Host, r Resource) error {
	entry := recordPath(h, r, suffixEntry)
	if err := h.Remove(ctx, recordPath(h, r, suffixFirst), recordPath(h, r, suffixLast), entry); err != nil {
		return err
	}
	cacheOf(ctx, h).set(entry, nil)
	return nil
}

// Prune removes the empty folders of the records on a host. Code that stores other files
// beside the records calls it.
func Prune(ctx context.Context, h *steps.Host) error { return prune(ctx, h) }

// prune removes the folders of the records once they are empty. It ignores a folder that
// is not empty or that a parallel removal has deleted.
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

// Records is the folder of the records itself. It must be the last resource that a removal
// deletes.
type Records struct {
	NoNeeds
	// Empty restricts the removal to a folder without records.
	Empty bool
}

func (Records) String() string { return "records of the original state" }

// Want returns no change: the first record creates the folder.
func (Records) Want(context.Context, *steps.Host, bool) (*Change, error) { return nil, nil }

// hasContent reports whether the cluster's folder contains anything but an empty folder of
// records.
func hasContent(ctx context.Context, h *steps.Host) (bool, error) {
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

// Gone removes the folder of this cluster. It fails with a *LeftError if records remain.
func (r Records) Gone(ctx context.Context, h *steps.Host) (*Change, error) {
	if r.Empty {
		if left, err := hasContent(ctx, h); err != nil || left {
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
		if err := remaining(ctx, h); err != nil {
			return err
		}
		return h.RemoveAll(ctx, dir)
	}}, nil
}
