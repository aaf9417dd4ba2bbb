package audit

import (
	"crypto/sha256"
	"encoding/hex"
	"hash"
	"io"

	"github.com/mensylisir/kubexm/steps/connector"
)

// intake listens to what a command is given on its standard input.
type intake struct {
	from   io.Reader
	bytes  int64
	said   string         // the hash, where it is known before
	raw    hash.Hash      // nil where it is not to be made
	masked hash.Hash      // of the same with its secrets masked
	mask   io.WriteCloser // to masked
}

// newIntake puts itself between a command and its input.
func newIntake(c *connector.Cmd, red *connector.Redactor) *intake {
	if c.Stdin == nil || c.Verb == connector.VerbLease { // a lease's input is signs of life
		return nil
	}
	i := &intake{from: c.Stdin, said: c.SHA256}
	if i.said == "" {
		i.raw, i.masked = sha256.New(), sha256.New()
		i.mask = red.Writer(i.masked)
	}
	c.Stdin = i
	return i
}

// Read hands on.
func (i *intake) Read(b []byte) (int, error) {
	n, err := i.from.Read(b)
	i.bytes += int64(n)
	if i.raw != nil {
		_, _ = i.raw.Write(b[:n])  // hashes never fail
		_, _ = i.mask.Write(b[:n]) // as above
	}
	return n, err
}

// content tells what was read.
func (i *intake) content() *Content {
	if i == nil {
		return nil
	}
	c := &Content{Bytes: i.bytes, SHA256: i.said, Said: i.said != ""}
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
