// Package e2e holds the tests that run the kubexm command as a person does:
// the binary is built, the internet is the loopback upstream, and what counts
// is what stands on the disk afterwards.
//
//   - reproduce_test.go: the same lock gives the same bytes;
//   - tamper_test.go: one changed byte of an archive is found and named;
//   - drift_test.go: what upstream changed is refused with both digests;
//   - kill_test.go: killed at any point, a second run ends in the same bytes;
//   - forms_test.go: mirrors and images that are published in other ways;
//   - install_test.go: what install refuses before it touches a host, and whom it misses;
//   - charts_test.go: which images upstream's charts ask for on real hosts, and which were found;
//   - delta_test.go, delta_lab_test.go: a delta is what a site lacks, and with its base the whole bundle;
//   - etcd_hosts_test.go, jump_test.go, resume_test.go: etcd on hosts of its own, a jump host, install --resume;
//   - existing_test.go, preserve_test.go: what install refuses of a cluster that exists, and data that outlives a deletion;
//   - all_in_one_test.go, furnished_test.go: hosts that are emulated machines;
//   - interop_test.go: other tools read what a bundle holds;
//   - packages_on_hosts_test.go: packages of the operating system come to real hosts, and go again;
//   - registry_existing_test.go: a cluster of a registry that stands already (KUBEXM_REGISTRY=existing);
//   - walk_test.go, walk_legs_test.go: one cluster on real hosts, made as the README says and taken through its life;
//   - drivers_test.go: what clients notice while parts of a cluster restart, by testdata/lab/drivers;
//   - leg_test.go, walk_rules_test.go: how a leg of that walk is tried, tried again, and made good for the next;
//   - resources_test.go: memory stays flat and disk is what the archive takes.
//
// scenarios.yaml lists the lab tests that run when what they show has changed, and
// shown.json what they were when they last passed: see testdata/scenarios.
//
// A leg of the walk finds the cluster in one state and leaves it in another, or in the
// same. A new one is a line of legsOf and a function: it says from which checkpoint it
// can be run alone (make leg LEG=…), and whether it changed what the next one finds. Legs
// that are apart run alone only, such as checkpoints: ten times it goes back to one, within
// a minute.
//
// KUBEXM_E2E_SCALE makes the content of resources_test.go larger: 1 is about as
// large as the quickstart's, 10 about 1.5 GB. KUBEXM_SEED moves the points at
// which kill_test.go kills.
package e2e
