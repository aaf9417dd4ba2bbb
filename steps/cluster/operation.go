package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"time"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/kubectl"
	"github.com/mensylisir/kubexm/steps/op"
)

// Operation is a change of a cluster that has begun and not ended. It is a key of the
// cluster's record, and a file on masters and on this machine: the files carry it where
// there is no API server yet, or none any more.
type Operation struct {
	ID     string         `json:"id"`
	Kind   string         `json:"kind"`             // the name of the pipeline: "create"
	From   string         `json:"from,omitempty"`   // the release before; "" for a first creation
	To     string         `json:"to"`               // the release that is wanted; the same where nothing is installed
	Plan   string         `json:"plan,omitempty"`   // "sha256:…" of the plan's text
	Config string         `json:"config,omitempty"` // "sha256:…" of the config without its secrets
	Who    string         `json:"who"`              // user and machine: "root@wd1"
	Since  time.Time      `json:"since"`            // UTC, whole seconds
	State  OperationState `json:"state"`
}

// OperationState is how an operation stands.
type OperationState string

// The states of an operation.
const (
	OperationOpen    OperationState = "open"    // a run works on it, or was broken off
	OperationWaiting OperationState = "waiting" // it goes on when somebody says so
	OperationFailed  OperationState = "failed"  // its last run failed
)

// operationName is the file of an open operation, in the cluster's folder.
const operationName = "operation.json"

func operationPath(h *steps.Host) string { return path.Join(ownDir(h), operationName) }

// OperationPath is the file of an open operation in the cluster's folder on this machine.
func OperationPath(workdir string) string { return filepath.Join(workdir, operationName) }

func decodeOperation(text []byte, at string) (*Operation, error) {
	o := &Operation{}
	if err := json.Unmarshal(text, o); err != nil {
		return nil, fmt.Errorf("open operation in %s: %w", at, err)
	}
	return o, nil
}

func (o *Operation) text() ([]byte, error) {
	text, err := json.MarshalIndent(o, "", "  ")
	return append(text, '\n'), err
}

// Operation gives the operation that is open as the cluster's record says it; nil where
// none is.
func (r *Recorded) Operation() (*Operation, error) {
	if r.Summary[keyOperation] == "" {
		return nil, nil
	}
	return decodeOperation([]byte(r.Summary[keyOperation]), "the cluster's record")
}

// ReadOperation reads the operation that is open as a master's file says it; nil where
// none is.
func ReadOperation(ctx context.Context, h *steps.Host) (*Operation, error) {
	text, err := h.ReadFile(ctx, operationPath(h))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return decodeOperation(text, operationPath(h))
}

// WriteOperation writes an open operation to a master; nil says that none is open.
func WriteOperation(ctx context.Context, h *steps.Host, o *Operation) error {
	if o == nil {
		if err := h.Remove(ctx, operationPath(h)); err != nil {
			return err
		}
		return op.Prune(ctx, h)
	}
	text, err := o.text()
	if err != nil {
		return err
	}
	return writeOwn(ctx, h, operationPath(h), text)
}

// OperationHere reads the operation that is open as the cluster's folder says it; nil
// where none is.
func OperationHere(workdir string) (*Operation, error) {
	text, err := os.ReadFile(OperationPath(workdir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return decodeOperation(text, OperationPath(workdir))
}

// WriteOperationHere is WriteOperation for the cluster's folder.
func WriteOperationHere(workdir string, o *Operation) error {
	if o == nil {
		return gone(OperationPath(workdir))
	}
	text, err := o.text()
	if err != nil {
		return err
	}
	return keep(OperationPath(workdir), text)
}

// SetOperation writes an open operation into the record of the cluster that h is a master
// of; nil says that none is open. A cluster without a record stays without.
func SetOperation(ctx context.Context, h *steps.Host, o *Operation) error {
	r, err := AskRecorded(ctx, h)
	if err != nil || r == nil {
		return err
	}
	text := ""
	if o != nil {
		line, err := json.Marshal(o)
		if err != nil {
			return err
		}
		text = string(line)
	}
	if r.Summary[keyOperation] == text {
		return nil
	}
	r.Summary = maps.Clone(r.Summary)
	r.Summary[keyOperation] = text
	object, err := r.object()
	if err != nil {
		return err
	}
	return apply(ctx, h, object)
}

// apply brings an object about that is on record nowhere: it goes with the cluster.
func apply(ctx context.Context, h *steps.Host, object []byte) error {
	return kubectl.Send(ctx, h, object, "--request-timeout=10s", "apply", "--server-side", "--force-conflicts", "--field-manager=kubexm", "-f", "-")
}

// operationFile is a master's file of an open operation. It comes and goes with
// operations; a deletion ends them all.
type operationFile struct{}

func (operationFile) String() string { return "record of an open operation" }

// Needs gives none.
func (operationFile) Needs() []manifest.Need { return nil }

// Want has nothing to do: the file comes with an operation.
func (operationFile) Want(context.Context, *steps.Host, bool) (*op.Change, error) { return nil, nil }

// Gone removes the file.
func (operationFile) Gone(ctx context.Context, h *steps.Host) (*op.Change, error) {
	return goneFile(ctx, h, operationPath(h))
}
