package main

import (
	"errors"
	"fmt"
	"testing"

	"github.com/mensylisir/kubexm/bundle/fetch"
	"github.com/mensylisir/kubexm/installer/report"
	"github.com/mensylisir/kubexm/packaging/apt"
)

// A repository that is not what it has to be ends a command as other content does.
func TestRefusedPackages(t *testing.T) {
	for _, err := range []error{
		&apt.Refusal{Repository: "https://deb.example/debian bookworm", Reason: apt.ErrStale},
		&fetch.UnverifiedError{Repository: "rocky-9", Addresses: []string{"rpm.example"}},
		&fetch.MetadataError{Repository: "debian-12", Path: "Packages", Want: "a", Got: "b"},
	} {
		err = fmt.Errorf("pin: %w", errors.Join(errors.New("another"), err))
		if code := exitCode(t.Context(), report.Refused(err)); code != exitRefused {
			t.Errorf("%v: exit code %d", err, code)
		}
	}
	if code := exitCode(t.Context(), report.Refused(errors.New("no such package"))); code != exitFailed {
		t.Errorf("exit code %d", code)
	}
}
