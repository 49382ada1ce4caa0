# What deploy/image/build and deploy/release share: archives in OCI's image layout, the same bytes each time.
#
# To be sourced, with `seconds` set to the time that files carry (in seconds since 1970). Needs GNU tar and coreutils,
# and jq.

# pack FOLDER: a tar archive of what is in it, on stdout.
pack() {
    tar --create --directory "$1" --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$seconds" --mode=u=rwX,go=rX \
        --format=gnu $(cd "$1" && ls -A)
}

# descriptor FILE MEDIA_TYPE: prints it as JSON.
descriptor() {
    jq -n --arg type "$2" --arg digest "sha256:$(sha256sum "$1" | cut -d ' ' -f 1)" --argjson size "$(stat --format %s "$1")" \
        '{mediaType: $type, digest: $digest, size: $size}'
}

# blob LAYOUT FILE MEDIA_TYPE: moves FILE among the blobs of the folder LAYOUT, and prints its descriptor.
blob() {
    local found
    mkdir -p "$1/blobs/sha256"
    found=$(descriptor "$2" "$3")
    mv "$2" "$1/blobs/sha256/$(jq -r '.digest | ltrimstr("sha256:")' <<<"$found")"
    echo "$found"
}

# layout LAYOUT NAME:TAG DESCRIPTOR: completes the folder LAYOUT, with DESCRIPTOR as its one entry.
layout() {
    local full
    # Engines differ in which annotation they read the name from, and whether they add a registry to it.
    case ${2%%/*} in
    "$2") full=docker.io/library/$2 ;;
    *.* | *:* | localhost) full=$2 ;;
    *) full=docker.io/$2 ;;
    esac
    jq -n --argjson entry "$3" --arg full "$full" --arg tag "${2##*:}" '{
        schemaVersion: 2, mediaType: "application/vnd.oci.image.index.v1+json",
        manifests: [$entry + {annotations: {
            "io.containerd.image.name": $full, "org.opencontainers.image.ref.name": $tag}}]
    }' >"$1/index.json"
    printf '{"imageLayoutVersion": "1.0.0"}\n' >"$1/oci-layout"
}

# package KEY: what the table [package] of Cargo.toml in the folder `source` says, since a binary may be for another
# machine.
package() {
    sed -n "s/^$1 = \"\(.*\)\"$/\1/p" "$source/Cargo.toml" | head -n 1
}
