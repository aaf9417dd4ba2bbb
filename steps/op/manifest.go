package op

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/runner"
)

// Manifest is a set of objects in a cluster, brought about by server-side apply
// from a host that holds kubectl and a kubeconfig. Whether there is something to
// do is asked of the objects that live in the cluster.
//
// The record says which objects kubexm made, and holds those that were there
// before as they were: a removal deletes the former and puts back the latter. It
// needs neither the manifest nor a bundle.
type Manifest struct {
	Name       string // what people call it: "flannel"
	Kubeconfig string // on the host
	Owner      string // the field manager
	Opens      []manifest.Need
	Body       func(context.Context, *steps.Host) ([]byte, error)
}

// Limits of what kubectl does and prints.
const (
	maxObjects  = 64 << 20 // bytes of objects as JSON
	maxDiffSize = 256 << 10
	deleteTime  = 2 * time.Minute
)

func (m Manifest) String() string { return "manifest " + m.Name }

// Needs are what Body opens.
func (m Manifest) Needs() []manifest.Need { return m.Opens }

// Want asks the API server for the difference between the manifest and what lives.
func (m Manifest) Want(ctx context.Context, h *steps.Host, _ bool) (*Change, error) {
	text, err := m.Body(ctx, h)
	if err != nil {
		return nil, err
	}
	objects, err := parseObjects(text)
	if err != nil {
		return nil, err
	}
	diff, same, err := m.diff(ctx, h, text)
	if err != nil || same {
		return nil, err
	}
	var before []live // what Apply found, for Undo
	var earlier Record
	var began, recorded bool
	return &Change{
		What: fmt.Sprintf("apply %s (%d objects)", m, len(objects)), Diff: diff,
		Apply: func(ctx context.Context, h *steps.Host) (err error) {
			if before, err = m.get(ctx, h, objects); err != nil {
				return err
			}
			if earlier, recorded, err = Recall(ctx, h, m); err != nil {
				return err
			}
			began = true
			if err := m.keep(ctx, h, earlier, objects, before); err != nil {
				return err
			}
			_, err = m.kubectl(ctx, h, text, "apply", "--server-side", "--force-conflicts", "--field-manager="+m.Owner, "-f", "-")
			return err
		},
		Undo: func(ctx context.Context, h *steps.Host) error {
			if !began {
				return nil
			}
			if err := m.back(ctx, h, objects, before); err != nil {
				return err
			}
			if !recorded {
				return Forget(ctx, h, m)
			}
			return Rewrite(ctx, h, m, earlier)
		},
	}, nil
}

// diff tells whether the objects are as the manifest wants them, and what is not.
// kubectl's own difference does not show the content of Secrets.
func (m Manifest) diff(ctx context.Context, h *steps.Host, text []byte) (lines string, same bool, err error) {
	res, err := h.Run(ctx, runner.Cmd{
		Argv:  m.argv("diff", "--server-side", "--force-conflicts", "--field-manager="+m.Owner, "-f", "-"),
		Stdin: bytes.NewReader(text), OK: []int{1}, Limit: maxDiffSize, Cut: true,
	})
	var cmd *runner.CmdError
	switch {
	case errors.As(err, &cmd) && strings.Contains(cmd.Stderr, `exec: "diff"`):
		return "", false, steps.Advise(err, "install the program diff on %s (package diffutils)", h.Name)
	case errors.As(err, &cmd):
		return "", false, nil // what it is in does not exist yet, or there is no API server
	case err != nil:
		return "", false, err
	}
	return shown(string(res.Stdout)), res.Exit == 0, nil
}

// shown gives the lines of a difference that come and go.
func shown(diff string) string {
	var out []string
	for line := range strings.Lines(diff) {
		line = strings.TrimRight(line, "\n")
		if strings.HasPrefix(line, "diff ") || strings.HasPrefix(line, "+++ ") || strings.HasPrefix(line, "--- ") || line == "" {
			continue
		}
		if line[0] == '+' || line[0] == '-' {
			out = append(out, "  "+line[:1]+" "+line[1:])
		}
	}
	if len(out) > maxDiff {
		out = append(out[:maxDiff], fmt.Sprintf("  … and %d lines more", len(out)-maxDiff))
	}
	return strings.Join(out, "\n")
}

// keep adds the objects that are not in the record yet, with those that live.
func (m Manifest) keep(ctx context.Context, h *steps.Host, e Record, objects []object, before []live) error {
	first, err := m.first(ctx, h)
	if err != nil {
		return err
	}
	e.Objects = slices.Clone(e.Objects)
	added := false
	for _, o := range objects {
		if slices.ContainsFunc(e.Objects, func(k kept) bool { return k.is(o) }) {
			continue
		}
		k := kept{object: o}
		for _, l := range before {
			if o.is(l.id()) {
				k.Existed, added = true, true
				first = append(first, l.bare())
			}
		}
		e.Objects = append(e.Objects, k)
	}
	if added {
		text, err := list(first)
		if err != nil {
			return err
		}
		if err := makeRecordDir(ctx, h); err != nil {
			return err
		}
		if err := h.WriteFile(ctx, recordPath(h, m, suffixFirst), text, runner.Attr{Mode: 0o600}); err != nil {
			return err
		}
	}
	return Remember(ctx, h, m, e)
}

