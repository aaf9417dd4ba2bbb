package op

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/runner"
)

// Manifest is a set of objects in a cluster. kubectl on the host applies it server-side.
// A diff against the live objects decides whether there is a change.
//
// The record lists the objects that kubexm created, and contains the original state of
// those that existed before: a removal deletes the former and restores the latter. A
// removal needs neither the manifest nor a bundle.
type Manifest struct {
	Name       string          // for people: "flannel"
	Kubeconfig string          // on the host
	Owner      string          // the field manager of the server-side apply
	Opens      []manifest.Need // artifacts that Body opens
	Body       func(context.Context, *steps.Host) ([]byte, error)
}

// Limits for kubectl: the sizes of its output in bytes, and the timeout of a deletion.
const (
	maxObjects    = 64 << 20 // of objects as JSON
	maxDiffSize   = 256 << 10
	deleteTimeout = 2 * time.Minute
)

func (m Manifest) String() string { return "manifest " + m.Name }

// Needs returns the artifacts that Body opens.
func (m Manifest) Needs() []manifest.Need { return m.Opens }

// Want requests the diff between the manifest and the live objects from the API server.
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
	var before []live // the objects before Apply, for Undo
	var earlier Record
	var first []byte
	var began, recorded bool
	return &Change{
		What: fmt.Sprintf("apply %s (%d objects)", m, len(objects)), Diff: diff,
		Apply: func(ctx context.Context, h *steps.Host) (err error) {
			if before, err = m.get(ctx, h, objects); err != nil {
				return err
			}
			if earlier, first, recorded, err = m.record().recall(ctx, h); err != nil {
				return err
			}
			began = true
			if err := m.remember(ctx, h, earlier, first, objects, before); err != nil {
				return err
			}
			_, err = m.kubectl(ctx, h, text, "apply", "--server-side", "--force-conflicts", "--field-manager="+m.Owner, "-f", "-")
			return err
		},
		Undo: func(ctx context.Context, h *steps.Host) error {
			if !began {
				return nil
			}
			if err := m.restore(ctx, h, objects, before); err != nil {
				return err
			}
			if !recorded {
				return m.record().forget(ctx, h)
			}
			return m.record().remember(ctx, h, earlier, first)
		},
	}, nil
}

// diff reports whether the live objects match the manifest, and returns the changed lines.
// `kubectl diff` masks the content of Secrets.
func (m Manifest) diff(ctx context.Context, h *steps.Host, text []byte) (lines string, same bool, err error) {
	res, err := h.Run(ctx, runner.Cmd{
		Argv:  m.argv("diff", "--server-side", "--force-conflicts", "--field-manager="+m.Owner, "-f", "-"),
		Stdin: bytes.NewReader(text), OK: []int{1}, Limit: maxDiffSize, AllowTruncated: true,
	})
	var cmd *runner.CmdError
	switch {
	case errors.As(err, &cmd) && strings.Contains(cmd.Stderr, `exec: "diff"`):
		return "", false, steps.Advise(err, "install the program diff on %s (package diffutils)", h.Name)
	case errors.As(err, &cmd):
		return "", false, nil // its namespace or kind does not exist yet, or no API server answers
	case err != nil:
		return "", false, err
	}
	return shown(string(res.Stdout)), res.Exit == 0, nil
}

// shown returns the added and removed lines of a diff.
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

// record returns the record of the manifest, which is also stored in the cluster.
func (m Manifest) record() inCluster { return inCluster{m, m.Kubeconfig} }

// remember adds new objects to the record, with the original state of those that exist.
func (m Manifest) remember(ctx context.Context, h *steps.Host, e Record, was []byte, objects []object, before []live) error {
	first, err := parseLive(was)
	if err != nil {
		return err
	}
	e.Objects = slices.Clone(e.Objects)
	added := false
	for _, o := range objects {
		if slices.ContainsFunc(e.Objects, func(k recordedObject) bool { return k.is(o) }) {
			continue
		}
		k := recordedObject{object: o}
		for _, l := range before {
			if o.is(l.id()) {
				k.Existed, added = true, true
				first = append(first, l.bare())
			}
		}
		e.Objects = append(e.Objects, k)
	}
	if added {
		if was, err = list(first); err != nil {
			return err
		}
	}
	return m.record().remember(ctx, h, e, was)
}

// Gone deletes the objects that kubexm created, and restores the ones that existed
// before.
func (m Manifest) Gone(ctx context.Context, h *steps.Host) (*Change, error) {
	e, was, recorded, err := m.record().recall(ctx, h)
	if err != nil || !recorded {
		return nil, err
	}
	return &Change{What: fmt.Sprintf("delete %s (%d objects)", m, len(e.Objects)), Apply: func(ctx context.Context, h *steps.Host) error {
		first, err := parseLive(was)
		if err != nil {
			return err
		}
		var objects []object
		for _, k := range e.Objects { // objects that existed and are not in first are already restored
			if !k.Existed {
				objects = append(objects, k.object)
			}
		}
		if err := m.restore(ctx, h, objects, first); err != nil {
			return err
		}
		return m.record().forget(ctx, h)
	}}, nil
}

// Forget deletes the record of a manifest whose cluster no longer exists.
func (m Manifest) Forget(ctx context.Context, h *steps.Host) error { return m.record().forget(ctx, h) }

// restore brings objects into the state of before: objects that are not in before are
// deleted, the last first. Objects that a user deleted since then stay deleted.
func (m Manifest) restore(ctx context.Context, h *steps.Host, objects []object, before []live) error {
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
	var created []object
	var original []live
	for _, l := range slices.Backward(now) {
		i := slices.IndexFunc(before, func(b live) bool { return b.id().is(l.id()) })
		if i < 0 {
			created = append(created, l.id())
		} else {
			original = append(original, before[i].bare())
		}
	}
	if len(created) > 0 {
		text, err := list(created)
		if err != nil {
			return err
		}
		if _, err := m.kubectl(ctx, h, text, "delete", "--ignore-not-found", "--timeout="+deleteTimeout.String(), "-f", "-"); err != nil {
			return steps.Advise(err, "find out what blocks the deletion: run `kubectl describe` for the objects on %s", h.Name)
		}
	}
	if len(original) == 0 {
		return nil
	}
	text, err := list(original)
	if err != nil {
		return err
	}
	_, err = m.kubectl(ctx, h, text, "replace", "-f", "-")
	return err
}

// get returns the live ones of objects. An object of an unknown kind does not exist. Since
// one unknown kind fails the entire request, the objects are then requested one by one.
func (m Manifest) get(ctx context.Context, h *steps.Host, objects []object) ([]live, error) {
	out, err := m.query(ctx, h, objects)
	if err == nil || !unknownKind(err) {
		return out, err
	}
	out = nil
	for _, o := range objects {
		some, err := m.query(ctx, h, []object{o})
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

func (m Manifest) query(ctx context.Context, h *steps.Host, objects []object) ([]live, error) {
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

// Kubectl returns the command line of kubectl. The discovery cache goes to /run, which is
// empty after a boot: ~/.kube belongs to the user.
func Kubectl(kubeconfig string, args ...string) []string {
	return append([]string{"kubectl", "--kubeconfig", kubeconfig, "--cache-dir", "/run/kubexm/kubectl"}, args...)
}

// recordedObject is an object in a record.
type recordedObject struct {
	object
	Existed bool `json:"existed,omitempty"` // before kubexm applied the manifest
}
