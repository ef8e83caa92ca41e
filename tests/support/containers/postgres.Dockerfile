# Stands in for postgres:17: Debian's 15, and of the published entry point what compose.yaml needs.
FROM localhost/warmband-debian:bookworm
RUN mkdir -p /etc/postgresql-common && echo 'create_main_cluster = false' > /etc/postgresql-common/createcluster.conf \
 && apt-get update -qq && apt-get install -y -qq --no-install-recommends postgresql-15 && apt-get clean && rm -rf /var/lib/apt/lists/*
ENV PATH=/usr/lib/postgresql/15/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 PGDATA=/var/lib/postgresql/data
COPY postgres-entrypoint.sh /usr/local/bin/
RUN mkdir -p "$PGDATA" && chown postgres:postgres "$PGDATA"
VOLUME /var/lib/postgresql/data
STOPSIGNAL SIGINT
ENTRYPOINT ["sh", "/usr/local/bin/postgres-entrypoint.sh"]
CMD ["postgres"]
