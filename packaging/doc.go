// Package packaging owns operating system packages: which packages a set of
// names means on one distribution and release, and an offline repository of
// them. Whoever reads a distribution's metadata makes Packages of it, of which a
// Universe finds the closure: Solve.
//
// The search is a small one of our own: general solvers of such clauses find
// some solution, and what is wanted here is the one that the distribution's own
// tool would choose, with the alternatives in the order in which they are named,
// and in words why there is none.
//
//	clauses   a package needs one of others; two may not stand side by side
//	choose    depth first from what is wanted, the first alternative not ruled out
//	follow    settle what can be in one way only
//	conflict  learn a clause that rules out its cause, go back to where that holds
//
// What every installation has is left out of a repository, except what goes with one
// version of it alone: Carry.
//
// It may import versions and manifest.
package packaging
