// Package packaging has one file that nobody reads to its end.
package packaging

const (
	n1  = 1
	n2  = 2
	n3  = 3
	n4  = 4
	n5  = 5
	n6  = 6
	n7  = 7
	n8  = 8
	n9  = 9
	n10 = 10
	n11 = 11
	n12 = 12
	n13 = 13
	n14 = 14
	n15 = 15
	n16 = 16
	n17 = 17
	n18 = 18
	n19 = 19
	n20 = 20
	n21 = 21
	n22 = 22
	n23 = 23
	n24 = 24
	n25 = 25
	n26 = 26
)
