package sign

import (
	"bytes"
	"crypto"
	"encoding/json"
	"fmt"

	cosignbundle "github.com/sigstore/cosign/v2/pkg/cosign/bundle"
	protobundle "github.com/sigstore/protobuf-specs/gen/pb-go/bundle/v1"
	protocommon "github.com/sigstore/protobuf-specs/gen/pb-go/common/v1"
	"github.com/sigstore/sigstore/pkg/signature/dsse"
	"github.com/sigstore/sigstore/pkg/signature/options"
	"google.golang.org/protobuf/encoding/protojson"
)

// Sign signs a statement. It returns a Sigstore bundle with the statement in a DSSE
// envelope, as one line of JSON without a line feed.
func (s *Signer) Sign(st Statement) ([]byte, error) {
	payload, err := json.Marshal(st)
	if err != nil {
		return nil, fmt.Errorf("encode statement: %w", err)
	}
	return s.sign(payload, PayloadType)
}

func (s *Signer) sign(payload []byte, payloadType string) ([]byte, error) {
	envelope, err := dsse.WrapSigner(s.key, payloadType).SignMessage(bytes.NewReader(payload))
	if err != nil {
		return nil, fmt.Errorf("sign: %w", err)
	}
	public, err := s.PublicKey()
	if err != nil {
		return nil, err
	}
	made, err := cosignbundle.MakeNewBundle(s.public, nil, payload, envelope, public, nil)
	if err != nil {
		return nil, fmt.Errorf("create a Sigstore bundle: %w", err)
	}
	return line(made)
}

// SignDigest creates a detached signature of the file with this digest, in the form
// sha256:<hex>. The result is a Sigstore bundle that `cosign verify-blob` accepts.
func (s *Signer) SignDigest(digest string) ([]byte, error) {
	raw, err := rawDigest(digest)
	if err != nil {
		return nil, err
	}
	made, err := s.key.SignMessage(nil, options.WithDigest(raw), options.WithCryptoSignerOpts(crypto.SHA256))
	if err != nil {
		return nil, fmt.Errorf("sign: %w", err)
	}
	b, err := cosignbundle.MakeProtobufBundle(s.KeyID(), nil, nil, nil)
	if err != nil {
		return nil, fmt.Errorf("create a Sigstore bundle: %w", err)
	}
	b.Content = &protobundle.Bundle_MessageSignature{MessageSignature: &protocommon.MessageSignature{
		MessageDigest: &protocommon.HashOutput{Algorithm: protocommon.HashAlgorithm_SHA2_256, Digest: raw},
		Signature:     made,
	}}
	text, err := protojson.Marshal(b)
	if err != nil {
		return nil, fmt.Errorf("encode a Sigstore bundle: %w", err)
	}
	return line(text)
}

// line removes the spaces that protojson inserts at random.
func line(text []byte) ([]byte, error) {
	var b bytes.Buffer
	if err := json.Compact(&b, text); err != nil {
		return nil, fmt.Errorf("encode a Sigstore bundle: %w", err)
	}
	return b.Bytes(), nil
}
