// Package packaging resolves dependencies of operating system packages for one
// distribution and release. Its subpackages read a distribution's metadata into Packages;
// a Universe of these computes the dependency closure: Solve.
//
// The solver is a small CDCL solver of this project. General SAT solvers find any
// solution. Here the solution must be the one that the distribution's own tool would
// choose, with alternatives in their listed order, and a failure must be explained.
//
//	clauses    a package requires one of others; two packages conflict
//	decide     depth first from the request, the first alternative that is not excluded
//	propagate  assign variables that have only one possible value
//	conflict   learn a clause that excludes the cause, and backtrack
//
// Base packages, which every installation has, are left out of a repository, except those
// that are required in exactly one version: Carry.
//
// It may import versions and manifest.
package packaging
