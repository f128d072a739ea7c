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

{{/* By which a workload knows its pods: never changes, so that an upgrade alone starts none anew. */}}
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

{{- define "hearth.image" -}}
{{- printf "%s:%s" .Values.image.repository (default .Chart.AppVersion .Values.image.tag) -}}
{{- end -}}

{{- define "hearth.controllerAccount" -}}
{{- .Values.serviceAccounts.provisioner.name -}}
{{- end -}}
{{- define "hearth.nodeAccount" -}}
{{- .Values.serviceAccounts.nodeplugin.name -}}
{{- end -}}

{{/* Where the driver's sockets and devices are, in the container and on the host alike. */}}
{{- define "hearth.pluginDir" -}}
{{- printf "%s/plugins/%s" .Values.kubeletDir .Values.driverName -}}
{{- end -}}

{{/* Nothing of Ceph is asked for without a request's secret unless there is one of our own. */}}
{{- define "hearth.capacity" -}}
{{- if and .Values.secret.name .Values.provisioner.capacity -}}true{{- end -}}
{{- end -}}

{{/* The policy needs the kind, which is in Kubernetes 1.36. */}}
{{- define "hearth.affinityPolicy" -}}
{{- if and .Values.warmth.enabled (not .Values.webhook.enabled) (.Capabilities.APIVersions.Has "admissionregistration.k8s.io/v1/MutatingAdmissionPolicy") -}}true{{- end -}}
{{- end -}}

{{/* Of a plugin. Alive is who answers; ready needs what it works with, too. */}}
{{- define "hearth.probes" -}}
startupProbe: { exec: { command: [hearth-csi, probe, "--endpoint=unix:///csi/csi.sock"] }, periodSeconds: 2, timeoutSeconds: 12, failureThreshold: 150 }
livenessProbe: { exec: { command: [hearth-csi, probe, "--endpoint=unix:///csi/csi.sock"] }, periodSeconds: 60, timeoutSeconds: 12, failureThreshold: 5 }
readinessProbe: { exec: { command: [hearth-csi, probe, --ready, "--endpoint=unix:///csi/csi.sock"] }, periodSeconds: 30, timeoutSeconds: 12 }
{{- end -}}
