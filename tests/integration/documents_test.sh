#!/bin/bash
# What documents tell their reader to do with Ceph and on a node, done as it stands there.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/../documents/documented.sh"
init
reader_begin
start_ceph
reader_has ceph "$ONE_NODE" ceph "$CEPH_DIR"

# ---- the Ceph user of the installation
at_exit ceph_cmd auth rm client.hearth
documented_block deploy/docs/install.md '1. The Ceph user'
check the_key_is_there test -s "$READER/hearth.key"
documented deploy/docs/operations.md 'ceph status'
