package versions

import "testing"

func BenchmarkLoad(b *testing.B) {
	for b.Loop() {
		if _, problems := Load(); problems != nil {
			b.Fatal(problems)
		}
	}
}
