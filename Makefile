# `make` alone prints the targets; each says what it does behind its ##.

SHELL       := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.NOTPARALLEL:
MAKEFLAGS   += --no-print-directory

# What the binary says of itself. A release passes its own: make build VERSION=v0.1.0
VERSION ?= $(shell git describe --tags --always --abbrev=12 --dirty 2>/dev/null || echo dev)

# The same source and toolchain give the same bytes: no paths of this machine, no
# build id, no state of the checkout, and no C library that differs per host.
REPRODUCIBLE := -trimpath -buildvcs=false -ldflags='-s -w -buildid= -X main.version=$(VERSION)'

# No path of a checkout is part of what is compiled, so that Go's caches serve a
# fresh clone too.
export GOFLAGS := -trimpath $(filter-out -trimpath,$(shell go env GOFLAGS 2>/dev/null))

# Packages that ./... leaves out, as it does every folder named testdata.
# import_test.go checks that the list is complete.
TESTDATA := ./testdata/bench/... ./testdata/budget/... ./testdata/built/... ./testdata/e2e/... ./testdata/fair/... ./testdata/faults/... ./testdata/hostile/... ./testdata/lab/... ./testdata/scenarios/... ./testdata/stage/... ./testdata/testall/... ./testdata/upstream/... ./testdata/vulns/...

# Programs of the tests that are modules of their own, so that kubexm's go.mod lists
# what kubexm is made of. import_test.go checks that the list is complete.
MODULES := testdata/faults/brittle
in_each  = for module in $(MODULES); do (cd "$$module"; $(1)); done

# The packages that run goroutines or share memory between them: what `make race`
# looks at. import_test.go checks that the list is complete, and holds no other. Go
# begins them in this order: those that take longest are first, so that none of them
# runs alone in the end.
RACE := ./cmd/kubexm ./cmd/kubexm/console ./installer ./bundle ./bundle/archive ./bundle/fetch ./bundle/transfer ./installer/audit ./installer/engine \
    ./packaging/rpm ./packaging/system ./registry ./registry/serve \
    ./steps ./steps/cluster ./steps/connector ./steps/connector/local ./steps/connector/ssh ./steps/kubeadm ./steps/op \
    ./steps/packages ./steps/preflight ./steps/registryd ./steps/runner ./steps/runtime/containerd

# The packages whose tests take longest: where all packages run, they begin first.
SLOW := ./testdata/faults ./installer ./testdata/e2e ./cmd/kubexm ./testdata/lab ./bundle/archive ./testdata/hostile ./steps/node

# Tests that .ci/run does not allow to be skipped, and that a complete run has to
# select. Elsewhere a test that finds its tools missing is skipped and listed.
MUST_RUN := TestWalk TestMemoryIsFlat TestKubeadmTakesItsConfigs TestNodesCannotWrite \
    TestItIsAFileSystem TestLosePower TestFailedSyncThrowsAway TestEachCallFails TestCut \
    TestCheckAsRpmDoes TestChoiceIsDnfs TestRandomChoicesAreDnfs TestCompareAsRpmDoes TestInstallRPM TestPackagesOfRPM
ifeq ($(KUBEXM_MUST_RUN),1)
export KUBEXM_MUST_RUN := $(MUST_RUN)
endif

# go test, with one more try for a test that fails; see testdata/stage. Flags have
# their value after an equals sign. `make vet` vets all packages, once. Memory is
# there: with GOGC tests compute a sixth less. Those that measure memory set their own.
GOTEST := GOGC=400 "$(CURDIR)/build/stage" test -- -vet=off

# Tools are pinned in a module of their own, so that kubexm's go.mod lists what
# kubexm is made of. Go's build cache keeps them built.
TOOL := go tool -modfile="$(CURDIR)/testdata/tools/go.mod"

# The config that `make upstream` serves everything for.
CONFIG ?= testdata/configs/quickstart.yaml

# The peers that are built for `make bench`, and where they are kept.
PEERS     ?= oras
PEERS_DIR := $${XDG_CACHE_HOME:-$$HOME/.cache}/kubexm-lab/peers

# The tests that are run by themselves.
ALONE    := ^(TestWalk$$|TestLoadBalancers$$|TestLoadBalancersOnNodes$$|TestKubeVIP$$|TestNodes$$|TestCombination$$|TestBackEnds$$|TestOperationsAreKilled$$|TestCalico$$|TestCalicoByBGP$$|TestCilium$$|TestMultus$$|TestStorage$$|TestMembers$$|TestCluster|TestCharts$$|TestPackagesOnHosts$$|TestInterruptions$$|TestPhases$$|TestHostsOfEachFamily$$|TestFamiliesInOneCluster$$|TestEtcdHosts$$|TestExistingIsKept$$|TestPreserve$$|TestNoRegistry$$|TestSample$$|TestStarters$$|TestResume$$|TestJumpHost$$|.*Emulated$$)

