package sign

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/mensylisir/kubexm/bundle"
	"github.com/mensylisir/kubexm/manifest"
)

// signer is a Signer with a key of its own, and the Trust in it.
func signer(t *testing.T) (*Signer, *Trust) {
	t.Helper()
	pair, err := Generate([]byte("secret"))
	if err != nil {
		t.Fatal(err)
	}
	s, err := LoadSigner(pair.Private, []byte("secret"))
	if err != nil {
		t.Fatal(err)
	}
	trust, err := TrustKey(pair.Public)
	if err != nil {
		t.Fatal(err)
	}
	return s, trust
}

// must returns the result of a call that must succeed: must(call())(t).
func must[T any](v T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

var (
	aRoot = v1.Descriptor{MediaType: v1.MediaTypeImageIndex, Digest: digest.FromString("root"), Size: 4}
	other = digest.FromString("other").String()
	claim = bundle.ClaimOf(&manifest.Lock{
		Cluster: "demo", Serial: 20261121034500, Created: time.Date(2026, 11, 21, 3, 45, 0, 0, time.UTC), Config: other,
		Sets: []manifest.Set{{Name: "v1.34.10"}}, Platforms: []manifest.Platform{{OS: "linux", Arch: "amd64"}},
	})
)

func TestKeys(t *testing.T) {
	pair := must(Generate([]byte("secret")))(t)
	if !strings.HasPrefix(string(pair.Private), "-----BEGIN ENCRYPTED SIGSTORE PRIVATE KEY-----\n") {
		t.Errorf("private key %.60q", pair.Private)
	}
	s, err := LoadSigner(pair.Private, []byte("secret"))
	if err != nil {
		t.Fatal(err)
	}
	if public := must(s.PublicKey())(t); string(public) != string(pair.Public) {
		t.Errorf("the public half is %s, not %s", public, pair.Public)
	}
	trust := must(TrustKey(pair.Public))(t)
	if want := "key " + s.KeyID(); trust.String() != want {
		t.Errorf("trust in %s, want %s", trust, want)
	}
	unprotected := must(Generate(nil))(t)
	if _, err := LoadSigner(unprotected.Private, nil); err != nil {
		t.Errorf("a key with an empty password: %v", err)
	}
	for name, c := range map[string]struct {
		private  []byte
		password string
		want     Code
	}{
		"wrong password":  {pair.Private, "other", ErrPassword},
		"no password":     {pair.Private, "", ErrPassword},
		"public key":      {pair.Public, "secret", ErrKeyFile},
		"no PEM":          {[]byte("secret"), "secret", ErrKeyFile},
		"empty":           {nil, "secret", ErrKeyFile},
		"large":           {[]byte(strings.Repeat(string(pair.Private), 200)), "secret", ErrKeyFile},
		"plain EC key":    {[]byte("-----BEGIN EC PRIVATE KEY-----\nAAAA\n-----END EC PRIVATE KEY-----\n"), "secret", ErrKeyFile},
		"damaged content": {[]byte("-----BEGIN ENCRYPTED SIGSTORE PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED SIGSTORE PRIVATE KEY-----\n"), "secret", ErrPassword},
	} {
		if _, err := LoadSigner(c.private, []byte(c.password)); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
	for name, public := range map[string]string{
		"private key": string(pair.Private), "empty": "", "text": "hello",
		"damaged": "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n",
		// P-224: no longer safe.
		"weak": "-----BEGIN PUBLIC KEY-----\nME4wEAYHKoZIzj0CAQYFK4EEACEDOgAEtw4MEr1/MlbQsr8yKb4i08q9RuTUOxmmvWtxhL3Ez9YN\nNOQiAlyjxxHqdmnJ5yu5MxxRQ1Gdl+E=\n-----END PUBLIC KEY-----\n",
	} {
		if _, err := TrustKey([]byte(public)); !errors.Is(err, ErrKeyFile) {
			t.Errorf("%s as a public key: %v", name, err)
		}
	}
}

func TestStatement(t *testing.T) {
	s, trust := signer(t)
	type says struct {
		Hosts int `json:"hosts"`
	}
	st := must(NewStatement("receipt", other, "https://example.org/receipt/v1", says{3}))(t)
	line := must(s.Sign(st))(t)
	if strings.ContainsAny(string(line), "\n ") || !json.Valid(line) {
		t.Errorf("not one line of JSON: %s", line)
	}
	got := must(trust.Verify(line))(t)
	var back says
	if err := got.Decode(&back); err != nil || back.Hosts != 3 || got.PredicateType != st.PredicateType || !got.About(other) || got.About(aRoot.Digest.String()) {
		t.Errorf("read back %+v %+v: %v", got, back, err)
	}
	if err := got.Decode(&struct{}{}); !errors.Is(err, ErrPayload) {
		t.Errorf("a field that the reader does not know: %v", err)
	}
	for _, bad := range []string{"", "sha256:", "sha256:" + strings.Repeat("A", 64), strings.TrimPrefix(other, "sha256:"), "sha512:" + strings.Repeat("a", 64)} {
		if _, err := NewStatement("x", bad, "y", nil); err == nil {
			t.Errorf("a statement about %q was made", bad)
		}
		if got.About(bad) {
			t.Errorf("the statement is about %q", bad)
		}
	}
}

func TestClaim(t *testing.T) {
	s, trust := signer(t)
	line := must(s.SignRoot(aRoot.Digest.String(), claim))(t)
	v, err := Verifier{trust}.Verify(t.Context(), aRoot, append(line, '\n'))
	if err != nil {
		t.Fatal(err)
	}
	if len(v) != 1 || v[0].Signer != trust.String() || v[0].Claim.Serial != claim.Serial || !v[0].Claim.Created.Equal(claim.Created) {
		t.Errorf("vouchers %+v", v)
	}
}

// sigstoreBundle is a bundle as it is written, for taking it apart.
type sigstoreBundle struct {
	MediaType            string          `json:"mediaType"`
	VerificationMaterial json.RawMessage `json:"verificationMaterial,omitempty"`
	Envelope             struct {
		Payload     []byte            `json:"payload"`
		PayloadType string            `json:"payloadType"`
		Signatures  []json.RawMessage `json:"signatures"`
	} `json:"dsseEnvelope"`
	More string `json:"more,omitempty"`
}

func opened(t *testing.T, line []byte) sigstoreBundle {
	t.Helper()
	var b sigstoreBundle
	if err := json.Unmarshal(line, &b); err != nil {
		t.Fatal(err)
	}
	return b
}

// TestRefusals: each way in which a signature does not count, and its code.
func TestRefusals(t *testing.T) {
	s, trust := signer(t)
	stranger, _ := signer(t)
	good := must(s.SignRoot(aRoot.Digest.String(), claim))(t)
	statement := func(text string) []byte { return must(s.sign([]byte(text), PayloadType))(t) }
	edit := func(change func(b *sigstoreBundle)) []byte {
		b := opened(t, good)
		change(&b)
		return must(json.Marshal(b))(t)
	}
	about, head := `"subject":[{"digest":{"sha256":"`+aRoot.Digest.Encoded()+`"}}]`, `{"_type":"`+StatementType+`",`
	for name, c := range map[string]struct {
		line []byte
		want Code
	}{
		"nothing at all":       {[]byte("{}"), ErrFormat},
		"no JSON":              {[]byte("signature"), ErrFormat},
		"an unknown field":     {edit(func(b *sigstoreBundle) { b.More = "x" }), ErrFormat},
		"an older version":     {edit(func(b *sigstoreBundle) { b.MediaType = "application/vnd.dev.sigstore.bundle+json;version=0.1" }), ErrFormat},
		"a newer version":      {edit(func(b *sigstoreBundle) { b.MediaType = "application/vnd.dev.sigstore.bundle.v0.4+json" }), ErrFormat},
		"nobody who signed":    {edit(func(b *sigstoreBundle) { b.VerificationMaterial = nil }), ErrFormat},
		"a detached signature": {must(s.SignDigest(aRoot.Digest.String()))(t), ErrFormat},
		"too large":            {[]byte(`{"mediaType":"` + strings.Repeat(" ", maxBundle) + `"}`), ErrFormat},
		"zero signatures":      {edit(func(b *sigstoreBundle) { b.Envelope.Signatures = nil }), ErrCount},
		"two signatures": {edit(func(b *sigstoreBundle) {
			b.Envelope.Signatures = append(b.Envelope.Signatures, b.Envelope.Signatures...)
		}), ErrCount},
		"wrong payload type":      {must(s.sign([]byte("{}"), "application/json"))(t), ErrPayloadType},
		"payload type changed":    {edit(func(b *sigstoreBundle) { b.Envelope.PayloadType = "application/json" }), ErrPayloadType},
		"wrong predicate type":    {statement(head + about + `,"predicateType":"https://slsa.dev/provenance/v1","predicate":{}}`), ErrPredicateType},
		"unparsable payload":      {statement(`{"_type":`), ErrPayload},
		"payload and more":        {statement(head + about + `,"predicateType":"` + bundle.TypeClaim + `","predicate":{}} {}`), ErrPayload},
		"no statement":            {statement(`{"_type":"https://example.org/x",` + about + `,"predicateType":"` + bundle.TypeClaim + `","predicate":{}}`), ErrPayload},
		"no subject":              {statement(head + `"subject":[],"predicateType":"` + bundle.TypeClaim + `","predicate":{}}`), ErrPayload},
		"no predicate":            {statement(head + about + `,"predicateType":"` + bundle.TypeClaim + `"}`), ErrPayload},
		"a predicate with more":   {statement(head + about + `,"predicateType":"` + bundle.TypeClaim + `","predicate":{"expires":1}}`), ErrPayload},
		"another digest function": {statement(head + `"subject":[{"digest":{"sha512":"00"}}],"predicateType":"` + bundle.TypeClaim + `","predicate":{}}`), ErrSubject},
		"another key":             {must(stranger.SignRoot(aRoot.Digest.String(), claim))(t), ErrKey},
		"another bundle":          {must(s.SignRoot(other, claim))(t), ErrSubject},
		"a changed payload": {edit(func(b *sigstoreBundle) {
			b.Envelope.Payload = bytes.Replace(b.Envelope.Payload, []byte("demo"), []byte("prod"), 1)
		}), ErrInvalid},
		"another key's signature under this key's name": {edit(func(b *sigstoreBundle) {
			b.Envelope = opened(t, must(stranger.SignRoot(aRoot.Digest.String(), claim))(t)).Envelope
		}), ErrInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			v, err := Verifier{trust}.Verify(t.Context(), aRoot, append(c.line, '\n'))
			var finding *Error
			if !errors.As(err, &finding) || finding.Code != c.want || v != nil {
				t.Errorf("%v, %v; want %v", v, err, c.want)
			}
			v, err = Verifier{trust}.Verify(t.Context(), aRoot, []byte(string(c.line)+"\n"+string(good)+"\n"))
			if err != nil || len(v) != 1 {
				t.Errorf("beside a good one: %v, %v", v, err)
			}
		})
	}
	for _, none := range []string{"", "\n", "  \n\n"} {
		if _, err := (Verifier{trust}).Verify(t.Context(), aRoot, []byte(none)); !errors.Is(err, ErrCount) {
			t.Errorf("%q: %v", none, err)
		}
	}
	if _, err := (Verifier{}).Verify(t.Context(), aRoot, good); !errors.Is(err, ErrKey) {
		t.Errorf("nobody is trusted: %v", err)
	}
	if _, err := (Verifier{trust}).Verify(t.Context(), aRoot, []byte(strings.Repeat("{}\n", maxSignatures+1))); !errors.Is(err, ErrFormat) {
		t.Errorf("too many: %v", err)
	}
}

// TestSeveral: one key of several is enough, and one signature of several.
func TestSeveral(t *testing.T) {
	a, trustA := signer(t)
	b, trustB := signer(t)
	lines := append(append(must(a.SignRoot(aRoot.Digest.String(), claim))(t), '\n'), append(must(b.SignRoot(aRoot.Digest.String(), claim))(t), '\n')...)
	for name, c := range map[string]struct {
		trust Verifier
		want  int
	}{"first": {Verifier{trustA}, 1}, "second": {Verifier{trustB}, 1}, "both": {Verifier{trustA, trustB}, 2}} {
		if v, err := c.trust.Verify(t.Context(), aRoot, lines); err != nil || len(v) != c.want {
			t.Errorf("%s: %v, %v", name, v, err)
		}
	}
}

func TestDetached(t *testing.T) {
	s, trust := signer(t)
	stranger, _ := signer(t)
	d := aRoot.Digest.String()
	good := must(s.SignDigest(d))(t)
	if err := trust.VerifyDigest(good, d); err != nil {
		t.Error(err)
	}
	for name, c := range map[string]struct {
		text   []byte
		digest string
		want   Code
	}{
		"another file":       {good, other, ErrSubject},
		"another key":        {must(stranger.SignDigest(d))(t), d, ErrKey},
		"digest exchanged":   {[]byte(strings.Replace(string(must(s.SignDigest(other))(t)), b64(t, other), b64(t, d), 1)), d, ErrInvalid},
		"a statement":        {must(s.SignRoot(d, claim))(t), d, ErrFormat},
		"no Sigstore bundle": {[]byte("{}"), d, ErrFormat},
	} {
		if err := trust.VerifyDigest(c.text, c.digest); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
}

func b64(t *testing.T, digest string) string {
	t.Helper()
	return base64.StdEncoding.EncodeToString(must(rawDigest(digest))(t))
}

// TestProvenance: it counts beside a claim of the same maker, and for nothing alone.
func TestProvenance(t *testing.T) {
	s, trust := signer(t)
	stranger, strange := signer(t)
	lock := &manifest.Lock{Cluster: "demo", Config: other,
		Artifacts: []manifest.Artifact{
			{ID: "binary/etcd", Kind: manifest.Binary, Address: "https://example.org/etcd", SHA256: strings.Repeat("a", 64)},
			{ID: "packages/x", Kind: manifest.Packages, Members: []manifest.Member{
				{Name: "Packages", SHA256: strings.Repeat("b", 64)}, {Name: "pool/a.deb", Package: "a 1", Address: "https://deb.example/a.deb", SHA256: strings.Repeat("c", 64)},
			}},
		},
		Images: []manifest.ImagePin{{ID: "image/a", Reference: "a:1", Digest: "sha256:" + strings.Repeat("d", 64)}},
	}
	p := bundle.ProvenanceOf(lock, "0.3.0")
	line := must(s.SignProvenance(aRoot.Digest.String(), "demo", p))(t)
	if _, err := (Verifier{trust}).Verify(t.Context(), aRoot, line); !errors.Is(err, ErrPredicateType) {
		t.Errorf("alone: %v", err)
	}
	mine, theirs := must(s.SignRoot(aRoot.Digest.String(), claim))(t), must(stranger.SignRoot(aRoot.Digest.String(), claim))(t)
	slot := bytes.Join([][]byte{line, mine, theirs}, []byte{'\n'})
	v, err := Verifier{trust, strange}.Verify(t.Context(), aRoot, slot)
	if err != nil || len(v) != 2 || v[0].Provenance == nil || v[1].Provenance != nil {
		t.Fatalf("%+v, %v", v, err)
	}
	var names []string
	for _, d := range v[0].Provenance.BuildDefinition.ResolvedDependencies {
		names = append(names, d.Name+" "+d.URI+" "+d.Digest["sha256"][:1])
	}
	want := "binary/etcd https://example.org/etcd a, packages/x/pool/a.deb https://deb.example/a.deb c, image/a a:1 d"
	if got := strings.Join(names, ", "); got != want || v[0].Provenance.RunDetails.Builder.Version["kubexm"] != "0.3.0" {
		t.Errorf("inputs %s, want %s", got, want)
	}
	v, err = Verifier{trust}.Verify(t.Context(), aRoot, bytes.Join([][]byte{must(s.SignProvenance(other, "demo", p))(t), mine}, []byte{'\n'}))
	if err != nil || v[0].Provenance != nil {
		t.Errorf("of another bundle: %+v, %v", v, err)
	}
}
