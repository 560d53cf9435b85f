# The image of all roles, for amd64 and arm64; docker-compose.yml has the command of each.
#
# The first `docker-compose up -d` builds it, from Debian's packages and those of the requirements' locks; each download
# is checked against the lock's hashes. `bin/image build` makes it bit for bit the same each time. A build without network
# needs a BASE and a TOOLS with Debian's packages, the files of the locks in the folder wheels/, and PIP_NO_INDEX=1.
ARG BASE=debian:12.12-slim@sha256:d5d3f9c23164ea16f31852f95bd5959aad1c5e854332fe00f7b3a20fcc9f635c
ARG TOOLS=${BASE}


FROM ${BASE} AS installed
COPY deploy/image/debian.sh requirements-debian.lock /opt/debian/
ARG SNAPSHOT
RUN /opt/debian/debian.sh ca-certificates python3
# Without apt, Perl and file systems, with which nothing runs. Spark's Java requires a user with a name.
COPY deploy/image/trim.sh /opt/debian/
RUN /opt/debian/trim.sh && echo "appliance:x:10001:10001::/tmp:/usr/sbin/nologin" >>/etc/passwd
RUN dpkg-query --show --showformat='${Package}\t${Version}\t${Architecture}\n' >/opt/debian/packages.txt


# What is removed takes no room: all of Debian is one layer.
FROM scratch AS machine
COPY --from=installed / /
ENV PATH=/opt/venv/bin:/opt/java/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin JAVA_HOME=/opt/java \
    PYTHONPATH=/opt/appliance PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 LANG=C.UTF-8


FROM ${TOOLS} AS builder
COPY deploy/image/debian.sh requirements-debian.lock /opt/debian/
ARG SNAPSHOT
RUN /opt/debian/debian.sh ca-certificates python3 python3-venv openjdk-17-jdk-headless binutils
# Nothing that is built depends on the day, the order of a directory, or a random number.
ENV LANG=C.UTF-8 SOURCE_DATE_EPOCH=315532800 PYTHONHASHSEED=0 PYTHONDONTWRITEBYTECODE=1
# Java with the modules that Spark may use, without those for a screen, a compiler and a debugger.
RUN /usr/lib/jvm/java-17-openjdk-*/bin/jlink --output /opt/java --compress=2 --include-locales=en \
        --strip-java-debug-attributes --no-header-files --no-man-pages --disable-plugin system-modules \
        --add-modules java.se,jdk.attach,jdk.charsets,jdk.crypto.cryptoki,jdk.crypto.ec,jdk.httpserver \
        --add-modules jdk.incubator.vector,jdk.jcmd,jdk.jfr,jdk.localedata,jdk.management,jdk.management.agent \
        --add-modules jdk.naming.dns,jdk.net,jdk.nio.mapmode,jdk.sctp,jdk.security.auth,jdk.security.jgss \
        --add-modules jdk.unsupported,jdk.xml.dom,jdk.zipfs \
    && cd /opt/java/lib && rm libawt* libfontmanager.so libjavajpeg.so libjawt.so libjsound.so liblcms.so libmlib_image.so libsplashscreen.so
RUN python3 -m venv /build && python3 -m venv --without-pip /opt/venv
ARG PIP_NO_INDEX
COPY requirements.lock requirements-build.lock requirements-materials.lock wheels/* /build/files/
# Only PySpark is built, because it is published as source only. Its build uses the packages of requirements-build.lock,
# and downloads no others. All other packages are wheels.
ENV PIP_NO_CACHE_DIR=1 PIP_NO_DEPS=1 PIP_USE_PEP517=1 PIP_FIND_LINKS=/build/files
RUN /build/bin/pip install --require-hashes --only-binary :all: -r /build/files/requirements-build.lock \
    && /build/bin/pip wheel --require-hashes --only-binary :all: --no-binary pyspark --no-build-isolation \
        --config-settings --build-option=--compression=stored --wheel-dir /build/wheels -r /build/files/requirements.lock \
    && /build/bin/pip install --require-hashes --only-binary :all: -r /build/files/requirements-materials.lock
COPY deploy/__init__.py /build/deploy/
COPY deploy/image /build/deploy/image
# Without what nothing here uses; Spark's libraries lie apart, in a layer that changes with Spark alone.
RUN /build/bin/pip --python /opt/venv/bin/python install --no-compile --no-index /build/wheels/*.whl \
    && site=$(echo /opt/venv/lib/python3*/site-packages) \
    && PYTHONPATH=/build /build/bin/python -m deploy.image.slim "$site" \
    && find "$site" -name '*.so*' -not -path '*/numpy*' -exec strip --strip-unneeded '{}' + \
    && python3 -m compileall -q --invalidation-mode unchecked-hash \
        -x 'site-packages/(authlib|boto|click|cffi|numpy/(ma|polynomial|testing)|packaging|pycparser|pygments|pyspark/(pipelines|streaming|testing))' \
        /opt/venv/lib \
    && mkdir -p "/build/jars$site/pyspark" && mv "$site/pyspark/jars" "/build/jars$site/pyspark/" \
    && printf '#!/bin/sh\nexec python -m appliance.cli "$@"\n' >/opt/venv/bin/appliance \
    && chmod 755 /opt/venv/bin/appliance
COPY appliance /opt/appliance/appliance
COPY deploy/materials /build/deploy/materials
COPY --from=installed /opt/debian/packages.txt /build/packages.txt
# The bill of materials lists the installed packages; its generator stays in this stage.
RUN . /etc/os-release \
    && dpkg-query --show --showformat='${Package}\t${Version}\t${Architecture}\n' openjdk-17-jre-headless >>/build/packages.txt \
    && site=$(echo /opt/venv/lib/python3*/site-packages) && ln -s "/build/jars$site/pyspark/jars" "$site/pyspark/jars" \
    && PYTHONPATH=/opt/appliance:/build /build/bin/python -m deploy.materials "$site" /build/wheels \
        /build/files/requirements.lock /build/packages.txt "$VERSION_ID" /opt/debian/requirements-debian.lock \
        >/opt/appliance/bom.json \
    && PYTHONPATH=/opt/appliance:/build /opt/venv/bin/python -m deploy.image.entrypoint >/opt/appliance/entrypoint \
    && chmod 755 /opt/appliance/entrypoint \
    && rm "$site/pyspark/jars" \
    && python3 -m compileall -q --invalidation-mode unchecked-hash /opt/appliance


FROM machine
LABEL org.opencontainers.image.title="kafka-cloud-replicator" \
      org.opencontainers.image.description="Secure cross-VPC tunnel and exactly-once Kafka replicator" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="0.3.0" \
      kafka-cloud-replicator.bill-of-materials="/opt/appliance/bom.json"
# What changes seldom first, so that an upgrade of the appliance alone fetches its last layer.
COPY --from=builder /opt/java /opt/java
COPY --from=builder /build/jars/opt/venv /opt/venv
COPY --from=builder /opt/venv /opt/venv
COPY --from=builder /opt/appliance /opt/appliance
USER 10001:10001
# Runs one of the appliance's commands, or any other program.
ENTRYPOINT ["/opt/appliance/entrypoint"]
# Without settings, this says which it needs.
CMD ["appliance", "replicate"]
