// Package budget limits the number of modules in kubexm and the size of the program. Each may
// be at most five percent above the value recorded in budget.json; a larger increase is a
// decision, recorded with `make budget`.
package budget
