package images

import _ "embed"

// nodeCache stands in for cmd/node-cache of kubernetes/dns, which has CoreDNS in itself.
//
//go:embed node-cache.sh
var nodeCache string
