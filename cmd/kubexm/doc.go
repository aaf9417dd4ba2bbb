// Command kubexm installs and operates Kubernetes at sites without internet access. See
// the README for the two main commands, and ARCHITECTURE.md for the packages that they
// use.
package main
