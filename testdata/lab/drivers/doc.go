// Package drivers puts load on a cluster while a test does something to it, and measures
// what clients notice: a writer of ConfigMaps, two probers of a Service, and a watcher.
//
//	d, err := drivers.Start(ctx, config) // the phase Baseline begins
//	d.Mark("balancer loses power")       // the next one
//	report, err := d.Stop(ctx)           // read back, clean up
//	err = report.Check("balancer loses power", drivers.Limit{Gap: 3 * time.Second, Failed: drivers.Unlimited, Watch: 5 * time.Second})
//
// Requests begin at fixed times, whether or not earlier ones were answered, and are not
// repeated. So a server that hangs shows as a gap and a server that refuses as failures.
//
// The package uses net/http and not client-go: client-go limits its own rate, repeats
// requests and shares connections between clients, which would hide what is measured.
// HTTP/2 health checks are those of net/http, the same code as golang.org/x/net/http2.
//
// The package is for this module's tests: none but tests may import it. It imports no
// other package of the module.
package drivers
