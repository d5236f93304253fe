# syntax=docker/dockerfile:1
# The connector as an image: `worker` unless told otherwise. docs/deployment.md says how to run it.

# Debian: the Temporal SDK's native part and DuckDB are made for glibc, not for Alpine's musl.
FROM node:24-slim AS build
WORKDIR /build
# First what changes seldom, so that a change of code does not install anything again.
COPY package.json package-lock.json .npmrc ./
# No install scripts: those of our dependencies only get what the image has already, or what only tests need.
RUN npm ci --ignore-scripts
COPY . .
RUN npm run prepack && npm prune --omit=dev --ignore-scripts

FROM node:24-slim
# The slim image has no root certificates. Node brings its own; the Temporal SDK takes the system's, as for Temporal Cloud.
RUN apt-get update \
    && apt-get install -y --no-install-recommends ca-certificates \
    && rm -rf /var/lib/apt/lists/*
# /data holds the ledger of what was sent: mount something there that stays.
ENV NODE_ENV=production \
    CONNECTOR_DATA_DIR=/data \
    CONNECTOR_METRICS_ADDRESS=127.0.0.1:9464
WORKDIR /app
RUN install -d -o node -g node -m 700 /data \
    && ln -s /app/scripts/start.js /usr/local/bin/connector
COPY --from=build /build/node_modules ./node_modules
COPY --from=build /build/package.json ./
COPY --from=build /build/dist ./dist
COPY --from=build /build/scripts/start.js ./scripts/
COPY --from=build /build/worker/cache-folder.js ./worker/
USER node
VOLUME /data
EXPOSE 9464
# It lets the requests in flight end first (at most BILLING_TIMEOUT_SECONDS and 5 s): stop with `docker stop -t 60`.
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s --retries=3 \
    CMD ["node", "-e", "fetch('http://127.0.0.1:9464/healthz').then((r) => process.exit(r.ok ? 0 : 1), () => process.exit(1))"]
ENTRYPOINT ["connector"]
CMD ["worker"]
