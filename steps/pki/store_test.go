package pki

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestCertificatesAreWrittenAtomically: a certificate is written with a rename, and replaces
// the remains of a killed run.
func TestCertificatesAreWrittenAtomically(t *testing.T) {
	s := Store{Dir: t.TempDir()}
	for _, suffix := range []string{".crt", ".key"} {
		if err := os.WriteFile(filepath.Join(s.Dir, ".ca"+suffix+".new"), []byte("-----BEGIN CERT"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	now := time.Now()
	made, err := s.Authority("ca", "a test", now)
	if err != nil {
		t.Fatal(err)
	}
	again, err := s.Authority("ca", "a test", now)
	if err != nil || !again.Certificate.Equal(made.Certificate) {
		t.Errorf("%v", err)
	}
	all, err := os.ReadDir(s.Dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range all {
		if n := f.Name(); n != "ca.crt" && n != "ca.key" && n != ".lock" {
			t.Errorf("%s is left", n)
		}
	}
}

// TestKeysAreMadeExclusively: an existing file, which others may read or have open, never
// becomes the key. Only the owner may access the folder.
func TestKeysAreMadeExclusively(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "certs", "registry")
	s := Store{Dir: dir}
	if err := s.Locked(func() error { return nil }); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"ca.key", "server.key", "token"} {
		open, err := os.OpenFile(filepath.Join(dir, "."+name+".new"), os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		defer open.Close()
		if err := open.Chmod(0o666); err != nil { // whatever the umask says
			t.Fatal(err)
		}
	}
	now := time.Now()
	ca, err := s.Authority("ca", "a test", now)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Leaf("server", ca, Request{CommonName: "server", Names: []string{"server"}, Server: true}, now); err != nil {
		t.Fatal(err)
	}
	if _, err := Files(s).ReadOrCreate("token", func() ([]byte, error) { return []byte("secret"), nil }); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]os.FileMode{"..": 0o700, ".": 0o700, "ca.key": 0o600, "server.key": 0o600, "token": 0o600} {
		st, err := os.Stat(filepath.Join(dir, name))
		if err != nil || st.Mode().Perm() != want {
			t.Errorf("%s has mode %v, want %v (%v)", name, st.Mode().Perm(), want, err)
		}
	}
}
