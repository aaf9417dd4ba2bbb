"""choose.py REQUESTS: what dnf would install, for each of a list of requests.

REQUESTS is a JSON file: {"repo": folder, "arch": word, "requests": [[name, …], …]}.
The answer is a list with, for each, {"install": [nevra, …]} or {"error": text}.
"""
import json
import os
import sys

import dnf

with open(sys.argv[1]) as f:
    work = json.load(f)
base = dnf.Base()
base.conf.installroot = work["repo"] + "/root"
base.conf.cachedir = work["repo"] + "/cache"
base.conf.persistdir = work["repo"] + "/persist"
base.conf.logdir = work["repo"] + "/log"
os.makedirs(base.conf.logdir)
base.conf.reposdir = []
base.conf.install_weak_deps = False
base.conf.substitutions["arch"] = base.conf.substitutions["basearch"] = work["arch"]
base.conf.substitutions["releasever"] = "1"
base.repos.add_new_repo("test", base.conf, baseurl=["file://" + work["repo"]])
base.fill_sack(load_system_repo=False)
out = []
for names in work["requests"]:
    base.reset(goal=True)
    try:
        for name in names:
            base.install(name)
        base.resolve()
        out.append({"install": sorted(str(p) for p in base.transaction.install_set)})
    except dnf.exceptions.Error as e:
        out.append({"error": str(e)})
json.dump(out, sys.stdout)
