# sluice in a container: non-root, read-only root file system, state on a volume.
#   docker run --read-only -v sluice-state:/var/lib/sluice -v ./sluice.yaml:/etc/sluice/sluice.yaml:ro sluice
# The exact version that package.json brings to other machines.
FROM node:26.10.0-bookworm-slim AS dependencies
WORKDIR /app
COPY package.json package-lock.json ./
# The image brings its own Node, so the packages that bring one are taken out; the other optional one writes to buckets.
RUN npm ci --omit=dev --ignore-scripts --no-audit --no-fund && rm -rf node_modules/node-linux-* node_modules/.bin/node

FROM node:26.10.0-bookworm-slim
ENV NODE_ENV=production
# Where the state is kept if the config does not say: the config may be mounted read-only.
ENV STATE_DIRECTORY=/var/lib/sluice
WORKDIR /app
COPY --from=dependencies /app/node_modules ./node_modules
COPY package.json LICENSE README.md ./
COPY src ./src
COPY connectors ./connectors
COPY formats ./formats
COPY config ./config
RUN install -d -o node -g node /var/lib/sluice
USER node
WORKDIR /var/lib/sluice
VOLUME /var/lib/sluice
# Asks the status server (`status.listen`), by bash alone: a Node for each question would cost more than a quiet sluice does.
# Where nobody listens there is nothing to ask, and a process that has ended takes its container along.
ENV SLUICE_STATUS=127.0.0.1/8686
HEALTHCHECK --interval=30s --timeout=10s --start-period=60s CMD ["/bin/bash", "-c", "{ exec 3<>/dev/tcp/$SLUICE_STATUS; } 2>/dev/null || exit 0; printf 'GET /healthz HTTP/1.1\\r\\nHost: 127.0.0.1\\r\\nConnection: close\\r\\n\\r\\n' >&3; read -r -t 8 _ status _ <&3 && [ \"$status\" = 200 ] || exit 1"]
ENTRYPOINT ["/app/src/boot/sluice.js"]
CMD ["run", "-c", "/etc/sluice/sluice.yaml"]
