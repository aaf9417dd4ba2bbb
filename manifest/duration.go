package manifest

import (
	"fmt"
	"time"

	"github.com/mensylisir/kubexm/manifest/document"
)

// Duration is a span of time, written as in 15s or 2m30s.
type Duration time.Duration

// String gives the form that UnmarshalText reads.
func (d Duration) String() string { return time.Duration(d).String() }

// MarshalText writes the form that UnmarshalText reads.
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText reads a span of time as in 15s or 2m30s.
func (d *Duration) UnmarshalText(b []byte) error {
	v, err := time.ParseDuration(string(b))
	if err != nil {
		return fmt.Errorf("%q is no time span, as in 15s or 2m30s", document.Shown(string(b)))
	}
	*d = Duration(v)
	return nil
}
