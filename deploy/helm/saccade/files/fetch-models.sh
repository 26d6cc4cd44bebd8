#!/bin/sh
# fetch-models.sh SOURCE TARGET CHECKSUMS: copies a model repository, and fails unless it holds exactly the files of
# CHECKSUMS (lines of sha256sum, with paths that begin with ./) with these contents. SOURCE is a folder, or
# s3://BUCKET/PATH, which rclone downloads: its variables (RCLONE_S3_...) say where from. POSIX sh, for small images.
set -eu
source=$1 target=$2 checksums=$3
fail() {
  echo "fetch-models: $1" >&2
  exit 1
}
case $source in
  s3://*) command -v rclone >/dev/null || fail "this image has no rclone; expected e.g. rclone/rclone; set models.fetch.image" ;;
  *) [ -d "$source" ] || fail "$source is no folder of this image; expected the model repository; set models.fetch.path" ;;
esac
# A restart of the container finds what an earlier attempt has left behind.
find "$target" -mindepth 1 -maxdepth 1 -exec rm -rf {} +
case $source in
  s3://*)
    # Without a file of configuration; credentials are in the environment.
    rclone --config="" --s3-env-auth --buffer-size=4Mi copy ":s3:${source#s3://}" "$target" ||
      fail "$source was not downloaded (see above); check the bucket, the path, the credentials and models.fetch.settings"
    [ -n "$(find "$target" -type f)" ] || fail "$source holds no file; expected the model repository; set models.fetch.uri"
    ;;
  *)
    # Links would lead out of the folder that is checked.
    links=$(find "$source" ! -type f ! -type d)
    [ -z "$links" ] || fail "$source holds something that is neither a file nor a folder: $links; copy the files themselves"
    cp -R "$source/." "$target"
    ;;
esac
cd "$target"
listed=$(sed 's/^[0-9a-f]* [ *]//' "$checksums" | sort)
found=$(find . -type f | sort)
[ "$listed" = "$found" ] || fail "the files are not those of models.fetch.checksums.
listed:
$listed
found:
$found"
checked=$(sha256sum -c "$checksums" 2>&1) ||
  fail "files differ from models.fetch.checksums; expected the files that these were made of: $(printf '%s\n' "$checked" | grep -v ': OK$')"
# The folder itself is the volume, which belongs to root.
find . -mindepth 1 -exec chmod a+rX {} +
echo "fetch-models: $(echo "$found" | wc -l) files are as models.fetch.checksums has them"
