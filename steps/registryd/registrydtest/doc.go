// Package registrydtest simulates the registry's services on a simulated host: a registry
// that answers while the units run, with the certificate on that host, and loses its images
// with its data folder.
//
// It may import steps/connector, its simulated host, steps/registryd, registry and
// manifest. Only tests and simulated sites import it.
package registrydtest
