# sluice in a container: non-root, read-only root file system, state on a volume.
#   docker run --read-only -v sluice-state:/var/lib/sluice -v ./sluice.yaml:/etc/sluice/sluice.yaml:ro sluice
FROM node:26-slim AS dependencies
WORKDIR /app
COPY package.json package-lock.json ./
# The image brings its own Node, so the optional dependencies that bring one are left out.
RUN npm ci --omit=dev --omit=optional --no-audit --no-fund

FROM node:26-slim
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
# `status` reads the state directory; it fails when the config or the state cannot be read.
HEALTHCHECK --interval=30s --timeout=10s --start-period=20s \
  CMD ["/app/src/boot/main.ts", "status", "-c", "/etc/sluice/sluice.yaml", "--json"]
ENTRYPOINT ["/app/src/boot/main.ts"]
CMD ["run", "-c", "/etc/sluice/sluice.yaml"]
