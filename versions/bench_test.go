package versions

import "testing"

func BenchmarkLoad(b *testing.B) {
	for b.Loop() {
		if _, problems := Load(); problems != nil {
			b.Fatal(problems)
		}
	}
}

func BenchmarkResolve(b *testing.B) {
	c, config := load(b), cluster(configs["high-availability"])
	for b.Loop() {
		if _, problems := c.Resolve(config); problems.Err() != nil {
			b.Fatal(problems)
		}
	}
}
