# The worker and every other command of stream-peer.
#
#   docker build -t stream-peer .
#   docker run --rm --read-only --tmpfs /tmp stream-peer --help
#
# A base of your own, best by digest: --build-arg BASE=python:3.13-slim-bookworm@sha256:...
ARG BASE=python:3.13-slim-bookworm

FROM ${BASE} AS build
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
WORKDIR /src
COPY requirements/build.txt requirements/runtime.txt requirements/
# pip and the build backend stay in an environment of their own; the one that is shipped holds neither,
# nor the packages' own tests, headers and sources of C.
RUN python3 -m venv /opt/build \
    && /opt/build/bin/python -m pip install --require-hashes --only-binary :all: -r requirements/build.txt \
    && python3 -m venv --without-pip /opt/venv \
    && /opt/build/bin/python -m pip --python /opt/venv/bin/python install --no-compile --require-hashes \
        --only-binary :all: -r requirements/runtime.txt \
    && find /opt/venv -depth -type d \( -name tests -o -name test -o -name include \) -exec rm -r {} + \
    && find /opt/venv -type f \( -name '*.a' -o -name '*.c' -o -name '*.h' -o -name '*.pyx' \) -delete
COPY pyproject.toml README.md LICENSE ./
COPY stream_peer stream_peer
# Compiled once, here: the root file system that it runs on may be read-only, and a health check has to be quick.
# Unchecked hashes instead of times, and no random order: the same sources give the same layer.
RUN /opt/build/bin/python -m pip wheel --no-deps --no-build-isolation --wheel-dir /opt/wheel . \
    && /opt/build/bin/python -m pip --python /opt/venv/bin/python install --no-compile --no-deps --no-index /opt/wheel/*.whl \
    && PYTHONHASHSEED=0 python3 -m compileall -q -f --invalidation-mode unchecked-hash /opt/venv/lib

# Volumes that are mounted over them take their owner and mode over: the keys of docker-compose.yml.
RUN install -d -m 0700 /opt/state/keys /opt/state/gateway

FROM ${BASE}
ARG BASE
ARG VERSION=unknown
ARG REVISION=unknown
LABEL org.opencontainers.image.title="stream-peer" \
      org.opencontainers.image.description="Learns from a Kafka stream of forecasts which experts to trust" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}" \
      org.opencontainers.image.base.name="${BASE}"
ENV PATH="/opt/venv/bin:${PATH}" \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1
COPY --from=build /opt/venv /opt/venv
COPY --from=build --chown=10001:10001 /opt/state /var/lib/stream-peer
USER 10001:10001
WORKDIR /tmp
EXPOSE 8080
STOPSIGNAL SIGTERM
# At the worker's own http.port. Kubernetes ignores this and has probes of its own.
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s --retries=6 CMD ["stream-peer", "health"]
ENTRYPOINT ["stream-peer"]
CMD ["worker"]
