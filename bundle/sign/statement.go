package sign

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// StatementType is the type of every statement created here. PayloadType is the payload
// type of its envelope:
// https://github.com/in-toto/attestation/blob/main/spec/v1/statement.md
const (
	StatementType = "https://in-toto.io/Statement/v1"
	PayloadType   = "application/vnd.in-toto+json"

	statementType01 = "https://in-toto.io/Statement/v0.1" // written by cosign; the fields used here have the same meaning
)

// Statement is an in-toto statement: a predicate about subjects that are identified by
// digest.
type Statement struct {
	Type          string          `json:"_type"`
	Subject       []Subject       `json:"subject"`
	PredicateType string          `json:"predicateType"`
	Predicate     json.RawMessage `json:"predicate"`
}

// Subject is an artifact that a statement is about.
type Subject struct {
	Name   string            `json:"name,omitempty"`
	Digest map[string]string `json:"digest"` // algorithm (sha256) to lower-case hex
}

// NewStatement returns a statement with predicate, encoded as JSON, about one subject with
// the digest sha256:<hex>.
func NewStatement(name, digest, predicateType string, predicate any) (Statement, error) {
	sum, err := sha256Hex(digest)
	if err != nil {
		return Statement{}, err
	}
	text, err := json.Marshal(predicate)
	if err != nil {
		return Statement{}, fmt.Errorf("encode predicate: %w", err)
	}
	return Statement{
		Type:          StatementType,
		Subject:       []Subject{{Name: name, Digest: map[string]string{"sha256": sum}}},
		PredicateType: predicateType,
		Predicate:     text,
	}, nil
}

// About reports whether digest, in the form sha256:<hex>, is one of the subjects.
func (s Statement) About(digest string) bool {
	sum, err := sha256Hex(digest)
	if err != nil {
		return false
	}
	for _, x := range s.Subject {
		if x.Digest["sha256"] == sum {
			return true
		}
	}
	return false
}

// Decode decodes the predicate into v and rejects fields that v does not have.
func (s Statement) Decode(v any) error {
	d := json.NewDecoder(bytes.NewReader(s.Predicate))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return fault(ErrPayload, err, "predicate of %.120q", s.PredicateType)
	}
	return nil
}

// sha256Hex returns the hex part of "sha256:<hex>".
func sha256Hex(digest string) (string, error) {
	sum, ok := strings.CutPrefix(digest, "sha256:")
	if raw, err := hex.DecodeString(sum); !ok || err != nil || len(raw) != 32 || sum != strings.ToLower(sum) {
		return "", fmt.Errorf("%.80q is not a digest of the form sha256:<64 lower-case hex digits>", digest)
	}
	return sum, nil
}

// rawDigest returns the bytes of "sha256:<hex>".
func rawDigest(digest string) ([]byte, error) {
	sum, err := sha256Hex(digest)
	if err != nil {
		return nil, err
	}
	return hex.DecodeString(sum)
}

// decodeStatement decodes the payload of an envelope.
func decodeStatement(payload []byte) (Statement, error) {
	var s Statement
	d := json.NewDecoder(bytes.NewReader(payload)) // other fields are ignored, as the specification requires
	if err := d.Decode(&s); err != nil {
		return s, fault(ErrPayload, err, "the signed payload is not an in-toto statement")
	}
	switch _, err := d.Token(); {
	case !errors.Is(err, io.EOF):
		return s, fault(ErrPayload, nil, "data follows the statement")
	case s.Type != StatementType && s.Type != statementType01:
		return s, fault(ErrPayload, nil, "a statement of type %.120q, not %q", s.Type, StatementType)
	case len(s.Subject) == 0:
		return s, fault(ErrPayload, nil, "a statement without subjects")
	}
	return s, nil
}
