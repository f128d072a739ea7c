#!/bin/bash
# classes.py finds a parameter that the schema of the chart has and the template of the class does not.
set -uo pipefail
here=$(realpath "$(dirname "$0")")
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
failed=0
mkdir -p "$tree/charts/hearth/templates"

planted() { # NAME STATUS WORDS EDIT: the chart, with EDIT of sed in the template
    cp "$here/../../charts/hearth/values.schema.json" "$tree/charts/hearth/"
    sed "$4" "$here/../../charts/hearth/templates/classes.yaml" >"$tree/charts/hearth/templates/classes.yaml"
    "$here/classes.py" "$tree" >"$tree/out" 2>&1
    if [ $? = "$2" ] && grep -qF -- "$3" "$tree/out"; then
        echo "pass layout: $1"
    else
        echo "fail layout: $1: $(paste -sd ';' "$tree/out")"
        failed=1
    fi
}

planted classes_with_all_parameters 0 'pass layout' ''
planted a_parameter_that_is_not_rendered 1 'does not use cacheQuota of storageClasses' 's/ "cacheQuota"//'
planted a_field_that_is_not_rendered 1 'does not use fstype of storageClasses' 's/\$class\.fstype/.x/'
planted a_parameter_of_another_class_does_not_count 1 'does not use fsName of volumeGroupSnapshotClasses' \
    's/list "clusterID" "fsName" "volumeGroupNamePrefix"/list "clusterID" "volumeGroupNamePrefix"/'
exit $failed
