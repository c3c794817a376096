# tacit in an image: `make wheel && docker build -t tacit .`, then
#   docker run --rm -v "$PWD:/work" --user "$(id -u):$(id -g)" tacit demo
# docs/install.md says more.
FROM python:3.12-slim AS built
COPY dist/*.whl /tmp/
# With what `tacit serve` needs. Nothing is left out of it: manuals, headers and tests of packages are the public text of the demo.
RUN python -m venv /opt/tacit \
    && /opt/tacit/bin/pip install --no-cache-dir --disable-pip-version-check "$(echo /tmp/*.whl)[deployment]"

FROM python:3.12-slim
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
