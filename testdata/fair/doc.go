// Package fair keeps tests from failing by luck: it holds what takes time to
// limits that know how busy the machine is, and gives random input from a seed
// that is the same on each run.
package fair
