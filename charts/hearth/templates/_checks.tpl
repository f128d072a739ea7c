{{/* What the schema cannot say: values that are well formed each, and cannot work together. */}}
{{- define "hearth.checks" -}}
{{- include "hearth.checkNames" (list "csiConfig" "clusterID" .Values.csiConfig) -}}
{{- range $kind := list "storageClasses" "volumeSnapshotClasses" "volumeGroupSnapshotClasses" "volumeAttributesClasses" -}}
{{- include "hearth.checkNames" (list $kind "name" (get $.Values $kind)) -}}
{{- end -}}
{{- range .Values.storageClasses }}{{ include "hearth.checkClass" . }}{{ end -}}
{{- include "hearth.checkPools" . -}}
{{- include "hearth.checkUpgrade" . -}}
{{- $m := .Values.metrics -}}
{{- if $m.enabled -}}
{{- $daemon := toString (int64 $m.ports.hearthd) -}}
{{- $node := toString (int64 $m.ports.nodeplugin) -}}
{{- $controller := toString (int64 $m.ports.provisioner) -}}
{{- if or (eq $daemon $node) (and .Values.provisioner.enableHostNetwork (has $controller (list $daemon $node))) -}}
{{- fail (printf "metrics.ports: hearthd %s, nodeplugin %s and provisioner %s are on one host, so each needs a port of its own" $daemon $node $controller) -}}
{{- end -}}
{{- else -}}
{{- range $name := list "podMonitor" "prometheusRule" "dashboard" -}}
{{- if (get $m $name).enabled }}{{ fail (printf "metrics.%s.enabled: there are no metrics; set metrics.enabled too" $name) }}{{ end -}}
{{- end -}}
{{- end -}}
{{- $a := .Values.serviceAccounts -}}
{{- if eq $a.provisioner.name $a.nodeplugin.name }}{{ fail (printf "serviceAccounts: provisioner and nodeplugin are both %s; nodes would get the controller's rights" $a.provisioner.name) }}{{ end -}}
{{- end -}}

{{/* Fails when two have the same name. include "hearth.checkNames" (list KIND FIELD LIST) */}}
{{- define "hearth.checkNames" -}}
{{- $kind := index . 0 -}}
{{- $field := index . 1 -}}
{{- $seen := dict -}}
{{- range index . 2 -}}
{{- $name := toString (get . $field) -}}
{{- if hasKey $seen $name }}{{ fail (printf "%s: two have the %s %q" $kind $field $name) }}{{ end -}}
{{- $_ := set $seen $name true -}}
{{- end -}}
{{- end -}}

{{/* Parameters of another type of volume, which the driver refuses when the first claim comes. */}}
{{- define "hearth.checkClass" -}}
{{- $class := . -}}
{{- $type := default (ternary "rbd" "cephfs" (and (or $class.pool $class.topologyConstrainedPools | empty | not) (empty $class.fsName))) $class.type -}}
{{- $others := ternary (list "dataset" "mdsPin" "backingSnapshot" "readTimeout") (list "dataPool" "imageFeatures" "mkfsOptions" "fstype" "stripeUnit" "stripeCount" "objectSize" "topologyConstrainedPools") (eq $type "rbd") -}}
{{- range $others -}}
{{- if get $class . }}{{ fail (printf "storageClasses: %s has type %s, where %s has no meaning" $class.name $type .) }}{{ end -}}
{{- end -}}
{{- if and $class.dataset (or $class.pool $class.mdsPin (eq (toString $class.backingSnapshot) "false")) -}}
{{- fail (printf "storageClasses: %s has a dataset, which is read only: leave out pool, mdsPin and backingSnapshot" $class.name) -}}
{{- end -}}
{{- if ne (empty $class.stripeUnit) (empty $class.stripeCount) }}{{ fail (printf "storageClasses: %s: stripeUnit and stripeCount go together" $class.name) }}{{ end -}}
{{- with $class.topologyConstrainedPools -}}
{{- if not (regexMatch "^\\s*\\[\\s*\\{" .) }}{{ fail (printf "storageClasses: topologyConstrainedPools of %s is no JSON array of objects (docs/storageclass.md)" $class.name) }}{{ end -}}
{{- end -}}
{{- end -}}

