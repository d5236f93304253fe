#!/bin/sh
# Serves /bucket as an S3 store with the bucket `connector`, for the key in the workers' file of credentials.
set -eu
value() { sed -n "s/^ *$1 *= *//p" /run/secrets/aws_credentials; }
ROOT_ACCESS_KEY=$(value aws_access_key_id)
ROOT_SECRET_KEY=$(value aws_secret_access_key)
export ROOT_ACCESS_KEY ROOT_SECRET_KEY
mkdir -p /bucket/connector
exec versitygw --port :7070 --keep-alive --quiet posix /bucket
