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

// The codes of a FormatError. They share one list with those of bundle/archive, stay the
// same between versions, and docs/reference/bundle-format.md explains each.
const (
	CodeRoot     archive.Code = "bundle-root"     // index.json or the root index
	CodeDocument archive.Code = "bundle-document" // lock, config, summary, or another document
	CodeTree     archive.Code = "bundle-tree"     // the blobs do not match the manifests
	CodeLimit    archive.Code = "bundle-limit"    // a size, depth or count exceeds the limits of a bundle
)

// FormatError reports a readable archive that is not a kubexm bundle.
type FormatError struct {
	Code   archive.Code
	What   string
	Advice string // what the user can do, if known; not part of Error's text
}

func (e *FormatError) Error() string {
	return fmt.Sprintf("not a kubexm bundle: %s (%s)", e.What, e.Code)
}

// Unwrap returns the code.
func (e *FormatError) Unwrap() error { return e.Code }

// rootError describes why this version cannot read a root of an artifact type.
func rootError(artifactType string) error {
	family := strings.TrimSuffix(TypeRoot, "1")
	if n, ok := strings.CutPrefix(artifactType, family); ok && artifactType != TypeRoot {
		return &FormatError{Code: CodeRoot, What: fmt.Sprintf("it has format version v%.10s, this version of kubexm reads v1", n),
			Advice: "use the version of kubexm that built it, or a newer one"}
	}
	return &FormatError{Code: CodeRoot, What: fmt.Sprintf("root index is a %.80q without %s as its first child", artifactType, typeMetadata)}
}

// strictJSON decodes exactly one value and rejects unknown fields.
func strictJSON(text []byte, v any) error {
	if err := checkJSON(text); err != nil {
		return err
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return &FormatError{Code: CodeDocument, What: err.Error()}
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return &FormatError{Code: CodeDocument, What: fmt.Sprintf("data follows the JSON value at byte %d", d.InputOffset())}
	}
	return nil
}
