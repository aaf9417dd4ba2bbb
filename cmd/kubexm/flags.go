package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// choice is a flag whose value is one of a fixed list.
type choice struct {
	value   *string
	allowed []string
	name    string // placeholder of the value in the help; "" is format
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

// Type returns the placeholder of the value in the help.
func (c *choice) Type() string { return cmp.Or(c.name, "format") }

func (c *choice) list() string { return strings.Join(c.allowed, ", ") }
