package sign

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	ct "github.com/google/certificate-transparency-go"
	"github.com/google/certificate-transparency-go/tls"
	"github.com/google/certificate-transparency-go/x509util"
	"github.com/secure-systems-lab/go-securesystemslib/dsse"
	protobundle "github.com/sigstore/protobuf-specs/gen/pb-go/bundle/v1"
	protocommon "github.com/sigstore/protobuf-specs/gen/pb-go/common/v1"
	protodsse "github.com/sigstore/protobuf-specs/gen/pb-go/dsse"
	protorekor "github.com/sigstore/protobuf-specs/gen/pb-go/rekor/v1"
	"github.com/sigstore/sigstore-go/pkg/root"
	"github.com/sigstore/sigstore-go/pkg/testing/ca"
	"github.com/sigstore/sigstore-go/pkg/tlog"
	"github.com/sigstore/sigstore/pkg/signature"
	sigdsse "github.com/sigstore/sigstore/pkg/signature/dsse"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/mensylisir/kubexm/bundle"
)

// sigstore is a Sigstore of this process: an authority, a log of its certificates,
// a log of signatures, and a clock.
type sigstore struct {
	*ca.VirtualSigstore // the log of signatures and the clock
	authority           *root.FulcioCertificateAuthority
	key                 *ecdsa.PrivateKey // of the authority's intermediate
	ctlog               *ecdsa.PrivateKey
}

const (
	name   = "release@example.org"
	issuer = "https://accounts.example.org"
)

func newSigstore(t *testing.T) *sigstore {
	t.Helper()
	s := &sigstore{VirtualSigstore: must(ca.NewVirtualSigstore())(t)}
	rootCert, rootKey, err := ca.GenerateRootCa()
	if err != nil {
		t.Fatal(err)
	}
	intermediate, key, err := ca.GenerateFulcioIntermediate(rootCert, rootKey)
	if err != nil {
		t.Fatal(err)
	}
	s.key, s.ctlog = key, must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	s.authority = &root.FulcioCertificateAuthority{
		Root: rootCert, Intermediates: []*x509.Certificate{intermediate}, URI: "https://fulcio.example.org",
		ValidityPeriodStart: time.Now().Add(-time.Hour), ValidityPeriodEnd: time.Now().Add(time.Hour),
	}
	return s
}

func logID(t *testing.T, public crypto.PublicKey) [32]byte {
	t.Helper()
	return sha256.Sum256(must(x509.MarshalPKIXPublicKey(public))(t))
}

// trustedRoot is its trusted_root.json.
func (s *sigstore) trustedRoot(t *testing.T) []byte {
	t.Helper()
	id := logID(t, s.ctlog.Public())
	ctlogs := map[string]*root.TransparencyLog{hex.EncodeToString(id[:]): {
		BaseURL: "https://ct.example.org", ID: id[:], ValidityPeriodStart: time.Now().Add(-time.Hour),
		HashFunc: crypto.SHA256, PublicKey: s.ctlog.Public(), SignatureHashFunc: crypto.SHA256,
	}}
	logs := s.RekorLogs()
	for key, l := range logs {
		l.ID = must(hex.DecodeString(key))(t)
	}
	made := must(root.NewTrustedRoot(root.TrustedRootMediaType01, []root.CertificateAuthority{s.authority}, ctlogs, s.TimestampingAuthorities(), logs))(t)
	return must(made.MarshalJSON())(t)
}

