/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The words of hearthd's control protocol (docs/design/protocol.md), for both sides. A key that is
 * in several messages has one constant; it stands at the first of them. A new release may add keys.
 * It never changes one: the node plugin and hearthd of a node may be one release apart.
 */
#ifndef HEARTH_PROTO_WIRE_KEYS_H
#define HEARTH_PROTO_WIRE_KEYS_H

/* Values of WIRE_KEY_OP. */
#define WIRE_OP_HELLO "hello"
#define WIRE_OP_OPEN "open"
#define WIRE_OP_ATTACH "attach"
#define WIRE_OP_STATE "state"
#define WIRE_OP_RESTORE "restore"
#define WIRE_OP_DETACH "detach"
#define WIRE_OP_MANIFEST "manifest"
#define WIRE_OP_FETCH "fetch"
#define WIRE_OP_RESIZE "resize"
#define WIRE_OP_STATUS "status"
#define WIRE_OP_VOLUMES "volumes"
#define WIRE_OP_VOLUME "volume"
#define WIRE_OP_REFUSED "refused"
#define WIRE_OP_WARM "warm"
#define WIRE_OP_JOB "job"
#define WIRE_OP_JOBS "jobs"
#define WIRE_OP_CANCEL "cancel"
#define WIRE_OP_EVICT "evict"
#define WIRE_OP_PIN "pin"
#define WIRE_OP_DATASETS "datasets"
#define WIRE_OP_VERIFY "verify"
#define WIRE_OP_RESOLVE "resolve"

/* Every request and reply. */
#define WIRE_KEY_OP "op"
#define WIRE_KEY_OK "ok"
#define WIRE_KEY_CODE "code"
#define WIRE_KEY_ERROR "error"
#define WIRE_KEY_VOLUME "volume"

/* hello. */
#define WIRE_KEY_VERSION "version"
#define WIRE_KEY_PID "pid"
#define WIRE_KEY_CACHE_DIR "cacheDir"
#define WIRE_KEY_PROTOCOL "protocol"

/* open, and the spec that fetch returns. */
#define WIRE_KEY_ORIGIN "origin"
#define WIRE_KEY_CACHE "cache"
#define WIRE_KEY_CACHE_QUOTA "cacheQuota"
#define WIRE_KEY_READ_ONLY "readOnly"
#define WIRE_KEY_MOUNT_GROUP "mountGroup"
#define WIRE_KEY_READ_TIMEOUT_SEC "readTimeoutSec"
#define WIRE_KEY_SHARED_LOCKS "sharedLocks"
#define WIRE_KEY_ATTACHED "attached"
#define WIRE_KEY_RESTS "rests"
#define WIRE_KEY_NAMES "names"

/* NAMES, of open. */
#define WIRE_KEY_CLAIM "claim"
#define WIRE_KEY_PERSISTENT_VOLUME "persistentVolume"

/* ORIGIN, of open. */
#define WIRE_KEY_TYPE "type"
#define WIRE_KEY_CLUSTER_ID "clusterID"
#define WIRE_KEY_MONITORS "monitors"
#define WIRE_KEY_FS_NAME "fsName"
#define WIRE_KEY_ROOT_PATH "rootPath"
#define WIRE_KEY_POOL "pool"
#define WIRE_KEY_RADOS_NAMESPACE "radosNamespace"
#define WIRE_KEY_IMAGE "image"
#define WIRE_KEY_SNAPSHOT "snapshot"
#define WIRE_KEY_SHARED "shared"
#define WIRE_KEY_USER_ID "userID"
#define WIRE_KEY_USER_KEY "userKey"
#define WIRE_KEY_TIMEOUT_SEC "timeoutSec"
#define WIRE_KEY_CEPH_CONF "cephConf"
#define WIRE_KEY_CRUSH_LOCATION "crushLocation"
#define WIRE_KEY_NET_NAMESPACE_FILE_PATH "netNamespaceFilePath"

/* attach, fetch. */
#define WIRE_KEY_LAYER "layer"
#define WIRE_KEY_SPEC "spec"
#define WIRE_KEY_RESUME "resume"
#define WIRE_KEY_RESTORED "restored"

/* manifest. */
#define WIRE_KEY_WAIT_MS "waitMs"
#define WIRE_KEY_STATE "state"
#define WIRE_KEY_DATASET "dataset"
#define WIRE_KEY_PATH "path"
#define WIRE_KEY_OBJECTS "objects"
#define WIRE_KEY_FILES "files"
#define WIRE_KEY_DIRECTORIES "directories"
#define WIRE_KEY_BYTES "bytes"
#define WIRE_KEY_READABLE "readable"

