package archive

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"os"
	"sync"
)

// Suffixes of an unfinished archive's files, after the archive's or the volume's name.
const (
	partialSuffix = ".partial"
	journalSuffix = ".partial.journal"
)

// PartialPath returns the name of the unfinished archive of path while a Writer writes it. An
// archive in volumes has one such file for each volume.
func PartialPath(path string) string { return path + partialSuffix }

// The journal of an unfinished archive lists what its file contains: the first line says for
// which layout, each further line is one complete entry, or how much of a stored blob is
// there. A later line about a blob replaces an earlier one. Nothing is synced: whoever
// continues the file checks what the journal says.
type journal struct {
	mu   sync.Mutex
	file *os.File
	err  error // the first failure; nothing is written after it
}

// journalFormat is the format of the first line.
const journalFormat = "kubexm-partial/1"

type journalHead struct {
	Format     string `json:"format"`
	Layout     string `json:"layout"`               // identity of the layout and of the compressor
	VolumeSize int64  `json:"volumeSize,omitempty"` // of the partial files, 0 for one file
}

// journalLine is one line after the head. Prefix is set for an incomplete blob, the other
// fields of Member for a complete one. Offset and length of what is staged are those of its
// frames in its own file.
type journalLine struct {
	Member
	Prefix *int64 `json:"prefix,omitempty"` // bytes of content, from the beginning
	Staged bool   `json:"staged,omitempty"`
}

// maxJournal limits what is read of a journal: a million lines.
const maxJournal = 256 << 20

// journalHeadOf describes the partial files of a layout.
func journalHeadOf(l *Layout, o VolumeOptions) journalHead {
	sum := sha256.Sum256(appendIndex([]byte(Compressor()+"\n"), l.members))
	return journalHead{Format: journalFormat, Layout: hex.EncodeToString(sum[:]), VolumeSize: o.VolumeSize}
}

// claims is the content of a journal: what an unfinished archive is said to contain.
type claims struct {
	head       journalHead
	stored     map[string]Member  // complete stored blobs, by digest
	staged     map[string]Member  // complete compressed blobs in files of their own, by digest
	prefixes   map[string]claimed // beginnings of blobs, by digest
	compressed []Member           // complete compressed blobs, in file order
	end        int64              // bytes of the journal that were understood
}

// claimed is the beginning of a blob.
type claimed struct {
	prefix int64 // bytes of content
	length int64 // bytes of frames, of a staged blob
}

// bytes returns the bytes of content that c lists.
func (c *claims) bytes() (n int64) {
	for _, m := range c.stored {
		n += m.Size
	}
	for _, m := range c.staged {
		n += m.Size
	}
	for _, p := range c.prefixes {
		n += p.prefix
	}
	for _, m := range c.compressed {
		n += m.Size
	}
	return n
}

// complete lists the entries that c claims to be complete in the archive.
func (c *claims) complete() []Member {
	all := make([]Member, 0, len(c.stored)+len(c.compressed))
	for _, m := range c.stored {
		all = append(all, m)
	}
	return append(all, c.compressed...)
}

// readClaims reads the journal of path's partial files. A missing or unreadable journal is
// nil without an error: the partial files are then of no use.
func readClaims(path string) (*claims, error) {
	f, err := os.Open(path + journalSuffix)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil //nolint:nilnil // no journal is not a failure
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // opened for reading only
	return parseClaims(io.LimitReader(f, maxJournal))
}

// parseClaims parses a journal up to the first line that is not one: a power loss may leave
// anything after what was synced.
func parseClaims(r io.Reader) (*claims, error) {
	lines := bufio.NewReader(r)
	first, err := lines.ReadBytes('\n')
	c := &claims{stored: map[string]Member{}, staged: map[string]Member{}, prefixes: map[string]claimed{}, end: int64(len(first))}
	if err != nil || strict(first, &c.head) != nil || c.head.Format != journalFormat {
		return nil, ignoreEOF(err)
	}
	for {
		text, err := lines.ReadBytes('\n')
		if err != nil {
			return c, ignoreEOF(err)
		}
		var l journalLine
		if strict(text, &l) != nil || !c.add(&l) {
			return c, nil
		}
		c.end += int64(len(text))
	}
}

