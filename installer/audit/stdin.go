package audit

import (
	"crypto/sha256"
	"encoding/hex"
	"hash"
	"io"

	"github.com/mensylisir/kubexm/steps/connector"
)

// intake counts and hashes the standard input of a command.
type intake struct {
	from   io.Reader
	bytes  int64
	raw    hash.Hash      // nil if the host compares the input with digests of the bundle
	masked hash.Hash      // hash of the same input with its secrets masked
	mask   io.WriteCloser // writes to masked
}

// newIntake wraps the input of a command.
func newIntake(c *connector.Cmd, red *connector.Redactor) *intake {
	if c.Stdin == nil || c.Verb == connector.VerbLease { // a lease's input is only heartbeats
		return nil
	}
	i := &intake{from: c.Stdin}
	if !c.Verified {
		i.raw, i.masked = sha256.New(), sha256.New()
		i.mask = red.Writer(i.masked)
	}
	c.Stdin = i
	return i
}

// Read implements io.Reader.
func (i *intake) Read(b []byte) (int, error) {
	n, err := i.from.Read(b)
	i.bytes += int64(n)
	if i.raw != nil {
		_, _ = i.raw.Write(b[:n])  // hashes never fail
		_, _ = i.mask.Write(b[:n]) // as above
	}
	return n, err
}

// content describes the input that was read.
func (i *intake) content() *Content {
	if i == nil {
		return nil
	}
	c := &Content{Bytes: i.bytes, FromBundle: i.raw == nil}
	if i.raw == nil {
		return c
	}
	_ = i.mask.Close() // hashes never fail
	c.SHA256 = hex.EncodeToString(i.raw.Sum(nil))
	if c.Secret = c.SHA256 != hex.EncodeToString(i.masked.Sum(nil)); c.Secret {
		c.SHA256 = ""
	}
	return c
}
