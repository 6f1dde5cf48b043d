# sluice in a container: non-root, read-only root file system, state on a volume.
#   docker run --read-only -v sluice-state:/var/lib/sluice -v ./sluice.yaml:/etc/sluice/sluice.yaml:ro sluice
# The same Node version as in package.json.
FROM node:26.10.0-bookworm-slim AS dependencies
WORKDIR /app
COPY package.json package-lock.json ./
# The image has its own Node, so the Node packages are removed. The other optional packages are for S3 and gRPC.
RUN npm ci --omit=dev --ignore-scripts --no-audit --no-fund && rm -rf node_modules/node-linux-* node_modules/.bin/node

FROM node:26.10.0-bookworm-slim
ENV NODE_ENV=production
# The directory of the state if the config sets none: the config may be on a read-only mount.
ENV STATE_DIRECTORY=/var/lib/sluice
WORKDIR /app
COPY --from=dependencies /app/node_modules ./node_modules
COPY package.json LICENSE README.md ./
COPY src ./src
COPY connectors ./connectors
COPY formats ./formats
COPY config ./config
# The image of a release has the same paths, user and commands (deploy/release/image.ts).
RUN ln -s /app/src/boot/sluice.js /usr/bin/sluice && install -d -o 65532 -g 65532 -m 0700 /var/lib/sluice
USER 65532:65532
WORKDIR /var/lib/sluice
VOLUME /var/lib/sluice
HEALTHCHECK --interval=30s --timeout=10s --start-period=60s CMD ["/usr/bin/sluice", "healthy", "-c", "/etc/sluice/sluice.yaml"]
ENTRYPOINT ["/usr/bin/sluice"]
CMD ["run", "-c", "/etc/sluice/sluice.yaml"]