// certificate is a certificate for a new key, which the log of certificates knows
// where logged says so.
func (s *sigstore) certificate(t *testing.T, logged bool) (*x509.Certificate, *ecdsa.PrivateKey) {
	t.Helper()
	key := must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(7), EmailAddresses: []string{name}, NotBefore: time.Now().Add(-time.Minute), NotAfter: time.Now().Add(10 * time.Minute),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageCodeSigning},
		ExtraExtensions: []pkix.Extension{{Id: asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 57264, 1, 1}, Value: []byte(issuer)}},
	}
	parent := s.authority.Intermediates[0]
	cert := must(x509.ParseCertificate(must(x509.CreateCertificate(rand.Reader, template, parent, key.Public(), s.key))(t)))(t)
	if !logged {
		return cert, key
	}
	// The log signs the certificate as it is without the log's signature in it.
	sct := ct.SignedCertificateTimestamp{SCTVersion: ct.V1, LogID: ct.LogID{KeyID: logID(t, s.ctlog.Public())}, Timestamp: uint64(time.Now().UnixMilli())}
	entry := ct.LogEntry{Leaf: ct.MerkleTreeLeaf{Version: ct.V1, LeafType: ct.TimestampedEntryLeafType, TimestampedEntry: &ct.TimestampedEntry{
		Timestamp: sct.Timestamp, EntryType: ct.PrecertLogEntryType,
		PrecertEntry: &ct.PreCert{IssuerKeyHash: sha256.Sum256(parent.RawSubjectPublicKeyInfo), TBSCertificate: cert.RawTBSCertificate},
	}}}
	sct.Signature = ct.DigitallySigned(must(tls.CreateSignature(*s.ctlog, tls.SHA256, must(ct.SerializeSCTSignatureInput(sct, entry))(t)))(t))
	list := must(tls.Marshal(*must(x509util.MarshalSCTsIntoSCTList([]*ct.SignedCertificateTimestamp{&sct}))(t)))(t)
	template.ExtraExtensions = append(template.ExtraExtensions, pkix.Extension{Id: asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 11129, 2, 4, 2}, Value: must(asn1.Marshal(list))(t)})
	return must(x509.ParseCertificate(must(x509.CreateCertificate(rand.Reader, template, parent, key.Public(), s.key))(t)))(t), key
}

// lacks says what a signature comes without.
type lacks struct{ certificateLog, log, time bool }

// sign makes a keyless signature of a statement, as cosign does.
func (s *sigstore) sign(t *testing.T, st Statement, without lacks) []byte {
	t.Helper()
	cert, key := s.certificate(t, !without.certificateLog)
	sv := must(signature.LoadECDSASignerVerifier(key, crypto.SHA256))(t)
	signer := must(dsse.NewEnvelopeSigner(&sigdsse.SignerAdapter{SignatureSigner: sv, Pub: key.Public()}))(t)
	payload := must(json.Marshal(st))(t)
	envelope := must(signer.SignPayload(t.Context(), PayloadType, payload))(t)
	sig := must(base64.StdEncoding.DecodeString(envelope.Signatures[0].Sig))(t)
	material := &protobundle.VerificationMaterial{
		Content: &protobundle.VerificationMaterial_Certificate{Certificate: &protocommon.X509Certificate{RawBytes: cert.Raw}},
	}
	if !without.log {
		entry := must(s.GenerateTlogEntry(cert, envelope, sig, time.Now().Unix(), true))(t)
		logged := entry.TransparencyLogEntry()
		logged.KindVersion = &protorekor.KindVersion{Kind: "dsse", Version: "0.0.1"}
		logged.InclusionPromise = &protorekor.InclusionPromise{SignedEntryTimestamp: must(s.RekorSignPayload(tlog.RekorPayload{
			Body: base64.StdEncoding.EncodeToString(logged.CanonicalizedBody), IntegratedTime: logged.IntegratedTime, LogID: hex.EncodeToString(logged.LogId.KeyId),
		}))(t)}
		material.TlogEntries = []*protorekor.TransparencyLogEntry{logged}
	}
	if !without.time {
		material.TimestampVerificationData = &protobundle.TimestampVerificationData{
			Rfc3161Timestamps: []*protocommon.RFC3161SignedTimestamp{{SignedTimestamp: must(s.TimestampResponse(sig))(t)}},
		}
	}
	return must(line(must(protojson.Marshal(&protobundle.Bundle{
		MediaType: "application/vnd.dev.sigstore.bundle.v0.3+json", VerificationMaterial: material,
		Content: &protobundle.Bundle_DsseEnvelope{DsseEnvelope: &protodsse.Envelope{
			Payload: payload, PayloadType: PayloadType, Signatures: []*protodsse.Signature{{Sig: sig}},
		}},
	}))(t)))(t)
}

