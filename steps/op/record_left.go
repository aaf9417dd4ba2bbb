package op

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/mensylisir/kubexm/steps"
)

// LeftError reports that resources with a record remain on the host after a removal.
type LeftError struct {
	What []string // "folder /srv/etcd", sorted
	Dir  string   // the folder of the records
}

func (e *LeftError) Error() string {
	return fmt.Sprintf("resources remain on this host, recorded in %s: %s", e.Dir, strings.Join(e.What, ", "))
}

// Advice states how to remove the resources.
func (e *LeftError) Advice() string {
	return "the config no longer lists these: run the same command again with the config that the cluster was created with; or remove them by hand, and then " + e.Dir
}

// Entries returns the names of all resources with a record of h's cluster, sorted. It
// omits manifests and charts: their objects were deleted with the cluster.
func Entries(ctx context.Context, h *steps.Host) ([]string, error) {
	all, err := h.List(ctx, RecordDir(h))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var out []string
	for _, i := range all {
		if path.Ext(i.Name) != suffixEntry {
			continue
		}
		text, err := h.ReadFile(ctx, path.Join(RecordDir(h), i.Name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		var e Record
		if err := json.Unmarshal(text, &e); err != nil {
			return nil, fmt.Errorf("record %s: %w", path.Join(RecordDir(h), i.Name), err)
		}
		if !slices.ContainsFunc([]string{"manifest ", "chart "}, func(of string) bool { return strings.HasPrefix(e.Resource, of) }) {
			out = append(out, e.Resource)
		}
	}
	slices.Sort(out)
	return out, nil
}

// remaining returns a *LeftError if there are records.
func remaining(ctx context.Context, h *steps.Host) error {
	left, err := Entries(ctx, h)
	if err != nil || len(left) == 0 {
		return err
	}
	return &LeftError{What: left, Dir: RecordDir(h)}
}
