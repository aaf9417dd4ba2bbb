// Package packages installs operating system packages from the bundle on a host, and
// removes exactly the packages that it installed. It also returns the errors for hosts
// whose packages it cannot manage.
//
// It may import steps, steps/op, steps/runner and manifest.
package packages
