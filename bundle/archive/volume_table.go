package archive

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// The suffixes of the files of an archive in volumes.
const (
	tableSuffix  = ".volumes"
	volumeFormat = "kubexm-volumes/1"
	copyMagic    = "kubexmV1" // ends a parity volume, after its copy of the table
	copyTail     = 8 + len(copyMagic)
)

// The limits of volumes. Reed-Solomon codes over bytes allow 256 shards.
const (
	MinVolumeSize = 64 << 10
	maxVolumes    = 999
	MaxShards     = 256
	maxTable      = 1 << 20
	headProbe     = 4 << 10
)

// Volume is one file of an archive in volumes, as the table lists it.
type Volume struct {
	Name   string `json:"name"`   // ".001" for the first volume, ".p001" for the first of parity
	Size   int64  `json:"size"`   // bytes; for a parity volume without its copy of the table
	Digest string `json:"digest"` // "sha256:…" of these bytes
	Head   string `json:"head"`   // XXH64 of the first 4 KiB, to recognize a wrong volume without reading it
}

// VolumeTable lists the volumes of an archive: the data volumes in order, and the parity
// volumes.
type VolumeTable struct {
	Size       int64 // bytes of the complete archive
	VolumeSize int64 // bytes of every volume except the last
	Volumes    []Volume
	Parity     []Volume
}

// tableHead and tableEnd are the first and the last line of a table.
type tableHead struct {
	Format     string `json:"format"`
	Size       int64  `json:"size"`
	VolumeSize int64  `json:"volumeSize"`
	Volumes    int    `json:"volumes"`
	Parity     int    `json:"parity"`
}

type tableEnd struct {
	Checksum string `json:"checksum"` // "sha256:…" of the lines before
}

// volumeSuffix returns the suffix of volume i, counted from 0.
func volumeSuffix(i int) string { return fmt.Sprintf(".%03d", i+1) }

// paritySuffix returns the suffix of parity volume i, counted from 0.
func paritySuffix(i int) string { return fmt.Sprintf(".p%03d", i+1) }

// volumeName splits the name of a volume into the archive's name and the volume's number,
// counted from 0.
func volumeName(path string) (base string, i int, ok bool) {
	at := len(path) - len(".001")
	if at <= 0 || path[at] != '.' || filepath.Base(path) == path[at:] {
		return "", 0, false
	}
	n, err := strconv.Atoi(path[at+1:])
	if err != nil || n < 1 || path[at:] != volumeSuffix(n-1) {
		return "", 0, false
	}
	return path[:at], n - 1, true
}

// volumeCount returns the number of volumes for a number of bytes.
func volumeCount(bytes, volumeSize int64) int64 { return (bytes + volumeSize - 1) / volumeSize }

// checkVolumes returns an error if an archive of at most so many bytes cannot be split like
// this.
func checkVolumes(bytes, volumeSize int64, parity int) error {
	if volumeSize < MinVolumeSize {
		return fault(ErrInput, "", noOffset, "a volume size of %s, the minimum is %d", byteCount(volumeSize), MinVolumeSize)
	}
	if parity < 0 {
		return fault(ErrInput, "", noOffset, "%d parity volumes", parity)
	}
	n := volumeCount(bytes, volumeSize)
	switch {
	case n > maxVolumes:
		return fault(ErrInput, "", noOffset, "%d volumes of %d bytes, the limit is %d volumes: choose a larger volume size", n, volumeSize, maxVolumes)
	case parity > 0 && n+int64(parity) > MaxShards:
		return fault(ErrInput, "", noOffset, "%d volumes and %d of parity, the limit is %d together: choose a larger volume size", n, parity, MaxShards)
	}
	return nil
}

// all lists the data volumes and the parity volumes, in the order of their shards.
func (t *VolumeTable) all() []Volume {
	return append(t.Volumes[:len(t.Volumes):len(t.Volumes)], t.Parity...)
}

// encode returns the canonical form of t: one JSON object per line, then its checksum.
func (t *VolumeTable) encode() []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	// A buffer accepts all bytes, and strings and numbers always encode.
	_ = enc.Encode(tableHead{volumeFormat, t.Size, t.VolumeSize, len(t.Volumes), len(t.Parity)})
	for _, v := range t.all() {
		_ = enc.Encode(v)
	}
	sum := sha256.Sum256(b.Bytes())
	_ = enc.Encode(tableEnd{digestPrefix + hex.EncodeToString(sum[:])})
	return b.Bytes()
}

