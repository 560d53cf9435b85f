# The image of every container; docker-compose.yml says which command each of them runs.
#
# `docker-compose up -d` builds it the first time: with Debian's packages, and with what the requirements' locks list,
# each download checked against the lock's hashes. Where a build has no network: a BASE that has the packages, the files
# of the locks in the folder wheels/, and --build-arg PIP_NO_INDEX=1.
ARG BASE=debian:12.12-slim@sha256:d5d3f9c23164ea16f31852f95bd5959aad1c5e854332fe00f7b3a20fcc9f635c


FROM ${BASE} AS machine
RUN packages="ca-certificates openjdk-17-jre-headless python3"; \
    dpkg --status $packages >/dev/null 2>&1 || { \
        mkdir -p /usr/share/man/man1 \
        && apt-get update \
        && apt-get install --yes --no-install-recommends $packages \
        && rm -rf /var/lib/apt/lists/*; \
    }
# Spark's Java wants to know the name of its user.
RUN echo "appliance:x:10001:10001::/tmp:/usr/sbin/nologin" >>/etc/passwd
ENV PATH=/opt/venv/bin:$PATH PYTHONPATH=/opt/appliance PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 LANG=C.UTF-8


FROM machine AS builder
RUN dpkg-query --show --showformat='${Package}\t${Version}\t${Architecture}\n' >/packages.txt
RUN dpkg --status python3-venv >/dev/null 2>&1 \
    || { apt-get update && apt-get install --yes --no-install-recommends python3-venv; }
RUN python3 -m venv /build && python3 -m venv /opt/venv
ARG PIP_NO_INDEX
COPY requirements.lock requirements-build.lock requirements-materials.lock wheels/* /build/files/
# Only PySpark is built, since it is published as a source alone; with what requirements-build.lock lists, and nothing
# is fetched for it. All the rest are wheels.
ENV PIP_NO_CACHE_DIR=1 PIP_NO_DEPS=1 PIP_USE_PEP517=1 PIP_FIND_LINKS=/build/files
RUN /build/bin/pip install --require-hashes --only-binary :all: -r /build/files/requirements-build.lock \
    && /build/bin/pip wheel --require-hashes --only-binary :all: --no-binary pyspark --no-build-isolation \
        --config-settings --build-option=--compression=stored --wheel-dir /build/wheels -r /build/files/requirements.lock \
    && /build/bin/pip install --require-hashes --only-binary :all: -r /build/files/requirements-materials.lock
# No part of the replicator: the demo's client, pip once it is done, and of Spark the remote shell, its server, and the
# store of a streaming query; the four are 150 MB.
RUN unset PYTHONDONTWRITEBYTECODE \
    && pip install --no-index /build/wheels/*.whl \
    && pip uninstall --yes confluent-kafka setuptools pip \
    && (cd /opt/venv/lib/python3*/site-packages/pyspark && rm -r examples jars/connect-repl jars/spark-connect_* jars/rocksdbjni-*) \
    && printf '#!/bin/sh\nexec python -m appliance.cli "$@"\n' >/opt/venv/bin/appliance \
    && chmod 755 /opt/venv/bin/appliance
COPY appliance /opt/appliance/appliance
COPY deploy/materials /build/deploy/materials
# The bill of materials is read from what is installed; what reads it stays in this stage.
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
CMD ["appliance", "--help"]
