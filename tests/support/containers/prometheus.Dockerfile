# Stands in for prom/prometheus: Debian's 2.42, as that user, with that entry point and those paths.
FROM localhost/warmband-debian:bookworm
RUN apt-get update -qq && apt-get install -y -qq --no-install-recommends prometheus && apt-get clean && rm -rf /var/lib/apt/lists/* \
 && mkdir -p /prometheus && chown nobody:nogroup /prometheus
USER nobody
WORKDIR /prometheus
VOLUME /prometheus
ENTRYPOINT ["/usr/bin/prometheus"]
CMD ["--config.file=/etc/prometheus/prometheus.yml", "--storage.tsdb.path=/prometheus"]
