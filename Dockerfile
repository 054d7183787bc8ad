# The image of all programs: docker build --tag raykeeper:0.1.0 .
# There is neither a shell nor a package manager in it, and nothing in it is ever written: give a pod an emptyDir at /tmp.
ARG BUILD_IMAGE=docker.io/library/python:3.11-slim-bookworm
ARG RUN_IMAGE=gcr.io/distroless/python3-debian12:nonroot

FROM ${BUILD_IMAGE} AS build
WORKDIR /source
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1 PIP_NO_COMPILE=1 PIP_ROOT_USER_ACTION=ignore SOURCE_DATE_EPOCH=1700000000
COPY requirements/runtime.txt requirements/
RUN python -m pip install --quiet --require-hashes --only-binary=:all: --target=/image/opt/raykeeper --requirement=requirements/runtime.txt
COPY pyproject.toml README.md LICENSE ./
COPY src src
COPY helm-chart helm-chart
RUN python -m pip wheel --quiet --no-deps --wheel-dir=/wheel . \
 && python -m pip install --quiet --no-deps --target=/image/opt/raykeeper /wheel/*.whl
COPY tools/image_layout.py tools/
# Scripts of packages name the Python of this stage. Byte code carries a hash instead of a time, so that two builds agree.
RUN rm -rf /image/opt/raykeeper/bin \
 && PYTHONPATH=/image/opt/raykeeper python tools/image_layout.py /image \
 && python -m compileall -q --invalidation-mode=unchecked-hash -s /image -p / /image/opt/raykeeper \
 && find /image -exec touch --no-dereference --date=@${SOURCE_DATE_EPOCH} {} +

FROM ${RUN_IMAGE}
LABEL org.opencontainers.image.title="raykeeper" \
      org.opencontainers.image.description="Ray on Kubernetes that remembers: operator, collector and history server" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.source="https://github.com/raykeeper/raykeeper"
COPY --from=build /image /
ENV PYTHONPATH=/opt/raykeeper PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 PATH=/usr/local/bin:/usr/bin:/bin
USER 65532:65532
# A sidecar that an operator adds has arguments and no command: it is the collector. Charts and manifests name their program.
ENTRYPOINT ["/usr/local/bin/collector"]
