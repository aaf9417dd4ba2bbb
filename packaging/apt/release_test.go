package apt

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/packet"
)

// TestRefused breaks one thing at a time; each is refused for its own reason, and
// the words say what a person needs.
func TestRefused(t *testing.T) {
	tests := []struct {
		name  string
		spoil func(t *testing.T, s *site, src *Source)
		want  error
		says  []string
	}{
		{"changed", func(_ *testing.T, s *site, _ *Source) {
			f := s.files["debian/dists/bookworm/InRelease"]
			s.files["debian/dists/bookworm/InRelease"] = bytes.Replace(f, []byte("Version: 12.9"), []byte("Version: 12.8"), 1)
		}, ErrBadSignature, []string{"modified"}},
		{"text before", func(_ *testing.T, s *site, _ *Source) {
			f := s.files["debian/dists/bookworm/InRelease"]
			s.files["debian/dists/bookworm/InRelease"] = append([]byte("Origin: Evil\n\n"), f...)
		}, ErrMalformed, []string{"outside of the signed message"}},
		{"text behind", func(_ *testing.T, s *site, _ *Source) {
			f := s.files["debian/dists/bookworm/InRelease"]
			s.files["debian/dists/bookworm/InRelease"] = append(bytes.Clone(f), "Origin: Evil\n"...)
		}, ErrMalformed, []string{"outside of the signed message"}},
		{"a second message", func(_ *testing.T, s *site, _ *Source) {
			f := s.files["debian/dists/bookworm/InRelease"]
			s.files["debian/dists/bookworm/InRelease"] = append(bytes.Clone(f), f...)
		}, ErrMalformed, []string{"outside of the signed message"}},
		{"no message", func(_ *testing.T, s *site, _ *Source) {
			s.files["debian/dists/bookworm/InRelease"] = []byte(bookworm)
		}, ErrMalformed, []string{"not a signed message"}},
		{"another key", func(t *testing.T, _ *site, src *Source) {
			src.SignedBy = Keys{Files: []string{write(t, "other.asc", public(t, newKey(t, nil)))}}
		}, ErrUnknownKey, []string{"signed by", "other.asc", "copy the repository's key"}},
		{"no key anywhere", func(_ *testing.T, _ *site, src *Source) { src.SignedBy = Keys{} }, ErrUnknownKey, []string{"signed by"}},
		{"no such keyring", func(_ *testing.T, _ *site, src *Source) { src.SignedBy = Keys{Files: []string{"/nowhere/a.gpg"}} },
			ErrNoKeyring, []string{"/nowhere/a.gpg does not exist"}},
		{"no key in the keyring", func(t *testing.T, _ *site, src *Source) {
			src.SignedBy = Keys{Files: []string{write(t, "page.gpg", "<html>")}}
		}, ErrNoKeyring, []string{"page.gpg"}},
		{"an expired key", func(t *testing.T, s *site, src *Source) {
			c := at(-365 * 24 * time.Hour)
			c.KeyLifetimeSecs = 30 * 24 * 3600
			s.keys = []*openpgp.Entity{newKey(t, c)}
			src.SignedBy.Inline = public(t, s.keys...)
			s.files["debian/dists/bookworm/InRelease"] = cleartext(t, bookworm+"SHA256:\n", at(-360*24*time.Hour), s.keys...)
		}, ErrExpiredKey, []string{"current key"}},
		{"a weak key", func(t *testing.T, s *site, src *Source) {
			s.keys = []*openpgp.Entity{newKey(t, &packet.Config{RSABits: 1024, MinRSABits: 1024, Time: at(-time.Hour * 24).Time})}
			src.SignedBy.Inline = public(t, s.keys...)
			s.sign("debian/dists/bookworm", bookworm+"SHA256:\n")
		}, ErrWeak, nil},
		{"a revoked key", func(t *testing.T, s *site, src *Source) {
			if err := s.keys[0].RevokeKey(packet.KeyCompromised, "stolen", at(-2*time.Hour)); err != nil {
				t.Fatal(err)
			}
			src.SignedBy.Inline = public(t, s.keys...)
		}, ErrExpiredKey, nil},
		{"a weak digest", func(t *testing.T, s *site, src *Source) {
			delete(s.files, "debian/dists/bookworm/InRelease")
			for _, name := range []string{"Release", "Release.gpg", "key.asc"} {
				b, err := os.ReadFile(filepath.Join("testdata/sha1", name))
				if err != nil {
					t.Fatal(err)
				}
				s.files["debian/dists/bookworm/"+name] = b
			}
			src.SignedBy = Keys{Inline: string(s.files["debian/dists/bookworm/key.asc"])}
		}, ErrWeak, []string{"too weak", "signed by"}},
		{"a bad signature beside a good one", func(t *testing.T, s *site, src *Source) {
			// Two keys that are known sign, one of them over another text.
			second := newKey(t, nil)
			src.SignedBy.Inline = public(t, s.keys[0], second)
			s.detach(t, "debian/dists/bookworm", false)
			var b bytes.Buffer
			if err := openpgp.DetachSign(&b, second, strings.NewReader("another text"), at(-time.Hour)); err != nil {
				t.Fatal(err)
			}
			s.files["debian/dists/bookworm/Release.gpg"] = append(s.files["debian/dists/bookworm/Release.gpg"], b.Bytes()...)
		}, ErrBadSignature, nil},
		{"a signature in the future", func(t *testing.T, s *site, _ *Source) {
			s.files["debian/dists/bookworm/InRelease"] = cleartext(t, bookworm+"SHA256:\n", at(time.Hour), s.keys...)
		}, ErrFuture, nil},
		{"a date in the future", func(_ *testing.T, s *site, _ *Source) {
			s.sign("debian/dists/bookworm", strings.Replace(bookworm, "10:00:00", "12:00:30", 1)+"SHA256:\n")
		}, ErrFuture, []string{"2026-05-20T12:00:30Z", "clock"}},
		{"past its date", func(_ *testing.T, s *site, _ *Source) {
			s.sign("debian/dists/bookworm", bookworm+"Valid-Until: Tue, 19 May 2026 10:00:00 UTC\nSHA256:\n")
		}, ErrStale, []string{"2026-05-19T10:00:00Z", "check-valid-until"}},
		{"without sha256", func(_ *testing.T, s *site, _ *Source) {
			s.sign("debian/dists/bookworm", bookworm+"MD5Sum:\n d41d8cd98f00b204e9800998ecf8427e 0 main/binary-amd64/Packages\n")
		}, ErrWeak, []string{"no SHA256"}},
		{"another suite", func(_ *testing.T, s *site, _ *Source) {
			s.sign("debian/dists/bookworm", strings.ReplaceAll(bookworm, "bookworm", "bullseye")+"SHA256:\n")
		}, ErrOtherRelease, []string{`"bullseye"`}},
		{"another origin", func(_ *testing.T, _ *site, src *Source) { src.Expect.Origin = "Ubuntu" }, ErrOtherRelease, []string{`"Debian"`, `"Ubuntu"`}},
		{"another codename", func(_ *testing.T, _ *site, src *Source) { src.Expect.Codename = "trixie" }, ErrOtherRelease, []string{`"trixie"`}},
		{"no signature", func(_ *testing.T, s *site, _ *Source) {
			delete(s.files, "debian/dists/bookworm/InRelease")
			s.files["debian/dists/bookworm/Release"] = []byte(bookworm + "SHA256:\n")
		}, ErrUnsigned, []string{"Release.gpg"}},
		{"an empty signature", func(_ *testing.T, s *site, _ *Source) {
			delete(s.files, "debian/dists/bookworm/InRelease")
			s.files["debian/dists/bookworm/Release"] = []byte(bookworm + "SHA256:\n")
			s.files["debian/dists/bookworm/Release.gpg"] = []byte{}
		}, ErrUnsigned, nil},
		{"a field twice", func(_ *testing.T, s *site, _ *Source) {
			s.sign("debian/dists/bookworm", bookworm+"Suite: stable\nSHA256:\n")
		}, ErrMalformed, []string{"Suite twice"}},
		{"a path out of it", func(_ *testing.T, s *site, _ *Source) {
			s.sign("debian/dists/bookworm", bookworm+"SHA256:\n "+someSum+" 0 ../../x\n")
		}, ErrMalformed, nil},
		{"an index changed", func(_ *testing.T, s *site, _ *Source) {
			s.files["debian/dists/bookworm/main/binary-amd64/Packages.gz"][20] ^= 1
		}, ErrDigest, []string{"main/binary-amd64/Packages.gz", "sha256"}},
		{"an index too long", func(_ *testing.T, s *site, _ *Source) {
			s.files["debian/dists/bookworm/main/binary-amd64/Packages.gz"] = append(s.files["debian/dists/bookworm/main/binary-amd64/Packages.gz"], 0)
		}, ErrDigest, []string{"more than"}},
		{"an index cut short", func(_ *testing.T, s *site, _ *Source) {
			s.files["debian/dists/bookworm/main/binary-amd64/Packages.gz"] = s.files["debian/dists/bookworm/main/binary-amd64/Packages.gz"][:20]
		}, ErrDigest, nil},
		{"no such component", func(_ *testing.T, _ *site, src *Source) { src.Components, src.Given = []string{"universe"}, true },
			ErrOtherRelease, []string{"component universe", "main, contrib"}},
	}
	for _, x := range tests {
		t.Run(x.name, func(t *testing.T) {
			s := newSite(t)
			s.publish("debian/dists/bookworm", bookworm, map[string]string{"main/binary-amd64/Packages": stanzaOf("a", "1")})
			src := s.source()
			x.spoil(t, s, &src)
			_, err := Open(t.Context(), s, s.request(src))
			var refusal *Refusal
			if !errors.As(err, &refusal) || !errors.Is(err, x.want) {
				t.Fatalf("%v, want %v", err, x.want)
			}
			for _, text := range append(x.says, s.url+"/debian bookworm") {
				if !strings.Contains(err.Error(), text) {
					t.Errorf("%q says nothing of %q", err, text)
				}
			}
		})
	}
}

