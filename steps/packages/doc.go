// Package packages installs packages of a host's operating system out of the bundle, and
// takes exactly those away again. It also says for which hosts it cannot.
//
// It may import steps, steps/op, steps/runner and manifest.
package packages
