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

// inCluster is the record of a resource inside the cluster. It is stored on the host
// through which the resource was applied, and in a Secret of the cluster, because the
// next run may use another control plane node. The Secret takes precedence. Clusters of
// older kubexm versions have no Secret: then the host's record applies.
type inCluster struct {
	of         Resource
	kubeconfig string // on the host
}

// objectsNamespace is the namespace of the Secrets.
const objectsNamespace = "kube-system"

// secret is the record as a Secret of the cluster.
type secret struct {
	object
	Type string            `json:"type,omitempty"`
	Data map[string][]byte `json:"data,omitempty"`
}

// The keys of the Secret correspond to the files of a record on a host.
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

// recall returns the record and the original state. ok reports whether there is a
// record. If no API server answers, it returns the host's record.
func (c inCluster) recall(ctx context.Context, h *steps.Host) (e Record, first []byte, ok bool, err error) {
	if onHost, _, err := ReadRecord(ctx, h, c.of); err != nil || onHost.Given {
		return Record{}, nil, false, err
	}
	if e, first, ok, err = c.recallFromCluster(ctx, h); err != nil || ok {
		return e, first, ok, err
	}
	return c.recallFromHost(ctx, h)
}

// recallFromCluster returns the record in the cluster. It is not an error if the cluster
// does not answer.
func (c inCluster) recallFromCluster(ctx context.Context, h *steps.Host) (e Record, first []byte, ok bool, err error) {
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

// recallFromHost returns the record on the host.
func (c inCluster) recallFromHost(ctx context.Context, h *steps.Host) (e Record, first []byte, ok bool, err error) {
	if e, ok, err = ReadRecord(ctx, h, c.of); err != nil || !ok {
		return e, nil, false, err
	}
	first, err = h.ReadFile(ctx, recordPath(h, c.of, suffixFirst))
	if errors.Is(err, fs.ErrNotExist) {
		return e, nil, true, nil
	}
	return e, first, true, err
}

// remember writes the record to the host, then to the cluster.
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

// forget deletes the record from the cluster, then from the host. If the cluster refuses
// the deletion, the host's record marks it as void; the Secret goes with the cluster.
func (c inCluster) forget(ctx context.Context, h *steps.Host) error {
	text, err := list([]object{c.secret(h).object})
	if err != nil {
		return err
	}
	_, err = h.Run(ctx, runner.Cmd{Argv: Kubectl(c.kubeconfig, "--request-timeout=10s", "delete", "--ignore-not-found", "-f", "-"), Stdin: bytes.NewReader(text)})
	var cmd *runner.CmdError
	switch {
	case errors.As(err, &cmd):
		_, _, exists, err := c.recallFromCluster(ctx, h)
		if err == nil {
			err = Forget(ctx, h, c.of)
		}
		if err != nil || !exists {
			return err
		}
		return Remember(ctx, h, c.of, Record{Given: true})
	case err != nil:
		return err
	}
	return Forget(ctx, h, c.of)
}
