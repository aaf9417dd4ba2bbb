// Command versionsgen writes versions/data, the version matrix that is embedded in
// kubexm. It is a maintainers' tool and not part of the product.
//
//	go run ./cmd/versionsgen -facts DIR -out versions/data
//	go run ./cmd/versionsgen -clones DIR -tags cmd/versionsgen/tags.yaml
//
// The first joins source.yaml (written by maintainers), the facts (tables of public
// release metadata) and tags.yaml (content of upstream repositories at their tags). The
// second regenerates tags.yaml from local clones. Neither uses the network; both are
// reproducible.
package main
