#!/bin/bash
# Large files of a dataset are fetched as far as they are read: a byte of 1 GB, headers and footers of many files; read
# again they cost nothing; what is read to its end is kept, and the kernel reads it itself; a reader that leaves ends the
# fetching; eviction and unstaging take what was there in part.
. "$(dirname "$0")/lib.sh"
init
start_ceph
own_user
start_controller --secret-dir="$TMP/own"
start_hearthd
start_node

fetched() { # COMMAND...: how many bytes that takes from Ceph
    local before=$(cache_stat originBytes)
    "$@" >"$TMP/read" || { fail read "$* fails"; return; }
    wait_for 60 settled
    FETCHED=$(($(cache_stat originBytes) - before))
}
below() { # NAME BYTES
    [ "$FETCHED" -lt "$2" ] && pass "$1" || fail "$1" "$FETCHED bytes were fetched, of at most $2"
}

ceph_cmd fs subvolumegroup create hearthfs csi >/dev/null 2>&1
sub create parts-$$ --group_name csi --size 34359738368
at_exit "subsnap rm parts-$$ v1 --group_name csi; sub rm parts-$$ --group_name csi"
mkdir "$TMP/mnt/ceph"
spawn ceph-fuse ceph-fuse -f -c "$CEPH_CONF" -n client.admin -k "$CEPH_KEYRING" "$TMP/mnt/ceph"
wait_for 30 mountpoint -q "$TMP/mnt/ceph" || die "ceph-fuse does not mount"
SOURCE=$TMP/mnt/ceph$(sub getpath parts-$$ --group_name csi)
cat >"$TMP/parts.py" <<'PY'
"""make DIR | scan DIR: 16 files of 64 MB, with a header and a footer of 200 KB behind a length, as formats of tables and
tensors have them; a file of 1 GB; one of 40 MB. scan prints how many bytes it has read."""
import hashlib, os, struct, sys

SIZE, PART = 64 << 20, 200_000

def content(name, n):
    return hashlib.shake_128(name.encode()).digest(n)

def make(top):
    for i in range(16):
        with open(f"{top}/table{i}", "wb") as f:
            f.write(struct.pack("<Q", PART) + content(f"head{i}", PART))
            f.seek(SIZE - PART - 8 + i * 1000)
            f.write(content(f"foot{i}", PART) + struct.pack("<Q", PART))
    with open(f"{top}/large", "wb") as f:
        f.write(b"first")
        f.seek((1 << 30) - 4)
        f.write(b"last")
    with open(f"{top}/sequence", "wb") as f:
        f.write(content("sequence", 40_000_000))

def scan(top):
    read = 0
    for i in range(16):
        f = os.open(f"{top}/table{i}", os.O_RDONLY)
        size = os.fstat(f).st_size
        n, = struct.unpack("<Q", os.pread(f, 8, 0))
        m, = struct.unpack("<Q", os.pread(f, 8, size - 8))
        assert os.pread(f, n, 8) == content(f"head{i}", n), f"header of {i}"
        assert os.pread(f, m, size - 8 - m) == content(f"foot{i}", m), f"footer of {i}"
        os.close(f)
        read += 16 + n + m
    print(read)

{"make": make, "scan": scan}[sys.argv[1]](sys.argv[2])
PY
python3 "$TMP/parts.py" make "$SOURCE" || die "cannot make the files"
sync -f "$SOURCE"
subsnap create parts-$$ v1 --group_name csi
CAPABILITY='{mount: {}, access_mode: {mode: "MULTI_NODE_READER_ONLY"}}'
create_volume pvc-$$ 1073741824 "{\"dataset\": \"parts-$$@v1\"}" || die "CreateVolume: $(said)"
at_exit delete_volume
stage && publish || die "stage: $(said)"
drop_all

fetched head -c 1 "$TARGET/large"
below a_byte_of_1_GB_costs_less_than_8_MiB $((8 << 20))
same and_it_is_that_byte "$(cat "$TMP/read")" f
fetched tail -c 4 "$TARGET/large"
same the_end_of_it "$(cat "$TMP/read")" last
below costs_as_little $((8 << 20))

fetched python3 "$TMP/parts.py" scan "$TARGET"
read=$(cat "$TMP/read")
echo "# headers and footers: $FETCHED bytes fetched for $read read"
below headers_and_footers_cost_less_than_twice_what_is_read $((2 * read))
drop_all
fetched python3 "$TMP/parts.py" scan "$TARGET"
same read_again_they_cost_nothing "$FETCHED" 0

# A reader that goes away early.
before=$(cache_stat originBytes)
head -c 6000000 "$TARGET/sequence" >/dev/null
wait_for 60 settled
FETCHED=$(($(cache_stat originBytes) - before))
below a_reader_that_leaves_ends_the_fetching 24000000
fetched md5sum "$TARGET/sequence"
same all_of_it_is_right "$(cut -d' ' -f1 "$TMP/read")" "$(md5sum <"$SOURCE/sequence" | cut -d' ' -f1)"
same what_is_read_to_its_end_is_kept "$(find "$CACHE/objects" -type f -size 40000000c | wc -l)" 1
drop_all
fetched md5sum "$TARGET/sequence"
same and_costs_nothing_more "$FETCHED" 0

hearthctl warm "$VOLUME_ID" --files-from <(printf 'table3\n') >"$TMP/out" 2>&1 || fail warm "$(tail -n 1 "$TMP/out")"
same warming_completes_what_was_there_in_part "$(find "$CACHE/objects" -type f -size $(stat -c %s "$SOURCE/table3")c | wc -l)" 1
hearthctl evict --all >"$TMP/out" 2>&1 || fail evict "$(cat "$TMP/out")"
drop_all
fetched python3 "$TMP/parts.py" scan "$TARGET"
[ "$FETCHED" -gt "$read" ] && pass what_was_evicted_is_fetched_again || fail what_was_evicted_is_fetched_again "$FETCHED"
unpublish && unstage || fail leave "$(said)"
stage && publish || fail stage_again "$(said)"
drop_all
fetched python3 "$TMP/parts.py" scan "$TARGET"
[ -s "$TMP/read" ] && pass it_is_read_after_staging_again || fail it_is_read_after_staging_again "failed"
unpublish && unstage || fail leave "$(said)"
same nothing_is_left_in_part "$(find "$CACHE/partial" -type f | wc -l)" 0
