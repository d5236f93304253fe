#!/bin/sh
# Creates the namespace and the search attributes by which the UI finds runs. Safe to run again.
set -eu
namespace="${TEMPORAL_NAMESPACE:-default}"
# How long the UI shows ended runs. Reports and the ledger in the data folder are kept.
retention="${TEMPORAL_RETENTION:-30d}"
command -v temporal > /dev/null || { echo "This needs Temporal's command line, temporal, on the PATH." >&2; exit 1; }
# The server's port opens before the server answers.
tries=0
until temporal operator cluster health > /dev/null 2>&1; do
  tries=$((tries + 1))
  if [ "$tries" -ge 120 ]; then
    echo "Temporal is not ready:" >&2
    temporal operator cluster health
    exit 1
  fi
  sleep 1
done
if ! temporal operator namespace describe --namespace "$namespace" > /dev/null 2>&1; then
  temporal operator namespace create --namespace "$namespace" --retention "$retention"
fi
# A new namespace takes some seconds to be known everywhere.
tries=0
until there="$(temporal operator search-attribute list --namespace "$namespace" 2> /dev/null)"; do
  tries=$((tries + 1))
  if [ "$tries" -ge 60 ]; then
    echo "Temporal does not list the search attributes of $namespace." >&2
    exit 1
  fi
  sleep 1
done
for attribute in Verdict=Keyword NeedsPerson=Bool Resource=KeywordList; do
  name="${attribute%%=*}"
  case "$there" in
    *" $name "*) ;;
    *) temporal operator search-attribute create --namespace "$namespace" --name "$name" --type "${attribute##*=}" ;;
  esac
done
