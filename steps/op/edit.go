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

// Edit rewrites single lines of a file that belongs to others. A removal restores
// exactly these lines: all other lines, also those added since, stay unchanged. A
// missing file is not an error. A copy of the complete original file is stored beside
// the record, for people.
type Edit struct {
	NoNeeds
	Path string
	// Line returns the desired text of a line, both without the newline. It returns a
	// line that needs no change unchanged.
	Line func(line string) string
	// Reload runs `systemctl daemon-reload` after each change, for files that systemd's
	// generators read.
	Reload bool
}

func (e Edit) String() string { return "lines of " + e.Path }

// reworded is a line before and after the change.
type reworded struct {
	Was string `json:"was"`
	Is  string `json:"is"`
}

// read returns the content of the file. It follows links.
func (e Edit) read(ctx context.Context, h *steps.Host) (string, error) {
	text, err := h.ReadFile(ctx, e.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return string(text), err
}

// Want rewrites the lines.
func (e Edit) Want(ctx context.Context, h *steps.Host, _ bool) (*Change, error) {
	have, err := e.read(ctx, h)
	if err != nil {
		return nil, err
	}
	var lines []reworded
	var b strings.Builder
	kept := 0 // bytes of have that are in b
	at := 0
	for text := range strings.Lines(have) {
		line := strings.TrimSuffix(text, "\n")
		if is := e.Line(line); is != line {
			lines = append(lines, reworded{line, is})
			b.WriteString(have[kept:at])
			b.WriteString(is)
			kept = at + len(line)
		}
		at += len(text)
	}
	if len(lines) == 0 { // a file of a thousand lines, and mostly none to change, was not copied
		return nil, nil
	}
	b.WriteString(have[kept:])
	want := b.String()
	var before Record
	var begun, recorded, wrote bool // how far Apply got
	return &Change{
		What: "edit " + e.Path, Diff: lineDiff(have, want),
		Apply: func(ctx context.Context, h *steps.Host) error {
			var err error
			if before, recorded, err = ReadRecord(ctx, h, e); err != nil {
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

// note records which lines change, after those of earlier runs. A change that an earlier
// run recorded but did not apply is recorded once.
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

// Gone restores the lines.
func (e Edit) Gone(ctx context.Context, h *steps.Host) (*Change, error) {
	from, recorded, err := ReadRecord(ctx, h, e)
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
	for text := range strings.Lines(have) {
		line := strings.TrimSuffix(text, "\n")
		for i, l := range all {
			if l.Is == line {
				text = l.Was + text[len(line):]
				all = append(all[:i:i], all[i+1:]...)
				break
			}
		}
		b.WriteString(text)
	}
	want := b.String()
	return &Change{What: "restore " + e.String(), Diff: lineDiff(have, want), Apply: func(ctx context.Context, h *steps.Host) error {
		if want != have || e.Reload { // an interrupted run may have written the file without a reload
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

// setText writes text to a file and preserves its mode and owner. If the path is a link,
// its target is written.
func setText(ctx context.Context, h *steps.Host, p, text string) error {
	for range maxLinks {
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
