# The lab's targets: see testdata/lab/README.md. Each takes LAB=NAME; several labs stand side by side.

LAB ?= default
LABCMD := go run ./testdata/lab/cmd

# The version of Kubernetes that the lab builds; another one is built beside it.
KV ?=

# Other versions of components: WITH=containerd=v1.7.27.
WITH ?=

.PHONY: lab-components
lab-components: lab-needs ## Build the lab's components that the cache lacks: make lab-components KV=1.33.1 WITH=containerd=v1.7.27
	$(LABCMD) components $(if $(KV),--kubernetes $(KV)) $(if $(WITH),--with $(WITH))

.PHONY: lab-up
lab-up: lab-needs ## Bring up a lab of N hosts that nothing leads out of: make lab-up N=3 LAB=mine ROOT=debian-12,rpm DISK=2
	$(LABCMD) up --lab $(LAB) -n $(or $(N),3) $(if $(ROOT),--root $(ROOT)) $(if $(DISK),--disk $(DISK))

.PHONY: lab-down
lab-down: ## Take a lab away, with everything that belongs to it
	$(LABCMD) down --lab $(LAB)

.PHONY: lab-shell
lab-shell: ## Open a shell on a host of a lab: make lab-shell HOST=h1, or HOST=workdir
	@$(LABCMD) on --lab $(LAB) $(or $(HOST),h1)

.PHONY: lab-checkpoint
lab-checkpoint: ## Keep what a lab's hosts and folders of this machine hold: make lab-checkpoint CP=ready FOLDERS="build/quickstart"
	@$(LABCMD) checkpoint --lab $(LAB) $(CP) $(FOLDERS)

.PHONY: lab-restore
lab-restore: lab-needs ## Bring a lab back to a checkpoint, whether it is up or down: make lab-restore CP=ready
	@$(LABCMD) restore --lab $(LAB) $(CP)

.PHONY: lab-checkpoints
lab-checkpoints: ## List the checkpoints of all labs, and what they take
	@$(LABCMD) checkpoints

.PHONY: lab-forget
lab-forget: ## Remove a checkpoint: make lab-forget CP=ready
	@$(LABCMD) forget --lab $(LAB) $(CP)

.PHONY: lab-egress
lab-egress: ## Tell what tried to leave a lab
	@$(LABCMD) egress --lab $(LAB)

.PHONY: lab-upstream
lab-upstream: lab-needs ## Serve the lab's components as the internet does, until interrupted: build/lab/sources.yaml and versions.yaml
	$(LABCMD) upstream --out build/lab

.PHONY: lab-needs
lab-needs:
	@bash testdata/lab/needs.sh

# What emulated machines need beside that.
.PHONY: lab-needs-machines
lab-needs-machines:
	@bash testdata/lab/needs.sh qemu-system-x86 busybox-static cpio

# And machines of another architecture, with what programs in C are built for it by.
.PHONY: lab-needs-arm64
lab-needs-arm64:
	@bash testdata/lab/needs.sh qemu-system-x86 qemu-system-arm busybox-static cpio gcc-aarch64-linux-gnu libc6-dev-arm64-cross

# Beside make test: a machine in software takes both processors, and a cluster on it ten minutes.
.PHONY: emulated
emulated: lab-needs-arm64 lab-ready ## Run the tests on emulated machines, whose hosts have a kernel of their own
	go test -count=1 -p 1 -timeout 60m -v -run 'Emulated$$' ./testdata/lab ./testdata/e2e

# Tests that need a lab are skipped where none can go up: without root, say.
.PHONY: lab-needs-root
lab-needs-root:
	@if [ "$$(uname)" = Linux ] && [ "$$(id -u)" = 0 ]; then bash testdata/lab/needs.sh; fi

.PHONY: lab-ready
lab-ready: lab-needs-root
	@if why=$$($(LABCMD) possible 2>&1); then $(LABCMD) components; else echo "no lab here: $$why"; fi
