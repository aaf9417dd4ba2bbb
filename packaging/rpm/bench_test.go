package rpm

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"

	"github.com/mensylisir/kubexm/packaging"
)

// largePrimary is primary.xml as long as that of a large distribution: 20,000
// packages with some thirty lines each.
func largePrimary() string {
	rnd := rand.New(rand.NewPCG(1, 1))
	var all []string
	for i := range 20000 {
		var b strings.Builder
		fmt.Fprintf(&b, "package-%d 1.%d-1.el9; <rpm:license>GPL</rpm:license><rpm:provides>", i, rnd.IntN(9))
		for j := range 6 {
			fmt.Fprintf(&b, "\n"+`      <rpm:entry name="lib%d.so.%d()(64bit)" flags="EQ" epoch="0" ver="1" rel="1"/>`, i, j)
		}
		b.WriteString("</rpm:provides><rpm:requires>")
		for range 10 {
			fmt.Fprintf(&b, "\n"+`      <rpm:entry name="lib%d.so.%d()(64bit)"/>`, rnd.IntN(20000), rnd.IntN(6))
		}
		b.WriteString("</rpm:requires>")
		for j := range 4 {
			fmt.Fprintf(&b, "\n<file>/usr/bin/program-%d-%d</file>", i, j)
		}
		all = append(all, b.String())
	}
	return primaryOf(all...)
}

// BenchmarkClosure reads a large distribution's metadata and solves over it.
func BenchmarkClosure(b *testing.B) {
	primary := largePrimary()
	m := memory{}
	r := m.repository(b, "https://a.test", "gz", map[string]string{"primary": primary})
	b.SetBytes(int64(len(primary)))
	for b.Loop() {
		read, err := Read(b.Context(), m, []Repository{r}, options)
		if err != nil {
			b.Fatal(err)
		}
		u, _, err := read.Universe()
		if err != nil {
			b.Fatal(err)
		}
		s, err := u.Solve(b.Context(), packaging.Request{Want: read.Want("package-7", "package-70")})
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(len(s.Add)), "packages")
		var mem runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&mem)
		b.ReportMetric(float64(mem.HeapAlloc)/1e6, "MB-live")
		runtime.KeepAlive(read)
	}
}
