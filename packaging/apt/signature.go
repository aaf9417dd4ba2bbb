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

// skew is how far ahead another clock may be; apt allows the same.
const skew = 10 * time.Second

// weakest RSA key that counts, in bits.
const weakest = 2048

// clearSigned takes an InRelease apart: the text that is signed, and nothing
// else, and the signatures over it. The two forms differ in what ends a line.
func clearSigned(file []byte) (text, signed []byte, signatures io.Reader, err error) {
	block, rest := clearsign.Decode(file)
	if block == nil {
		return nil, nil, nil, errors.New("it is no signed message")
	}
	// Text before or behind the message would be unsigned, and read by some.
	if !bytes.HasPrefix(file, []byte("-----BEGIN PGP SIGNED MESSAGE-----")) || len(bytes.TrimSpace(rest)) > 0 {
		return nil, nil, nil, errors.New("there is text outside of the signed message")
	}
	text = append(bytes.ReplaceAll(block.Bytes, []byte("\r\n"), []byte("\n")), '\n')
	return text, block.Bytes, block.ArmoredSignature.Body, nil
}

// detached reads signatures that lie beside what they sign, armored or not.
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

// verify wants one good signature over signed, and none that a known key made
// over something else. Signatures of unknown keys beside a good one are
// ordinary: archives sign with the keys of several releases. It gives the
// fingerprints of the keys that signed.
func verify(repository string, signed []byte, signatures io.Reader, ring keyring, now time.Time) ([]string, error) {
	refusal := &Refusal{Repository: repository, Reason: ErrUnsigned, Looked: ring.looked}
	// The reason told is that of the signature that came nearest to being good.
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
		refusal.Advice = "bring the repository's key, and name it with signed-by"
	case errors.Is(refusal.Reason, ErrExpiredKey):
		refusal.Advice = "bring the repository's present key"
	}
	return nil, refusal
}

// check gives who made one signature, or one of the reasons for a Refusal.
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
