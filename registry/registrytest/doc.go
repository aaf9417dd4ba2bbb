// Package registrytest helps to test registries: it builds bundles from content in memory, and
// has an in-process registry that can be configured to be as strict as real products.
//
// It may import bundle and manifest. Only tests import it.
package registrytest
