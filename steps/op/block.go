package op

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"strings"

	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/runner"
)

// The marks around a managed block, as the documents spell them.
const (
	blockBegin = "# BEGIN KubeXM Managed Block"
	blockEnd   = "# END KubeXM Managed Block"
)

// Block is a part of a file that others write too, between two marks.
type Block struct {
	noNeeds
	Path string
	Body func(context.Context, *steps.Host) ([]byte, error)
}

func (b Block) String() string { return "block in " + b.Path }

// Want writes the block, in place of the one that is there or at the end.
func (b Block) Want(ctx context.Context, h *steps.Host, _ bool) (*Change, error) {
	body, err := b.Body(ctx, h)
	if err != nil {
		return nil, err
	}
	have, err := read(ctx, h, b.Path)
	if err != nil {
		return nil, err
	}
	want := withBlock(have, body)
	if bytes.Equal(have, want) {
		return nil, nil
	}
	return b.write("write "+b.String(), have, want), nil
}

// Gone takes the block out; everything else in the file stays.
func (b Block) Gone(ctx context.Context, h *steps.Host) (*Change, error) {
	have, err := read(ctx, h, b.Path)
	if err != nil {
		return nil, err
	}
	want := withBlock(have, nil)
	if bytes.Equal(have, want) {
		return nil, nil
	}
	return b.write("remove "+b.String(), have, want), nil
}

// write gives the file another content and keeps its mode and owner.
func (b Block) write(what string, have, want []byte) *Change {
	set := func(text []byte) Fn {
		return func(ctx context.Context, h *steps.Host) error {
			i, err := h.Stat(ctx, b.Path)
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
			return h.WriteFile(ctx, b.Path, text, runner.Attr{Mode: i.Mode.Perm(), Owner: i.Owner, Group: i.Group})
		}
	}
	return &Change{What: what, Diff: lineDiff(string(have), string(want)), Apply: set(want), Undo: set(have)}
}

func read(ctx context.Context, h *steps.Host, path string) ([]byte, error) {
	b, err := h.ReadFile(ctx, path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return b, err
}

// withBlock gives text with body between the marks, or without any block when
// body is nil. A block whose end is missing reaches to the end of the file.
func withBlock(text, body []byte) []byte {
	var out []string
	inside := false
	for line := range strings.Lines(string(text)) {
		switch strings.TrimSpace(line) {
		case blockBegin:
			inside = true
			continue
		case blockEnd:
			inside = false
			continue
		}
		if !inside {
			out = append(out, line)
		}
	}
	s := strings.Join(out, "")
	if body == nil {
		return []byte(s)
	}
	if s != "" && !strings.HasSuffix(s, "\n") {
		s += "\n"
	}
	return []byte(s + blockBegin + "\n" + strings.TrimRight(string(body), "\n") + "\n" + blockEnd + "\n")
}
