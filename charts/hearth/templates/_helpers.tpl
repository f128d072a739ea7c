{{/*
Objects have fixed names: a cluster has one Hearth, for its resources, its policies and its place on a node are named
after the driver, and people say kubectl exec ds/hearth-node.
*/}}

{{/* Labels as JSON, which is YAML: include "hearth.labels" (list . COMPONENT) */}}
{{- define "hearth.labels" -}}
{{- $ := index . 0 -}}
{{- $own := dict "app.kubernetes.io/version" $.Chart.AppVersion "app.kubernetes.io/managed-by" $.Release.Service "helm.sh/chart" (printf "%s-%s" $.Chart.Name $.Chart.Version) -}}
{{- merge (include "hearth.selector" . | fromJson) $own $.Values.commonLabels | toJson -}}
{{- end -}}

{{/* The selector of a workload's pods. It never changes, so an upgrade alone restarts no pod. */}}
{{- define "hearth.selector" -}}
{{- $ := index . 0 -}}
{{- $selector := dict "app.kubernetes.io/name" "hearth" "app.kubernetes.io/instance" $.Release.Name -}}
{{- if gt (len .) 1 }}{{ $_ := set $selector "app.kubernetes.io/component" (index . 1) }}{{ end -}}
{{- if gt (len .) 2 }}{{ $_ := set $selector "csi.hearth.dev/pool" (default "default" (index . 2)) }}{{ end -}}
{{- $selector | toJson -}}
{{- end -}}

{{- define "hearth.podLabels" -}}
{{- merge (include "hearth.selector" . | fromJson) (index . 0).Values.commonLabels | toJson -}}
{{- end -}}

{{/* With a digest the tag is only information for people. include "hearth.reference" (list . IMAGE TAG) */}}
{{- define "hearth.reference" -}}
{{- $registry := (default dict (index . 0).Values.global).imageRegistry -}}
{{- $image := index . 1 -}}
{{- $repository := $image.repository -}}
{{- if $registry -}}
{{- $repository = printf "%s/%s" $registry (regexReplaceAll "^(localhost|[^/]*[.:][^/]*)/" $repository "") -}}
{{- end -}}
{{- printf "%s:%s" $repository (default (last .) $image.tag) -}}{{ with $image.digest }}@{{ . }}{{ end -}}
{{- end -}}

{{- define "hearth.image" -}}
{{- include "hearth.reference" (list . .Values.image .Chart.AppVersion) -}}
{{- end -}}

{{- define "hearth.controllerAccount" -}}
{{- .Values.serviceAccounts.provisioner.name -}}
{{- end -}}
{{- define "hearth.nodeAccount" -}}
{{- .Values.serviceAccounts.nodeplugin.name -}}
{{- end -}}

{{/* The directory of the driver's sockets and devices, the same in the container and on the host. */}}
{{- define "hearth.pluginDir" -}}
{{- printf "%s/plugins/%s" .Values.kubeletDir .Values.driverName -}}
{{- end -}}

{{/* Requests that carry no secret are answered only if the driver has a secret of its own. */}}
{{- define "hearth.capacity" -}}
{{- if and .Values.secret.name .Values.provisioner.capacity -}}true{{- end -}}
{{- end -}}

{{/* Does the cluster have that kind? include "hearth.has" (list . "GROUP/VERSION/KIND" "FROM"): without a cluster, in
"helm template", Kubernetes FROM and later have it; "" is for kinds that Kubernetes does not bring along. */}}
{{- define "hearth.has" -}}
{{- $ := index . 0 -}}
{{- if $.Capabilities.APIVersions.Has (index . 1) -}}true
{{- else if $.Capabilities.APIVersions.Has "v1/Pod" -}}
{{- else if eq (index . 2) "" -}}true
{{- else if semverCompare (printf ">=%s-0" (index . 2)) $.Capabilities.KubeVersion.Version -}}true
{{- end -}}
{{- end -}}

{{/* Without these kinds csi-snapshotter restarts repeatedly, and single snapshots do not work either. */}}
{{- define "hearth.groupSnapshots" -}}
{{- if .Values.provisioner.snapshotter.args.enableVolumeGroupSnapshots -}}
{{- include "hearth.has" (list . "groupsnapshot.storage.k8s.io/v1/VolumeGroupSnapshot" "") -}}
{{- end -}}
{{- end -}}

{{/* The policy needs the kind, which is in Kubernetes 1.36. */}}
{{- define "hearth.affinityPolicy" -}}
{{- if and .Values.warmth.enabled (not .Values.webhook.enabled) (.Capabilities.APIVersions.Has "admissionregistration.k8s.io/v1/MutatingAdmissionPolicy") -}}true{{- end -}}
{{- end -}}

{{/* Probes of a plugin. A process that answers is alive; ready also needs the services that it uses. */}}
{{- define "hearth.probes" -}}
startupProbe: { exec: { command: [hearth-csi, probe, "--endpoint=unix:///csi/csi.sock"] }, periodSeconds: 2, timeoutSeconds: 12, failureThreshold: 150 }
livenessProbe: { exec: { command: [hearth-csi, probe, "--endpoint=unix:///csi/csi.sock"] }, periodSeconds: 60, timeoutSeconds: 12, failureThreshold: 5 }
readinessProbe: { exec: { command: [hearth-csi, probe, --ready, "--endpoint=unix:///csi/csi.sock"] }, periodSeconds: 30, timeoutSeconds: 12 }
{{- end -}}