{{/* Two of its pods on one node would each own the cache, and the mounts. */}}
{{- define "hearth.checkPools" -}}
{{- $pools := .Values.nodePools -}}
{{- $seen := dict -}}
{{- range $pool := $pools -}}
{{- $name := default "default" $pool.name -}}
{{- if hasKey $seen $name }}{{ fail (printf "nodePools: two have the name %q (\"\" is \"default\")" $name) }}{{ end -}}
{{- $_ := set $seen $name true -}}
{{- if and (gt (len $pools) 1) (empty $pool.nodeSelector) (empty $pool.affinity) -}}
{{- fail (printf "nodePools: %s has neither nodeSelector nor affinity, so its nodes would be in other pools, too; a node belongs to at most one" $name) -}}
{{- end -}}
{{- if $pool.cache.enabled -}}
{{- $dir := $pool.cache.dir -}}
{{- if or (has $dir (list "/bin" "/boot" "/etc" "/home" "/lib" "/lib64" "/opt" "/root" "/sbin" "/srv" "/tmp" "/usr" "/var" "/var/lib")) (regexMatch "^/(dev|proc|sys|run|etc|boot|usr)(/|$)" $dir) -}}
{{- fail (printf "nodePools: cache.dir %s of %s is the system's own; name a directory for the cache alone, such as /var/lib/hearth" $dir $name) -}}
{{- end -}}
{{- if hasPrefix (printf "%s/" $.Values.kubeletDir) (printf "%s/" $dir) -}}
{{- fail (printf "nodePools: cache.dir %s of %s is below kubeletDir (%s), where kubelet removes what it does not know" $dir $name $.Values.kubeletDir) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* A rolling update ends each hearthd. Where it cannot leave its mounts, pods would lose them. */}}
{{- define "hearth.checkUpgrade" -}}
{{- if and .Release.IsUpgrade (ne (get (default dict .Values.hearthd.updateStrategy) "type") "OnDelete") -}}
{{- $instead := "pods would lose their volumes; set hearthd.updateStrategy.type to OnDelete, and see docs/operations.md, \"Upgrade\"" -}}
{{- range .Values.nodePools -}}
{{- $of := ternary "" (printf "-%s" .name) (empty .name) -}}
{{- $old := lookup "apps/v1" "DaemonSet" $.Release.Namespace (printf "hearthd%s" $of) -}}
{{- if and $old (eq (dig "spec" "updateStrategy" "type" "" $old) "OnDelete") (lt (int (dig "status" "updatedNumberScheduled" 0 $old)) (int (dig "status" "desiredNumberScheduled" 0 $old))) -}}
{{- fail (printf "hearthd.updateStrategy: the last upgrade has set hearthd%s to OnDelete, and not all of its pods have been replaced since: %s" $of $instead) -}}
{{- end -}}
{{- if and $old (not (lookup "apps/v1" "DaemonSet" $.Release.Namespace (printf "hearth-keeper%s" $of))) -}}
{{- fail (printf "hearthd.updateStrategy: the hearthd%s that runs is of 0.1.0 and does not leave its mounts to the next one: %s" $of $instead) -}}
{{- end -}}
{{- end -}}
{{- range (lookup "v1" "Node" "" "").items -}}
{{- if and (get (default dict .metadata.labels) "topology.csi.hearth.dev/node") (regexMatch "^([0-5]\\.|6\\.[0-8]\\.)" .status.nodeInfo.kernelVersion) -}}
{{- fail (printf "hearthd.updateStrategy: node %s has Linux %s, and a hearthd leaves its mounts to the next one from 6.9 on: %s" .metadata.name .status.nodeInfo.kernelVersion $instead) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
