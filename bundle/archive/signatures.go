package archive

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"

	"github.com/mensylisir/kubexm/manifest/durable"
)

// slotSize is the size of the signature slot's data.
const slotSize = 256 << 10

// emptySlot is the slot of an unsigned archive.
func emptySlot() []byte { return bytes.Repeat([]byte{' '}, slotSize) }

// parseSlot gives the slot's lines without the spaces that follow them.
func parseSlot(slot []byte) ([]byte, error) {
	lines := slot[:bytes.LastIndexByte(slot, '\n')+1]
	if len(bytes.TrimLeft(slot[len(lines):], " ")) > 0 {
		return nil, fault(ErrSlot, slotName, noOffset, "something other than spaces follows the signatures")
	}
	if err := checkLines(lines); err != nil {
		return nil, err
	}
	return lines, nil
}

// checkLines accepts JSON objects, one a line, each line ended.
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

// slotOf gives the slot that holds lines.
func slotOf(lines []byte) ([]byte, error) {
	if len(lines) > slotSize {
		return nil, fault(ErrSlot, slotName, noOffset, "%d bytes of signatures, the slot has %d", len(lines), slotSize)
	}
	slot := emptySlot()
	copy(slot, lines)
	return slot, checkLines(lines)
}

// WriteSignatures puts lines into the signature slot of the archive at path, in
// place of what was there, and flushes them to the disk. No other byte of the
// file changes. lines are JSON objects, one a line, at most 256 KiB; none at
// all makes the archive unsigned. A slot that a killed run left half-written is
// no obstacle; until RestoreSignatures or the next call, nobody else reads it.
func WriteSignatures(path string, lines []byte) error {
	slot, err := slotOf(lines)
	if err != nil {
		return err
	}
	lock, err := takeLock(path)
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
		// The slot's bytes are in the digest of its volume and in the parity.
		return &Error{Code: ErrInput, Offset: noOffset, Detail: path + " is in volumes, which cannot be signed",
			Advice: "join them, sign, and split again"}
	}
	// The slot has no second place in the file. Half of it would be no signature, and
	// no slot either: RestoreSignatures has the whole from here.
	beside := hidden(path, "signatures")
	if err := durable.WriteFile(beside, lines, 0o644); err != nil {
		return err
	}
	if err := overwrite(path, appendRawFrame(nil, slot), m.Offset+headLen); err != nil {
		return err
	}
	return os.Remove(beside)
}

// overwrite replaces bytes of a file, on the disk too.
func overwrite(path string, b []byte, at int64) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // the close that counts is the last line's
	if _, err := f.WriteAt(b, at); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	return f.Close()
}

// RestoreSignatures ends what a WriteSignatures began that was cut off, where its slot
// is half-written; without such a slot it does nothing.
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
	return os.Remove(beside) // it was written, or not begun, or another archive has this name now
}
