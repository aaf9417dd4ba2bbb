// Package local is the transport to the machine that kubexm runs on. It implements the
// same contract as package ssh with os/exec, and is the only package that starts
// programs there.
//
// It may import connector.
package local
