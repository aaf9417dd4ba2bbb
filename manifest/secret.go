package manifest

import (
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"strings"

	"github.com/mensylisir/kubexm/manifest/document"
)

// Secret is a value that is never shown: a password or a passphrase. It holds the text of the
// document, which may be a reference to the value: ${env:NAME} or file:PATH. Printed, logged or
// marshalled it is always ***.
type Secret struct {
	// A pointer, because fmt does not call the methods of a nested value if the verb does not
	// fit the enclosing value (%s of a struct with a pointer to a struct). It then prints
	// fields directly: for a pointer, the address.
	written *string
}

// NewSecret returns a Secret for the text of a document: the value itself, or a reference to
// it.
func NewSecret(written string) Secret { return Secret{written: &written} }

func (s Secret) text() string {
	if s.written == nil {
		return ""
	}
	return *s.written
}

// ErrSecretMissing is the error of a reference to a value that does not exist.
var ErrSecretMissing = errors.New("secret is missing")

// Reveal returns the value. lookup returns environment variables (os.LookupEnv), read reads
// files (os.ReadFile). One trailing newline of a file is removed. An error contains the
// reference, never the value. It is ErrSecretMissing if the referenced variable or file cannot
// be read.
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

// Reference returns the reference to the value, or "" if the document has the value itself.
func (s Secret) Reference() string {
	if _, ok := s.env(); ok {
		return s.text()
	}
	if _, ok := s.file(); ok {
		return s.text()
	}
	return ""
}

// IsZero reports whether the secret is not set.
func (s Secret) IsZero() bool { return s.text() == "" }

// Equal reports whether both have the same text: the same value or the same reference.
func (s Secret) Equal(t Secret) bool { return s.text() == t.text() }

func (s Secret) env() (string, bool) {
	rest, ok := strings.CutPrefix(s.text(), "${env:")
	if !ok {
		return "", false
	}
	name, ok := strings.CutSuffix(rest, "}")
	// A text that is not a valid variable name may be the secret itself, and names are shown.
	return name, ok && envName.MatchString(name)
}

var envName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

func (s Secret) file() (string, bool) { return strings.CutPrefix(s.text(), "file:") }

// String returns ***, or "" if the secret is not set.
func (s Secret) String() string {
	if s.IsZero() {
		return ""
	}
	return document.Mask
}

// GoString returns *** for %#v.
func (s Secret) GoString() string { return s.String() }

// Format writes *** for every verb: fmt would otherwise print the fields.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(s.String())) }

// LogValue returns *** for log/slog.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// MarshalText returns ***.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// MarshalJSON returns ***.
func (s Secret) MarshalJSON() ([]byte, error) { return []byte(`"` + s.String() + `"`), nil }

// MarshalYAML returns ***.
func (s Secret) MarshalYAML() (any, error) { return s.String(), nil }