/* status. */
#define WIRE_KEY_DAEMON "daemon"
#define WIRE_KEY_UPTIME_SEC "uptimeSec"
#define WIRE_KEY_CPU_MS "cpuMs"
#define WIRE_KEY_IO_FLUSHER "ioFlusher"
#define WIRE_KEY_LIVE_INODES "liveInodes"
#define WIRE_KEY_MAX_LIVE_INODES "maxLiveInodes"
#define WIRE_KEY_CEPHFS_CONNECTIONS "cephfsConnections"
#define WIRE_KEY_MEMORY "memory"
#define WIRE_KEY_RESIDENT_BYTES "residentBytes"
#define WIRE_KEY_KINDS "kinds"
#define WIRE_KEY_KIND "kind"
#define WIRE_KEY_THREADS "threads"
#define WIRE_KEY_MAX_THREADS "maxThreads"
#define WIRE_KEY_DIR "dir"
#define WIRE_KEY_DISK "disk"
#define WIRE_KEY_MAX_BYTES "maxBytes"
#define WIRE_KEY_MAX_INODES "maxInodes"
#define WIRE_KEY_FREE_BYTES "freeBytes"
#define WIRE_KEY_EVICTED_OBJECTS "evictedObjects"
#define WIRE_KEY_EVICTED_BYTES "evictedBytes"
#define WIRE_KEY_NATIVE_BYTES "nativeBytes"
#define WIRE_KEY_ORIGIN_BYTES "originBytes"
#define WIRE_KEY_ORIGIN_READS "originReads"
#define WIRE_KEY_ORIGIN_US "originUs"
#define WIRE_KEY_REFETCHED "refetchedObjects"
#define WIRE_KEY_FILLS_ACTIVE "fillsActive"
#define WIRE_KEY_FILLS_COMPLETED "fillsCompleted"
#define WIRE_KEY_FILLS_FAILED "fillsFailed"
#define WIRE_KEY_DISK_ERRORS "diskErrors"
#define WIRE_KEY_HIGH_PERCENT "highPercent"
#define WIRE_KEY_LOW_PERCENT "lowPercent"
#define WIRE_KEY_VERITY "verity"
#define WIRE_KEY_BAD_OBJECTS "badObjects"
#define WIRE_KEY_SCRUB "scrub"
#define WIRE_KEY_BYTES_PER_SEC "bytesPerSec"
#define WIRE_KEY_ENDED_MS "endedMs"
#define WIRE_KEY_PINS "pins"

/* volumes, refused; VOLUME, of these and of volume. */
#define WIRE_KEY_AFTER "after"
#define WIRE_KEY_VOLUMES "volumes"
#define WIRE_KEY_MORE "more"
#define WIRE_KEY_BYTES_CACHED "bytesCached"
#define WIRE_KEY_BYTES_TOTAL "bytesTotal"
#define WIRE_KEY_OPENS "opens"
#define WIRE_KEY_HITS "hits"
#define WIRE_KEY_MISSES "misses"
#define WIRE_KEY_BYTES_STORE "bytesStore"
#define WIRE_KEY_BYTES_FILL "bytesFill"
#define WIRE_KEY_BYTES_ORIGIN "bytesOrigin"
#define WIRE_KEY_BYTES_WRITTEN "bytesWritten"
#define WIRE_KEY_OPEN_US "openUs"
#define WIRE_KEY_READS "reads"
#define WIRE_KEY_READ_US "readUs"
#define WIRE_KEY_NODES "nodes"
#define WIRE_KEY_FILES_TOTAL "filesTotal"
#define WIRE_KEY_PINNED "pinned"
#define WIRE_KEY_UNCACHED "uncached"
#define WIRE_KEY_NAME "name"
#define WIRE_KEY_LABEL "label"

/* warm, job, cancel. */
#define WIRE_KEY_WARM "warm"
#define WIRE_KEY_WAIT "wait"
#define WIRE_KEY_RATE "rate"
#define WIRE_KEY_JOB "job"
#define WIRE_KEY_JOBS "jobs"
#define WIRE_KEY_CHECK "check"
#define WIRE_KEY_FILES_DONE "filesDone"
#define WIRE_KEY_BYTES_DONE "bytesDone"
#define WIRE_KEY_BYTES_HELD "bytesHeld"
#define WIRE_KEY_FILES_FAILED "filesFailed"
#define WIRE_KEY_SCANNING "scanning"
#define WIRE_KEY_ELAPSED_MS "elapsedMs"
#define WIRE_KEY_STARTED_MS "startedMs"

/* evict, pin. */
#define WIRE_KEY_FREED_BYTES "freedBytes"
#define WIRE_KEY_PINNED_BYTES "pinnedBytes"
#define WIRE_KEY_ON "on"

/* datasets. */
#define WIRE_KEY_DATASETS "datasets"
#define WIRE_KEY_PLACES "places"
#define WIRE_KEY_FILES_CACHED "filesCached"

/* verify. */
#define WIRE_KEY_UNCHECKED "unchecked"
#define WIRE_KEY_BAD "bad"
#define WIRE_KEY_OBJECT "object"

/* Values of WIRE_KEY_TYPE of an ORIGIN. */
#define WIRE_TYPE_CEPHFS "cephfs"
#define WIRE_TYPE_RBD "rbd"
#define WIRE_TYPE_DIR "dir"

/* Values of WIRE_KEY_LAYER. */
#define WIRE_LAYER_FILL "fill"

/* Values of WIRE_KEY_STATE of a manifest. */
#define WIRE_MANIFEST_READY "ready"
#define WIRE_MANIFEST_BUILDING "building"

/* Values of WIRE_KEY_STATE of a job. */
#define WIRE_JOB_RUNNING "running"
#define WIRE_JOB_DONE "done"
#define WIRE_JOB_FAILED "failed"
#define WIRE_JOB_CANCELLED "cancelled"

/* Values of WIRE_KEY_DISK. */
#define WIRE_DISK_OK "ok"
#define WIRE_DISK_SUSPECT "suspect"
#define WIRE_DISK_BYPASS "bypass"
#define WIRE_DISK_OFF "off"

/* Values of WIRE_KEY_VERITY. */
#define WIRE_VERITY_OFF "off"
#define WIRE_VERITY_ON "on"
#define WIRE_VERITY_UNAVAILABLE "unavailable"

#endif
