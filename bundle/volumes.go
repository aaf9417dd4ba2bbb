package bundle

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/mensylisir/kubexm/bundle/archive"
)

// FirstVolume is the suffix of the first volume of an archive.
const FirstVolume = ".001"

// withParity is the disk space of an archive of n bytes, including parity.
func withParity(n int64, o archive.VolumeOptions) int64 {
	return n + int64(o.Parity)*min(n, o.VolumeSize)
}

// Split splits the archive at path into volumes, with a table of their digests, and returns
// the name of the first. The archive is not removed.
func Split(ctx context.Context, path, to string, o archive.VolumeOptions, progress func(int64)) (first string, err error) {
	fi, err := os.Stat(path)
	if err != nil {
		return "", err
	}
	if err := checkSpace(addSpace(nil, filepath.Dir(to), withParity(fi.Size(), o))); err != nil {
		return "", err
	}
	if err := archive.Split(ctx, path, to, o, progress); err != nil {
		return "", fmt.Errorf("split %s: %w", path, err)
	}
	return to + FirstVolume, nil
}

// Join joins volumes to one archive and returns its path, by default the volumes' name
// without a number. The volumes are not removed.
func Join(ctx context.Context, first, to string, progress func(int64)) (path string, err error) {
	t, err := archive.Volumes(first)
	if err != nil {
		return "", fmt.Errorf("join %s: %w", first, err)
	}
	if to == "" {
		to = strings.TrimSuffix(first, FirstVolume)
	}
	if err := checkSpace(addSpace(nil, filepath.Dir(to), t.Size)); err != nil {
		return "", err
	}
	if err := archive.Join(ctx, first, to, progress); err != nil {
		return "", fmt.Errorf("join %s: %w", first, err)
	}
	return to, nil
}