func TestKeyless(t *testing.T) {
	s, elsewhere := newSigstore(t), newSigstore(t)
	st := must(NewStatement("demo", aRoot.Digest.String(), bundle.TypeClaim, claim))(t)
	good := s.sign(t, st, lacks{})
	right := Identity{name, issuer}
	withKey, trustKey := signer(t)
	for what, c := range map[string]struct {
		line     []byte
		identity Identity
		want     Code // "" counts
	}{
		"good":                    {good, right, ""},
		"another name":            {good, Identity{"other@example.org", issuer}, ErrIdentity},
		"another issuer":          {good, Identity{name, "https://evil.example.org"}, ErrIdentity},
		"part of the name":        {good, Identity{"release@example", issuer}, ErrIdentity},
		"another Sigstore":        {elsewhere.sign(t, st, lacks{}), right, ErrProof},
		"not logged":              {s.sign(t, st, lacks{log: true}), right, ErrProof},
		"its certificate neither": {s.sign(t, st, lacks{certificateLog: true}), right, ErrProof},
		"without a clock's time":  {s.sign(t, st, lacks{time: true}), right, ""}, // the log has one
		"neither log nor clock":   {s.sign(t, st, lacks{log: true, time: true}), right, ErrProof},
		"another payload":         {[]byte(strings.Replace(string(good), b64Text(t, good), base64.StdEncoding.EncodeToString([]byte(strings.Replace(payloadOf(t, good), "demo", "prod", 1))), 1)), right, ErrProof},
		"another bundle":          {s.sign(t, must(NewStatement("demo", other, bundle.TypeClaim, claim))(t), lacks{}), right, ErrSubject},
		"with a key":              {must(withKey.SignRoot(aRoot.Digest.String(), claim))(t), right, ErrIdentity},
	} {
		t.Run(what, func(t *testing.T) {
			trust := must(TrustIdentity(s.trustedRoot(t), c.identity))(t)
			v, err := Verifier{trust}.Verify(t.Context(), aRoot, c.line)
			var finding *Error
			switch {
			case c.want == "" && (err != nil || len(v) != 1 || v[0].Signer != name+" ("+issuer+")"):
				t.Errorf("%v, %v", v, err)
			case c.want != "" && (!errors.As(err, &finding) || finding.Code != c.want):
				t.Errorf("%v, want %v", err, c.want)
			}
		})
	}
	if _, err := trustKey.Verify(good); !errors.Is(err, ErrKey) {
		t.Errorf("keyless, where a key is trusted: %v", err)
	}
	for _, id := range []Identity{{}, {Name: name}, {Issuer: issuer}} {
		if _, err := TrustIdentity(s.trustedRoot(t), id); !errors.Is(err, ErrIdentity) {
			t.Errorf("trust in %+v: %v", id, err)
		}
	}
	if *update { // for FuzzVerify: what it names has ended when it runs, and is read all the same
		for file, text := range map[string][]byte{
			"trusted_root.json": s.trustedRoot(t), "statement.sigstore.json": s.sign(t, must(decodeStatement(read(t, "statement.json")))(t), lacks{}),
		} {
			if err := os.WriteFile(filepath.Join("testdata", "keyless", file), append(text, '\n'), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	if _, err := TrustIdentity([]byte("{}"), right); !errors.Is(err, ErrTrustedRoot) {
		t.Errorf("a trusted root that is none: %v", err)
	}
}

func payloadOf(t *testing.T, line []byte) string { return string(opened(t, line).Envelope.Payload) }
func b64Text(t *testing.T, line []byte) string {
	return base64.StdEncoding.EncodeToString(opened(t, line).Envelope.Payload)
}
