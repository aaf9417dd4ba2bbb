package bundle

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// FormatError says how an archive, though readable, is no bundle of kubexm's.
type FormatError struct{ What string }

func (e *FormatError) Error() string { return "not a kubexm bundle: " + e.What }

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
