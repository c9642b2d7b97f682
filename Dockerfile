# Both images can be pinned by digest: see docs/releasing.md.
ARG BUN_IMAGE=oven/bun:1.4.5-debian
ARG BASE_IMAGE=debian:12-slim

FROM ${BUN_IMAGE} AS build
# The time of the SBOM, in seconds since 1970.
ARG SOURCE_DATE_EPOCH
WORKDIR /tidings
COPY LICENSE package.json bun.lock bunfig.toml tsconfig.json ./
COPY patches patches
# What the packages' own scripts do (fetch Deno, link libraries) the executable can do without.
RUN bun install --frozen-lockfile --ignore-scripts
COPY sql sql
COPY src src
COPY packaging packaging
COPY clients clients
COPY docs docs
RUN bun run compile

FROM ${BASE_IMAGE}
# initdb needs a name for its user. The library gives one to any other uid, as with `--user 568`.
RUN apt-get update \
  && apt-get install --yes --no-install-recommends libnss-wrapper \
  && rm -rf /var/lib/apt/lists/* /var/cache/* /var/log/*
# A volume belongs to the owner of its folder in the image.
RUN useradd --uid 10001 --no-create-home --shell /usr/sbin/nologin tidings \
  && install --directory --owner=tidings --group=tidings /data
COPY --from=build /tidings/dist/tidings /usr/local/bin/tidings
USER tidings
WORKDIR /data
ENV HOST=0.0.0.0 PORT=3000 DATA_DIR=/data
VOLUME /data
EXPOSE 3000
HEALTHCHECK --interval=10s --timeout=6s --start-period=60s CMD ["tidings", "health"]
ENTRYPOINT ["tidings"]
CMD ["serve"]
