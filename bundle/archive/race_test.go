//go:build race

package archive

// raceEnabled tells tests that count seconds or bytes that everything takes ten
// times as long.
const raceEnabled = true
