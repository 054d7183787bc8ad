# The image of all programs: docker build --tag raykeeper:0.1.0 .
# That of the collector alone: docker build --build-arg VARIANT=collector --tag raykeeper-collector:0.1.0 .
# There is neither a shell nor a package manager in it, and nothing in it is ever written: give a pod an emptyDir at /tmp.
ARG BUILD_IMAGE=docker.io/library/python:3.11-slim-bookworm

# Runs on the machine that builds, also for another architecture. `make image` makes the same file system without Docker.
FROM --platform=${BUILDPLATFORM} ${BUILD_IMAGE} AS build
ARG TARGETARCH
ARG VARIANT=all
WORKDIR /source
COPY requirements requirements
RUN python -m pip install --quiet --root-user-action=ignore --require-hashes --requirement=requirements/build.txt
COPY pyproject.toml hatch_build.py README.md LICENSE ./
COPY src src
COPY helm-chart helm-chart
COPY tools tools
RUN python -m tools.wheel /wheel
RUN python -m tools.image tree /image --wheel /wheel/*.whl --variant ${VARIANT} --arch ${TARGETARCH}

FROM scratch
LABEL org.opencontainers.image.title="raykeeper" \
      org.opencontainers.image.description="Ray on Kubernetes that remembers" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.source="https://github.com/raykeeper/raykeeper"
COPY --from=build /image /
ENV PATH=/usr/local/bin:/usr/bin HOME=/home/nonroot LANG=C.UTF-8 PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 \
    SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt
USER 65532:65532
# A sidecar that an operator adds has arguments and no command: it is the collector. Charts and manifests name their program.
ENTRYPOINT ["/usr/local/bin/collector"]
