package bundle

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mensylisir/kubexm/bundle/archive"
)

func TestSortJobs(t *testing.T) {
	all := []job{
		{name: "small layer", size: 1, blobs: []archive.Blob{{Digest: "sha256:00"}}},
		{name: "second binary", size: 5, blobs: []archive.Blob{{Digest: "sha256:bb", Compress: true}}},
		{name: "large layer", size: 9, blobs: []archive.Blob{{Digest: "sha256:ff"}}},
		{name: "first binaries", size: 2, blobs: []archive.Blob{{Digest: "sha256:11"}, {Digest: "sha256:ee", Compress: true}, {Digest: "sha256:aa", Compress: true}}},
	}
	sortJobs(all)
	var got []string
	for _, j := range all {
		got = append(got, j.name)
	}
	if d := cmp.Diff([]string{"first binaries", "second binary", "large layer", "small layer"}, got); d != "" {
		t.Error(d)
	}
}
