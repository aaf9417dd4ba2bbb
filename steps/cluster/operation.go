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

// Operation is a recorded change of a cluster that has begun and not ended. It is a key
// of the cluster record, and a file on masters and on the workdir host: the files hold it
// before the first API server runs and after the last one was removed.
type Operation struct {
	ID     string         `json:"id"`
	Kind   string         `json:"kind"`             // the name of the pipeline: "create"
	From   string         `json:"from,omitempty"`   // the release before; "" for a first creation
	To     string         `json:"to"`               // the desired release; equal to From if nothing is installed
	Plan   string         `json:"plan,omitempty"`   // "sha256:…" of the plan's text
	Config string         `json:"config,omitempty"` // "sha256:…" of the config without its secrets
	Who    string         `json:"who"`              // user and workdir host: "root@wd1"
	Since  time.Time      `json:"since"`            // UTC, whole seconds
	State  OperationState `json:"state"`
}

// OperationState is the state of an operation.
type OperationState string

// The states of an operation.
const (
	OperationOpen    OperationState = "open"    // a run is working on it, or was interrupted
	OperationWaiting OperationState = "waiting" // it continues when the operator confirms
	OperationFailed  OperationState = "failed"  // its last run failed
)

// operationName is the file of an open operation, in the cluster's folder.
const operationName = "operation.json"

func operationPath(h *steps.Host) string { return path.Join(ownDir(h), operationName) }

// OperationPath returns the path of an open operation's file on the workdir host.
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

// Operation returns the open operation of the cluster record; nil if there is none.
func (r *Recorded) Operation() (*Operation, error) {
	if r.Summary[keyOperation] == "" {
		return nil, nil
	}
	return decodeOperation([]byte(r.Summary[keyOperation]), "the cluster's record")
}

// ReadOperation reads the open operation from a master's file; nil if there is none.
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

// WriteOperation writes an open operation to a master's file. If o is nil it removes the
// file.
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

// ReadWorkdirOperation reads the open operation from the cluster's folder on the workdir host;
// nil if there is none.
func ReadWorkdirOperation(workdir string) (*Operation, error) {
	text, err := os.ReadFile(OperationPath(workdir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return decodeOperation(text, OperationPath(workdir))
}

// WriteWorkdirOperation is WriteOperation for the cluster's folder on the workdir host.
func WriteWorkdirOperation(workdir string, o *Operation) error {
	if o == nil {
		return removeFile(OperationPath(workdir))
	}
	text, err := o.text()
	if err != nil {
		return err
	}
	return writeSecret(OperationPath(workdir), text)
}

// SetOperation writes an open operation into the cluster record, through the master h. If
// o is nil it removes the operation. A cluster without a record does not get one.
func SetOperation(ctx context.Context, h *steps.Host, o *Operation) error {
	r, err := FetchRecorded(ctx, h)
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

// apply applies an object that no host's record lists: it is deleted with the cluster.
func apply(ctx context.Context, h *steps.Host, object []byte) error {
	return kubectl.Send(ctx, h, object, "--request-timeout=10s", "apply", "--server-side", "--force-conflicts", "--field-manager=kubexm", "-f", "-")
}

// operationFile is a master's file of an open operation. Operations create and remove it;
// the deletion of the cluster removes it too.
type operationFile struct{}

func (operationFile) String() string { return "record of an open operation" }

// Needs returns nil.
func (operationFile) Needs() []manifest.Need { return nil }

// Want returns nil: operations write the file.
func (operationFile) Want(context.Context, *steps.Host, bool) (*op.Change, error) { return nil, nil }

// Gone removes the file.
func (operationFile) Gone(ctx context.Context, h *steps.Host) (*op.Change, error) {
	return goneFile(ctx, h, operationPath(h))
}