// TestAccepted has what looks odd and is right.
func TestAccepted(t *testing.T) {
	tests := []struct {
		name    string
		arrange func(t *testing.T, s *site, src *Source, r *Request)
	}{
		{"as it is", func(*testing.T, *site, *Source, *Request) {}},
		{"signed beside it", func(t *testing.T, s *site, _ *Source, _ *Request) { s.detach(t, "debian/dists/bookworm", true) }},
		{"signed beside it, in binary", func(t *testing.T, s *site, _ *Source, _ *Request) { s.detach(t, "debian/dists/bookworm", false) }},
		{"a second signature of a stranger", func(t *testing.T, s *site, _ *Source, _ *Request) {
			text := string(s.text(t, "debian/dists/bookworm"))
			s.files["debian/dists/bookworm/InRelease"] = cleartext(t, text, at(-time.Hour), newKey(t, nil), s.keys[0])
		}},
		{"lines with blanks at their ends", func(t *testing.T, s *site, _ *Source, _ *Request) {
			f := s.files["debian/dists/bookworm/InRelease"]
			s.files["debian/dists/bookworm/InRelease"] = bytes.Replace(f, []byte("Codename: bookworm\n"), []byte("Codename: bookworm \t\n"), 1)
		}},
		{"lines that end as Windows has it", func(t *testing.T, s *site, _ *Source, _ *Request) {
			f := s.files["debian/dists/bookworm/InRelease"]
			s.files["debian/dists/bookworm/InRelease"] = bytes.ReplaceAll(f, []byte("\n"), []byte("\r\n"))
		}},
		{"a keyring of files", func(t *testing.T, s *site, src *Source, _ *Request) {
			src.SignedBy = Keys{Files: []string{write(t, "k.asc", public(t, newKey(t, nil), s.keys[0]))}}
		}},
		{"a binary keyring", func(t *testing.T, s *site, src *Source, _ *Request) {
			var b bytes.Buffer
			if err := s.keys[0].Serialize(&b); err != nil {
				t.Fatal(err)
			}
			src.SignedBy = Keys{Files: []string{write(t, "k.gpg", b.String())}}
		}},
		{"the system's keyrings", func(t *testing.T, s *site, src *Source, r *Request) {
			src.SignedBy = Keys{}
			r.Keyrings = []string{filepath.Dir(write(t, "k.asc", public(t, s.keys[0])))}
		}},
		{"one of the system's keys by its fingerprint", func(t *testing.T, s *site, src *Source, r *Request) {
			src.SignedBy = Keys{Fingerprints: []string{strings.ToUpper(hexed(s.keys[0].PrimaryKey.Fingerprint))}}
			r.Keyrings = []string{write(t, "k.asc", public(t, newKey(t, nil), s.keys[0]))}
		}},
		{"a given key", func(t *testing.T, s *site, src *Source, r *Request) {
			src.SignedBy = Keys{}
			r.Keys = []string{public(t, s.keys[0])}
		}},
		{"past its date, and that is wanted", func(t *testing.T, s *site, src *Source, _ *Request) {
			text := strings.Replace(string(s.text(t, "debian/dists/bookworm")), "SHA256:", "Valid-Until: Tue, 19 May 2026 10:00:00 UTC\nSHA256:", 1)
			s.sign("debian/dists/bookworm", text)
			src.AnyAge = true
		}},
		{"by its suite", func(_ *testing.T, s *site, src *Source, _ *Request) {
			for name, b := range s.files {
				s.files[strings.Replace(name, "/bookworm/", "/oldstable/", 1)] = b
			}
			src.Suite = "oldstable"
		}},
	}
	for _, x := range tests {
		t.Run(x.name, func(t *testing.T) {
			s := newSite(t)
			s.publish("debian/dists/bookworm", bookworm, map[string]string{"main/binary-amd64/Packages": stanzaOf("a", "1")})
			src := s.source()
			r := s.request()
			x.arrange(t, s, &src, &r)
			r.Sources = []Source{src}
			a, err := Open(t.Context(), s, r)
			if err != nil {
				t.Fatal(err)
			}
			if have := names(a, "a"); have != "a 1 (amd64)" {
				t.Error(have)
			}
			if by := a.Repositories[0].Release.SignedBy; len(by) != 1 || by[0] != strings.ToUpper(hexed(s.keys[0].PrimaryKey.Fingerprint)) {
				t.Error(by)
			}
		})
	}
}

