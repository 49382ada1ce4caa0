# Two ways to the same image, which holds the binary, the licences of what is in it, and an SBOM:
#
#   docker build -t bellwether .                                      builds the binary inside (the last target)
#   docker build -t bellwether --target prebuilt \
#     --build-arg BINARY=bellwether -f Dockerfile FOLDER              takes FOLDER/bellwether, built outside
#
# The second one is for a binary that is built and tested already, and that very file is to be shipped; FOLDER holds it and
# deploy/image/third-party-licenses.txt and bellwether.cdx.json. It has to be a static one (see RUSTFLAGS below): the image
# has no loader for shared libraries. Without any engine: deploy/image/build.

# Any image with cargo, a C linker and the static C library. An argument, for a mirror.
ARG RUST_IMAGE=rust:1-slim-bookworm
# Its digest, sha256:…: then no other image is taken, whatever its tag names by now. `docker buildx imagetools inspect
# rust:1-slim-bookworm` shows the present one.
ARG RUST_DIGEST=

FROM ${RUST_IMAGE}${RUST_DIGEST:+@${RUST_DIGEST}} AS build
WORKDIR /src
COPY . .
# crt-static: glibc is linked in, so that the image needs nothing. It resolves names without the shared libraries that a
# static glibc is known to want, because the hosts file and DNS have been built into it since 2.34 (tests/dns.rs).
# No default features: a pod needs no simulator and no `inject`.
# --target, although it is the host: without it the flag would reach build scripts and macros, which cannot be static.
RUN host="$(rustc -vV | sed -n 's/^host: //p')" \
 && RUSTFLAGS='-C target-feature=+crt-static' \
    cargo build --locked --profile image --no-default-features --bin bellwether --target "$host" \
 && cp "target/$host/image/bellwether" /bellwether

# What both images are besides the files.
FROM scratch AS shell-less
# The commit: --build-arg REVISION="$(git rev-parse HEAD)".
ARG REVISION=
LABEL org.opencontainers.image.title="bellwether" \
      org.opencontainers.image.description="Leader election sidecar: the Bully algorithm over TCP, found through DNS, answered over local HTTP" \
      org.opencontainers.image.version="0.1.0" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.revision="${REVISION}"
# PATH: so that `kubectl exec POD -c bellwether -- bellwether status` finds it. The tunables: one heap for all threads, and
# few stacks kept of threads that have ended. Links have threads, and a start of many members opens many of them for a while.
# With 0 glibc unmaps a stack that pthread_detach reads still, where a thread ends at the moment at which it is detached.
ENV PATH=/ \
    GLIBC_TUNABLES=glibc.malloc.arena_max=1:glibc.pthread.stack_cache_size=1048576
# A user that owns nothing anywhere, as a number: there is no /etc/passwd, and Kubernetes' runAsNonRoot looks at the
# number. Neither port needs a privilege.
USER 65532:65532
# The status API and the peer port.
EXPOSE 4040 4041
# For engines without probes of their own; Kubernetes ignores it and asks /healthz. The binary asks itself, since there
# is no shell and no curl. (Only images in Docker's format carry it.)
HEALTHCHECK CMD ["/bellwether", "status", "--healthz"]
ENTRYPOINT ["/bellwether"]

FROM shell-less AS prebuilt
ARG BINARY=bellwether
COPY ${BINARY} /bellwether
COPY third-party-licenses.txt bellwether.cdx.json /

# The last target is the one that is built when none is named.
FROM shell-less AS bellwether
COPY --from=build /bellwether /bellwether
COPY deploy/image/third-party-licenses.txt deploy/image/bellwether.cdx.json /
