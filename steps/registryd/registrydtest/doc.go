// Package registrydtest owns the program behind the registry's unit on a simulated
// host: a registry that answers while the unit runs, with the certificate that lies
// there, and forgets its images with its data folder.
//
// It may import steps/connector, its simulated host, steps/registryd, registry and
// manifest. Only tests import it, and what stands in for a site.
package registrydtest
