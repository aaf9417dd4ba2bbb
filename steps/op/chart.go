package op

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/runner"
)

// Chart is a release of a Helm chart from the bundle. The helm program of the host
// installs it. Helm's description of the release contains the digests of the chart
// archive and of the values: if they differ or are missing, the release is upgraded. A
// removal does not delete the namespace, since other objects may be in it.
type Chart struct {
	Release    string
	Namespace  string // created if it does not exist
	Kubeconfig string // on the host
	Archive    manifest.Need
	Opens      []manifest.Need                                    // artifacts that Values opens
	Values     func(context.Context, *steps.Host) ([]byte, error) // nil: the chart's defaults
	Timeout    time.Duration                                      // until all its objects are ready; 0 means five minutes
	NoWait     bool                                               // its objects become ready later: another step waits for them
	// Replace returns replacements by the string to replace. They apply to every file of
	// the chart and to the values. Nil means no replacements.
	Replace func(context.Context, *steps.Host) (map[string]string, error)
}

const chartTimeout = 5 * time.Minute

// chartDir is the host's folder for chart archives while helm reads them.
const chartDir = "/run/kubexm/charts"

func (c Chart) String() string { return "chart " + c.Namespace + "/" + c.Release }

// Needs returns the archive and the artifacts that Values opens.
func (c Chart) Needs() []manifest.Need { return append([]manifest.Need{c.Archive}, c.Opens...) }

// release is the part of the output of `helm status -o json` that Chart uses.
type release struct {
	Version int `json:"version"` // the revision
	Info    struct {
		Status      string `json:"status"`
		Description string `json:"description"`
	} `json:"info"`
}

// pending reports whether an interrupted helm command left the release unfinished.
func (r release) pending() bool { return strings.HasPrefix(r.Info.Status, "pending-") }

// revision returns the last finished revision; 0 if there is none.
func (r release) revision() int {
	if r.pending() {
		return r.Version - 1
	}
	return r.Version
}

// Want compares the release with the chart archive and the values.
func (c Chart) Want(ctx context.Context, h *steps.Host, _ bool) (*Change, error) {
	var values []byte
	if c.Values != nil {
		var err error
		if values, err = c.Values(ctx, h); err != nil {
			return nil, err
		}
	}
	blob, err := h.Lookup(c.Archive)
	if err != nil {
		return nil, err
	}
	var words map[string]string
	if c.Replace != nil {
		if words, err = c.Replace(ctx, h); err != nil {
			return nil, err
		}
	}
	values = replaced(values, words)
	about := fmt.Sprintf("kubexm: chart sha256:%s, values sha256:%s", blob.SHA256, Digest(values))
	if len(words) > 0 {
		about += ", words sha256:" + Digest([]byte(fmt.Sprint(words))) // fmt prints maps sorted by key
	}
	have, exists, err := c.status(ctx, h)
	if err != nil && !runner.Refused(err) { // a refused command: no API server, or no helm yet
		return nil, err
	}
	if exists && have.Info.Status == "deployed" && have.Info.Description == about {
		return nil, nil
	}
	what := fmt.Sprintf("install %s %s", c, blob.Version)
	if exists {
		what = fmt.Sprintf("upgrade %s to %s", c, blob.Version)
	}
	var began, recorded bool
	was := 0 // the revision before Apply
	return &Change{
		What: what,
		Apply: func(ctx context.Context, h *steps.Host) error {
			have, exists, err := c.status(ctx, h)
			if err != nil {
				return err
			}
			if exists {
				was = have.revision()
			}
			var e Record
			if e, _, recorded, err = c.record().recall(ctx, h); err != nil {
				return err
			}
			began = true
			if !recorded {
				e = Record{Existed: was > 0, Value: strconv.Itoa(was)}
			}
			if err := c.record().remember(ctx, h, e, nil); err != nil { // also if recorded: the cluster's copy may be missing
				return err
			}
			if exists && have.pending() { // helm refuses to upgrade a pending release
				if err := c.restore(ctx, h, was); err != nil {
					return err
				}
			}
			return c.upgrade(ctx, h, blob, values, words, about)
		},
		Undo: func(ctx context.Context, h *steps.Host) error {
			if !began {
				return nil
			}
			if err := c.restore(ctx, h, was); err != nil || recorded {
				return err
			}
			return c.record().forget(ctx, h)
		},
	}, nil
}