# How long each fuzz target runs.
FUZZTIME ?= 20s

.PHONY: help
help: ## Print this list
	@grep -hE '^[a-z-]+:.* ## ' $(MAKEFILE_LIST) | sort | sed -E 's/^([a-z-]+):.* ## (.*)/\1\t\2/' | \
	    while IFS=$$'\t' read -r name text; do printf '  %-14s %s\n' "$$name" "$$text"; done

.PHONY: build
build: ## Build build/kubexm, the same bytes from the same source
	@bash testdata/tools/build.sh build/kubexm $(REPRODUCIBLE)

.PHONY: quickstart
quickstart: needs lab-needs-root ## Build a bundle and, as root, a cluster from it on hosts that nothing leads out of
	bash testdata/quickstart.sh

.PHONY: upstream
upstream: ## Serve that upstream alone, until interrupted; writes build/sources.yaml and build/versions.yaml (CONFIG=…)
	@mkdir -p build
	go run ./testdata/upstream/cmd serve -f $(CONFIG) --out build

.PHONY: build/stage
build/stage:
	@mkdir -p build
	@go build -o $@ ./testdata/stage

# The disk that loses what was not synced: tests that need it build it by this.
.PHONY: build/brittle
build/brittle:
	@mkdir -p build
	@cd testdata/faults/brittle && go build -buildvcs=false -o "$(CURDIR)/build/brittle" .

.PHONY: test
test: build/stage ## Run everything that CI runs, stage by stage as testdata/stage/stages.yaml lists it (LEVELS=BCD)
	@build/stage run $(LEVELS)
	@echo "all of it passed"

.PHONY: check
check: test ## The same as test

.PHONY: needs
needs:
	@bash testdata/tools/needs.sh

# Before all tests: Go's test cache looks at modification times.
.PHONY: times
times: build/stage
	@build/stage times

.PHONY: vet
vet:
	@test -z "$$(gofmt -l $$(git ls-files '*.go'))" || { echo "not formatted, run gofmt -w on:"; gofmt -l $$(git ls-files '*.go'); exit 1; }
	go vet ./... $(TESTDATA)
	$(call in_each,go vet ./...)

# Never from the test cache: what it reads is the whole tree.
.PHONY: house
house:
	go test -count=1 .

.PHONY: unit
unit: modules build build/stage ## Run all tests without the race detector; Go's cache knows those whose code is unchanged
	$(GOTEST) -timeout=15m '-skip=$(ALONE)' $(SLOW) ./... $(TESTDATA)
	$(call in_each,$(GOTEST) -timeout=10m ./...)

# scrypt, which opens a key with its password, is arithmetic on memory of its own, and
# takes ten times as long where the race detector looks at each read.
WITH_RACE := -race -gcflags=golang.org/x/crypto/scrypt=-race=false

# TestArgvLaw reads source alone, and loads it for a minute under the race detector.
.PHONY: race
race: modules build/stage ## Run the packages that have concurrency under the race detector, their long tables sampled
	CGO_ENABLED=1 $(GOTEST) $(WITH_RACE) -short -timeout=30m '-skip=^TestArgvLaw$$' $(RACE)

# Beside make test: hours.
.PHONY: race-all
race-all: modules build/stage ## Run all tests under the race detector, nothing sampled
	CGO_ENABLED=1 $(GOTEST) $(WITH_RACE) -timeout=90m '-skip=$(ALONE)' $(SLOW) ./... $(TESTDATA)
	$(call in_each,CGO_ENABLED=1 $(GOTEST) -race -timeout=30m ./...)

# Beside make test, and without a second try: who fails now and then is found here.
.PHONY: shuffle
shuffle: modules build
	go test -shuffle=on -count=1 -timeout 60m -skip '$(ALONE)' ./... $(TESTDATA)

.PHONY: repeat
repeat: modules build
	go test -short -count=20 -timeout 120m -skip '^TestArgvLaw$$' $(RACE)

# Beside make test: hours.
.PHONY: test-all
test-all: needs lab-ready rpm-tools ## Run everything there is, for hours; goes on where it stopped, and ends with a table: make test-all PART=race
	@mkdir -p build
	@go build -o build/testall ./testdata/testall
	@build/testall -part '$(PART)'

