package bundle

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// FormatError says how an archive, though readable, is no bundle of kubexm's.
type FormatError struct {
	What   string
	Advice string // what can be done about it, where that is known; not part of Error's text
}

func (e *FormatError) Error() string { return "not a kubexm bundle: " + e.What }

// rootError says how a root is not one that this version reads.
func rootError(artifactType string) error {
	family := strings.TrimSuffix(TypeRoot, "1")
	if n, ok := strings.CutPrefix(artifactType, family); ok && artifactType != TypeRoot {
		return &FormatError{What: fmt.Sprintf("it has the form v%.10s, this version of kubexm reads v1", n),
			Advice: "use the version of kubexm that it was made with, or a newer one"}
	}
	return &FormatError{What: fmt.Sprintf("root index is a %.80q without %s as its first child", artifactType, TypeMetadata)}
}

// strictJSON decodes exactly one value that has no unknown fields.
func strictJSON(text []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return &FormatError{What: err.Error()}
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return &FormatError{What: fmt.Sprintf("something follows the JSON value at byte %d", d.InputOffset())}
	}
	return nil
}
