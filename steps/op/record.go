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

	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/runner"
)

// recordRoot holds, on each host, what was there before kubexm came: a folder
// per cluster, in it a folder before, in it a file per resource. An entry is
// written and synced before the first change, and never overwritten: what counts
// is what was there first.
const recordRoot = "/var/lib/kubexm"

// RecordDir is the folder of the records of h's cluster.
func RecordDir(h *steps.Host) string {
	return path.Join(recordRoot, h.Cluster.Metadata.Name, "before")
}

// entry is what was there.
type entry struct {
	Resource string `json:"resource"`        // "file /etc/hosts"
	Existed  bool   `json:"existed"`         // else there was nothing
	Value    string `json:"value,omitempty"` // a sysctl's value, a unit's state
}

func recordPath(h *steps.Host, r Resource, suffix string) string {
	sum := sha256.Sum256([]byte(r.String()))
	return path.Join(RecordDir(h), hex.EncodeToString(sum[:12])+suffix)
}

// recall gives the entry of r; ok tells whether there is one.
func recall(ctx context.Context, h *steps.Host, r Resource) (e entry, ok bool, err error) {
	text, err := h.ReadFile(ctx, recordPath(h, r, ".json"))
	if errors.Is(err, fs.ErrNotExist) {
		return entry{}, false, nil
	}
	if err != nil {
		return entry{}, false, err
	}
	if err := json.Unmarshal(text, &e); err != nil {
		return entry{}, false, fmt.Errorf("record of %s: %w", r, err)
	}
	return e, true, nil
}

// remember writes the entry of r, unless there is one.
func remember(ctx context.Context, h *steps.Host, r Resource, e entry) error {
	if _, ok, err := recall(ctx, h, r); ok || err != nil {
		return err
	}
	e.Resource = r.String()
	text, err := json.Marshal(e)
	if err != nil {
		return err
	}
	if _, err := h.Mkdir(ctx, RecordDir(h), runner.Attr{Mode: 0o700}); err != nil {
		return err
	}
	return h.WriteFile(ctx, recordPath(h, r, ".json"), append(text, '\n'), runner.Attr{Mode: 0o600})
}

// forget removes the entry of r.
func forget(ctx context.Context, h *steps.Host, r Resource) error {
	return errors.Join(h.Remove(ctx, recordPath(h, r, ".data")), h.Remove(ctx, recordPath(h, r, ".last")),
		h.Remove(ctx, recordPath(h, r, ".json")))
}

// Records is the folder of records itself: the last thing that a removal takes away.
type Records struct{ noNeeds }

func (Records) String() string { return "records of what was there before" }

// Want has nothing to do: the folder comes with the first entry.
func (Records) Want(context.Context, *steps.Host, bool) (*Change, error) { return nil, nil }

// Gone removes the records of this cluster.
func (r Records) Gone(ctx context.Context, h *steps.Host) (*Change, error) {
	dir := path.Dir(RecordDir(h))
	if _, err := h.Stat(ctx, dir); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	return &Change{What: "remove " + dir, Apply: func(ctx context.Context, h *steps.Host) error {
		return h.RemoveAll(ctx, dir)
	}}, nil
}
