package op

import (
	"bytes"
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

// Chart is a release of a Helm chart in a cluster, out of the bundle, by a helm
// that is on the host. Helm's own description of the release says which archive
// and which values it was made from: another one, or none, is to be done again.
// Its namespace stays when it goes: others may be in it.
type Chart struct {
	Release    string
	Namespace  string // made where it is missing
	Kubeconfig string // on the host
	Archive    manifest.Need
	Opens      []manifest.Need                                    // what Values opens
	Values     func(context.Context, *steps.Host) ([]byte, error) // nil: the chart's own
	Timeout    time.Duration                                      // until all of it is ready; 0 is five minutes
	// Replace gives words that are put in place of others in every file of the chart
	// and in the values; nil, and none, leave all as it is.
	Replace func(context.Context, *steps.Host) (map[string]string, error)
}

const chartTimeout = 5 * time.Minute

// chartDir holds chart archives while helm reads them.
const chartDir = "/run/kubexm/charts"

func (c Chart) String() string { return "chart " + c.Namespace + "/" + c.Release }

// Needs are the archive, and what Values opens.
func (c Chart) Needs() []manifest.Need { return append([]manifest.Need{c.Archive}, c.Opens...) }

// release is the part of `helm status -o json` that matters here.
type release struct {
	Version int `json:"version"` // the revision
	Info    struct {
		Status      string `json:"status"`
		Description string `json:"description"`
	} `json:"info"`
}

// pending tells whether a helm that was cut off left the release behind.
func (r release) pending() bool { return strings.HasPrefix(r.Info.Status, "pending-") }

// revision is the last one that a helm saw to its end; 0: none.
func (r release) revision() int {
	if r.pending() {
		return r.Version - 1
	}
	return r.Version
}

// Want compares the release with the archive and the values.
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
		about += ", words sha256:" + Digest([]byte(fmt.Sprint(words))) // a map is printed in order
	}
	have, there, err := c.look(ctx, h)
	if err != nil && !runner.Refused(err) { // else there is no API server, or no helm yet
		return nil, err
	}
	if there && have.Info.Status == "deployed" && have.Info.Description == about {
		return nil, nil
	}
	what := fmt.Sprintf("install %s %s", c, blob.Version)
	if there {
		what = fmt.Sprintf("upgrade %s to %s", c, blob.Version)
	}
	var began, recorded bool
	was := 0 // the revision that Apply found
	return &Change{
		What: what,
		Apply: func(ctx context.Context, h *steps.Host) error {
			have, there, err := c.look(ctx, h)
			if err != nil {
				return err
			}
			if there {
				was = have.revision()
			}
			if _, recorded, err = Recall(ctx, h, c); err != nil {
				return err
			}
			began = true
			if !recorded {
				if err := Remember(ctx, h, c, Record{Existed: was > 0, Value: strconv.Itoa(was)}); err != nil {
					return err
				}
			}
			if there && have.pending() { // helm would wait for the one that was cut off for ever
				if err := c.back(ctx, h, was); err != nil {
					return err
				}
			}
			return c.upgrade(ctx, h, blob, values, words, about)
		},
		Undo: func(ctx context.Context, h *steps.Host) error {
			if !began {
				return nil
			}
			if err := c.back(ctx, h, was); err != nil || recorded {
				return err
			}
			return Forget(ctx, h, c)
		},
	}, nil
}

// upgrade makes the release.
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
	timeout := c.Timeout
	if timeout == 0 {
		timeout = chartTimeout
	}
	_, err := c.helm(ctx, h, values, "upgrade", c.Release, file, "--install", "--create-namespace", "--reset-values", "--values", "-",
		"--description", about, "--wait", "--timeout", timeout.String(), "--output", "json")
	if err != nil {
		err = steps.Advise(err, "see `kubectl -n %s get pods,events` on %s", c.Namespace, h.Name)
	}
	return errors.Join(err, h.Remove(context.WithoutCancel(ctx), file))
}

// Gone uninstalls the release, or takes it back to the revision that was there
// before kubexm came.
func (c Chart) Gone(ctx context.Context, h *steps.Host) (*Change, error) {
	e, recorded, err := Recall(ctx, h, c)
	if err != nil || !recorded {
		return nil, err
	}
	was, err := strconv.Atoi(e.Value)
	if err != nil {
		return nil, fmt.Errorf("record of %s: %w", c, err)
	}
	what := "uninstall " + c.String()
	if was > 0 {
		what = fmt.Sprintf("take %s back to revision %d", c, was)
	}
	return &Change{What: what, Apply: func(ctx context.Context, h *steps.Host) error {
		if err := c.back(ctx, h, was); err != nil {
			return err
		}
		return Forget(ctx, h, c)
	}}, nil
}

// Forget gives the record up: what it tells of went with its cluster.
func (c Chart) Forget(ctx context.Context, h *steps.Host) error { return Forget(ctx, h, c) }

// back brings the release to a revision; 0 takes it away.
func (c Chart) back(ctx context.Context, h *steps.Host, revision int) error {
	if revision == 0 {
		_, err := c.helm(ctx, h, nil, "uninstall", c.Release, "--ignore-not-found", "--wait", "--timeout", deleteTime.String())
		return err
	}
	now, there, err := c.look(ctx, h)
	if err != nil || !there || now.Version == revision {
		return err // somebody removed it since, or nothing changed
	}
	_, err = c.helm(ctx, h, nil, "rollback", c.Release, strconv.Itoa(revision), "--wait", "--timeout", chartTimeout.String())
	return steps.Advise(err, "see `helm -n %s history %s` on %s", c.Namespace, c.Release, h.Name)
}

// look asks helm for the release.
func (c Chart) look(ctx context.Context, h *steps.Host) (r release, there bool, err error) {
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
	// What helm keeps of a cluster's kinds goes where it is forgotten by itself.
	argv := append([]string{"env", "KUBECACHEDIR=/run/kubexm/kubectl", "helm", "--kubeconfig", c.Kubeconfig, "--namespace", c.Namespace}, args...)
	res, err := h.Run(ctx, runner.Cmd{Argv: argv, Stdin: bytes.NewReader(stdin), Limit: maxObjects})
	return res.Stdout, err
}
