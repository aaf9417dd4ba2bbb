package runner

import (
	"slices"

	"github.com/mensylisir/kubexm/steps/connector"
)

// VerbOf returns the verb of a command of the runner, from its argv alone. A transport
// such as SSH transfers the argv without the verb: a simulated host behind it uses VerbOf
// to identify the command. Commands that are not the runner's own are connector.VerbExec.
func VerbOf(argv []string) string {
	if len(argv) >= 4 && argv[0] == "/bin/sh" && argv[1] == "-c" {
		if verb, ok := scripts[argv[2]]; ok {
			return verb
		}
		return connector.VerbExec
	}
	for _, p := range programs {
		if len(argv) < len(p.begins) || !slices.Equal(argv[:len(p.begins)], p.begins) {
			continue
		}
		// A unit's name follows "--" and ends the line.
		if len(p.ends) == 0 || len(argv) >= len(p.begins)+len(p.ends)+1 && argv[len(argv)-2] == p.ends[0] {
			return p.verb
		}
	}
	return connector.VerbExec
}

var scripts = map[string]string{
	scriptRead: connector.VerbRead, scriptDigest: connector.VerbDigest, scriptWrite: connector.VerbWrite, scriptPut: connector.VerbPut,
	scriptStat: connector.VerbStat, scriptList: connector.VerbList, scriptCompare: connector.VerbCompare,
	scriptLines: connector.VerbLines, scriptMkdir: connector.VerbMkdir, scriptAttr: connector.VerbAttr, scriptRmdir: connector.VerbRmdir, scriptLink: connector.VerbLink,
	scriptCopy: connector.VerbCopy, scriptRename: connector.VerbRename,
	scriptSysctl: connector.VerbSysctl, scriptSetSysctl: connector.VerbSysctlW, scriptModule: connector.VerbModule,
	scriptUser: connector.VerbUser, scriptGroup: connector.VerbGroup, scriptHostname: connector.VerbHostname,
	scriptSetHostname: connector.VerbHostnameW, scriptBootID: connector.VerbBootID, scriptFind: connector.VerbHasProgram,
	scriptJobStart: connector.VerbJobStart, scriptJobPoll: connector.VerbJobPoll, scriptJobClear: connector.VerbJobClear,
	scriptFacts: connector.VerbFacts, scriptLease: connector.VerbLease,
	scriptSwaps: connector.VerbSwaps, scriptSELinux: connector.VerbSELinux, scriptSetSELinux: connector.VerbSELinuxW, scriptUFW: connector.VerbUFW,
	scriptPackages: connector.VerbPackages, scriptPackagesFree: connector.VerbPackagesFree,
}

// programs are the commands without a script. The first match applies.
var programs = []struct {
	begins, ends []string
	verb         string
}{
	{[]string{"rm", "-f", "--"}, nil, connector.VerbRemove},
	{[]string{"rm", "-rf", "--one-file-system", "--"}, nil, connector.VerbPurge},
	{[]string{"modprobe", "-r", "--"}, nil, connector.VerbRmmod},
	{[]string{"modprobe", "--"}, nil, connector.VerbModprobe},
	{[]string{"systemctl", "daemon-reload"}, nil, connector.VerbUnitScan},
	{[]string{"systemctl", "--no-block", "reboot"}, nil, connector.VerbReboot},
	{[]string{"systemctl", "show", "--no-pager", "-p", unitProperties}, unitFollows, connector.VerbUnitShow},
	{[]string{"systemctl", "start"}, unitFollows, connector.VerbUnitStart},
	{[]string{"systemctl", "stop"}, unitFollows, connector.VerbUnitStop},
	{[]string{"systemctl", "restart"}, unitFollows, connector.VerbUnitRestart},
	{[]string{"systemctl", "reload-or-restart"}, unitFollows, connector.VerbUnitReload},
	{[]string{"systemctl", "enable", "--quiet"}, unitFollows, connector.VerbUnitEnable},
	{[]string{"systemctl", "disable", "--quiet"}, unitFollows, connector.VerbUnitDisable},
	{[]string{"systemctl", "mask", "--quiet"}, unitFollows, connector.VerbUnitMask},
	{[]string{"systemctl", "unmask", "--quiet"}, unitFollows, connector.VerbUnitUnmask},
	{[]string{"systemctl", "reset-failed"}, unitFollows, connector.VerbUnitReset},
	{[]string{"journalctl", "--no-pager", "--quiet", "--output=short-iso"}, nil, connector.VerbUnitJournal},
	{[]string{"swapoff", "--"}, nil, connector.VerbSwapOff},
	{[]string{"swapon", "-p"}, nil, connector.VerbSwapOn},
	{[]string{"swapon", "--"}, nil, connector.VerbSwapOn},
	{[]string{"ufw", "disable"}, nil, connector.VerbUFWOff},
	{[]string{"ufw", "--force", "enable"}, nil, connector.VerbUFWOn},
	{[]string{"useradd"}, nil, connector.VerbUserAdd},
	{[]string{"userdel"}, nil, connector.VerbUserDel},
	{[]string{"groupadd"}, nil, connector.VerbGroupAdd},
	{[]string{"groupdel"}, nil, connector.VerbGroupDel},
}

var unitFollows = []string{"--"}
