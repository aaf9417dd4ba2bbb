package lab

import "strings"

// Config fills a cluster config for this lab: ${LAB_KEY} becomes the file of
// the key that hosts let in, ${LAB_NET} the first three numbers of their
// addresses, and ${LAB_NET6} their IPv6 addresses without "::" and the number.
func (l *Lab) Config(text string) string {
	return fill(text, strings.TrimSuffix(l.address(0), ".0"), strings.TrimSuffix(l.address6(0), "::0"), l.Key())
}

// unfilled makes a config that no lab has filled one that can be read. Its
// addresses are from a range that is set aside for documents.
func unfilled(text string) string { return fill(text, "192.0.2", "2001:db8:0:0", "key") }

func fill(text, net, net6, key string) string {
	return strings.NewReplacer("${LAB_NET}", net, "${LAB_NET6}", net6, "${LAB_KEY}", key).Replace(text)
}
