#!/bin/sh
# Makes Temporal's two databases, or brings their tables up to the version of this image. May run again at any time.
set -eu
SQL_PASSWORD="$(cat /run/secrets/temporal_db_password)"
export SQL_PASSWORD
for database in temporal temporal_visibility; do
  case "$database" in
    temporal) schema=temporal ;;
    *) schema=visibility ;;
  esac
  tool="temporal-sql-tool --plugin postgres12 --ep postgresql -p 5432 -u temporal --db $database"
  # What is there already, these refuse; what matters is that the last one does not.
  $tool create || true
  $tool setup-schema -v 0.0 || true
  $tool update-schema -d "/etc/temporal/schema/postgresql/v12/$schema/versioned"
done