// parseTable parses a table. It accepts only the bytes that encode returns.
func parseTable(text []byte) (*VolumeTable, error) {
	if len(text) > maxTable {
		return nil, fmt.Errorf("%d bytes, the limit is %d", len(text), maxTable)
	}
	lines := bytes.SplitAfter(text, []byte{'\n'})
	var head tableHead
	if err := json.Unmarshal(lines[0], &head); err != nil {
		return nil, err
	}
	if head.Format != volumeFormat {
		return nil, fmt.Errorf("it has format %q, this version of kubexm reads %q", head.Format, volumeFormat)
	}
	if head.Volumes < 1 || head.Parity < 0 || head.Volumes > maxVolumes || head.Parity >= MaxShards ||
		len(lines) != head.Volumes+head.Parity+3 { // the head, the checksum, nothing after the last line feed
		return nil, fmt.Errorf("%d lines for %d volumes and %d of parity", len(lines)-1, head.Volumes, head.Parity)
	}
	t := &VolumeTable{Size: head.Size, VolumeSize: head.VolumeSize}
	for i, line := range lines[1 : len(lines)-2] {
		var v Volume
		if err := json.Unmarshal(line, &v); err != nil {
			return nil, fmt.Errorf("line %d: %w", i+2, err)
		}
		if i < head.Volumes {
			t.Volumes = append(t.Volumes, v)
		} else {
			t.Parity = append(t.Parity, v)
		}
	}
	if !bytes.Equal(t.encode(), text) {
		return nil, errors.New("it does not match its checksum, or is not written as the format prescribes")
	}
	return t, t.check()
}

// check returns an error if the sizes and names of t do not follow from its first line.
func (t *VolumeTable) check() error {
	if t.Size < 1 || t.VolumeSize < 1 || volumeCount(t.Size, t.VolumeSize) != int64(len(t.Volumes)) {
		return fmt.Errorf("%d volumes of %d bytes cannot hold %d", len(t.Volumes), t.VolumeSize, t.Size)
	}
	if err := checkVolumes(t.Size, t.VolumeSize, len(t.Parity)); err != nil {
		return err
	}
	for i, v := range t.all() {
		name, size := volumeSuffix(i), min(t.VolumeSize, t.Size-int64(i)*t.VolumeSize)
		if j := i - len(t.Volumes); j >= 0 {
			name, size = paritySuffix(j), t.Volumes[0].Size
		}
		if v.Name != name || v.Size != size || checkDigest(v.Digest) != nil || len(v.Head) != len(pendingXXH64) {
			return fmt.Errorf("volume %s is listed as %q with %d bytes", name, v.Name, v.Size)
		}
	}
	return nil
}

// readTable reads the table of the archive called base: the file beside the volumes, or the
// copy in a parity volume. Without any it returns ErrNotExist.
func readTable(base string) (*VolumeTable, error) {
	text, err := readBounded(base + tableSuffix)
	if err == nil {
		var t *VolumeTable
		if t, err = parseTable(text); err == nil {
			return t, nil
		}
		err = &Error{Code: ErrVolume, Volume: filepath.Base(base) + tableSuffix, Offset: noOffset,
			Detail: "the table of volumes cannot be read", Err: err, Advice: "copy it again; each disk may contain a copy"}
	}
	for i := range MaxShards {
		if t, cerr := readCopy(base + paritySuffix(i)); cerr == nil {
			return t, nil
		}
	}
	return nil, err
}

func readBounded(path string) ([]byte, error) {
	if fi, err := os.Stat(path); err != nil {
		return nil, err
	} else if !fi.Mode().IsRegular() || fi.Size() > maxTable {
		return nil, fmt.Errorf("%s is not a table of volumes", path)
	}
	return os.ReadFile(path)
}

// appendCopy appends the copy of the table that follows the bytes of a parity volume.
func appendCopy(dst, table []byte) []byte {
	dst = append(dst, table...)
	dst = binary.LittleEndian.AppendUint64(dst, uint64(len(table)))
	return append(dst, copyMagic...)
}

// readCopy reads the table at the end of a parity volume.
func readCopy(path string) (_ *VolumeTable, err error) {
	if fi, err := os.Stat(path); err != nil {
		return nil, err
	} else if !fi.Mode().IsRegular() {
		return nil, errors.New("not a regular file")
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	fi, err := f.Stat()
	if err != nil {
		return nil, err
	}
	var tail [copyTail]byte
	at := fi.Size() - int64(copyTail)
	if at < 0 {
		return nil, errors.New("too short")
	}
	if _, err := f.ReadAt(tail[:], at); err != nil {
		return nil, err
	}
	n := binary.LittleEndian.Uint64(tail[:])
	if string(tail[8:]) != copyMagic || n > maxTable || int64(n) > at {
		return nil, errors.New("no copy of a table")
	}
	text := make([]byte, n)
	if _, err := f.ReadAt(text, at-int64(n)); err != nil {
		return nil, err
	}
	return parseTable(text)
}

// VolumeNumber converts "3" or "p1" to the index in the table, counted from 0; parity
// volumes follow the data volumes.
func (t *VolumeTable) VolumeNumber(word string) (int, error) {
	digits, parity := strings.CutPrefix(word, "p")
	list, from := t.Volumes, 0
	if parity {
		list, from = t.Parity, len(t.Volumes)
	}
	n, err := strconv.Atoi(digits)
	if err != nil || n < 1 || n > len(list) {
		return 0, fault(ErrInput, "", noOffset, "no volume %q: the bundle has %d volumes, and %d of parity (p1 is the first)", word, len(t.Volumes), len(t.Parity))
	}
	return from + n - 1, nil
}
