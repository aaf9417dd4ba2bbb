package bundle

import (
	"context"
	"fmt"
)

// Verify opens the archive at path and then reads every byte of it: each blob
// against its digest, and everything between the blobs against the one form it
// can have. It returns every finding joined, each with the blob's name.
// Progress, if set, is told how many bytes were read since the last call.
func Verify(ctx context.Context, path string, policy Policy, workers int, progress func(int64)) (*Bundle, error) {
	b, err := Open(ctx, path, policy)
	if err != nil {
		return nil, err
	}
	if err := b.archive.Verify(ctx, max(workers, 1), progress); err != nil {
		_ = b.Close() // read only: nothing to lose
		return nil, fmt.Errorf("verify %s: %w", path, err)
	}
	return b, nil
}