// add adds a line. It returns false if the line cannot be one.
func (c *claims) add(l *journalLine) bool {
	m := l.Member
	if checkDigest(m.Digest) != nil || m.Size < 0 || m.Size > maxBlob || m.Offset < 0 || m.Length < 0 {
		return false
	}
	m.Name = blobName(m.Digest)
	delete(c.prefixes, m.Digest)
	switch {
	case l.Prefix != nil:
		if *l.Prefix < 0 || *l.Prefix > maxBlob {
			return false
		}
		delete(c.stored, m.Digest)
		delete(c.staged, m.Digest)
		c.prefixes[m.Digest] = claimed{*l.Prefix, m.Length}
	case l.Staged:
		if m.Stored() {
			return false
		}
		c.staged[m.Digest] = m
	case m.Stored():
		if m.Length != storedLen(m.Size) {
			return false
		}
		c.stored[m.Digest] = m
	default:
		if m.Length < minCompressedLen(m.Size) {
			return false
		}
		for i := range c.compressed { // written again: what followed it is overwritten
			if c.compressed[i].Digest == m.Digest {
				c.compressed = c.compressed[:i]
				break
			}
		}
		c.compressed = append(c.compressed, m)
		delete(c.staged, m.Digest)
	}
	return true
}

func strict(text []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	return d.Decode(v)
}

func ignoreEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// startJournal writes a new journal for path.
func startJournal(path string, head journalHead) (*journal, error) {
	f, err := os.OpenFile(path+journalSuffix, os.O_WRONLY|os.O_CREATE|os.O_TRUNC|os.O_APPEND, 0o644)
	if err != nil {
		return nil, err
	}
	j := &journal{file: f}
	if j.write(head); j.err != nil {
		return nil, errors.Join(j.err, f.Close(), os.Remove(f.Name()))
	}
	return j, nil
}

// continueJournal opens the journal of path, of which c was understood.
func continueJournal(path string, c *claims) (*journal, error) {
	f, err := os.OpenFile(path+journalSuffix, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return nil, err
	}
	if err := f.Truncate(c.end); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &journal{file: f}, nil
}

// write appends a line. A failure is returned by close.
func (j *journal) write(v any) {
	if j == nil {
		return
	}
	b, err := json.Marshal(v)
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.err == nil && err == nil {
		_, err = j.file.Write(append(b, '\n'))
	}
	if j.err == nil {
		j.err = err
	}
}

// complete records a complete entry.
func (j *journal) complete(m *Member) { j.write(m) }

// prefix records that the first n bytes of a stored blob are in the file.
func (j *journal) prefix(m *Member, n int64) {
	j.write(journalLine{Member: Member{Digest: m.Digest}, Prefix: &n})
}

// staged records that the first n bytes of a compressed blob are in its file, as so many
// bytes of frames.
func (j *journal) staged(m *Member, n, length int64) {
	j.write(journalLine{Member: Member{Digest: m.Digest, Length: length}, Prefix: &n, Staged: true})
}

// close syncs and closes the journal; the file stays. It returns the first failure of all.
func (j *journal) close() error {
	if j == nil {
		return nil
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.err == nil {
		j.err = j.file.Sync()
	}
	if err := j.file.Close(); j.err == nil {
		j.err = err
	}
	return j.err
}

// removeJournal removes the journal, and the staged blobs that it lists.
func removeJournal(path string) error {
	if err := os.RemoveAll(stagedFolder(path)); err != nil {
		return err
	}
	if err := os.Remove(path + journalSuffix); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}
