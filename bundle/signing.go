package bundle

import (
	"bytes"
	"context"
	"fmt"
	"os"

	"github.com/mensylisir/kubexm/bundle/archive"
)

// DetachedSuffix is the end of the name of a signature of an archive's file, as
// cosign has it. It is for those who have cosign alone: it says nothing of the
// root, and nothing of what the bundle is for, so that no Policy is content with it.
const DetachedSuffix = ".sigstore.json"

// beside gives the path of such a signature beside an archive, or "".
func beside(path string) string {
	if info, err := os.Stat(path + DetachedSuffix); err != nil || !info.Mode().IsRegular() {
		return ""
	}
	return path + DetachedSuffix
}

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
