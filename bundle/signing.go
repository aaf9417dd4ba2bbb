package bundle

import (
	"bytes"
	"context"
	"fmt"

	"github.com/mensylisir/kubexm/bundle/archive"
)

// Signatures gives the lines of the signature slot, each a JSON object and a line
// feed; none of an unsigned bundle.
func (b *Bundle) Signatures() ([]byte, error) { return b.archive.Signatures() }

// AddSignatures puts lines into the signature slot of the archive at path, behind
// those that stand there and that keep does not let go. No other byte of the
// archive changes. An archive in volumes is refused: their table covers the slot.
func AddSignatures(ctx context.Context, path string, lines [][]byte, keep func(line []byte) bool) error {
	b, err := OpenPart(ctx, path, Policy{AllowUnsigned: true}, Bases{})
	if err != nil {
		return err
	}
	old, err := b.Signatures()
	if err := b.Close(); err != nil {
		return err
	}
	if err != nil {
		return err
	}
	var slot []byte
	for line := range bytes.Lines(old) {
		if keep(bytes.TrimSuffix(line, []byte{'\n'})) {
			slot = append(slot, line...)
		}
	}
	for _, line := range lines {
		slot = append(append(slot, line...), '\n')
	}
	if err := archive.WriteSignatures(path, slot); err != nil {
		return fmt.Errorf("sign %s: %w", path, err)
	}
	return nil
}
