package op

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/runner"
)

// Edit gives single lines of a file that others write another wording. Everything
// else in it stays, and a removal words exactly these lines as they were: what
// somebody has added in between is left alone. A file that is not there is fine.
// The whole file as it was first is kept beside the record, for people.
type Edit struct {
	NoNeeds
	Path string
	// Line gives the new wording of a line, both without the newline. A line that is
	// as it should be is given back as it is.
	Line func(line string) string
	// Reload has systemd read its files again after each change, for files that
	// generators of its read.
	Reload bool
}

func (e Edit) String() string { return "lines of " + e.Path }

// reworded is a line before and after.
type reworded struct {
	Was string `json:"was"`
	Is  string `json:"is"`
}

// read gives the file, following links.
func (e Edit) read(ctx context.Context, h *steps.Host) (string, error) {
	text, err := h.ReadFile(ctx, e.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return string(text), err
}

// Want words the lines anew.
func (e Edit) Want(ctx context.Context, h *steps.Host, _ bool) (*Change, error) {
	have, err := e.read(ctx, h)
	if err != nil {
		return nil, err
	}
	var lines []reworded
	var b strings.Builder
	for whole := range strings.Lines(have) {
		line := strings.TrimSuffix(whole, "\n")
		if is := e.Line(line); is != line {
			lines = append(lines, reworded{line, is})
			whole = is + whole[len(line):]
		}
		b.WriteString(whole)
	}
	if len(lines) == 0 {
		return nil, nil
	}
	want := b.String()
	var before Record
	var begun, recorded, wrote bool // how far Apply came
	return &Change{
		What: "edit " + e.Path, Diff: lineDiff(have, want),
		Apply: func(ctx context.Context, h *steps.Host) error {
			var err error
			if before, recorded, err = Recall(ctx, h, e); err != nil {
				return err
			}
			begun = true
			if err := e.note(ctx, h, before, recorded, lines); err != nil {
				return err
			}
			wrote = true
			return e.set(ctx, h, want)
		},
		Undo: func(ctx context.Context, h *steps.Host) error {
			if wrote {
				if err := e.set(ctx, h, have); err != nil {
					return err
				}
			}
			switch {
			case !begun:
				return nil
			case recorded:
				return Rewrite(ctx, h, e, before)
			}
			return Forget(ctx, h, e)
		},
	}, nil
}

// note writes down which lines change, after those of earlier runs. A line that an
// earlier run noted and did not get to is noted once.
func (e Edit) note(ctx context.Context, h *steps.Host, before Record, recorded bool, lines []reworded) error {
	all, err := e.lines(before)
	if err != nil {
		return err
	}
	if !recorded {
		if err := makeRecordDir(ctx, h); err != nil {
			return err
		}
		if err := h.Copy(ctx, e.Path, recordPath(h, e, suffixFirst)); err != nil {
			return err
		}
	}
	noted := map[reworded]int{}
	for _, l := range all {
		noted[l]++
	}
	for _, l := range lines {
		if noted[l]--; noted[l] < 0 {
			all = append(all, l)
		}
	}
	text, err := json.Marshal(all)
	if err != nil {
		return err
	}
	return Rewrite(ctx, h, e, Record{Existed: true, Value: string(text)})
}

func (e Edit) lines(from Record) (all []reworded, err error) {
	if from.Value == "" {
		return nil, nil
	}
	if err := json.Unmarshal([]byte(from.Value), &all); err != nil {
		return nil, fmt.Errorf("record of %s: %w", e, err)
	}
	return all, nil
}

// Gone words the lines as they were.
func (e Edit) Gone(ctx context.Context, h *steps.Host) (*Change, error) {
	from, recorded, err := Recall(ctx, h, e)
	if err != nil || !recorded {
		return nil, err
	}
	all, err := e.lines(from)
	if err != nil {
		return nil, err
	}
	have, err := e.read(ctx, h)
	if err != nil {
		return nil, err
	}
	var b strings.Builder
	for whole := range strings.Lines(have) {
		line := strings.TrimSuffix(whole, "\n")
		for i, l := range all {
			if l.Is == line {
				whole = l.Was + whole[len(line):]
				all = append(all[:i:i], all[i+1:]...)
				break
			}
		}
		b.WriteString(whole)
	}
	want := b.String()
	return &Change{What: "put back " + e.String(), Diff: lineDiff(have, want), Apply: func(ctx context.Context, h *steps.Host) error {
		if want != have || e.Reload { // a run that was cut off may have written it and told nobody
			if err := e.set(ctx, h, want); err != nil {
				return err
			}
		}
		return Forget(ctx, h, e)
	}}, nil
}

func (e Edit) set(ctx context.Context, h *steps.Host, text string) error {
	if text != "" {
		if err := setText(ctx, h, e.Path, text); err != nil {
			return err
		}
	}
	if e.Reload {
		return h.DaemonReload(ctx)
	}
	return nil
}

// setText gives a file another content and keeps its mode and owner. Where the
// path is a link, what it leads to is written.
func setText(ctx context.Context, h *steps.Host, p, text string) error {
	for range mostLinks {
		i, err := h.Stat(ctx, p)
		if errors.Is(err, fs.ErrNotExist) {
			return h.WriteFile(ctx, p, []byte(text), runner.Attr{})
		}
		if err != nil {
			return err
		}
		if !i.IsLink() {
			return h.WriteFile(ctx, p, []byte(text), i.Attr())
		}
		if path.IsAbs(i.Target) {
			p = path.Clean(i.Target)
		} else {
			p = path.Join(path.Dir(p), i.Target)
		}
	}
	return fmt.Errorf("%s: too many links", p)
}
