# Two images: `docker build --target cpu .` and `docker build --target gpu .` (x86-64). docs/operations.md#containers
# explains them. Every package is one of the lock files, with its hash, as in the environment that `make` builds.
ARG PYTHON=python:3.11.13-slim-bookworm

FROM ${PYTHON} AS base
ENV PATH=/opt/leadline/.venv/bin:$PATH \
    PREFECT_SERVER_ANALYTICS_ENABLED=false DO_NOT_TRACK=1 GX_ANALYTICS_ENABLED=false \
    PREFECT_HOME=/opt/leadline/data/.prefect HF_HOME=/opt/leadline/data/.models
WORKDIR /opt/leadline
RUN useradd --create-home --uid 10001 leadline

FROM base AS build
COPY requirements*.lock ./
RUN python -m venv .venv \
    && sed -n '/^uv==/,/[^\\]$/p' requirements-dev.lock > /tmp/uv.lock \
    && pip install --no-cache-dir --require-hashes -r /tmp/uv.lock

FROM build AS build-cpu
# The index of torch's CPU builds; with requirements-torch.lock, the index may be left out.
ARG TORCH_LOCK=requirements-torch-cpu.lock
ARG TORCH_INDEX=https://download.pytorch.org/whl/cpu
RUN uv pip install --no-cache --no-deps --require-hashes -r requirements.lock -r requirements-ducklake.lock \
    && uv pip install --no-cache --no-deps --require-hashes --index ${TORCH_INDEX} --index-strategy unsafe-best-match -r ${TORCH_LOCK}
COPY . .
RUN uv pip install --no-cache --no-deps --build-constraints requirements-dev.lock --require-build-hashes --editable .

FROM build AS build-gpu
RUN uv pip install --no-cache --no-deps --require-hashes -r requirements-gpu.lock -r requirements-ducklake.lock
COPY . .
RUN uv pip install --no-cache --no-deps --build-constraints requirements-dev.lock --require-build-hashes --editable .

FROM base AS cpu
COPY --from=build-cpu /opt/leadline /opt/leadline
RUN install -d -o leadline data
USER leadline
VOLUME /opt/leadline/data
ENTRYPOINT ["leadline"]
CMD ["--help"]

FROM base AS gpu
# vLLM compiles small kernels when it loads a model.
RUN apt-get update && apt-get install -y --no-install-recommends gcc libc6-dev && rm -rf /var/lib/apt/lists/*
COPY --from=build-gpu /opt/leadline /opt/leadline
RUN install -d -o leadline data
USER leadline
VOLUME /opt/leadline/data
ENTRYPOINT ["leadline"]
CMD ["--help"]
