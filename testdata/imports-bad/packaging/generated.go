// Code generated for the fixture. DO NOT EDIT.

package packaging

const (
	g1  = 1
	g2  = 2
	g3  = 3
	g4  = 4
	g5  = 5
	g6  = 6
	g7  = 7
	g8  = 8
	g9  = 9
	g10 = 10
	g11 = 11
	g12 = 12
	g13 = 13
	g14 = 14
	g15 = 15
	g16 = 16
	g17 = 17
	g18 = 18
	g19 = 19
	g20 = 20
	g21 = 21
	g22 = 22
	g23 = 23
	g24 = 24
	g25 = 25
	g26 = 26
	g27 = 27
	g28 = 28
	g29 = 29
	g30 = 30
)
