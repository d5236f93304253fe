#!/bin/bash
# As much of the official image's entry point as docker-compose.yml relies on: the folder's owner, the first start with
# a password from a file, and a database named after the user.
set -euo pipefail
if [ "$(id -u)" = 0 ]; then
  chown postgres:postgres "$PGDATA"
  exec setpriv --reuid=postgres --regid=postgres --init-groups "$0" "$@"
fi
if [ ! -s "$PGDATA/PG_VERSION" ]; then
  initdb --username="$POSTGRES_USER" --pwfile="$POSTGRES_PASSWORD_FILE" --auth-local=trust --auth-host=scram-sha-256 \
    ${POSTGRES_INITDB_ARGS:-}
  echo 'host all all all scram-sha-256' >> "$PGDATA/pg_hba.conf"
  echo "create database \"$POSTGRES_USER\"" | postgres --single -j postgres
fi
exec "$@" -c listen_addresses='*'
