package main

import (
	"crypto/sha256"
	"fmt"
	"runtime"
	"time"
)

// machine is what bounds every build on it.
type machine struct {
	Cores  int     `json:"cores"`
	SHA256 float64 `json:"sha256BytesPerSecond"` // of one core
}

// lookAt hashes on one core for a moment.
func lookAt() machine {
	buf, h := make([]byte, 1<<20), sha256.New()
	best := 0.0
	for range 20 { // the best one: what else runs here only takes time away
		begin, n := time.Now(), 0
		for time.Since(begin) < 50*time.Millisecond {
			h.Write(buf)
			n += len(buf)
		}
		best = max(best, float64(n)/time.Since(begin).Seconds())
	}
	return machine{Cores: runtime.NumCPU(), SHA256: best}
}

// least is the time in seconds that hashing takes when all cores do nothing else.
func (m machine) least(bytes int64) float64 {
	return float64(bytes) / m.SHA256 / float64(m.Cores)
}

// String says how fast it hashes.
func (m machine) String() string {
	return fmt.Sprintf("%d cores, sha256 %.0f MB/s a core", m.Cores, m.SHA256/1e6)
}

// bound says what hashing alone makes of a ratio to something that took so many seconds.
func (m machine) bound(bytes int64, what string, seconds float64) string {
	return fmt.Sprintf("sha256 of %.2f GB takes %.1f s on %s, %.2f of %s's %.1f s", float64(bytes)/1e9, m.least(bytes), m, m.least(bytes)/seconds, what, seconds)
}
