package op

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/mensylisir/kubexm/steps"
)

// The marker lines around a managed block.
const (
	blockBegin = "# BEGIN KubeXM Managed Block"
	blockEnd   = "# END KubeXM Managed Block"
)

// Block is the part between two marker lines of a file that other programs and people
// write as well.
type Block struct {
	NoNeeds
	Path string
	Body func(context.Context, *steps.Host) ([]byte, error)
	// Top puts the block before all other lines, for files in which the first matching
	// line applies. An existing block elsewhere in the file is moved.
	Top bool
}

func (b Block) String() string { return "block in " + b.Path }

// noFinalNewline is the record's value for a file that has no newline at its end: the
// block adds one, and a removal deletes it.
const noFinalNewline = "no newline at the end"

// Want replaces the existing block, or appends a new one to the file.
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
	body = bytes.TrimRight(body, "\n")
	if parts.has(have, body, b.Top) { // without a copy: /etc/hosts of a thousand hosts has a thousand lines
		return nil, nil
	}
	want := parts.with(body, b.Top)
	e := Record{Existed: existed}
	if !parts.found && !b.Top && have != "" && !strings.HasSuffix(have, "\n") {
		e.Value = noFinalNewline
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
			if err := b.restore(ctx, h, have, existed); err != nil || !first {
				return err
			}
			return Forget(ctx, h, b)
		},
	}, nil
}

// Gone removes the block. The rest of the file stays unchanged.
func (b Block) Gone(ctx context.Context, h *steps.Host) (*Change, error) {
	e, recorded, err := ReadRecord(ctx, h, b)
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
	if parts.found && parts.after == "" && e.Value == noFinalNewline {
		want = strings.TrimSuffix(want, "\n")
	}
	return &Change{What: "remove " + b.String(), Diff: lineDiff(have, want), Apply: func(ctx context.Context, h *steps.Host) error {
		if existed && (parts.found || want == "" && !e.Existed) {
			if err := b.restore(ctx, h, want, want != "" || e.Existed); err != nil {
				return err
			}
		}
		return Forget(ctx, h, b)
	}}, nil
}

// restore writes text to the file, or removes the file if it did not exist before.
func (b Block) restore(ctx context.Context, h *steps.Host, text string, existed bool) error {
	if err := h.Discard(ctx, b.Path); err != nil {
		return err
	}
	if !existed {
		return h.Remove(ctx, b.Path)
	}
	return setText(ctx, h, b.Path, text)
}

// maxLinks is the maximum length of a chain of symbolic links.
const maxLinks = 8

func (b Block) read(ctx context.Context, h *steps.Host) (text string, existed bool, err error) {
	have, err := h.ReadFile(ctx, b.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", false, nil
	}
	return string(have), err == nil, err
}

func (b Block) advise(h *steps.Host, err error) error {
	return steps.Advise(fmt.Errorf("%s: %w", b.Path, err), "repair the managed block of kubexm in %s on %s: it begins with %q and ends with %q", b.Path, h.Name, blockBegin, blockEnd)
}

// parts are the lines before and after a block.
type parts struct {
	before, after string
	found         bool
}

// split finds the block in a text. A begin marker without an end marker is an error,
// because the owner of the lines that follow it is unknown. So is a second block.
func split(text string) (parts, error) {
	p := parts{before: text}
	inside := false
	at := 0
	for line := range strings.Lines(text) {
		switch mark := strings.TrimSpace(line); {
		case mark == blockBegin && (inside || p.found):
			return p, errors.New("more than one managed block")
		case mark == blockBegin:
			inside, p.found = true, true
			p.before = text[:at]
		case mark == blockEnd && !inside:
			return p, errors.New("the end marker of a managed block has no begin marker")
		case mark == blockEnd:
			inside = false
			p.after = text[at+len(line):]
		}
		at += len(line)
	}
	if inside {
		return p, errors.New("the managed block has no end marker")
	}
	return p, nil
}

// around returns the text before and after the lines of the block.
func (p parts) around(top bool) (before, after string) {
	before, after = p.before, p.after
	if top {
		before, after = "", p.before+p.after
	}
	if before != "" && !strings.HasSuffix(before, "\n") {
		before += "\n"
	}
	return before + blockBegin + "\n", "\n" + blockEnd + "\n" + after
}

// with returns the text with body between the markers. The body has no newline at its end.
func (p parts) with(body []byte, top bool) string {
	before, after := p.around(top)
	return before + string(body) + after
}

// has reports whether text is what with returns.
func (p parts) has(text string, body []byte, top bool) bool {
	before, after := p.around(top)
	text, begins := strings.CutPrefix(text, before)
	text, ends := strings.CutSuffix(text, after)
	return begins && ends && text == string(body)
}
