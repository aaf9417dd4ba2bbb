// Package runtime selects the container runtime of a config. To add one, add a folder beside
// containerd, a file in this package, a row in manifest/part and a case in Of.
//
// It may import steps, steps/runtime/cri, the folders of runtimes, registry and manifest.
package runtime