# What is compiled, the linter included, and whose manifests and charts the search
# for images is held against. Tests ask nobody outside, so all is brought beforehand.
.PHONY: modules
modules:
	@bash testdata/tools/thrice.sh go mod download
	@thrice="$(CURDIR)/testdata/tools/thrice.sh"; $(call in_each,bash "$$thrice" go mod download)
	@bash testdata/tools/thrice.sh go mod download -modfile=testdata/tools/go.mod
	@modules=$$(sed -nE 's/^[ -]+module: //p' bundle/testdata/upstream.yaml testdata/e2e/testdata/charts.yaml | sort -u); \
	    thrice=$$PWD/testdata/tools/thrice.sh; cd / && bash "$$thrice" go mod download $$modules

# A leg that fails is tried again within, from its checkpoint: stage has no second try.
# The timeout is for a machine several times slower than the budgets, where a leg begins just
# before the deadline of testdata/stage/stages.yaml and the deletion comes after it.
.PHONY: walk
walk: lab-ready build-race build/stage ## Walk one cluster through its life on the lab's hosts; KEEP=1 keeps its checkpoints for make leg
	KUBEXM_KEEP=$(KEEP) build/stage once -- -count=1 -timeout=60m -v '-run=^TestWalk$$' ./testdata/e2e

.PHONY: leg
leg: lab-ready build-race build/stage ## Run one leg of the walk alone: make leg LEG=lost-disk
	KUBEXM_LEG=$(or $(LEG),$(error LEG names no leg: make leg LEG=lost-disk)) build/stage once -- -count=1 -timeout=30m -v '-run=^TestWalk$$' ./testdata/e2e

# What the walk runs: whoever runs into a data race is told.
.PHONY: build-race
build-race:
	@CGO=1 bash testdata/tools/build.sh build/kubexm-race -race -trimpath -buildvcs=false -ldflags='-X main.version=$(VERSION)'

# Beside make test: what it builds of the add-ons takes long the first time.
.PHONY: charts
charts: modules lab-ready ## Install upstream's charts on the lab's hosts, and compare found images with those asked for (UPDATE=1 writes docs/charts.md)
	go test -count=1 -timeout 60m -v -run '^TestCharts$$' ./testdata/e2e $(if $(UPDATE),-update-charts)

# Beside make test: the clusters' hosts get packages too, and this tries what goes wrong there.
.PHONY: packages
packages: lab-ready ## Install packages on the lab's hosts, and break that
	go test -count=1 -timeout 30m -v -run '^TestPackagesOnHosts$$' ./testdata/e2e

# Beside make test: a cluster is made seven times.
.PHONY: interruptions
interruptions: lab-ready ## Make clusters on the lab's hosts while kubexm is killed, and hosts and network fail
	go test -count=1 -timeout 90m -v -run '^TestInterruptions$$' ./testdata/e2e

# Beside make test, unless it is due.
.PHONY: hosts
hosts: lab-ready lab-roots ## Make hosts of Debian 12, Debian 13 and an rpm distribution ready, and a cluster of them
	go test -count=1 -timeout 30m -v -run '^(TestHostsOfEachFamily|TestFamiliesInOneCluster)$$' ./testdata/e2e

# What is due by its effect on hosts, see testdata/scenarios.
.PHONY: scenarios
scenarios: build lab-ready ## Run the scenarios whose effect on hosts has changed, the oldest first, for ten minutes
	go run ./testdata/scenarios run

.PHONY: shown
shown: build lab-ready ## Run the scenarios that are due or were never shown, and record those that pass: make shown SCENARIO=etcd-kubeadm
	go run ./testdata/scenarios show $(SCENARIO)

# The further roots take minutes the first time.
.PHONY: lab-roots
lab-roots:
	@if $(LABCMD) possible 2>/dev/null; then $(LABCMD) root debian-13 rpm >/dev/null && $(LABCMD) mirror 13; fi

.PHONY: phases
phases: lab-ready ## Tell how long the phases of an installation take on the lab's hosts, beside a script of ssh, tar and kubeadm
	go test -count=1 -timeout 30m -v -run '^TestPhases$$' ./testdata/e2e

