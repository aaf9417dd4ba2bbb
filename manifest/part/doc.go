// Package part holds facts of a cluster's parts: who runs them, where they listen, and
// what they leave on a host. One more runtime or pod network is a row here, and its
// steps; who asks for a fact asks for it here, and compares no field of the config.
//
// It may import manifest.
package part
