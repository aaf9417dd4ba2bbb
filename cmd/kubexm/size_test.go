package main

import "testing"

func TestByteSize(t *testing.T) {
	for text, want := range map[string]int64{
		"1": 1, "4GiB": 4 << 30, "4gib": 4 << 30, "4G": 4 << 30, "650MB": 650e6, "1.5 GiB": 3 << 29, " 64KiB ": 64 << 10, "2TB": 2e12, "7b": 7,
		"": 0, "0": 0, "-1": 0, "4XiB": 0, "GiB": 0, "1e300GiB": 0, "NaN": 0, "Inf": 0, "0.1": 0,
	} {
		var b byteSize
		if err := b.Set(text); int64(b) != want || (err == nil) != (want > 0) {
			t.Errorf("%q gives %d (%v), want %d", text, b, err, want)
		}
	}
}