# Whom packaging/rpm is held against. Without it those tests are skipped, and say so.
.PHONY: rpm-tools
rpm-tools: lab-needs-root ## As root, bring rpm, createrepo_c and dnf in a root of their own, for the tests of packaging/rpm
	@if [ "$$(id -u)" = 0 ] && command -v mmdebstrap >/dev/null; then \
	    bash testdata/tools/thrice.sh bash packaging/rpm/testdata/tools.sh "$${XDG_CACHE_HOME:-$$HOME/.cache}/kubexm-lab/rpmtools"; \
	else echo "no rpm tools here: that takes root and mmdebstrap"; fi

# Asks nobody: what is known is in testdata/vulns/known.json.
.PHONY: vulns
vulns: ## Look for known vulnerabilities in kubexm; VULNDB=checkout of the Go vulnerability database brings the list up to date
	$(if $(VULNDB),go run ./testdata/vulns/gen $(VULNDB) testdata/vulns/known.json)
	go test -count=1 -v ./testdata/vulns

.PHONY: budget
budget: ## Record how many modules and bytes kubexm has by now
	go test -count=1 -v -run '^TestBudget$$' ./testdata/budget -update

.PHONY: lint
lint: ## Run golangci-lint as .golangci.yml sets it, in its pinned version
	$(TOOL) golangci-lint run --allow-serial-runners ./... $(TESTDATA)
	$(call in_each,$(TOOL) golangci-lint run --allow-serial-runners ./...)

.PHONY: generate
generate: ## Write every generated file anew
	go generate ./... $(TESTDATA)

# Compares the checkout before and after, so that work not yet committed is no finding.
.PHONY: generated
generated:
	@mkdir -p build
	@state() { git status --porcelain --untracked-files=all; git diff HEAD; }; \
	    state > build/before-generate; $(MAKE) generate; state > build/after-generate; \
	    diff build/before-generate build/after-generate || { echo "generated files are stale: run make generate and commit what it writes"; exit 1; }

# Two builds from two folders that share nothing but the source.
.PHONY: rebuild
rebuild: build ## Build again from a copy elsewhere and compare the bytes
	@copy=$$(mktemp -d); trap 'rm -rf "$$copy"' EXIT; \
	    git ls-files -zco --exclude-standard | tar --null --ignore-failed-read -T - -c | tar -x -C "$$copy"; \
	    (cd "$$copy" && CGO_ENABLED=0 go build $(REPRODUCIBLE) -o kubexm ./cmd/kubexm); \
	    cmp build/kubexm "$$copy/kubexm"; echo "built twice, the same bytes: sha256 $$(sha256sum build/kubexm | cut -c1-16)…"

.PHONY: fuzz
fuzz: ## Run each fuzz target for FUZZTIME (20s): make fuzz FUZZTIME=10m
	@bash testdata/tools/fuzz.sh $(FUZZTIME)

.PHONY: fuzz-changed
fuzz-changed: ## Run fuzz targets of the packages that differ from BASE for a minute in all
	@bash testdata/tools/fuzz.sh changed $(BASE)

.PHONY: faults
faults: build build/brittle ## Break what a build and a transfer stand on, and print what came of it; goes on where it stopped (FAULTS=kill)
	@go build -o build/faults ./testdata/faults
	@build/faults -kubexm build/kubexm -progress build/faults.jsonl -only '$(FAULTS)'

# Beside make test, which tries a part: each row in three ways, and a thousand changes.
.PHONY: hostile
hostile: ## Hold kubexm to refusing every hostile bundle of docs/reference/hostile-input.md, and 1,000 random ones
	go test -count=1 -timeout 60m -v ./testdata/hostile -all | grep -vE '^ *(=== |--- PASS)'

.PHONY: bench
bench: build ## Measure builds, pushes, deltas and verification against plain tools and peers, beside what is to be reached (BENCH='-rounds 3 -o markdown')
	@go build -o build/bench ./testdata/bench
	@go test -c -o build/installer.test ./installer
	@PATH="$(PEERS_DIR):$$PATH" build/bench -kubexm build/kubexm -dir build $(BENCH)

# Beside make bench: what is not there is left out of it.
.PHONY: peers
peers: needs ## Build the peers that make bench compares with (PEERS='oras zarf'; zarf takes long)
	@bash testdata/bench/peers.sh "$(PEERS_DIR)" $(PEERS)

.PHONY: cover
cover: ## Measure test coverage: build/cover.html and a line per package
	@mkdir -p build
	go test -skip '$(ALONE)' -coverprofile=build/cover.out ./... $(TESTDATA)
	go tool cover -html=build/cover.out -o build/cover.html
	@go tool cover -func=build/cover.out | tail -1

.PHONY: clean
clean: ## Remove what the targets above wrote (Go's own caches stay)
	rm -rf build

include testdata/lab/lab.mk
