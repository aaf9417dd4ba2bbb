package manifest

// Etcd is the cluster's store.
type Etcd struct {
	// Type: kubexm runs etcd as a service of the etcd hosts, kubeadm as a
	// static pod on each master, external uses one that stands already.
	Type string `yaml:"type,omitempty" default:"kubexm" enum:"kubexm|kubeadm|external" effect:"immutable=create,etcd"`
	// Version of etcd, as in v3.5.21 or 3.5.21. Default: what kubeadm of the
	// Kubernetes version asks for.
	Version string `yaml:"version,omitempty" format:"version" effect:"upgrade,etcd" install:"lock"`
	// External is an etcd that stands already, for type external.
	External ExternalEtcd `yaml:"external,omitempty"`
	// DataDir holds the store.
	DataDir string `yaml:"dataDir,omitempty" default:"/var/lib/etcd" format:"path" effect:"immutable=create,etcd"`
	// PreserveData keeps etcd's data, and the images on the hosts, when the cluster is
	// deleted. A cluster that is created there afterwards takes them up.
	PreserveData bool `yaml:"preserveData,omitempty" default:"false" effect:"tool"`
	// ExtraArgs are further flags: a list of name=value, or a mapping.
	ExtraArgs Args `yaml:"extraArgs,omitempty" effect:"etcd" install:"service"`
	// HeartbeatInterval in milliseconds.
	HeartbeatInterval int `yaml:"heartbeatInterval,omitempty" default:"250" min:"1" max:"60000" effect:"etcd" install:"service"`
	// ElectionTimeout in milliseconds: at least five times the heartbeat
	// interval, at most 50000.
	ElectionTimeout int `yaml:"electionTimeout,omitempty" default:"5000" min:"5" max:"50000" effect:"etcd" install:"service"`
	// SnapshotCount is the number of committed transactions that trigger a snapshot to disk.
	SnapshotCount int `yaml:"snapshotCount,omitempty" default:"10000" min:"1" effect:"etcd" install:"service"`
	// AutoCompactionRetention of the history in hours; 0 turns compaction off.
	AutoCompactionRetention *int `yaml:"autoCompactionRetention,omitempty" default:"8" min:"0" effect:"etcd" install:"service"`
	// Metrics is how much is exported; extensive adds histograms.
	Metrics string `yaml:"metrics,omitempty" default:"basic" enum:"basic|extensive" effect:"etcd" install:"service"`
	// QuotaBackendBytes is the largest size of the store in bytes. etcd advises at most 8 GiB.
	QuotaBackendBytes int64 `yaml:"quotaBackendBytes,omitempty" default:"2147483648" min:"1" effect:"etcd" install:"service"`
	// MaxRequestBytes is the largest client request in bytes.
	MaxRequestBytes int64 `yaml:"maxRequestBytes,omitempty" default:"1572864" min:"1" effect:"etcd" install:"service"`
	// MaxSnapshots is the number of snapshot files that are kept; 0 keeps all.
	MaxSnapshots *int `yaml:"maxSnapshots,omitempty" default:"5" min:"0" effect:"etcd" install:"service"`
	// MaxWALs is the number of write-ahead log files that are kept; 0 keeps all.
	MaxWALs *int `yaml:"maxWals,omitempty" default:"5" min:"0" effect:"etcd" install:"service"`
	// LogLevel of etcd.
	LogLevel string `yaml:"logLevel,omitempty" default:"info" enum:"debug|info|warn|error|panic|fatal" effect:"etcd" install:"service"`
	// BackupDir holds the timed backups on each etcd host.
	BackupDir string `yaml:"backupDir,omitempty" format:"path" effect:"timers=backup"`
	// BackupPeriodHours is the time between two backups in hours; 0 makes none.
	BackupPeriodHours int `yaml:"backupPeriodHours,omitempty" min:"0" max:"8760" effect:"timers=backup"`
	// KeepBackupNumber is the number of backups that are kept.
	KeepBackupNumber int `yaml:"keepBackupNumber,omitempty" min:"1" effect:"timers=backup"`
}

// ExternalEtcd is an etcd that stands already.
type ExternalEtcd struct {
	// Endpoints of its members, as in https://192.168.6.6:2379.
	Endpoints []string `yaml:"endpoints,omitempty" format:"endpoint" effect:"apiserver"`
	// CAFile is the certificate of its CA, on the machine kubexm runs on. None without TLS.
	CAFile string `yaml:"caFile,omitempty" effect:"apiserver" install:"all"`
	// CertFile is the client certificate, on the machine kubexm runs on. None without TLS.
	CertFile string `yaml:"certFile,omitempty" effect:"apiserver" install:"all"`
	// KeyFile is the client certificate's key, on the machine kubexm runs on. None without TLS.
	KeyFile string `yaml:"keyFile,omitempty" effect:"apiserver" install:"all"`
}
