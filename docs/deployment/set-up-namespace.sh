#!/bin/sh
# Makes the namespace and the search attributes that runs are found by in the UI. May run again at any time.
set -eu
namespace="${TEMPORAL_NAMESPACE:-default}"
# The UI shows what has ended for so long. Reports and the ledger in the data folder stay.
retention="${TEMPORAL_RETENTION:-30d}"
if ! temporal operator namespace describe --namespace "$namespace" > /dev/null 2>&1; then
  temporal operator namespace create --namespace "$namespace" --retention "$retention"
fi
# A namespace is known everywhere some seconds after it was made.
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
