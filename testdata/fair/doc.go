// Package fair prevents tests from failing by chance. It applies time limits that take the
// load of the machine into account, and generates random input from a seed that is the same on
// each run.
package fair