// TestKeyringBeside tells which keys count: of the system's keyrings not those
// that were withdrawn, and with signed-by no others.
func TestKeyringBeside(t *testing.T) {
	s := newSite(t)
	s.publish("debian/dists/bookworm", bookworm, map[string]string{"main/binary-amd64/Packages": stanzaOf("a", "1")})
	src := s.source()
	src.SignedBy = Keys{}
	r := s.request(src)
	r.Keyrings = []string{filepath.Dir(write(t, "debian-archive-removed-keys.asc", public(t, s.keys[0])))}
	if _, err := Open(t.Context(), s, r); !errors.Is(err, ErrUnknownKey) {
		t.Errorf("a withdrawn key: %v", err)
	}
	r.Keyrings = []string{write(t, "k.asc", public(t, s.keys[0]))}
	r.Sources[0].SignedBy = Keys{Inline: public(t, newKey(t, nil))}
	if _, err := Open(t.Context(), s, r); !errors.Is(err, ErrUnknownKey) {
		t.Errorf("a key of the system beside signed-by: %v", err)
	}
}

// TestSignedPartOnly: what comes out of an InRelease is what the signature is
// over, byte for byte.
func TestSignedPartOnly(t *testing.T) {
	const text = "A: 1\n- dashed\n-----x\n\nB: 2"
	b := cleartext(t, text+"\n", at(0), newKey(t, nil))
	have, _, _, err := clearSigned(b)
	if err != nil {
		t.Fatal(err)
	}
	if string(have) != text+"\n\n" && string(have) != text+"\n" {
		t.Errorf("%q", have)
	}
}

