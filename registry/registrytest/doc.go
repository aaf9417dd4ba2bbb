// Package registrytest has what the tests of registries need: bundles made of
// content in memory, and a registry in this process that is as strict, as
// forgetful or as stubborn as products are.
//
// It may import bundle and manifest. Only tests import it.
package registrytest
