# Stands in for the public PostgreSQL 16 image where no registry is reached: the server of the embedded package, the
# same paths, user id and POSTGRES_* variables. pg_isready and psql come from Debian's client package.
FROM docker.io/library/debian:bookworm-slim
RUN apt-get update \
 && apt-get install --yes --no-install-recommends libstdc++6 postgresql-client-15 \
 && rm -rf /var/lib/apt/lists/* \
 && groupadd --gid 999 postgres && useradd --uid 999 --gid postgres --home-dir /var/lib/postgresql postgres
COPY native /opt/postgresql
RUN mkdir -p /var/lib/postgresql/data /var/run/postgresql \
 && chown -R postgres:postgres /var/lib/postgresql /var/run/postgresql \
 && chmod -R a+rX /opt/postgresql && chmod a+rx /opt/postgresql/bin/*
COPY --chown=root:root postgres-entrypoint.sh /usr/local/bin/docker-entrypoint.sh
RUN chmod a+rx /usr/local/bin/docker-entrypoint.sh
ENV PATH=/opt/postgresql/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
    PGDATA=/var/lib/postgresql/data \
    LANG=C.UTF-8
VOLUME /var/lib/postgresql/data
USER 999:999
STOPSIGNAL SIGINT
ENTRYPOINT ["docker-entrypoint.sh"]
CMD ["postgres"]
