// Command faults breaks what a build and a transfer stand on, one way at a
// time, and prints what came of each: an upstream that lies, stalls, cuts and
// throttles, a registry that forgets, a disk that fills up, two builds on one
// cache, and kills. Each row holds one rule: what comes out has the bytes that
// it always has, or the command ends with an error that says why, leaves
// nothing under the final name, and succeeds when it is run again.
//
// An installation and a deletion are broken too: kills of kubexm, hosts that lose
// their power, connections, the registry, disks. Their hosts are simulated in this
// process, behind SSH servers; what runs on them outlives the kubexm that began it.
// Each has to end, when it is run again, where one ends that nothing disturbed.
//
// The disk of the machine that kubexm runs on loses power and refuses calls too: it
// is a file system of the program brittle, which forgets what it was not told to keep.
//
// `make faults` runs all of it against the real binary and notes each row in
// build/faults.jsonl, so that a run that was interrupted goes on; a smaller part
// runs as a test. Rows that need root are left out without it. All servers
// listen on the loopback address.
//
// It is a tool of this repository and may import any package of the module.
package main
