package sign

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"

	"github.com/sigstore/cosign/v2/pkg/cosign"
	"github.com/sigstore/sigstore/pkg/cryptoutils"
	"github.com/sigstore/sigstore/pkg/cryptoutils/goodkey"
	"github.com/sigstore/sigstore/pkg/signature"
)

// maxKeyFile is the maximum size of a key or a certificate.
const maxKeyFile = 64 << 10

// Pair is a new key pair; each key is the content of its file.
type Pair struct {
	Private []byte // PEM "ENCRYPTED SIGSTORE PRIVATE KEY": PKCS #8 under scrypt and secretbox
	Public  []byte // PEM "PUBLIC KEY"
}

// Generate creates an ECDSA P-256 key pair as `cosign generate-key-pair` does. The private
// key is encrypted with password, which may be empty.
func Generate(password []byte) (Pair, error) {
	made, err := cosign.GenerateKeyPair(func(bool) ([]byte, error) { return password, nil })
	if err != nil {
		return Pair{}, err
	}
	return Pair{Private: made.PrivateBytes, Public: made.PublicBytes}, nil
}

// Signer signs with one private key.
type Signer struct {
	key    signature.SignerVerifier
	public *ecdsa.PublicKey
}

// LoadSigner decrypts a private key in cosign's format. The error for a file that is not
// such a key is ErrKeyFile, for a wrong password ErrPassword.
func LoadSigner(private, password []byte) (*Signer, error) {
	block, _ := pem.Decode(private)
	if len(private) > maxKeyFile || block == nil {
		return nil, fault(ErrKeyFile, nil, "not a private key in PEM form")
	}
	if block.Type != cosign.SigstorePrivateKeyPemType && block.Type != cosign.CosignPrivateKeyPemType {
		return nil, fault(ErrKeyFile, nil, "a PEM block %.40q, not %q", block.Type, cosign.SigstorePrivateKeyPemType)
	}
	key, err := cosign.LoadPrivateKey(private, password, nil)
	if err != nil {
		return nil, fault(ErrPassword, err, "the private key cannot be decrypted")
	}
	public, err := key.PublicKey()
	if err != nil {
		return nil, fault(ErrKeyFile, err, "a private key without a public key")
	}
	ec, ok := public.(*ecdsa.PublicKey)
	if !ok || ec.Curve != elliptic.P256() {
		return nil, fault(ErrKeyFile, nil, "a private key of type %T, not ECDSA on P-256", public)
	}
	return &Signer{key: key, public: ec}, nil
}

// KeyID is the base64 of the SHA-256 of the public key's PKIX form. cosign writes it into a
// bundle as the key hint.
func (s *Signer) KeyID() string { return keyID(s.public) }

// PublicKey returns the public key as the content of its file.
func (s *Signer) PublicKey() ([]byte, error) { return cryptoutils.MarshalPublicKeyToPEM(s.public) }

// keyID returns "" for a key without a PKIX form.
func keyID(public crypto.PublicKey) string {
	der, err := x509.MarshalPKIXPublicKey(public)
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(der)
	return base64.StdEncoding.EncodeToString(sum[:])
}

// loadVerifier reads a public key of any kind that Sigstore supports.
func loadVerifier(public []byte) (signature.Verifier, string, error) {
	if len(public) > maxKeyFile {
		return nil, "", fault(ErrKeyFile, nil, "not a public key: %d bytes", len(public))
	}
	if block, _ := pem.Decode(public); block != nil && block.Type != "PUBLIC KEY" {
		return nil, "", fault(ErrKeyFile, nil, "a PEM block %.40q, not \"PUBLIC KEY\"", block.Type)
	}
	key, err := cryptoutils.UnmarshalPEMToPublicKey(public)
	if err != nil {
		return nil, "", fault(ErrKeyFile, err, "not a public key")
	}
	if err := goodkey.ValidatePubKey(key); err != nil {
		return nil, "", fault(ErrKeyFile, err, "a public key that is not safe to use")
	}
	v, err := signature.LoadDefaultVerifier(key)
	if err != nil {
		return nil, "", fault(ErrKeyFile, err, "a public key of an unknown kind")
	}
	return v, keyID(key), nil
}
