# tacit in an image: `make wheel && docker build -t tacit .`, then
#   docker run --rm -v "$PWD:/work" --user "$(id -u):$(id -g)" tacit demo
# docs/install.md says more.
# The base is named by its digest, so that what a tag means today does not matter: the one that docker-library/repo-info
# lists for python:3.12-slim on 2026-08-05, with Python 3.12.13 on Debian 13. A newer one, with newer security updates:
#   docker buildx imagetools inspect python:3.12-slim
FROM python:3.12-slim@sha256:229a2c5bfa27522db7815ea81f9bed70af17ccb9de9fc7ad142b1877b5830d36 AS built
COPY dist/*.whl deployment.lock /tmp/
# With what `tacit serve` needs, each file by its SHA-256. Nothing is left out of it: manuals, headers and tests of packages are
# where an import takes its words from by default.
RUN python -m venv /opt/tacit \
    && /opt/tacit/bin/pip install --no-cache-dir --disable-pip-version-check --require-hashes -r /tmp/deployment.lock \
    && /opt/tacit/bin/pip install --no-cache-dir --disable-pip-version-check --no-deps /tmp/*.whl

FROM python:3.12-slim@sha256:229a2c5bfa27522db7815ea81f9bed70af17ccb9de9fc7ad142b1877b5830d36
COPY --from=built /opt/tacit /opt/tacit
# Whoever runs it may keep machine code and figures' fonts, without a home; nothing else of the image can be written.
RUN useradd --uid 1000 --no-create-home --home-dir /work tacit \
    && install -d -m 1777 /var/cache/tacit \
    && install -d -o tacit /work
ENV PATH=/opt/tacit/bin:$PATH \
    NUMBA_CACHE_DIR=/var/cache/tacit/numba \
    MPLCONFIGDIR=/var/cache/tacit/matplotlib \
    PYTHONDONTWRITEBYTECODE=1
USER tacit
WORKDIR /work
# Fails the build where what tacit stands on does not work. What it compiles stays out: another user could not add to it.
RUN NUMBA_CACHE_DIR=/tmp/doctor tacit doctor && rm -r /tmp/doctor
ENTRYPOINT ["tacit"]
