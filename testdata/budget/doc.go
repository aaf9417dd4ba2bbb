// Package budget holds what kubexm is made of to a measure: how many modules, and
// how many bytes the program has. Either may grow by a twentieth over what
// budget.json has on record; more is a decision, and made by `make budget`.
package budget
