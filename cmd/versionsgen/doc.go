// Command versionsgen writes versions/data, the matrix that kubexm carries. It
// is a maintainers' tool: the binary that people run never calls it.
//
//	go run ./cmd/versionsgen -facts DIR -out versions/data
//	go run ./cmd/versionsgen -clones DIR -tags cmd/versionsgen/tags.yaml
//
// The first joins source.yaml (what a maintainer knows), the facts (tables of
// public release metadata) and tags.yaml (what upstream repositories hold at
// their tags). The second writes tags.yaml anew from local clones. Neither asks
// the network; both write the same bytes from the same input.
package main
