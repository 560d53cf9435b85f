# The image of all containers; docker-compose.yml has the command of each.
#
# The first `docker-compose up -d` builds it, from Debian's packages and those of the requirements' locks; each download
# is checked against the lock's hashes. A build without network needs a BASE with Debian's packages, the files of the
# locks in the folder wheels/, and --build-arg PIP_NO_INDEX=1.
ARG BASE=debian:12.12-slim@sha256:d5d3f9c23164ea16f31852f95bd5959aad1c5e854332fe00f7b3a20fcc9f635c


FROM ${BASE} AS machine
RUN packages="ca-certificates openjdk-17-jre-headless python3"; \
    dpkg --status $packages >/dev/null 2>&1 || { \
        mkdir -p /usr/share/man/man1 \
        && apt-get update \
        && apt-get install --yes --no-install-recommends $packages \
        && rm -rf /var/lib/apt/lists/*; \
    }
# Spark's Java requires a user with a name.
RUN echo "appliance:x:10001:10001::/tmp:/usr/sbin/nologin" >>/etc/passwd
ENV PATH=/opt/venv/bin:$PATH PYTHONPATH=/opt/appliance PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 LANG=C.UTF-8


FROM machine AS builder
RUN dpkg-query --show --showformat='${Package}\t${Version}\t${Architecture}\n' >/packages.txt
RUN dpkg --status python3-venv >/dev/null 2>&1 \
    || { apt-get update && apt-get install --yes --no-install-recommends python3-venv; }
RUN python3 -m venv /build && python3 -m venv /opt/venv
ARG PIP_NO_INDEX
COPY requirements.lock requirements-build.lock requirements-materials.lock wheels/* /build/files/
# Only PySpark is built, because it is published as source only. Its build uses the packages of requirements-build.lock,
# and downloads no others. All other packages are wheels.
ENV PIP_NO_CACHE_DIR=1 PIP_NO_DEPS=1 PIP_USE_PEP517=1 PIP_FIND_LINKS=/build/files
RUN /build/bin/pip install --require-hashes --only-binary :all: -r /build/files/requirements-build.lock \
    && /build/bin/pip wheel --require-hashes --only-binary :all: --no-binary pyspark --no-build-isolation \
        --config-settings --build-option=--compression=stored --wheel-dir /build/wheels -r /build/files/requirements.lock \
    && /build/bin/pip install --require-hashes --only-binary :all: -r /build/files/requirements-materials.lock
# The replicator does not need the demo's client, pip after the installation, and Spark's remote shell, the shell's
# server, and the store of streaming queries, together 150 MB.
RUN unset PYTHONDONTWRITEBYTECODE \
    && pip install --no-index /build/wheels/*.whl \
    && pip uninstall --yes confluent-kafka setuptools pip \
    && (cd /opt/venv/lib/python3*/site-packages/pyspark && rm -r examples jars/connect-repl jars/spark-connect_* jars/rocksdbjni-*) \
    && printf '#!/bin/sh\nexec python -m appliance.cli "$@"\n' >/opt/venv/bin/appliance \
    && chmod 755 /opt/venv/bin/appliance
COPY appliance /opt/appliance/appliance
COPY deploy/materials /build/deploy/materials
# The bill of materials lists the installed packages; its generator stays in this stage.
RUN . /etc/os-release \
    && PYTHONPATH=/opt/appliance:/build /build/bin/python -m deploy.materials /opt/venv/lib/python3*/site-packages /build/wheels \
        /build/files/requirements.lock /packages.txt "$VERSION_ID" >/opt/appliance/bom.json
RUN python -m compileall -q --invalidation-mode unchecked-hash /opt/appliance


FROM machine
LABEL org.opencontainers.image.title="kafka-cloud-replicator" \
      org.opencontainers.image.description="Secure cross-VPC tunnel and exactly-once Kafka replicator" \
      org.opencontainers.image.licenses="Apache-2.0" \
      kafka-cloud-replicator.bill-of-materials="/opt/appliance/bom.json"
COPY --from=builder /opt/venv /opt/venv
COPY --from=builder /opt/appliance /opt/appliance
USER 10001:10001
# Without settings, this says which it needs.
CMD ["appliance", "replicate"]
