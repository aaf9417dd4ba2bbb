package lab

import "strings"

// Config fills a cluster config for this lab: ${LAB_KEY} becomes the file of
// the key that hosts let in, and ${LAB_NET} the first three numbers of their
// addresses.
func (l *Lab) Config(text string) string {
	return fill(text, strings.TrimSuffix(l.address(0), ".0"), l.Key())
}

// unfilled makes a config that no lab has filled one that can be read. Its
// addresses are from a range that is set aside for documents.
func unfilled(text string) string { return fill(text, "192.0.2", "key") }

func fill(text, net, key string) string {
	return strings.NewReplacer("${LAB_NET}", net, "${LAB_KEY}", key).Replace(text)
}
