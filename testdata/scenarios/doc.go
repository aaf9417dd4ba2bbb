// Command scenarios decides which scenarios have to run on lab hosts again, and runs
// them. A scenario is a lab test that is too long for every change. It is due when
// its effect differs from the one it was last shown with.
//
// The effect tells what the scenario does to hosts: its cluster is made and deleted
// on simulated hosts, and the lines that the walk's cluster has too are left out.
// Added to it are the lab components that the scenario runs, its own test files, and
// the source of what leaves no trace on simulated hosts, both without their comments.
//
// `scenarios run` fails where a scenario is due and there is no time for it. One that does to
// hosts what it did may wait for seven days: only the order of its steps, its test or the source
// has changed.
//
// testdata/e2e/scenarios.yaml is the table, testdata/e2e/shown.json what was shown.
//
//	scenarios list          print the state of every scenario
//	scenarios lines NAME    print what a scenario does beyond the walk
//	scenarios run           run what is due, the oldest first, for ten minutes
//	scenarios show [NAME]   run what is due or was never shown, or NAME, and record it
//
// It may import everything but commands. Nobody imports it.
package main
