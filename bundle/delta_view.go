package bundle

import (
	"fmt"
	"strings"
)

// DeltaView describes a delta for bundle verify and bundle show.
type DeltaView struct {
	Cluster     string   `json:"cluster" yaml:"cluster"`         // cluster whose site has the other blobs
	Bases       []string `json:"bases" yaml:"bases"`             // roots
	AbsentBlobs int      `json:"absentBlobs" yaml:"absentBlobs"` // neither in the delta nor in an opened base
	AbsentBytes int64    `json:"absentBytes" yaml:"absentBytes"`
}

// DeltaView describes which blobs of a delta are absent; nil for a complete bundle.
func (b *Bundle) DeltaView() *DeltaView {
	if b.Delta == nil {
		return nil
	}
	v := &DeltaView{Cluster: b.Delta.Cluster, Bases: []string{}}
	v.AbsentBlobs, v.AbsentBytes = b.Absent()
	for _, r := range b.Delta.Bases {
		v.Bases = append(v.Bases, r.String())
	}
	return v
}

// against returns the bases of a delta in words.
func (v *DeltaView) against() string {
	if len(v.Bases) == 0 {
		return "the registry of cluster " + v.Cluster
	}
	return "base " + strings.Join(v.Bases, " or ")
}

// Expected describes what a delta expects from its base.
func (v *DeltaView) Expected() string {
	if v.AbsentBlobs == 0 {
		return "a delta for cluster " + v.Cluster + ", complete with its base"
	}
	blobs := "1 blob"
	if v.AbsentBlobs != 1 {
		blobs = fmt.Sprintf("%d blobs", v.AbsentBlobs)
	}
	return fmt.Sprintf("a delta for cluster %s: %s (%s) are left out and expected from %s", v.Cluster,
		blobs, Bytes(v.AbsentBytes), v.against())
}
