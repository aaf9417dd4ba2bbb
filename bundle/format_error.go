package bundle

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/mensylisir/kubexm/bundle/archive"
)

// The codes of a FormatError, in one list with those of an archive: they stay the
// same between versions, and docs/bundle-format.md explains each.
const (
	CodeRoot     archive.Code = "bundle-root"     // index.json or the root index
	CodeDocument archive.Code = "bundle-document" // lock, config, summary, or another document
	CodeTree     archive.Code = "bundle-tree"     // what manifests name is not what is there
	CodeLimit    archive.Code = "bundle-limit"    // larger, deeper or with more in it than a bundle can be
)

// FormatError says how an archive, though readable, is no bundle of kubexm's.
type FormatError struct {
	Code   archive.Code
	What   string
	Advice string // what can be done about it, where that is known; not part of Error's text
}

func (e *FormatError) Error() string {
	return fmt.Sprintf("not a kubexm bundle: %s (%s)", e.What, e.Code)
}

// Unwrap gives the code to errors.Is and errors.As.
func (e *FormatError) Unwrap() error { return e.Code }

// rootError says how a root is not one that this version reads.
func rootError(artifactType string) error {
	family := strings.TrimSuffix(TypeRoot, "1")
	if n, ok := strings.CutPrefix(artifactType, family); ok && artifactType != TypeRoot {
		return &FormatError{Code: CodeRoot, What: fmt.Sprintf("it has the form v%.10s, this version of kubexm reads v1", n),
			Advice: "use the version of kubexm that it was made with, or a newer one"}
	}
	return &FormatError{Code: CodeRoot, What: fmt.Sprintf("root index is a %.80q without %s as its first child", artifactType, typeMetadata)}
}

// strictJSON decodes exactly one value that has no unknown fields.
func strictJSON(text []byte, v any) error {
	if err := plainJSON(text); err != nil {
		return err
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return &FormatError{Code: CodeDocument, What: err.Error()}
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return &FormatError{Code: CodeDocument, What: fmt.Sprintf("something follows the JSON value at byte %d", d.InputOffset())}
	}
	return nil
}
