package main

import (
	"fmt"
	"slices"
	"strings"
)

// choice is a flag that takes one of a few words.
type choice struct {
	value   *string
	allowed []string
}

func (c *choice) String() string {
	if c.value == nil {
		return ""
	}
	return *c.value
}

func (c *choice) Set(s string) error {
	if !slices.Contains(c.allowed, s) {
		return fmt.Errorf("use one of: %s", c.list())
	}
	*c.value = s
	return nil
}

func (c *choice) Type() string { return "format" }

func (c *choice) list() string { return strings.Join(c.allowed, ", ") }
