package op

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/mensylisir/kubexm/steps"
)

// The marks around a managed block, as the documents spell them.
const (
	blockBegin = "# BEGIN KubeXM Managed Block"
	blockEnd   = "# END KubeXM Managed Block"
)

// Block is a part of a file that others write too, between two marks.
type Block struct {
	NoNeeds
	Path string
	Body func(context.Context, *steps.Host) ([]byte, error)
	// Top puts the block before all other lines: where the first line that answers
	// counts, it is the block's. One that stands elsewhere in the file moves there.
	Top bool
}

func (b Block) String() string { return "block in " + b.Path }

// open is how a file that has no newline at its end is remembered: the block
// needs one before it.
const open = "no newline at the end"

// Want writes the block, in place of the one that is there or at the end.
func (b Block) Want(ctx context.Context, h *steps.Host, _ bool) (*Change, error) {
	body, err := b.Body(ctx, h)
	if err != nil {
		return nil, err
	}
	have, existed, err := b.read(ctx, h)
	if err != nil {
		return nil, err
	}
	parts, err := split(have)
	if err != nil {
		return nil, b.advise(h, err)
	}
	want := parts.with(body, b.Top)
	if want == have {
		return nil, nil
	}
	e := Record{Existed: existed}
	if !parts.found && !b.Top && have != "" && !strings.HasSuffix(have, "\n") {
		e.Value = open
	}
	first := false
	return &Change{
		What: "write " + b.String(), Diff: lineDiff(have, want),
		Apply: func(ctx context.Context, h *steps.Host) error {
			var err error
			if first, err = RememberFirst(ctx, h, b, e); err != nil {
				return err
			}
			return setText(ctx, h, b.Path, want)
		},
		Undo: func(ctx context.Context, h *steps.Host) error {
			if err := b.back(ctx, h, have, existed); err != nil || !first {
				return err
			}
			return Forget(ctx, h, b)
		},
	}, nil
}

// Gone takes the block out; everything else in the file stays.
func (b Block) Gone(ctx context.Context, h *steps.Host) (*Change, error) {
	e, recorded, err := Recall(ctx, h, b)
	if err != nil || !recorded {
		return nil, err
	}
	have, existed, err := b.read(ctx, h)
	if err != nil {
		return nil, err
	}
	parts, err := split(have)
	if err != nil {
		return nil, b.advise(h, err)
	}
	want := parts.before + parts.after
	if parts.found && parts.after == "" && e.Value == open {
		want = strings.TrimSuffix(want, "\n")
	}
	return &Change{What: "remove " + b.String(), Diff: lineDiff(have, want), Apply: func(ctx context.Context, h *steps.Host) error {
		if existed && (parts.found || want == "" && !e.Existed) {
			if err := b.back(ctx, h, want, want != "" || e.Existed); err != nil {
				return err
			}
		}
		return Forget(ctx, h, b)
	}}, nil
}

// back gives the file another content, or removes it.
func (b Block) back(ctx context.Context, h *steps.Host, text string, existed bool) error {
	if err := h.Discard(ctx, b.Path); err != nil {
		return err
	}
	if !existed {
		return h.Remove(ctx, b.Path)
	}
	return setText(ctx, h, b.Path, text)
}

// mostLinks is how many links are followed, one after another.
const mostLinks = 8

func (b Block) read(ctx context.Context, h *steps.Host) (text string, existed bool, err error) {
	have, err := h.ReadFile(ctx, b.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", false, nil
	}
	return string(have), err == nil, err
}

func (b Block) advise(h *steps.Host, err error) error {
	return steps.Advise(fmt.Errorf("%s: %w", b.Path, err), "mend the lines of kubexm in %s on %s: %q to %q", b.Path, h.Name, blockBegin, blockEnd)
}

// parts are a text around a block.
type parts struct {
	before, after string
	found         bool
}

// split finds the block in a text. Lines that follow a begin without an end may
// be anybody's: that is an error, as is a second block.
func split(text string) (parts, error) {
	var p parts
	inside := false
	for line := range strings.Lines(text) {
		switch mark := strings.TrimSpace(line); {
		case mark == blockBegin && (inside || p.found):
			return p, errors.New("a second managed block begins")
		case mark == blockBegin:
			inside, p.found = true, true
		case mark == blockEnd && !inside:
			return p, errors.New("a managed block ends that never began")
		case mark == blockEnd:
			inside = false
		case inside:
		case p.found:
			p.after += line
		default:
			p.before += line
		}
	}
	if inside {
		return p, errors.New("the managed block has no end")
	}
	return p, nil
}

// with gives the text with body between the marks.
func (p parts) with(body []byte, top bool) string {
	s := p.before
	if top {
		p.after, s = p.before+p.after, ""
	}
	if s != "" && !strings.HasSuffix(s, "\n") {
		s += "\n"
	}
	return s + blockBegin + "\n" + strings.TrimRight(string(body), "\n") + "\n" + blockEnd + "\n" + p.after
}
