package op

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/runner"
)

// together is a sequence of bundle files in a list. One command compares all of them,
// and the next one is sent while the host hashes the previous one. Each file has its own
// record, so that it can be removed separately.
type together []Blob

// joined combines consecutive bundle files of rs into one resource.
func joined(rs []Resource) []Resource {
	var out []Resource
	for _, r := range rs {
		b, ok := r.(Blob)
		if !ok {
			out = append(out, r)
			continue
		}
		if n := len(out); n > 0 {
			switch last := out[n-1].(type) {
			case Blob:
				out[n-1] = together{last, b}
				continue
			case together:
				out[n-1] = append(last, b)
				continue
			}
		}
		out = append(out, b)
	}
	return out
}

func (t together) String() string { return fmt.Sprintf("file %s and %d more", t[0].Path, len(t)-1) }

// Needs returns all the files.
func (t together) Needs() (all []manifest.Need) {
	for _, b := range t {
		all = append(all, b.Needs()...)
	}
	return all
}

// Want uploads the files that the host lacks.
func (t together) Want(ctx context.Context, h *steps.Host, _ bool) (*Change, error) {
	all := make([]runner.Upload, len(t))
	var err error
	for i, b := range t {
		if all[i], err = b.upload(ctx, h); err != nil {
			return nil, err
		}
	}
	lacks, err := h.Pending(ctx, all)
	if len(lacks) == 0 || err != nil {
		return nil, err
	}
	var us []runner.Upload
	var what []string
	var each []*Change // saves the existing file; its Undo restores it
	for _, p := range lacks {
		_, existed, err := stat(ctx, h, p.Path)
		if err != nil {
			return nil, err
		}
		b := t[slices.IndexFunc(t, func(b Blob) bool { return b.Path == p.Path })]
		c := replaceFile(b, b.Path, existed, func(context.Context, *steps.Host) error { return nil })
		us, what, each = append(us, p.Upload), append(what, c.What), append(each, c)
	}
	return &Change{
		What: strings.Join(what, ", "),
		Apply: func(ctx context.Context, h *steps.Host) error {
			for _, c := range each {
				if err := c.Apply(ctx, h); err != nil {
					return err
				}
			}
			_, err := h.Uploads(ctx, us)
			return err
		},
		Undo: func(ctx context.Context, h *steps.Host) error {
			var errs []error
			for _, c := range slices.Backward(each) {
				errs = append(errs, c.Undo(ctx, h))
			}
			return errors.Join(errs...)
		},
	}, nil
}

// Gone returns an error: removals handle each file separately.
func (t together) Gone(context.Context, *steps.Host) (*Change, error) {
	return nil, fmt.Errorf("%s: a removal handles each file separately", t)
}
