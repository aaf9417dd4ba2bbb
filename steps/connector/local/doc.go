// Package local owns the wire to the machine that kubexm itself runs on: the
// same contract as over SSH, with os/exec. It is the only folder that starts
// programs there.
//
// It may import connector.
package local
