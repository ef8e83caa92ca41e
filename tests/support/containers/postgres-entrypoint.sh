#!/bin/sh
# What the published image's entry point does with the variables of compose.yaml: as root it reads the password's file,
# then it goes on as `postgres`, makes the database if there is none, and becomes the server.
set -eu
if [ "$(id -u)" = 0 ]; then
  POSTGRES_PASSWORD=$(cat "$POSTGRES_PASSWORD_FILE")
  export POSTGRES_PASSWORD
  mkdir -p "$PGDATA"
  chown postgres "$PGDATA"
  chmod 700 "$PGDATA"
  exec setpriv --reuid=postgres --regid=postgres --init-groups sh "$0" "$@"
fi
if [ ! -s "$PGDATA/PG_VERSION" ]; then
  printf '%s' "$POSTGRES_PASSWORD" > /tmp/password
  initdb --username="$POSTGRES_USER" --pwfile=/tmp/password --encoding=UTF8 >&2
  rm /tmp/password
  echo 'host all all all scram-sha-256' >> "$PGDATA/pg_hba.conf"
  pg_ctl --wait --options="-c listen_addresses=" start >&2
  createdb --username="$POSTGRES_USER" "$POSTGRES_DB"
  pg_ctl --wait stop >&2
fi
unset POSTGRES_PASSWORD
exec "$@" -c listen_addresses='*'
