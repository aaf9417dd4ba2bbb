// Package runtime chooses the container runtime that a config asks for. One more is a
// folder beside containerd and a file here, a row in manifest/part and a case in Of.
//
// It may import steps, steps/runtime/cri, the folders of runtimes, registry and manifest.
package runtime