// first gives the objects as they were before kubexm came.
func (m Manifest) first(ctx context.Context, h *steps.Host) ([]live, error) {
	text, err := h.ReadFile(ctx, recordPath(h, m, suffixFirst))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return parseLive(text)
}

// Gone deletes what kubexm made, and puts back what it found.
func (m Manifest) Gone(ctx context.Context, h *steps.Host) (*Change, error) {
	e, recorded, err := Recall(ctx, h, m)
	if err != nil || !recorded {
		return nil, err
	}
	return &Change{What: fmt.Sprintf("delete %s (%d objects)", m, len(e.Objects)), Apply: func(ctx context.Context, h *steps.Host) error {
		first, err := m.first(ctx, h)
		if err != nil {
			return err
		}
		var objects []object
		for _, k := range e.Objects { // what existed and is not in first has been put back already
			if !k.Existed {
				objects = append(objects, k.object)
			}
		}
		if err := m.back(ctx, h, objects, first); err != nil {
			return err
		}
		return Forget(ctx, h, m)
	}}, nil
}

// Forget gives the step's record up: what it tells of went with its cluster.
func (m Manifest) Forget(ctx context.Context, h *steps.Host) error { return Forget(ctx, h, m) }

// back gives objects the state of before: what is not in there is deleted, the
// last first. What somebody deleted since stays deleted.
func (m Manifest) back(ctx context.Context, h *steps.Host, objects []object, before []live) error {
	all := slices.Clone(objects)
	for _, l := range before {
		if !slices.ContainsFunc(all, func(o object) bool { return o.is(l.id()) }) {
			all = append(all, l.id())
		}
	}
	now, err := m.get(ctx, h, all)
	if err != nil {
		return err
	}
	var made []object
	var found []live
	for _, l := range slices.Backward(now) {
		i := slices.IndexFunc(before, func(b live) bool { return b.id().is(l.id()) })
		if i < 0 {
			made = append(made, l.id())
		} else {
			found = append(found, before[i].bare())
		}
	}
	if len(made) > 0 {
		text, err := list(made)
		if err != nil {
			return err
		}
		if _, err := m.kubectl(ctx, h, text, "delete", "--ignore-not-found", "--timeout="+deleteTime.String(), "-f", "-"); err != nil {
			return steps.Advise(err, "see what the objects wait for: kubectl describe, on %s", h.Name)
		}
	}
	if len(found) == 0 {
		return nil
	}
	text, err := list(found)
	if err != nil {
		return err
	}
	_, err = m.kubectl(ctx, h, text, "replace", "-f", "-")
	return err
}

// get gives those of objects that live. Of a kind that the cluster does not know
// there are none; as one such kind fails the whole question, they are asked for
// one by one then.
func (m Manifest) get(ctx context.Context, h *steps.Host, objects []object) ([]live, error) {
	out, err := m.ask(ctx, h, objects)
	if err == nil || !unknownKind(err) {
		return out, err
	}
	out = nil
	for _, o := range objects {
		some, err := m.ask(ctx, h, []object{o})
		if err != nil && !unknownKind(err) {
			return nil, err
		}
		out = append(out, some...)
	}
	return out, nil
}

func unknownKind(err error) bool {
	var cmd *runner.CmdError
	return errors.As(err, &cmd) && strings.Contains(cmd.Stderr, "no matches for kind")
}

func (m Manifest) ask(ctx context.Context, h *steps.Host, objects []object) ([]live, error) {
	text, err := list(objects)
	if err != nil {
		return nil, err
	}
	out, err := m.kubectl(ctx, h, text, "get", "--ignore-not-found", "-o", "json", "-f", "-")
	if err != nil {
		return nil, err
	}
	return parseLive(out)
}

func (m Manifest) kubectl(ctx context.Context, h *steps.Host, stdin []byte, args ...string) ([]byte, error) {
	res, err := h.Run(ctx, runner.Cmd{Argv: m.argv(args...), Stdin: bytes.NewReader(stdin), Limit: maxObjects})
	return res.Stdout, err
}

func (m Manifest) argv(args ...string) []string {
	return Kubectl(m.Kubeconfig, args...)
}

// Kubectl gives the command line of kubectl. What it keeps of a cluster's kinds
// goes where it is forgotten by itself: ~/.kube is the user's.
func Kubectl(kubeconfig string, args ...string) []string {
	return append([]string{"kubectl", "--kubeconfig", kubeconfig, "--cache-dir", "/run/kubexm/kubectl"}, args...)
}

// kept is an object in a record.
type kept struct {
	object
	Existed bool `json:"existed,omitempty"` // before kubexm came
}
