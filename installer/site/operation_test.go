package site

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/mensylisir/kubexm/installer"
	"github.com/mensylisir/kubexm/manifest/refusal"
	"github.com/mensylisir/kubexm/steps/cluster"
)

// TestAnotherOperationIsRefused: with whose it is, since when, and what to do.
func TestAnotherOperationIsRefused(t *testing.T) {
	since := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	for state, says := range map[cluster.OperationState]string{
		cluster.OperationOpen:    "operation op-7 (upgrade) is open; anna@wd2 started it at 2026-03-04T05:06:07Z",
		cluster.OperationFailed:  "operation op-7 (upgrade) has failed and is still open; anna@wd2 started it at 2026-03-04T05:06:07Z",
		cluster.OperationWaiting: "operation op-7 (upgrade) waits to be continued; anna@wd2 started it at 2026-03-04T05:06:07Z",
	} {
		err := otherOperation(&installer.OperationError{Operation: cluster.Operation{ID: "op-7", Kind: "upgrade", Who: "anna@wd2", Since: since, State: state}})
		c, ok := errors.AsType[*refusal.Error](err)
		if !ok || c.Kind != refusal.Hosts || err.Error() != says || !strings.Contains(c.Advice, "kubexm operation abandon") {
			t.Errorf("%v: %+v", err, c)
		}
	}
	if err := errors.New("no luck"); !errors.Is(otherOperation(err), err) {
		t.Error("another error is another")
	}
}
