package apt

import (
	"bytes"
	"crypto"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/armor"
	"github.com/ProtonMail/go-crypto/openpgp/clearsign"
	pgperrors "github.com/ProtonMail/go-crypto/openpgp/errors"
	"github.com/ProtonMail/go-crypto/openpgp/packet"
)

// skew is the accepted clock skew, the same as in apt.
const skew = 10 * time.Second

// weakest is the minimum size of an RSA key in bits.
const weakest = 2048

// clearSigned splits an InRelease file into the signed text and the signatures. The text
// is returned in two forms with different line endings.
func clearSigned(file []byte) (text, signed []byte, signatures io.Reader, err error) {
	block, rest := clearsign.Decode(file)
	if block == nil {
		return nil, nil, nil, errors.New("it is not a signed message")
	}
	// Text before or after the message is unsigned, but some readers would accept it.
	if !bytes.HasPrefix(file, []byte("-----BEGIN PGP SIGNED MESSAGE-----")) || len(bytes.TrimSpace(rest)) > 0 {
		return nil, nil, nil, errors.New("it contains text outside of the signed message")
	}
	text = append(bytes.ReplaceAll(block.Bytes, []byte("\r\n"), []byte("\n")), '\n')
	return text, block.Bytes, block.ArmoredSignature.Body, nil
}

// detached reads detached signatures, armored or binary.
func detached(file []byte) (io.Reader, error) {
	if !bytes.Contains(file, []byte("-----BEGIN PGP SIGNATURE-----")) {
		return bytes.NewReader(file), nil
	}
	block, err := armor.Decode(bytes.NewReader(file))
	if err != nil {
		return nil, err
	}
	return block.Body, nil
}

// verify requires one valid signature over signed, and no invalid signature of a known
// key. Signatures of unknown keys beside a valid one are accepted, since archives sign
// with the keys of several releases. It returns the fingerprints of the signing keys.
func verify(repository string, signed []byte, signatures io.Reader, ring keyring, now time.Time) ([]string, error) {
	refusal := &Refusal{Repository: repository, Reason: ErrUnsigned, Looked: ring.looked}
	// The reported reason is that of the signature that passed the most checks.
	nearer := func(reason error) bool {
		order := map[error]int{ErrUnsigned: 0, ErrUnknownKey: 1, ErrWeak: 2, ErrFuture: 3, ErrExpiredKey: 4}
		return order[reason] > order[refusal.Reason]
	}
	var good []string
	packets := packet.NewReader(signatures)
	for {
		p, err := packets.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, &Refusal{Repository: repository, Reason: ErrMalformed, Detail: "its signature: " + err.Error()}
		}
		sig, ok := p.(*packet.Signature)
		if !ok || sig.IssuerKeyId == nil {
			continue
		}
		id := fmt.Sprintf("%016X", *sig.IssuerKeyId)
		signer, reason := check(sig, signed, ring.keys, now)
		switch {
		case reason == nil:
			good = append(good, fmt.Sprintf("%X", signer.PrimaryKey.Fingerprint))
			continue
		case errors.Is(reason, ErrBadSignature):
			return nil, &Refusal{Repository: repository, Reason: ErrBadSignature, Keys: []string{id}}
		case nearer(reason):
			refusal.Reason, refusal.Keys = reason, nil
		}
		if errors.Is(reason, refusal.Reason) {
			refusal.Keys = append(refusal.Keys, id)
		}
	}
	if len(good) > 0 {
		return good, nil
	}
	switch {
	case errors.Is(refusal.Reason, ErrUnknownKey):
		refusal.Advice = "copy the repository's key to this machine, and specify it with signed-by"
	case errors.Is(refusal.Reason, ErrExpiredKey):
		refusal.Advice = "copy the repository's current key to this machine"
	}
	return nil, refusal
}

// check returns the signing key of one signature, or one of the reasons for a Refusal.
func check(sig *packet.Signature, signed []byte, keys openpgp.EntityList, now time.Time) (*openpgp.Entity, error) {
	known := keys.KeysByIdUsage(*sig.IssuerKeyId, packet.KeyFlagSign)
	if len(known) == 0 {
		return nil, ErrUnknownKey
	}
	if weakHash(sig.Hash) || slices.ContainsFunc(known, func(k openpgp.Key) bool { return weakKey(k.PublicKey) }) {
		return nil, ErrWeak
	}
	var alone bytes.Buffer
	if err := sig.Serialize(&alone); err != nil {
		return nil, ErrBadSignature
	}
	at := now.Add(skew)
	config := &packet.Config{Time: func() time.Time { return at }}
	_, signer, err := openpgp.VerifyDetachedSignature(keys, bytes.NewReader(signed), &alone, config)
	switch {
	case err == nil:
		return signer, nil
	case errors.Is(err, pgperrors.ErrSignatureExpired) && sig.CreationTime.After(at):
		return nil, ErrFuture
	case errors.Is(err, pgperrors.ErrKeyExpired), errors.Is(err, pgperrors.ErrSignatureExpired), errors.Is(err, pgperrors.ErrKeyRevoked):
		return nil, ErrExpiredKey
	}
	return nil, ErrBadSignature
}

func weakHash(h crypto.Hash) bool {
	switch h {
	case crypto.SHA256, crypto.SHA384, crypto.SHA512, crypto.SHA3_256, crypto.SHA3_512:
		return false
	}
	return true
}

func weakKey(k *packet.PublicKey) bool {
	switch k.PubKeyAlgo {
	case packet.PubKeyAlgoRSA, packet.PubKeyAlgoRSASignOnly:
		bits, err := k.BitLength()
		return err != nil || bits < weakest
	case packet.PubKeyAlgoECDSA, packet.PubKeyAlgoEdDSA, packet.PubKeyAlgoEd25519, packet.PubKeyAlgoEd448:
		return false
	}
	return true
}