// TestRealRelease reads a Release that Debian signed, with Debian's keys.
func TestRealRelease(t *testing.T) {
	const ring = "/usr/share/keyrings/debian-archive-keyring.gpg"
	if _, err := os.Stat(ring); err != nil {
		t.Skip("Debian's keys are not here")
	}
	b, err := os.ReadFile("testdata/bookworm-updates.InRelease")
	if err != nil {
		t.Fatal(err)
	}
	text, signed, signatures, err := clearSigned(b)
	if err != nil {
		t.Fatal(err)
	}
	keys, err := (&keyrings{}).of(Source{SignedBy: Keys{Files: []string{ring}}})
	if err != nil {
		t.Fatal(err)
	}
	r, err := parseRelease(text)
	if err != nil {
		t.Fatal(err)
	}
	by, err := verify("debian", signed, signatures, keys, r.Date.Add(time.Hour))
	if err != nil || len(by) == 0 {
		t.Error(by, err)
	}
	if r.Codename != "bookworm-updates" || len(r.files) < 100 {
		t.Errorf("%s, %d files", r.Codename, len(r.files))
	}
}

func FuzzRelease(f *testing.F) {
	f.Add([]byte(bookworm + "SHA256:\n " + someSum + " 0 main/binary-amd64/Packages\n"))
	f.Add([]byte("Date: Mon,  2 Jan 2006 15:04:05 UTC\nValid-Until: x\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := parseRelease(b)
		if err != nil {
			return
		}
		for name := range r.files {
			if !localPath(name) {
				t.Errorf("%q", name)
			}
		}
	})
}

func FuzzClearSigned(f *testing.F) {
	f.Add([]byte("-----BEGIN PGP SIGNED MESSAGE-----\nHash: SHA256\n\nA: 1\n-----BEGIN PGP SIGNATURE-----\n\niHUE\n-----END PGP SIGNATURE-----\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		text, _, signatures, err := clearSigned(b)
		if err != nil {
			return
		}
		if _, err := verify("x", text, signatures, keyring{}, then); err == nil {
			t.Error("nobody's signature is good")
		}
	})
}
