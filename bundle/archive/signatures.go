package archive

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"

	"github.com/mensylisir/kubexm/manifest/durable"
)

// slotSize is the size of the signature slot's data in bytes.
const slotSize = 256 << 10

// emptySlot returns the slot of an unsigned archive.
func emptySlot() []byte { return bytes.Repeat([]byte{' '}, slotSize) }

// parseSlot returns the slot's lines without the spaces after them.
func parseSlot(slot []byte) ([]byte, error) {
	lines := slot[:bytes.LastIndexByte(slot, '\n')+1]
	if len(bytes.TrimLeft(slot[len(lines):], " ")) > 0 {
		return nil, fault(ErrSlot, slotName, noOffset, "data other than spaces follows the signatures")
	}
	if err := checkLines(lines); err != nil {
		return nil, err
	}
	return lines, nil
}

// checkLines accepts JSON objects, one per line, each line ended.
func checkLines(lines []byte) error {
	n := 0
	for line := range bytes.Lines(lines) {
		n++
		body, ended := bytes.CutSuffix(line, []byte{'\n'})
		if !ended || len(body) < 2 || body[0] != '{' || body[len(body)-1] != '}' || !json.Valid(body) {
			return fault(ErrSlot, slotName, noOffset, "line %d of the signatures is not one JSON object", n)
		}
	}
	return nil
}

// slotOf returns the slot with lines.
func slotOf(lines []byte) ([]byte, error) {
	if len(lines) > slotSize {
		return nil, fault(ErrSlot, slotName, noOffset, "%d bytes of signatures do not fit into the slot of %d", len(lines), slotSize)
	}
	slot := emptySlot()
	copy(slot, lines)
	return slot, checkLines(lines)
}

// WriteSignatures replaces the content of the signature slot of the archive at path by
// lines, and syncs the file. No other byte of the file changes. lines are JSON objects, one
// per line, at most 256 KiB together; no lines make the archive unsigned. It also replaces
// a slot that a killed run left incomplete. Until then, or until RestoreSignatures, reading
// such a slot fails.
func WriteSignatures(path string, lines []byte) error {
	slot, err := slotOf(lines)
	if err != nil {
		return err
	}
	lock, err := lockPath(path)
	if err != nil {
		return err
	}
	defer lock.release()
	r, err := Open(path)
	if err != nil {
		return err
	}
	m, split := *r.slot(), r.volumes != nil
	if err := r.Close(); err != nil {
		return err
	}
	if split {
		// The slot's bytes are part of the digest of its volume and of the parity.
		return &Error{Code: ErrInput, Offset: noOffset, Detail: path + " is in volumes, which cannot be signed",
			Advice: "join them, sign, and split again"}
	}
	// The slot is overwritten in place. A crash would leave half of it, which is not a
	// valid slot: RestoreSignatures then rewrites it from this copy.
	beside := hidden(path, "signatures")
	if err := durable.WriteFile(beside, lines, 0o644); err != nil {
		return err
	}
	if err := overwrite(path, appendRawFrame(nil, slot), m.Offset+headLen); err != nil {
		return err
	}
	return os.Remove(beside)
}

// overwrite replaces bytes of a file and syncs it.
func overwrite(path string, b []byte, at int64) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // the last line returns the error of Close
	if _, err := f.WriteAt(b, at); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	return f.Close()
}

// RestoreSignatures completes an interrupted WriteSignatures if the slot is incomplete;
// otherwise it changes nothing in the archive.
func RestoreSignatures(path string) error {
	beside := hidden(path, "signatures")
	lines, err := os.ReadFile(beside)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	r, err := Open(path)
	if err != nil {
		return err
	}
	_, broken := r.Signatures()
	if err := r.Close(); err != nil {
		return err
	}
	if broken != nil {
		return WriteSignatures(path, lines)
	}
	return os.Remove(beside) // the slot was written completely or not at all, or the archive was replaced
}
