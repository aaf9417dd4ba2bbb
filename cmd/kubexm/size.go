package main

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// byteSize is a flag whose value is a number of bytes: 650MB, 4GiB, 1.5GiB.
type byteSize int64

// sizeUnits maps units to bytes; units with an i are powers of two.
var sizeUnits = map[string]float64{
	"": 1, "b": 1, "kb": 1e3, "mb": 1e6, "gb": 1e9, "tb": 1e12,
	"k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40,
	"kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30, "tib": 1 << 40,
}

func (b *byteSize) String() string {
	if b == nil || *b == 0 {
		return ""
	}
	return strconv.FormatInt(int64(*b), 10)
}

func (b *byteSize) Set(s string) error {
	number := strings.TrimRight(strings.TrimSpace(s), "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
	unit, ok := sizeUnits[strings.ToLower(strings.TrimSpace(s)[len(number):])]
	n, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	if !ok || err != nil || n <= 0 || n*unit < 1 || n*unit >= math.MaxInt64/2 {
		return fmt.Errorf("%q is not a valid size; write it as 4GiB, 650MB or a number of bytes", s)
	}
	*b = byteSize(n * unit)
	return nil
}

// Type returns the placeholder of the value in the help.
func (b *byteSize) Type() string { return "size" }
