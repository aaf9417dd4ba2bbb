package bundle

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/mensylisir/kubexm/bundle/archive"
)

// FirstVolume is what the first volume of an archive adds to its name.
const FirstVolume = ".001"

// withParity is what an archive of n bytes takes on the disk.
func withParity(n int64, o archive.VolumeOptions) int64 {
	return n + int64(o.Parity)*min(n, o.VolumeSize)
}

// Split cuts the archive at path into volumes, each with its digest in a table
// beside them, and gives the name of the first. The archive stays.
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

// Join makes one archive of volumes and gives its path, by default the volumes'
// name without a number. They stay.
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
