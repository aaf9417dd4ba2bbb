package op

import (
	"bytes"
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

// inCluster is the record of something in a cluster. It lies on the host through which
// it was brought about, and in a Secret of the cluster: the next run may go through
// another master. The Secret counts before the host's; without it, as an older kubexm
// left the cluster, the host's counts.
type inCluster struct {
	of         Resource
	kubeconfig string // on the host
}

// objectsNamespace holds the Secrets.
const objectsNamespace = "kube-system"

// secret is the record as the cluster keeps it.
type secret struct {
	object
	Type string            `json:"type,omitempty"`
	Data map[string][]byte `json:"data,omitempty"`
}

// The keys of the Secret, as the files of a record on a host.
const (
	secretEntry = "entry"
	secretFirst = "first"
)

func (c inCluster) secret(h *steps.Host) secret {
	s := secret{object: object{APIVersion: "v1", Kind: "Secret"}}
	s.Metadata.Namespace = objectsNamespace
	s.Metadata.Name = "kubexm-objects." + strings.TrimSuffix(path.Base(recordPath(h, c.of, suffixEntry)), suffixEntry)
	return s
}

// recall gives the record, and what was there at the very first; ok tells whether there is
// a record. Where no API server answers the host's counts.
func (c inCluster) recall(ctx context.Context, h *steps.Host) (e Record, first []byte, ok bool, err error) {
	if here, _, err := Recall(ctx, h, c.of); err != nil || here.Given {
		return Record{}, nil, false, err
	}
	if e, first, ok, err = c.recallThere(ctx, h); err != nil || ok {
		return e, first, ok, err
	}
	return c.recallHere(ctx, h)
}

// recallThere gives what the cluster knows, if it answers.
func (c inCluster) recallThere(ctx context.Context, h *steps.Host) (e Record, first []byte, ok bool, err error) {
	out, err := h.Exec(ctx, Kubectl(c.kubeconfig, "--request-timeout=10s", "-n", objectsNamespace, "get", "--ignore-not-found", "secret/"+c.secret(h).Metadata.Name, "-o", "json")...)
	var cmd *runner.CmdError
	switch {
	case errors.As(err, &cmd):
		return e, nil, false, nil
	case err != nil || len(bytes.TrimSpace(out)) == 0:
		return e, nil, false, err
	}
	var s secret
	if err = json.Unmarshal(out, &s); err == nil {
		err = json.Unmarshal(s.Data[secretEntry], &e)
	}
	if err != nil {
		return e, nil, false, fmt.Errorf("record of %s in the cluster: %w", c.of, err)
	}
	return e, s.Data[secretFirst], true, nil
}

// recallHere gives what the host knows.
func (c inCluster) recallHere(ctx context.Context, h *steps.Host) (e Record, first []byte, ok bool, err error) {
	if e, ok, err = Recall(ctx, h, c.of); err != nil || !ok {
		return e, nil, false, err
	}
	first, err = h.ReadFile(ctx, recordPath(h, c.of, suffixFirst))
	if errors.Is(err, fs.ErrNotExist) {
		return e, nil, true, nil
	}
	return e, first, true, err
}

// remember writes the record on the host, and then in the cluster.
func (c inCluster) remember(ctx context.Context, h *steps.Host, e Record, first []byte) error {
	if len(first) > 0 {
		if err := makeRecordDir(ctx, h); err != nil {
			return err
		}
		if err := h.WriteFile(ctx, recordPath(h, c.of, suffixFirst), first, runner.Attr{Mode: 0o600}); err != nil {
			return err
		}
	}
	if err := Remember(ctx, h, c.of, e); err != nil {
		return err
	}
	e.Resource = c.of.String()
	text, err := json.Marshal(e)
	if err != nil {
		return err
	}
	s := c.secret(h)
	s.Type, s.Data = "Opaque", map[string][]byte{secretEntry: text, secretFirst: first}
	if text, err = json.Marshal(s); err != nil {
		return err
	}
	_, err = h.Run(ctx, runner.Cmd{Argv: Kubectl(c.kubeconfig, "apply", "--server-side", "--force-conflicts", "--field-manager=kubexm", "-f", "-"), Stdin: bytes.NewReader(text)})
	return err
}

// forget takes the record out of the cluster, and then off the host. Where the cluster
// does not let it go, it goes with the cluster, and the host knows that it counts no more.
func (c inCluster) forget(ctx context.Context, h *steps.Host) error {
	text, err := list([]object{c.secret(h).object})
	if err != nil {
		return err
	}
	_, err = h.Run(ctx, runner.Cmd{Argv: Kubectl(c.kubeconfig, "--request-timeout=10s", "delete", "--ignore-not-found", "-f", "-"), Stdin: bytes.NewReader(text)})
	var cmd *runner.CmdError
	switch {
	case errors.As(err, &cmd):
		_, _, there, err := c.recallThere(ctx, h)
		if err == nil {
			err = Forget(ctx, h, c.of)
		}
		if err != nil || !there {
			return err
		}
		return Remember(ctx, h, c.of, Record{Given: true})
	case err != nil:
		return err
	}
	return Forget(ctx, h, c.of)
}