// upgrade installs or upgrades the release.
func (c Chart) upgrade(ctx context.Context, h *steps.Host, b manifest.Blob, values []byte, words map[string]string, about string) error {
	file := path.Join(chartDir, c.Release+"-"+b.SHA256[:min(12, len(b.SHA256))]+".tgz")
	if _, err := h.Mkdir(ctx, chartDir, runner.Attr{Mode: 0o700}); err != nil {
		return err
	}
	up := runner.Upload{Path: file, Size: b.Size, SHA256: b.SHA256, Attr: runner.Attr{Mode: 0o600},
		Open: func(ctx context.Context) (io.ReadCloser, error) {
			rc, _, err := h.Artifact(ctx, c.Archive)
			return rc, err
		}}
	if len(words) > 0 {
		if err := rewritten(ctx, &up, words); err != nil {
			return fmt.Errorf("%s: %w", c, err)
		}
	}
	if _, err := h.Upload(ctx, up); err != nil {
		return err
	}
	args := []string{"upgrade", c.Release, file, "--install", "--create-namespace", "--reset-values", "--values", "-", "--description", about}
	if !c.NoWait {
		args = append(args, "--wait")
	}
	_, err := c.helm(ctx, h, values, append(args, "--timeout", cmp.Or(c.Timeout, chartTimeout).String(), "--output", "json")...)
	if err != nil {
		err = steps.Advise(err, "see `kubectl -n %s get pods,events` on %s", c.Namespace, h.Name)
	}
	return errors.Join(err, h.Remove(context.WithoutCancel(ctx), file))
}

// Gone uninstalls the release, or rolls it back to the revision that existed before
// kubexm changed it.
func (c Chart) Gone(ctx context.Context, h *steps.Host) (*Change, error) {
	e, _, recorded, err := c.record().recall(ctx, h)
	if err != nil || !recorded {
		return nil, err
	}
	was, err := strconv.Atoi(e.Value)
	if err != nil {
		return nil, fmt.Errorf("record of %s: %w", c, err)
	}
	what := "uninstall " + c.String()
	if was > 0 {
		what = fmt.Sprintf("roll back %s to revision %d", c, was)
	}
	return &Change{What: what, Apply: func(ctx context.Context, h *steps.Host) error {
		if err := c.restore(ctx, h, was); err != nil {
			return err
		}
		return c.record().forget(ctx, h)
	}}, nil
}

// record returns the record of the release, which is also stored in the cluster.
func (c Chart) record() inCluster { return inCluster{c, c.Kubeconfig} }

// Forget deletes the record of a release whose cluster no longer exists.
func (c Chart) Forget(ctx context.Context, h *steps.Host) error { return c.record().forget(ctx, h) }

// restore rolls the release back to a revision; 0 uninstalls it.
func (c Chart) restore(ctx context.Context, h *steps.Host, revision int) error {
	if revision == 0 {
		_, err := c.helm(ctx, h, nil, "uninstall", c.Release, "--ignore-not-found", "--wait", "--timeout", deleteTimeout.String())
		return err
	}
	now, exists, err := c.status(ctx, h)
	if err != nil || !exists || now.Version == revision {
		return err // a user uninstalled it meanwhile, or it is unchanged
	}
	_, err = c.helm(ctx, h, nil, "rollback", c.Release, strconv.Itoa(revision), "--wait", "--timeout", chartTimeout.String())
	return steps.Advise(err, "see `helm -n %s history %s` on %s", c.Namespace, c.Release, h.Name)
}

// status reads the release with `helm status`.
func (c Chart) status(ctx context.Context, h *steps.Host) (r release, exists bool, err error) {
	out, err := c.helm(ctx, h, nil, "status", c.Release, "--output", "json")
	var cmd *runner.CmdError
	if errors.As(err, &cmd) && strings.Contains(cmd.Stderr, "release: not found") {
		return r, false, nil
	}
	if err != nil {
		return r, false, err
	}
	if err := json.Unmarshal(out, &r); err != nil {
		return r, false, fmt.Errorf("helm status: %w", err)
	}
	return r, true, nil
}

func (c Chart) helm(ctx context.Context, h *steps.Host, stdin []byte, args ...string) ([]byte, error) {
	// The discovery cache goes to /run, which is empty after a boot.
	argv := append([]string{"env", "KUBECACHEDIR=/run/kubexm/kubectl", "helm", "--kubeconfig", c.Kubeconfig, "--namespace", c.Namespace}, args...)
	res, err := h.Run(ctx, runner.Cmd{Argv: argv, Stdin: bytes.NewReader(stdin), Limit: maxObjects})
	return res.Stdout, err
}
