# Sourced by check: values that are well formed and cannot work are refused before anything is installed, each with the
# value and what it should be.

set_json() { # NAME PATTERN JSON...
    local name=$1 pattern=$2 args=()
    shift 2
    for value in "$@"; do args+=(--set-json "$value"); done
    refused "$name" "$pattern" "${args[@]}"
}
CLUSTER='csiConfig=[{"clusterID":"c","monitors":["m"]}]'
class() { set_json "$1" "$2" "$CLUSTER" "storageClasses=[{\"name\":\"a\",\"clusterID\":\"c\",$3}]"; }
pool() { set_json "$1" "$2" "nodePools=[{\"name\":\"\",\"cache\":{\"enabled\":true,$3}}]"; }
cluster() { set_json "$1" "$2" "csiConfig=[{\"clusterID\":\"c\",$3}]"; }

# ---- two of one name
ONE='{"clusterID":"c","monitors":["m"]}'
set_json refuses_two_clusters_of_one_id 'csiConfig: two have the clusterID "c"' "csiConfig=[$ONE,$ONE]"
ONE='{"name":"a","clusterID":"c","fsName":"f"}'
set_json refuses_two_classes_of_one_name 'storageClasses: two have the name "a"' "$CLUSTER" "storageClasses=[$ONE,$ONE]"
set_json refuses_two_snapshot_classes_of_one_name 'volumeSnapshotClasses: two have the name "a"' 'volumeSnapshotClasses=[{"name":"a"},{"name":"a"}]'
set_json refuses_two_pools_of_one_name 'nodePools: two have the name "default"' \
    'nodePools=[{"name":"default","nodeSelector":{"a":"b"},"cache":{"enabled":false}},{"name":"","nodeSelector":{"a":"c"},"cache":{"enabled":false}}]'
set_json refuses_pools_that_share_nodes 'x has neither nodeSelector nor affinity' \
    'nodePools=[{"name":"x","cache":{"enabled":false}},{"name":"y","nodeSelector":{"a":"c"},"cache":{"enabled":false}}]'

# ---- clusters
cluster refuses_monitors_in_one_string monitors '"monitors":["10.0.0.1, 10.0.0.2"]'
cluster refuses_an_empty_monitor monitors '"monitors":[""]'
cluster refuses_a_url_of_a_monitor monitors '"monitors":["http://10.0.0.1"]'
cluster refuses_cephfs_in_small_letters "propertyName .cephfs" '"monitors":["m"],"cephfs":{"subvolumeGroup":"x"}'
cluster refuses_an_empty_group subvolumeGroup '"monitors":["m"],"cephFS":{"subvolumeGroup":""}'
for monitor in 10.0.0.1 10.0.0.1:6789 mon.example:3300 '[v2:10.0.0.1:3300/0,v1:10.0.0.1:6789/0]' '[2001:db8::1]:6789'; do
    if template monitors --set-json "csiConfig=[{\"clusterID\":\"c\",\"monitors\":[\"$monitor\"]}]"; then pass "a_monitor_may_be_$monitor"; else fail "a_monitor_may_be_$monitor" "$(tail -n 1 "$tmp/err")"; fi
done

# ---- classes
for quota in -5Gi '10 GB' 1.5Gi lots; do class "refuses_a_quota_of_$quota" cacheQuota "\"fsName\":\"f\",\"cacheQuota\":\"$quota\""; done
class refuses_a_dataset_without_snapshot dataset '"fsName":"f","dataset":"imagenet"'
class refuses_a_dataset_of_images 'a has type rbd, where dataset has no meaning' '"pool":"p","dataset":"a@b"'
class refuses_a_dataset_with_a_pool 'a has a dataset, which is read only' '"fsName":"f","pool":"p","dataset":"a@b"'
class refuses_a_file_system_on_cephfs 'a has type cephfs, where fstype has no meaning' '"fsName":"f","fstype":"ext4"'
class refuses_a_timeout_of_images 'a has type rbd, where readTimeout has no meaning' '"pool":"p","readTimeout":"5s"'
class refuses_a_pin_nobody_knows mdsPin '"fsName":"f","mdsPin":"junk"'
class refuses_a_feature_nobody_knows imageFeatures '"pool":"p","imageFeatures":"layring"'
class refuses_a_limit_that_is_none maxIops '"pool":"p","maxIops":"many"'
class refuses_a_stripe_without_count 'stripeUnit and stripeCount go together' '"pool":"p","stripeUnit":"4Ki"'
class refuses_pools_that_are_no_list 'topologyConstrainedPools of a is no JSON array' '"topologyConstrainedPools":"junk"'
class refuses_a_prefix_with_a_slash volumeNamePrefix '"fsName":"f","volumeNamePrefix":"a/b"'
set_json refuses_a_name_with_two_dots name "$CLUSTER" 'storageClasses=[{"name":"a..b","clusterID":"c","fsName":"f"}]'
set_json refuses_attributes_that_are_none cacheQuota 'volumeAttributesClasses=[{"name":"a","parameters":{"cacheQuota":"junk"}}]'

# ---- the cache
for dir in /.. /a:b '/a b' //c; do pool "refuses_a_cache_at_$dir" cache/dir "\"dir\":\"$dir\",\"size\":\"1Gi\""; done
for dir in /etc /dev/nvme0n1 /run/hearth /var/lib; do pool "refuses_the_systems_$dir" "cache.dir $dir of default is the system's own" "\"dir\":\"$dir\",\"size\":\"1Gi\""; done
pool refuses_a_cache_below_kubelet 'below kubeletDir' '"dir":"/var/lib/kubelet/hearth","size":"1Gi"'
pool refuses_a_cache_of_nothing cache/size '"dir":"/c","size":0'
pool refuses_a_cache_that_would_take_all_unasked size '"dir":"/c"'

# ---- quantities, ports, images
set_json refuses_memory_with_a_blank memory 'hearthd.resources={"limits":{"memory":"4 GB"}}'
set_json refuses_memory_of_four_bytes memory 'hearthd.resources={"limits":{"memory":4}}'
set_json refuses_a_resource_nobody_knows "propertyName .mem" 'hearthd.resources={"limits":{"mem":"4Gi"}}'
template quantities --set-json 'hearthd.resources={"requests":{"cpu":0.5,"memory":536870912},"limits":{"memory":"4096M","nvidia.com/gpu":1}}'
has quantities_may_be_numbers '"cpu":0.5'
refused refuses_one_port_for_two 'metrics.ports: hearthd 9811, nodeplugin 9811' --set metrics.enabled=true,metrics.ports.hearthd=9811
for name in podMonitor prometheusRule dashboard; do
    refused "refuses_${name}_without_metrics" "metrics.$name.enabled: there are no metrics" --set "metrics.$name.enabled=true"
done
for image in a/b:v1 A/B 'a b' https://a/b; do refused "refuses_the_image_$image" image/repository --set "image.repository=$image"; done
refused refuses_a_tag_with_a_blank image/tag --set 'image.tag=a b'
refused refuses_a_registry_with_a_scheme imageRegistry --set global.imageRegistry=http://a
refused refuses_a_user_with_its_type userID --set secret.create=true,secret.userID=client.x,secret.userKey=k
refused refuses_no_time_at_all timeout --set provisioner.timeout=0s
refused refuses_one_account_for_both 'both x; nodes would get' --set serviceAccounts.provisioner.name=x,serviceAccounts.nodeplugin.name=x
