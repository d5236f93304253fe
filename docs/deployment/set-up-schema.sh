#!/bin/sh
# Creates Temporal's two databases, or migrates their tables to the version of this image. Safe to run again.
set -eu
SQL_PASSWORD="$(cat /run/secrets/temporal_db_password)"
export SQL_PASSWORD
for database in temporal temporal_visibility; do
  case "$database" in
    temporal) schema=temporal ;;
    *) schema=visibility ;;
  esac
  tool="temporal-sql-tool --plugin postgres12 --ep postgresql -p 5432 -u temporal --db $database"
  $tool create
  $tool setup-schema -v 0.0
  $tool update-schema -d "/etc/temporal/schema/postgresql/v12/$schema/versioned"
done
