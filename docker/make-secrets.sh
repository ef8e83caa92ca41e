#!/bin/sh
# Makes the secrets of compose.yaml in docker/secrets/, which git ignores: what is there already stays. Each image runs as
# a user of its own, so the files are for you and your group, which .env gives the containers.
set -eu
umask 027
cd "$(dirname "$0")"
mkdir -p secrets
cd secrets

make() {
  [ -s "$1" ] || od -An -N32 -tx1 /dev/urandom | tr -d ' \n' > "$1"
}

make ray_token
make postgres_password
make grafana_password
make serve_token
[ -s store_url ] || printf 'postgresql://warmband:%s@postgres/warmband' "$(cat postgres_password)" > store_url
digest=$(printf '%s' "$(cat serve_token)" | sha256sum | cut -d' ' -f1)
[ -s serve_tokens ] || printf '{"tokens": [{"name": "first", "rights": "act", "sha256": "%s"}]}\n' "$digest" > serve_tokens
echo "WARMBAND_GID=$(id -g)" > ../.env
echo "docker/secrets/: ray_token, postgres_password, grafana_password, serve_token and its digest serve_tokens, store_url"
