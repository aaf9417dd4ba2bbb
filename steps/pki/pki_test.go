package pki

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

var now = time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)

func TestStoreKeepsWhatItMade(t *testing.T) {
	s := Store{Dir: filepath.Join(t.TempDir(), "certs", "registry")}
	ca, err := s.Authority("ca", "kubexm registry", now)
	if err != nil {
		t.Fatal(err)
	}
	again, err := s.Authority("ca", "kubexm registry", now.Add(time.Hour))
	if err != nil || !again.Key.Equal(ca.Key) {
		t.Fatalf("a second CA was made: %v", err)
	}
	r := Request{CommonName: "reg.site", Names: []string{"reg.site", "10.0.0.9", "fd00::9"}, Server: true}
	leaf, err := s.Leaf("server", ca, r, now)
	if err != nil {
		t.Fatal(err)
	}
	same, err := s.Leaf("server", ca, r, now.Add(24*time.Hour))
	if err != nil || !same.Key.Equal(leaf.Key) {
		t.Errorf("a leaf that answers was made anew: %v", err)
	}
	for name, change := range map[string]func() (Request, time.Time){
		"another name": func() (Request, time.Time) {
			q := r
			q.Names = append([]string{"other"}, r.Names...)
			return q, now
		},
		"near its end": func() (Request, time.Time) { return r, now.Add(LeafLifetime * 95 / 100) },
		"another use":  func() (Request, time.Time) { q := r; q.Client = true; return q, now },
	} {
		q, at := change()
		p, err := s.Leaf("server", ca, q, at)
		if err != nil || p.Key.Equal(leaf.Key) {
			t.Errorf("%s: the old leaf was kept (%v)", name, err)
		}
		leaf = p
	}
	for path, want := range map[string]os.FileMode{"": 0o700, "ca.key": 0o600, "server.key": 0o600, "ca.crt": 0o644} {
		st, err := os.Stat(filepath.Join(s.Dir, path))
		if err != nil || st.Mode().Perm() != want {
			t.Errorf("%q has mode %v, want %v (%v)", path, st.Mode().Perm(), want, err)
		}
	}
}

