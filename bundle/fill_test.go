package bundle

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mensylisir/kubexm/bundle/archive"
	"github.com/mensylisir/kubexm/bundle/fetch"
)

func TestSortJobs(t *testing.T) {
	stream := func(context.Context, fetch.Sink) error { return nil }
	all := []job{
		{name: "small layer", size: 1, blobs: []archive.Blob{{Digest: "sha256:00"}}, stream: stream},
		{name: "binary", size: 5, blobs: []archive.Blob{{Digest: "sha256:bb", Compress: true}}, stream: stream},
		{name: "large layer", size: 9, blobs: []archive.Blob{{Digest: "sha256:ff"}}, stream: stream},
		{name: "archive", size: 2, blobs: []archive.Blob{{Digest: "sha256:11"}, {Digest: "sha256:ee", Compress: true}, {Digest: "sha256:aa", Compress: true}}},
		{name: "large archive", size: 3, blobs: []archive.Blob{{Digest: "sha256:12", Compress: true}}},
	}
	sortJobs(all)
	var got []string
	for _, j := range all {
		got = append(got, j.name)
	}
	if d := cmp.Diff([]string{"large archive", "archive", "binary", "large layer", "small layer"}, got); d != "" {
		t.Error(d)
	}
}
