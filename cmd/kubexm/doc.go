// Command kubexm takes Kubernetes into places without internet and keeps it
// alive there. See the README for the two commands that matter most, and
// ARCHITECTURE.md for the way that they take through the packages.
package main