{{/* Node plugins read the labels of Nodes. */}}
{{- define "hearth.readAffinity" -}}
{{- $on := .Values.readAffinity.enabled -}}
{{- range .Values.csiConfig }}{{ if (default dict .readAffinity).enabled }}{{ $on = true }}{{ end }}{{ end -}}
{{- if $on -}}true{{- end -}}
{{- end -}}

{{/* Node plugins talk to Kubernetes at all. */}}
{{- define "hearth.nodeToken" -}}
{{- if or .Values.warmth.enabled .Values.topology.domainLabels (include "hearth.readAffinity" .) -}}true{{- else -}}false{{- end -}}
{{- end -}}

{{/* Fails when a class names a cluster that is not there. include "hearth.checkCluster" (list . KIND CLASS) */}}
{{- define "hearth.checkCluster" -}}
{{- $ := index . 0 -}}
{{- $class := index . 2 -}}
{{- $there := list -}}
{{- range $.Values.csiConfig }}{{ $there = append $there .clusterID }}{{ end -}}
{{- if and $class.clusterID $there (not $.Values.externallyManagedConfigmap) (not (has $class.clusterID $there)) -}}
{{- fail (printf "%s: %s has clusterID %s, which no cluster in csiConfig has; csiConfig has: %s" (index . 1) $class.name $class.clusterID (join ", " $there)) -}}
{{- end -}}
{{- end -}}

{{/* The size of a pool's cache, for hearthd. include "hearth.cacheSize" POOL */}}
{{- define "hearth.cacheSize" -}}
{{- $size := .cache.size -}}
{{- if kindIs "float64" $size }}{{ $size = int64 $size }}{{ end -}}
{{- $size = toString $size -}}
{{- if not (regexMatch "^[1-9][0-9]*([KMGT]i?)?$" $size) -}}
{{- fail (printf "nodePools: cache.size %q of %s is no size; write a whole number with Mi, Gi or Ti, such as 100Gi (100G is 100,000,000,000 bytes), or \"\" for the whole file system" $size (default "the first pool" .name)) -}}
{{- end -}}
{{- $size -}}
{{- end -}}

{{/* Fails when a cluster is in a network that nodes cannot reach. */}}
{{- define "hearth.checkNetworks" -}}
{{- $dir := .Values.netNamespaceDir -}}
{{- range $cluster := .Values.csiConfig -}}
{{- range $kind := list "cephFS" "rbd" -}}
{{- $path := default "" (default dict (get $cluster $kind)).netNamespaceFilePath -}}
{{- if and $path (or (not $dir) (not (hasPrefix (printf "%s/" $dir) $path))) -}}
{{- fail (printf "csiConfig: %s of cluster %s has netNamespaceFilePath %s, which is not below netNamespaceDir (%q): set that to the directory of the file" $kind $cluster.clusterID $path $dir) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* /metrics of a program. include "hearth.metricsArgs" (list . PORT) */}}
{{- define "hearth.metricsArgs" -}}
{{- $m := (index . 0).Values.metrics -}}
- --metrics-address=:{{ index . 1 }}
{{- if $m.tls.secret }}
- --metrics-cert-dir=/etc/hearth/metrics
{{- if $m.tls.clientCA }}
- --metrics-client-ca=/etc/hearth/metrics-client/ca.crt
{{- end }}
{{- end }}
{{- end -}}

{{/* Never by subPath: kubelet updates rotated files only in whole directories. */}}
{{- define "hearth.metricsMounts" -}}
{{- $m := .Values.metrics -}}
{{- if and $m.enabled $m.tls.secret }}
- { name: metrics, mountPath: /etc/hearth/metrics, readOnly: true }
{{- if $m.tls.clientCA }}
- { name: metrics-client, mountPath: /etc/hearth/metrics-client, readOnly: true }
{{- end }}
{{- end }}
{{- end -}}

{{- define "hearth.metricsVolumes" -}}
{{- $m := .Values.metrics -}}
{{- if and $m.enabled $m.tls.secret }}
- { name: metrics, secret: { secretName: {{ $m.tls.secret }} } }
{{- with $m.tls.clientCA }}
- { name: metrics-client, configMap: { name: {{ . }} } }
{{- end }}
{{- end }}
{{- end -}}

{{/* Of each endpoint of the PodMonitor. */}}
{{- define "hearth.monitored" -}}
{{- $m := .Values.metrics -}}
{{- if $m.tls.secret -}}
scheme: https
tlsConfig: {{ toJson $m.podMonitor.tlsConfig }}
{{ end -}}
interval: {{ $m.podMonitor.interval }}
{{- end -}}

{{- define "hearth.checkMetrics" -}}
{{- $m := .Values.metrics -}}
{{- if and $m.tls.clientCA (not $m.tls.secret) }}{{ fail "metrics.tls.clientCA: clients show a certificate over TLS only; name metrics.tls.secret too" }}{{ end -}}
{{- if and $m.enabled $m.tls.secret $m.podMonitor.enabled (not $m.podMonitor.tlsConfig) }}{{ fail "metrics.podMonitor.tlsConfig: say how Prometheus trusts metrics.tls.secret, and which certificate it shows (ca, cert, keySecret, serverName)" }}{{ end -}}
{{- end -}}
