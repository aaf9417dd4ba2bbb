package manifest

import (
	"fmt"
	"time"

	"github.com/mensylisir/kubexm/manifest/document"
)

// Duration is a time span, for example 15s or 2m30s.
type Duration time.Duration

// String returns the form that UnmarshalText reads.
func (d Duration) String() string { return time.Duration(d).String() }

// MarshalText writes the form that UnmarshalText reads.
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText reads a time span in the syntax of time.ParseDuration, for example 2m30s.
func (d *Duration) UnmarshalText(b []byte) error {
	v, err := time.ParseDuration(string(b))
	if err != nil {
		return fmt.Errorf("%q is not a time span such as 15s or 2m30s", document.Redact(string(b)))
	}
	*d = Duration(v)
	return nil
}
