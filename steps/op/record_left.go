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

// LeftError says that a removal went by, and things are on the host still of which its
// records tell.
type LeftError struct {
	What []string // "folder /srv/etcd", sorted
	Dir  string   // of the records
}

func (e *LeftError) Error() string {
	return fmt.Sprintf("left on this host, and on record in %s: %s", e.Dir, strings.Join(e.What, ", "))
}

// Advice says what to do.
func (e *LeftError) Advice() string {
	return "the config does not name these any more: write what the cluster was made with, and run the same command again; or take them away by hand, and then " + e.Dir
}

// Entries names all that the records of h's cluster tell of, sorted. Objects of the
// cluster are not among them: they went with it.
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

// stillThere is a *LeftError where records tell of anything.
func stillThere(ctx context.Context, h *steps.Host) error {
	left, err := Entries(ctx, h)
	if err != nil || len(left) == 0 {
		return err
	}
	return &LeftError{What: left, Dir: RecordDir(h)}
}