func TestInterruptedCreation(t *testing.T) {
	s := Store{Dir: t.TempDir()}
	if err := os.WriteFile(filepath.Join(s.Dir, "ca.key"), []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Authority("ca", "x", now); err != nil {
		t.Errorf("a key that was left without its certificate stands in the way: %v", err)
	}
	if err := os.WriteFile(filepath.Join(s.Dir, "ca.crt"), []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Authority("ca", "x", now); err == nil {
		t.Error("a damaged CA was taken, or replaced unasked")
	}
}

func TestHandshake(t *testing.T) {
	ca, err := NewAuthority("ca", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	server, err := ca.Issue(Request{CommonName: "s", Names: []string{"127.0.0.1"}, Server: true}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	client, err := ca.Issue(Request{CommonName: "c", Organizations: []string{"system:masters"}, Client: true}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(ca.Certificate)
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{pair(t, server)}, ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert, MinVersion: tls.VersionTLS13})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	seen := make(chan []string, 1)
	go func() {
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		tc, ok := c.(*tls.Conn)
		if !ok || tc.Handshake() != nil {
			seen <- nil
			return
		}
		seen <- tc.ConnectionState().PeerCertificates[0].Subject.Organization
	}()
	conn, err := tls.DialWithDialer(&net.Dialer{Timeout: 5 * time.Second}, "tcp", l.Addr().String(), &tls.Config{RootCAs: pool, Certificates: []tls.Certificate{pair(t, client)}, MinVersion: tls.VersionTLS12})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if got := <-seen; len(got) != 1 || got[0] != "system:masters" {
		t.Errorf("organizations %v", got)
	}
	if server.Matches(Request{CommonName: "s", Names: []string{"127.0.0.1"}, Server: true}, client, time.Now()) {
		t.Error("a certificate answers for a CA that did not sign it")
	}
}

func pair(t *testing.T, p Pair) tls.Certificate {
	t.Helper()
	cert, key, err := p.Encode()
	if err != nil {
		t.Fatal(err)
	}
	c, err := tls.X509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func FuzzDecode(f *testing.F) {
	p, err := NewAuthority("x", now)
	if err != nil {
		f.Fatal(err)
	}
	cert, key, err := p.Encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(cert, key)
	f.Add(key, cert)
	f.Fuzz(func(t *testing.T, cert, key []byte) {
		if p, err := Decode(cert, key); err == nil && !p.Key.PublicKey.Equal(p.Certificate.PublicKey) {
			t.Error("a key that does not fit was accepted")
		}
	})
}

// TestStoreServesManyAtOnce: concurrent requests for the same CA return the same
// certificate and key.
func TestStoreServesManyAtOnce(t *testing.T) {
	s := Store{Dir: filepath.Join(t.TempDir(), "certs")}
	serials := make(chan string, 16)
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			ca, err := s.Authority("ca", "test", now)
			if err != nil {
				t.Error(err)
				return
			}
			if _, err := s.Leaf("server", ca, Request{CommonName: "x", Names: []string{fmt.Sprint("h", i%2)}, Server: true}, now); err != nil {
				t.Error(err)
			}
			serials <- ca.Certificate.SerialNumber.String()
		})
	}
	wg.Wait()
	close(serials)
	first := <-serials
	for n := range serials {
		if n != first {
			t.Error("there are two CAs")
		}
	}
	if _, err := s.Authority("ca", "test", now); err != nil {
		t.Error(err)
	}
}

// TestInTurn: calls are serialized, and waiting ends with the context.
func TestInTurn(t *testing.T) {
	s := Store{Dir: filepath.Join(t.TempDir(), "turns")}
	var inside atomic.Int32
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			if err := s.LockedContext(t.Context(), func() error {
				if inside.Add(1) > 1 {
					t.Error("two at once")
				}
				time.Sleep(time.Millisecond)
				inside.Add(-1)
				return nil
			}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	err := s.LockedContext(t.Context(), func() error {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer cancel()
		if err := s.LockedContext(ctx, func() error { return nil }); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("waiting for who holds it: %v", err)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// TestWhatIsInUseIsTakenOver: a certificate from another machine is used as long as it
// matches, and never overwrites a stored one.
func TestWhatIsInUseIsTakenOver(t *testing.T) {
	there, here := Store{Dir: filepath.Join(t.TempDir(), "there")}, Store{Dir: filepath.Join(t.TempDir(), "here")}
	ca, err := there.Authority("ca", "the CA", now)
	if err != nil {
		t.Fatal(err)
	}
	r := Request{CommonName: "a", Names: []string{"a.example"}, Server: true}
	used, err := there.Leaf("a", ca, r, now)
	if err != nil {
		t.Fatal(err)
	}
	if err := here.Import("ca", ca); err != nil {
		t.Fatal(err)
	}
	if got, err := here.Authority("ca", "the CA", now); err != nil || !got.Certificate.Equal(ca.Certificate) {
		t.Errorf("another CA: %v", err)
	}
	for name, mode := range map[string]os.FileMode{"": 0o700 | os.ModeDir, "ca.key": 0o600} {
		if st, err := os.Stat(filepath.Join(here.Dir, name)); err != nil || st.Mode() != mode {
			t.Errorf("%q has mode %v, %v", name, st.Mode(), err)
		}
	}
	asked := 0
	found := func() ([]byte, []byte, error) { asked++; return used.Encode() }
	for range 2 {
		if got, err := here.LeafFrom("a", ca, r, now, found); err != nil || !got.Certificate.Equal(used.Certificate) {
			t.Errorf("another certificate: %v", err)
		}
	}
	if asked != 1 {
		t.Errorf("asked %d times", asked)
	}
	other := r
	other.Names = []string{"b.example"}
	for name, found := range map[string]func() ([]byte, []byte, error){
		"one that does not answer": func() ([]byte, []byte, error) { return used.Encode() },
		"rubbish":                  func() ([]byte, []byte, error) { return []byte("x"), []byte("y"), nil },
		"none":                     func() ([]byte, []byte, error) { return nil, nil, os.ErrNotExist },
	} {
		if got, err := here.LeafFrom("b", ca, other, now, found); err != nil || got.Certificate.Equal(used.Certificate) || !got.Matches(other, ca, now) {
			t.Errorf("%s: %v", name, err)
		}
		if err := errors.Join(os.Remove(filepath.Join(here.Dir, "b.crt")), os.Remove(filepath.Join(here.Dir, "b.key"))); err != nil {
			t.Fatal(err)
		}
	}
	second, err := NewAuthority("another", now)
	if err != nil {
		t.Fatal(err)
	}
	if err := here.Import("ca", second); err != nil {
		t.Fatal(err)
	}
	if got, err := here.Authority("ca", "the CA", now); err != nil || !got.Certificate.Equal(ca.Certificate) {
		t.Errorf("a CA was overwritten: %v", err)
	}
}
