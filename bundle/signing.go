package bundle

import (
	"bytes"
	"context"
	"fmt"
	"os"

	"github.com/mensylisir/kubexm/bundle/archive"
)

// DetachedSuffix is the suffix of the file with a detached signature of an archive, as
// cosign names it. It is for users who have only cosign. It signs neither the root nor a
// claim about the bundle, so no Policy accepts it.
const DetachedSuffix = ".sigstore.json"

// detachedPath returns the path of the detached signature beside an archive, or "".
func detachedPath(path string) string {
	if info, err := os.Stat(path + DetachedSuffix); err != nil || !info.Mode().IsRegular() {
		return ""
	}
	return path + DetachedSuffix
}

// Signatures returns the lines of the signature slot, each a JSON object and a line feed;
// empty for an unsigned bundle.
func (b *Bundle) Signatures() ([]byte, error) { return b.archive.Signatures() }

// AddSignatures adds lines to the signature slot of the archive at path, after those
// existing lines for which keep returns true. No other byte of the archive changes. An
// archive in volumes is refused: the digests in their table cover the slot.
func AddSignatures(ctx context.Context, path string, lines [][]byte, keep func(line []byte) bool) error {
	b, err := OpenPartial(ctx, path, Policy{AllowUnsigned: true}, Bases{})
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
