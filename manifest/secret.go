package manifest

import (
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"strings"

	"github.com/mensylisir/kubexm/manifest/document"
)

// Secret is a value that is never shown: a password or a passphrase. It holds
// what was written, which may be a reference to the value: ${env:NAME} or
// file:PATH. However it is printed, logged or marshalled, it gives ***.
type Secret struct {
	// A pointer, because fmt passes by every method of a value when a verb does
	// not fit what holds it (%s of a struct with a pointer to a struct), and then
	// prints fields as they are: of a pointer within, the address.
	written *string
}

// NewSecret makes a Secret of what a document would hold: the value itself or
// a reference to it.
func NewSecret(written string) Secret { return Secret{written: &written} }

func (s Secret) text() string {
	if s.written == nil {
		return ""
	}
	return *s.written
}

// ErrSecretMissing marks a reference to a value that is not there.
var ErrSecretMissing = errors.New("secret is missing")

// Reveal gives the value. lookup finds environment variables (os.LookupEnv),
// read reads files (os.ReadFile); one trailing newline of a file is dropped.
// An error names the reference, never the value, and is ErrSecretMissing where
// nothing stands behind the reference.
func (s Secret) Reveal(lookup func(string) (string, bool), read func(string) ([]byte, error)) (string, error) {
	if name, ok := s.env(); ok {
		v, ok := lookup(name)
		if !ok {
			return "", fmt.Errorf("%w: environment variable %s is not set", ErrSecretMissing, name)
		}
		return v, nil
	}
	if path, ok := s.file(); ok {
		b, err := read(path)
		if err != nil {
			return "", fmt.Errorf("%w: %w", ErrSecretMissing, err)
		}
		return strings.TrimSuffix(strings.TrimSuffix(string(b), "\n"), "\r"), nil
	}
	return s.text(), nil
}

// Reference gives what was written where it is a reference, and "" where it is
// the value itself.
func (s Secret) Reference() string {
	if _, ok := s.env(); ok {
		return s.text()
	}
	if _, ok := s.file(); ok {
		return s.text()
	}
	return ""
}

// IsZero reports whether nothing was written.
func (s Secret) IsZero() bool { return s.text() == "" }

// Equal reports whether the same was written.
func (s Secret) Equal(t Secret) bool { return s.text() == t.text() }

func (s Secret) env() (string, bool) {
	rest, ok := strings.CutPrefix(s.text(), "${env:")
	if !ok {
		return "", false
	}
	name, ok := strings.CutSuffix(rest, "}")
	// What no shell would take for a name may be the secret itself, and names are shown.
	return name, ok && envName.MatchString(name)
}

var envName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

func (s Secret) file() (string, bool) { return strings.CutPrefix(s.text(), "file:") }

// String gives ***, and "" where nothing was written.
func (s Secret) String() string {
	if s.IsZero() {
		return ""
	}
	return document.Mask
}

// GoString gives *** for %#v.
func (s Secret) GoString() string { return s.String() }

// Format gives *** for every verb: fmt would else print the fields.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(s.String())) }

// LogValue gives *** to log/slog.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// MarshalText gives ***.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// MarshalJSON gives ***.
func (s Secret) MarshalJSON() ([]byte, error) { return []byte(`"` + s.String() + `"`), nil }

// MarshalYAML gives ***.
func (s Secret) MarshalYAML() (any, error) { return s.String(), nil }
