package bundle

import (
	"fmt"
	"strings"
)

// DeltaView is what verify and show say of a delta.
type DeltaView struct {
	Cluster     string   `json:"cluster" yaml:"cluster"`         // whose site the rest lies at
	Bases       []string `json:"bases" yaml:"bases"`             // roots
	AbsentBlobs int      `json:"absentBlobs" yaml:"absentBlobs"` // that neither it nor a base given holds
	AbsentBytes int64    `json:"absentBytes" yaml:"absentBytes"`
}

// DeltaView says what of a delta is not here; nil of a whole bundle.
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

// against names the bases of a delta.
func (v *DeltaView) against() string {
	if len(v.Bases) == 0 {
		return "the registry of cluster " + v.Cluster
	}
	return "base " + strings.Join(v.Bases, " or ")
}

// Expected says what is left to a base.
func (v *DeltaView) Expected() string {
	if v.AbsentBlobs == 0 {
		return "a delta for cluster " + v.Cluster + ", whole with its base"
	}
	blobs := "1 blob"
	if v.AbsentBlobs != 1 {
		blobs = fmt.Sprintf("%d blobs", v.AbsentBlobs)
	}
	return fmt.Sprintf("a delta for cluster %s: %s (%s) are not in it and expected from %s", v.Cluster,
		blobs, Bytes(v.AbsentBytes), v.against())
}
