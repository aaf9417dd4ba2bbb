package chart

import "io"

// ReadWithin is Read with another bound on the sum of all files: a test that fills
// the real one takes minutes under the race detector.
func ReadWithin(r io.Reader, most int64) (*Chart, error) { return read(r, &budget{most: most}) }
