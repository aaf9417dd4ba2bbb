package connector

// The verbs of the runner's commands. The runner's scripts define the arguments and the
// output of each. A simulated host must behave the same: the suite in runnertest tests
// both. The comments list the arguments as returned by Cmd.Args, and the output after "->".
const (
	VerbExec = "exec" // any program; a simulated host requires a handler for it

	VerbRead     = "fs.read"     // PATH -> content; exit 44: no such file
	VerbWrite    = "fs.write"    // PATH SIZE MODE OWNER, content on stdin
	VerbPut      = "fs.put"      // DIR MODE OWNER, then NAME SIZE SHA256 of each file, contents on stdin -> SIZE:MORE and NAME of each, ended by NUL, or nothing; exit 46: the names with other digests
	VerbDigest   = "fs.digest"   // PATH -> "SHA256\n"; exit 44
	VerbStat     = "fs.stat"     // PATH -> one record; exit 44
	VerbList     = "fs.list"     // PATH -> records; exit 44
	VerbLines    = "fs.lines"    // PATH SUFFIX -> of each file in PATH with the suffix, each line after "NAME\0"; exit 44
	VerbCompare  = "fs.compare"  // PATH SIZE[:MORE], ... -> records with the digest of a file of that size
	VerbMkdir    = "fs.mkdir"    // PATH MODE OWNER -> the created folders, each ended by NUL
	VerbAttr     = "fs.attr"     // PATH MODE OWNER; exit 44
	VerbRemove   = "fs.remove"   // PATH...: files or links, which may be missing
	VerbRmdir    = "fs.rmdir"    // PATH: an empty folder, which may be missing; exit 47: not empty
	VerbPurge    = "fs.purge"    // PATH and all below, on the same file system
	VerbLink     = "fs.link"     // PATH TARGET
	VerbCopy     = "fs.copy"     // FROM TO, with mode, owner and times; exit 44
	VerbRename   = "fs.rename"   // FROM TO; exit 44
	VerbSysctl   = "sysctl.read" // KEY -> value; exit 44
	VerbSysctlW  = "sysctl.write"
	VerbModule   = "module.state" // NAME -> loaded, builtin, available or absent
	VerbModprobe = "module.load"
	VerbRmmod    = "module.unload"

	VerbUnitShow    = "unit.show" // NAME -> properties, one a line
	VerbUnitStart   = "unit.start"
	VerbUnitStop    = "unit.stop"
	VerbUnitRestart = "unit.restart"
	VerbUnitReload  = "unit.reload"
	VerbUnitEnable  = "unit.enable"
	VerbUnitDisable = "unit.disable"
	VerbUnitMask    = "unit.mask"
	VerbUnitUnmask  = "unit.unmask"
	VerbUnitReset   = "unit.reset-failed"
	VerbUnitScan    = "unit.daemon-reload"
	VerbUnitJournal = "unit.journal" // NAME LINES -> the last lines of its log

	VerbJobStart = "job.start" // UNIT LOG ARGV..., a script on stdin; exit 48: a unit of that name exists
	VerbJobPoll  = "job.poll"  // UNIT LOG OFFSET -> state, a blank line, the log from OFFSET
	VerbJobClear = "job.clear" // UNIT LOG

	VerbUser       = "user.get"  // NAME -> a line of passwd, then its groups; exit 44
	VerbUserAdd    = "user.add"  // useradd's own arguments, the name last
	VerbUserDel    = "user.del"  // NAME
	VerbGroup      = "group.get" // NAME -> a line of group; exit 44
	VerbGroupAdd   = "group.add" // groupadd's own arguments, the name last
	VerbGroupDel   = "group.del" // NAME
	VerbHostname   = "host.name"
	VerbHostnameW  = "host.rename" // NAME, until the next boot
	VerbBootID     = "host.boot-id"
	VerbReboot     = "host.reboot"
	VerbFacts      = "host.facts" // -> sections, see runner.ParseFacts
	VerbHasProgram = "exec.find"  // NAME -> its path; exit 44

	VerbSwaps    = "swap.show"         // -> /proc/swaps, a blank line, names of swap units
	VerbSwapOff  = "swap.off"          // PATH
	VerbSwapOn   = "swap.on"           // PATH, with the option -p PRIORITY before "--"
	VerbSELinux  = "selinux.enforcing" // -> 1 or 0; exit 44: the kernel has none
	VerbSELinuxW = "selinux.enforce"   // 1 or 0; exit 44
	VerbUFW      = "ufw.status"        // -> as ufw status; exit 44: no ufw
	VerbUFWOff   = "ufw.disable"
	VerbUFWOn    = "ufw.enable"

	VerbLease = "run.hold" // PATH HOLDER SECONDS -> "held", until the end of stdin; exit 49: the current holder

	VerbPackages     = "pkg.query" // FORMAT NAME... -> what is installed, see runner.parsePackages
	VerbPackagesFree = "pkg.free"  // FORMAT ID... -> "kept\tID" for each package that others depend on

	// These two are the verbs of jobs: the first argument of a job's script.
	VerbPackagesInstall = "pkg.install" // FORMAT FOLDER BASE SHA256 WAIT NAME...; exit 75: locked, 76: broken, 77: would remove, 78: no tool, 79: another repository
	VerbPackagesRemove  = "pkg.remove"  // FORMAT WAIT N ID...: purges the first N, removes the others
)
